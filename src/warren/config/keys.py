"""The keys of a section, as its attributes declare them.

An attribute is its key with `_` for `-`. One without a default must be given in the file.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import get_type_hints

from warren.config.checks import Check, Formerly, NoEffect, Secret


@dataclass(frozen=True)
class Key:
    """One key of a section, as declared on the section's attribute."""

    name: str
    attribute: str
    check: Check
    required: bool
    formerly: str | None
    no_effect: str | None
    is_secret: bool


@cache
def keys_of(section: type) -> Mapping[str, Key]:
    """The keys of a section by their name in the file, in the order they are declared."""
    hints = get_type_hints(section, include_extras=True)
    found: dict[str, Key] = {}
    for attribute in fields(section):
        notes = getattr(hints[attribute.name], "__metadata__", ())
        for check in (note for note in notes if isinstance(note, Check)):
            name = attribute.name.rstrip("_").replace("_", "-")
            found[name] = Key(
                name=name,
                attribute=attribute.name,
                check=check,
                required=attribute.default is MISSING and attribute.default_factory is MISSING,
                formerly=next((note.name for note in notes if isinstance(note, Formerly)), None),
                no_effect=next((note.why for note in notes if isinstance(note, NoEffect)), None),
                is_secret=any(isinstance(note, Secret) for note in notes),
            )
    return found

"""Environment variables that override keys of the file: BURROW_LOGGING_LEVEL is `level` in `[logging]`."""

from collections.abc import Mapping, Sequence
from typing import Any

from warren.config.section import Key

OWN_PREFIX = "WARREN"


def variable(prefix: str, *path: str) -> str:
    """The variable of a key: its section's and its own name in capitals, all other signs as `_`."""
    words = "_".join((prefix, *path)).upper()
    return "".join("_" if sign in ".- " else sign for sign in words)


def overrides(
    path: Sequence[str], keys: Mapping[str, Key], prefixes: Sequence[str], environ: Mapping[str, str]
) -> dict[str, tuple[str, Any]]:
    """For each key of a section that the environment sets: the variable, and its value; an empty one sets nothing."""
    found: dict[str, tuple[str, Any]] = {}
    for key in keys.values():
        for name in (key.formerly, key.name):
            for prefix in prefixes:
                said = environ.get(variable(prefix, *path, name), "") if name else ""
                if name and said:
                    found[key.name] = variable(prefix, *path, name), key.check.from_text(said)
    return found

"""Environment variables override keys of the file: BURROW_LOGGING_LEVEL overrides `level` of `[logging]`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from warren.config.section import Key

OWN_PREFIX = "WARREN"


def variable(prefix: str, *path: str) -> str:
    """The variable of a key: the names of its section and itself in capitals, with `_` for `.`, `-` and spaces."""
    return re.sub(r"[.\- ]", "_", "_".join((prefix, *path)).upper())


def overrides(
    path: Sequence[str], keys: Mapping[str, Key], prefixes: Sequence[str], environ: Mapping[str, str]
) -> dict[str, tuple[str, Any]]:
    """The keys of a section that the environment sets, with the variable and its value; an empty one sets nothing."""
    values: dict[str, tuple[str, Any]] = {}
    for key in keys.values():
        for name in filter(None, (key.formerly, key.name)):
            for prefix in prefixes:
                text = environ.get(variable(prefix, *path, name), "")
                if text:
                    values[key.name] = variable(prefix, *path, name), key.check.from_text(text)
    return values

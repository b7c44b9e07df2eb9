"""Names picked by telegraf's globs: * and ? as ever, [abc] and [!a-c] for one of some signs, {a,b} for some words."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warren.domain.filters import accepts, regex_mistake


def glob_regex(glob: str) -> str:
    """A glob as a regular expression of RE2 for a whole name; ValueError for one that ends too early."""
    made, depth, at = "", 0, 0
    while at < len(glob):
        sign = glob[at]
        at += 1
        if sign == "\\":
            if at == len(glob):
                raise ValueError("ends in a backslash")
            made += re.escape(glob[at])
            at += 1
        elif sign == "[":
            end = glob.find("]", at + 1)
            if end < 0:
                raise ValueError("has a [ without a ]")
            inner = glob[at:end].replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
            made += f"[{'^' + inner[1:] if inner.startswith('!') else inner}]"
            at = end + 1
        elif sign == "{" or (sign in ",}" and depth):
            depth += {"{": 1, "}": -1}.get(sign, 0)
            made += {"{": "(?:", ",": "|", "}": ")"}[sign]
        else:
            made += {"*": ".*", "?": "."}.get(sign, re.escape(sign))
    if depth:
        raise ValueError("has a { without a }")
    return rf"(?s)\A(?:{made})\z"


def glob_mistake(glob: str) -> str | None:
    """Say why a glob cannot be read, or None when it can."""
    try:
        return regex_mistake(glob_regex(glob))
    except ValueError as error:
        return str(error)


def fits(names: pa.Array, include: Sequence[str], exclude: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Mark the names that fit one of the globs to include, all of them where there is none, and none to exclude."""
    return accepts(names, _any(include), _any(exclude))


def _any(globs: Sequence[str]) -> str | None:
    return "|".join(map(glob_regex, globs)) or None

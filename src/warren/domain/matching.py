"""Names selected by the three notations users write: Burrow's RE2 lists, Telegraf's globs, and * and ? wildcards."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.arrays import Bools

# Arrow compiles a pattern only when there is a value to match, so an empty array would let any pattern pass.
# From buffers: pa.array imports pandas first, which costs every process a second and memory.
_ANY_NAME = pa.StringArray.from_buffers(1, pa.py_buffer(np.zeros(2, np.int32)), pa.py_buffer(b""))


def regex_error(pattern: str) -> str | None:
    """Why RE2, the syntax of Burrow's lists, cannot parse a pattern; None when it can."""
    try:
        pc.match_substring_regex(_ANY_NAME, pattern)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def matches_lists(groups: pa.Array, allowlist: str | None, denylist: str | None) -> Bools:
    """Mark the groups with a match of the allowlist and none of the denylist; a null is no group."""
    if isinstance(groups, pa.DictionaryArray):  # matched once for each distinct group
        is_accepted = matches_lists(groups.dictionary, allowlist, denylist)
        return _to_numpy(pa.array(is_accepted).take(groups.indices))
    is_accepted = _to_numpy(groups.is_valid())
    if allowlist:
        is_accepted &= _to_numpy(pc.match_substring_regex(groups, allowlist))
    if denylist:
        is_accepted &= ~_to_numpy(pc.match_substring_regex(groups, denylist))
    return is_accepted


def _to_numpy(mask: pa.BooleanArray) -> Bools:
    return np.array(mask.fill_null(False), dtype=np.bool_)


def glob_regex(glob: str) -> str:
    """A glob as a regular expression of RE2 for a whole name; ValueError for one that ends too early."""
    regex, depth, at = "", 0, 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "\\":
            if at == len(glob):
                raise ValueError("ends in a backslash")
            regex += re.escape(glob[at])
            at += 1
        elif char == "[":
            end = glob.find("]", at + 1)
            if end < 0:
                raise ValueError("has a [ without a ]")
            inner = glob[at:end].replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
            regex += f"[{'^' + inner[1:] if inner.startswith('!') else inner}]"
            at = end + 1
        elif char == "{" or (char in ",}" and depth):
            depth += {"{": 1, "}": -1}.get(char, 0)
            regex += {"{": "(?:", ",": "|", "}": ")"}[char]
        else:
            regex += {"*": ".*", "?": "."}.get(char, re.escape(char))
    if depth:
        raise ValueError("has a { without a }")
    return rf"(?s)\A(?:{regex})\z"


def glob_error(glob: str) -> str | None:
    """Why a glob cannot be parsed; None when it can."""
    try:
        return regex_error(glob_regex(glob))
    except ValueError as error:
        return str(error)


def matches_globs(names: pa.Array, include: Sequence[str], exclude: Sequence[str]) -> Bools:
    """Mark the names that match one of the globs to include (any name without one) and none of those to exclude."""
    return matches_lists(names, _any(include), _any(exclude))


def _any(globs: Sequence[str]) -> str | None:
    return "|".join(map(glob_regex, globs)) or None


ANY = "*"
MAX_PATTERN_CHARS = 500
MAX_STARS = 20
"""With so many, a name is matched about as fast as with one; with hundreds it takes thirty times as long."""


def matches_wildcards(names: pa.Array, pattern: str) -> Bools:
    """Mark the names that match a pattern of * and ? as a whole."""
    return matches_lists(names, None if pattern == ANY else _regex(pattern), None)


def _regex(pattern: str) -> str:
    # Several stars in a row match the same as one, only slower.
    parts = re.split(r"(\*+|\?)", pattern)
    wildcards = {"*": ".*", "?": "."}
    return rf"(?s)\A{''.join(wildcards.get(part[:1], re.escape(part)) for part in parts)}\z"


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """A pair of allow and deny patterns."""

    allowlist: str | None = None
    denylist: str | None = None


def is_wanted(group: pa.StringArray, filters: Sequence[GroupFilter], storage: GroupFilter) -> Bools:
    """Whether the storage section and any consumer section of a source accept each group."""
    is_accepted = np.zeros(len(group), dtype=np.bool_)
    for section in filters:
        is_accepted |= matches_lists(group, section.allowlist, section.denylist)
    return is_accepted & matches_lists(group, storage.allowlist, storage.denylist)

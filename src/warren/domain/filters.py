"""Which consumer groups are watched, by the allow and deny lists of the configuration."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Arrow compiles a pattern only when there is a value to match, so an empty array would let any pattern pass.
_ONE_GROUP = pa.array([""], pa.string())


def regex_mistake(pattern: str) -> str | None:
    """Say why RE2, the syntax of Burrow's lists, cannot read a pattern, or None when it can."""
    try:
        pc.match_substring_regex(_ONE_GROUP, pattern)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def accepts(groups: pa.Array, allowlist: str | None, denylist: str | None) -> npt.NDArray[np.bool_]:
    """Mark the groups with a match of the allowlist and none of the denylist; a null is no group."""
    if isinstance(groups, pa.DictionaryArray):  # matched once for each distinct group
        is_accepted = accepts(groups.dictionary, allowlist, denylist)
        return _to_numpy(pa.array(is_accepted).take(groups.indices))
    is_accepted = _to_numpy(groups.is_valid())
    if allowlist:
        is_accepted &= _to_numpy(pc.match_substring_regex(groups, allowlist))
    if denylist:
        is_accepted &= ~_to_numpy(pc.match_substring_regex(groups, denylist))
    return is_accepted


def _to_numpy(mask: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return np.array(mask.fill_null(False), dtype=np.bool_)

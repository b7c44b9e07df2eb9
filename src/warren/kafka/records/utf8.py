"""Which of many strings are not UTF-8, when a column as a whole is known not to be."""

import numpy as np
import numpy.typing as npt

# For each first byte of a character how many bytes follow it; what cannot be a first byte has none to follow.
_FOLLOWING = np.zeros(256, np.int8)
_FOLLOWING[0xC2:0xE0] = 1
_FOLLOWING[0xE0:0xF0] = 2
_FOLLOWING[0xF0:0xF5] = 3

_IS_FIRST = _FOLLOWING > 0
_IS_FIRST[:0x80] = True
_IS_FOLLOWER = np.zeros(256, np.bool_)
_IS_FOLLOWER[0x80:0xC0] = True

# The bounds of the second byte keep out overlong forms, surrogates, and what is beyond U+10FFFF.
_SECOND_LOW = np.full(256, 0x80, np.uint8)
_SECOND_LOW[[0xE0, 0xF0]] = 0xA0, 0x90
_SECOND_HIGH = np.full(256, 0xBF, np.uint8)
_SECOND_HIGH[[0xED, 0xF4]] = 0x9F, 0x8F


def is_not_utf8(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which strings, lying end to end in the data between `offsets`, are not UTF-8."""
    data = data[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    is_bad_byte = ~(_IS_FIRST[data] | _IS_FOLLOWER[data])
    firsts = np.flatnonzero(_FOLLOWING[data])
    following = _FOLLOWING[data[firsts]]
    string_end = offsets[np.searchsorted(offsets, firsts, side="right")]
    is_cut = firsts + following >= string_end
    is_bad_byte[firsts[is_cut]] = True
    firsts, following = firsts[~is_cut], following[~is_cut]
    is_expected = np.zeros(len(data), np.bool_)
    for nth in (1, 2, 3):
        expected = firsts[following >= nth] + nth
        is_expected[expected] = True
    # Everything that follows a first byte must be a follower, and no follower may stand elsewhere.
    is_bad_byte |= is_expected != _IS_FOLLOWER[data]
    first, second = data[firsts], data[firsts + 1]
    is_bad_byte[firsts[(second < _SECOND_LOW[first]) | (second > _SECOND_HIGH[first])]] = True
    is_bad = np.zeros(len(offsets) - 1, np.bool_)
    is_bad[np.searchsorted(offsets, np.flatnonzero(is_bad_byte), side="right") - 1] = True
    return is_bad

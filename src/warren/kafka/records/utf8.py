"""Finds the strings of a column that are not UTF-8."""

import numpy as np
import numpy.typing as npt

# How many bytes follow each first byte of a character; 0 for bytes that cannot be a first byte.
_CONTINUATION_COUNT = np.zeros(256, np.int8)
_CONTINUATION_COUNT[0xC2:0xE0] = 1
_CONTINUATION_COUNT[0xE0:0xF0] = 2
_CONTINUATION_COUNT[0xF0:0xF5] = 3

_IS_FIRST = _CONTINUATION_COUNT > 0
_IS_FIRST[:0x80] = True
_IS_CONTINUATION = np.zeros(256, np.bool_)
_IS_CONTINUATION[0x80:0xC0] = True

# The bounds of the second byte exclude overlong forms, surrogates and code points above U+10FFFF.
_SECOND_LOW = np.full(256, 0x80, np.uint8)
_SECOND_LOW[[0xE0, 0xF0]] = 0xA0, 0x90
_SECOND_HIGH = np.full(256, 0xBF, np.uint8)
_SECOND_HIGH[[0xED, 0xF4]] = 0x9F, 0x8F


def is_not_utf8(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which strings are not UTF-8; `offsets` are their bounds in the data, where one follows the other."""
    data = data[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    is_bad_byte = ~(_IS_FIRST[data] | _IS_CONTINUATION[data])
    firsts = np.flatnonzero(_CONTINUATION_COUNT[data])
    continuations = _CONTINUATION_COUNT[data[firsts]]
    string_end = offsets[np.searchsorted(offsets, firsts, side="right")]
    is_cut = firsts + continuations >= string_end
    is_bad_byte[firsts[is_cut]] = True
    firsts, continuations = firsts[~is_cut], continuations[~is_cut]
    is_expected = np.zeros(len(data), np.bool_)
    for nth in (1, 2, 3):
        expected = firsts[continuations >= nth] + nth
        is_expected[expected] = True
    # Continuation bytes must follow a first byte, and cannot be anywhere else.
    is_bad_byte |= is_expected != _IS_CONTINUATION[data]
    first, second = data[firsts], data[firsts + 1]
    is_bad_byte[firsts[(second < _SECOND_LOW[first]) | (second > _SECOND_HIGH[first])]] = True
    is_bad = np.zeros(len(offsets) - 1, np.bool_)
    is_bad[np.searchsorted(offsets, np.flatnonzero(is_bad_byte), side="right") - 1] = True
    return is_bad

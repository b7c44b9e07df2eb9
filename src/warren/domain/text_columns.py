"""Text built column by column."""

from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import offsets_and_bytes

_NOT_PLAIN_IN_JSON = r'["\\\x00-\x1f]'


def joined(*parts: str | pa.StringArray) -> pa.StringArray:
    """Columns and constants, concatenated row by row."""
    return pc.binary_join_element_wise(*parts, "")


def as_text(numbers: NDArray[np.generic]) -> pa.StringArray:
    """Numbers as text."""
    return pc.cast(pa.array(numbers), pa.string())


def as_json(numbers: NDArray[np.floating]) -> pa.StringArray:
    """Numbers as JSON; NaN is null."""
    return pc.if_else(pa.array(np.isnan(numbers)), "null", as_text(numbers))


def replace_matching(
    names: pa.StringArray, plain: pa.StringArray, pattern: str, rewrite: Callable[[str], str]
) -> pa.StringArray:
    """The plain form of each name, except those that match a pattern: each of these is rewritten on its own."""
    matching = np.flatnonzero(np.asarray(pc.match_substring_regex(names, pattern)))
    if matching.size == 0:
        return plain
    others = pa.array([rewrite(name) for name in names.take(pa.array(matching)).to_pylist()], pa.string())
    is_matching = np.zeros(len(names), dtype=np.bool_)
    is_matching[matching] = True
    return pc.replace_with_mask(plain, pa.array(is_matching), others)


def json_strings(names: pa.StringArray) -> pa.StringArray:
    """Names as JSON strings."""
    return replace_matching(
        names, joined('"', names, '"'), _NOT_PLAIN_IN_JSON, lambda name: orjson.dumps(name).decode()
    )


def bytes_of(column: pa.StringArray) -> memoryview:
    """The bytes of all texts of a column, one after the other, without a copy."""
    bounds, data = offsets_and_bytes(column)
    return data[int(bounds[0]) : int(bounds[-1])].data

"""Text made of whole columns."""

from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_NOT_PLAIN_IN_JSON = r'["\\\x00-\x1f]'


def joined(*parts: str | pa.StringArray) -> pa.StringArray:
    """Columns and words, put together row by row."""
    return pc.binary_join_element_wise(*parts, "")


def as_text(numbers: NDArray[np.generic]) -> pa.StringArray:
    """Numbers as text."""
    return pc.cast(pa.array(numbers), pa.string())


def replace_matching(
    names: pa.StringArray, plain: pa.StringArray, odd: str, rewritten: Callable[[str], str]
) -> pa.StringArray:
    """The plain form of each name; of those that match a pattern the one that is made for them, one by one."""
    places = np.flatnonzero(np.asarray(pc.match_substring_regex(names, odd)))
    if places.size == 0:
        return plain
    others = pa.array([rewritten(name) for name in names.take(pa.array(places)).to_pylist()], pa.string())
    is_odd = np.zeros(len(names), dtype=np.bool_)
    is_odd[places] = True
    return pc.replace_with_mask(plain, pa.array(is_odd), others)


def json_strings(names: pa.StringArray) -> pa.StringArray:
    """Names as JSON strings."""
    return replace_matching(
        names, joined('"', names, '"'), _NOT_PLAIN_IN_JSON, lambda name: orjson.dumps(name).decode()
    )


def bytes_of(column: pa.StringArray) -> memoryview:
    """All texts of a column in a row, without a copy."""
    if len(column) == 0:
        return memoryview(b"")
    _, ends, data = column.buffers()
    edges = np.frombuffer(ends, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[int(edges[0]) : int(edges[-1])] if data else memoryview(b"")

"""Whole columns as numpy arrays."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
SmallInts = NDArray[np.int8]
Floats = NDArray[np.float64]


def to_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array, copied only if it has several chunks."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def to_ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    """A column of integers as int64, nulls as -1; copied, and writable, only if it has nulls or another type."""
    values = to_array(column)
    if values.null_count:
        values = values.fill_null(-1)
    ints: Ints = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return ints


def to_codes(column: pa.Array | pa.ChunkedArray) -> Codes:
    """A column of small integers as int32, nulls as -1."""
    return to_ints(column).astype(np.int32)


def to_bools(column: pa.Array | pa.ChunkedArray) -> Bools:
    """A column of booleans without nulls."""
    return np.asarray(to_array(column).to_numpy(zero_copy_only=False), dtype=np.bool_)


def ranges(first: Ints, size: Ints) -> Ints:
    """The numbers of several ranges, one range after the other."""
    ends = np.cumsum(size)
    numbers: Ints = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(first - (ends - size), size)
    return numbers


def sums(values: NDArray[np.generic], edges: Ints) -> Ints:
    """The sum of the values between each edge and the next."""
    total = np.zeros(values.size + 1, dtype=np.int64)
    np.cumsum(values, out=total[1:])
    return total[edges[1:]] - total[edges[:-1]]


def offsets_and_bytes(column: pa.Array) -> tuple[Ints, NDArray[np.uint8]]:
    """The bounds of the values of a binary or string column, and the bytes that they are bounds in."""
    _, offsets, data = column.buffers()
    if offsets is None or not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    dtype = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    bounds = np.frombuffer(offsets, dtype)[column.offset : column.offset + len(column) + 1]
    return bounds.astype(np.int64), np.frombuffer(data or b"", np.uint8)

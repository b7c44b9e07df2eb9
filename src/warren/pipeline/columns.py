"""Arrow columns as numpy arrays."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def to_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, copied only if it has several chunks."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def to_ints(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """A column of integers as int64, nulls as -1."""
    values = to_array(column) if isinstance(column, pa.ChunkedArray) else column
    ints: NDArray[np.int64] = pc.fill_null(values, -1).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return ints


def to_codes(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """A column of small integers as int32, nulls as -1."""
    return to_ints(column).astype(np.int32)


def to_bools(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """A column of booleans without nulls."""
    return np.asarray(to_array(column).to_numpy(zero_copy_only=False), dtype=np.bool_)

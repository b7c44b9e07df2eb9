"""Whole tables on their way to the buckets: cut by bucket, names with them, as Arrow bytes in one row each."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.buckets import bucket_of
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import Piece

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_PIECES = pa.schema([("slot", pa.int32()), ("bucket", pa.int32()), ("what", pa.int32()), ("piece", pa.binary())])


def pieces_of(table: pa.Table, what: Piece, plan: CyclePlan) -> Iterator[pa.RecordBatch]:
    """A table cut by bucket, each part on its way as one piece."""
    for bucket, part in _by_bucket(table, plan):
        yield piece(bucket, what, part, plan)


def _by_bucket(table: pa.Table, plan: CyclePlan) -> Iterator[tuple[int, pa.Table]]:
    if table.num_rows == 0:
        return
    encoded = whole(table["group"])
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    code = numbers(encoded.indices)
    cluster = numbers(table["cluster"])
    bucket = np.zeros(table.num_rows, dtype=np.int64)
    for number in np.unique(cluster):
        rows = cluster == number
        bucket[rows] = bucket_of(plan.clusters[int(number)].name, encoded.dictionary, plan.buckets)[code[rows]]
    order = np.argsort(bucket.astype(np.int16), kind="stable")
    sorted_table = table.take(pa.array(order))
    edges = np.searchsorted(bucket[order], np.arange(plan.buckets + 1))
    for number in range(plan.buckets):
        if edges[number] < edges[number + 1]:
            part = sorted_table.slice(edges[number], edges[number + 1] - edges[number])
            yield number, _with_own_dictionaries(part)


def _with_own_dictionaries(part: pa.Table) -> pa.Table:
    """A part that carries only the names it uses."""
    for at, column in enumerate(part.columns):
        if pa.types.is_dictionary(column.type):
            encoded = whole(column)
            is_named = np.asarray(encoded.indices.is_valid())
            used, codes = np.unique(numbers(encoded.indices)[is_named], return_inverse=True)
            indices = np.zeros(len(encoded), dtype=np.int32)
            indices[is_named] = codes
            own = pa.DictionaryArray.from_arrays(
                pa.array(indices, mask=~is_named), encoded.dictionary.take(pa.array(used, pa.int64()))
            )
            part = part.set_column(at, part.schema.field(at), own)
    return part


def piece(bucket: int, what: Piece, table: pa.Table, plan: CyclePlan) -> pa.RecordBatch:
    """One table as the row that carries it to its bucket."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return pa.RecordBatch.from_arrays(
        [
            pa.array([plan.slots[bucket]], pa.int32()),
            pa.array([bucket], pa.int32()),
            pa.array([int(what)], pa.int32()),
            pa.array([sink.getvalue().to_pybytes()], pa.binary()),
        ],
        schema=_PIECES,
    )


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one array, copied only if it was in several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    """A column of integers as int64, nulls as -1."""
    values = whole(column) if isinstance(column, pa.ChunkedArray) else column
    found: Ints = pc.fill_null(values, -1).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def flags(column: pa.ChunkedArray) -> Bools:
    """A column of booleans."""
    found: Bools = np.asarray(whole(column).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return found

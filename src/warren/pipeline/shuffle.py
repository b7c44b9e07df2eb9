"""Whole tables on their way to the buckets: cut by bucket, names with them, as Arrow bytes in one row each."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from warren.domain.arrays import to_array, to_ints
from warren.domain.buckets import bucket_of
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import ADDRESSED, TableKind

Batches = Iterable[pa.RecordBatch]

JOINED_ROWS, JOINED_BYTES = 50_000, 2**26
"""How many rows, or bytes, are enough for one batch."""


def address_tables(tables: Mapping[TableKind, pa.Table], plan: CyclePlan) -> Iterator[pa.RecordBatch]:
    """Tables cut by bucket, one row for each part; rejects, which have no group, go to bucket 0."""
    for kind, table in tables.items():
        if table.num_rows == 0:
            continue
        parts = [(0, table)] if kind == TableKind.REJECTS else _cut_by_bucket(table, plan)
        for bucket, part in parts:
            yield addressed(bucket, kind, part, plan)


def addressed(bucket: int, kind: TableKind, table: pa.Table, plan: CyclePlan) -> pa.RecordBatch:
    """One table as the row that carries it to its bucket."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    row = {"slot": plan.slots[bucket], "bucket": bucket, "kind": kind, "table": sink.getvalue().to_pybytes()}
    return pa.RecordBatch.from_pylist([row], schema=ADDRESSED)


def call_buckets(plan: CyclePlan) -> pa.RecordBatch:
    """One row per bucket that only makes sure that the bucket is judged."""
    rows = [{"slot": slot, "bucket": bucket, "kind": TableKind.NONE} for bucket, slot in enumerate(plan.slots)]
    return pa.RecordBatch.from_pylist(rows, schema=ADDRESSED)


def gather_tables(batches: Batches) -> dict[int, dict[TableKind, pa.Table]]:
    """The tables that arrived for each bucket."""
    arrived: dict[int, dict[TableKind, list[pa.Table]]] = {}
    for batch in batches:
        for row in range(batch.num_rows):
            tables = arrived.setdefault(batch["bucket"][row].as_py(), {})
            kind = TableKind(batch["kind"][row].as_py())
            if kind != TableKind.NONE:
                tables.setdefault(kind, []).append(pa.ipc.open_stream(batch["table"][row].as_buffer()).read_all())
    return {
        bucket: {kind: pa.concat_tables(parts).unify_dictionaries() for kind, parts in tables.items()}
        for bucket, tables in arrived.items()
    }


def join_batches(batches: Batches, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of Arrow batches that are binary values; short batches are joined, as each costs about the same."""
    joined: list[pa.RecordBatch] = []
    for value in (value for batch in batches for value in batch.column(0)):
        joined.append(pa.ipc.read_record_batch(value.as_buffer(), schema))
        if sum(b.num_rows for b in joined) >= JOINED_ROWS or sum(b.nbytes for b in joined) >= JOINED_BYTES:
            yield from pa.Table.from_batches(joined).combine_chunks().to_batches()
            joined = []
    yield from pa.Table.from_batches(joined, schema).combine_chunks().to_batches()


def _cut_by_bucket(table: pa.Table, plan: CyclePlan) -> Iterator[tuple[int, pa.Table]]:
    groups = to_array(table["group"]).dictionary_encode()
    code, cluster = to_ints(groups.indices), to_ints(table["cluster"])
    bucket = np.zeros(table.num_rows, dtype=np.int64)
    for index in np.unique(cluster):
        rows = cluster == index
        bucket[rows] = bucket_of(plan.clusters[int(index)].name, groups.dictionary, plan.buckets)[code[rows]]
    order = np.argsort(bucket.astype(np.int16), kind="stable")
    sorted_table = table.take(pa.array(order))
    starts = np.searchsorted(bucket[order], np.arange(plan.buckets + 1))
    for number, (start, end) in enumerate(pairwise(starts.tolist())):
        if start < end:
            yield number, _with_own_dictionaries(sorted_table.slice(start, end - start))


def _with_own_dictionaries(part: pa.Table) -> pa.Table:
    """A part that carries only the names it uses."""
    for index, column in enumerate(part.columns):
        if pa.types.is_dictionary(column.type):
            encoded = to_array(column)
            is_named = np.asarray(encoded.indices.is_valid())
            used, codes = np.unique(to_ints(encoded.indices)[is_named], return_inverse=True)
            indices = np.zeros(len(encoded), dtype=np.int32)
            indices[is_named] = codes
            names = encoded.dictionary.take(pa.array(used, pa.int64()))
            own = pa.DictionaryArray.from_arrays(pa.array(indices, mask=~is_named), names)
            part = part.set_column(index, part.schema.field(index), own)
    return part


def bucket_slots(buckets: int) -> tuple[int, ...]:
    """For each bucket the smallest number that Spark's hash partitioning sends to the partition of that bucket."""
    slots: dict[int, int] = {}
    number = 0
    while len(slots) < buckets:
        slots.setdefault(spark_hash(number) % buckets, number)
        number += 1
    return tuple(slots[bucket] for bucket in range(buckets))


def spark_hash(number: int) -> int:
    """Spark's hash of an int (Murmur3, seed 42), computed here: asking Spark would be a whole job at every start."""
    mixed = _rotate(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = _rotate(42 ^ (mixed & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    mixed = (mixed ^ 4) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


def _rotate(number: int, bits: int) -> int:
    number &= 0xFFFFFFFF
    return (number << bits | number >> 32 - bits) & 0xFFFFFFFF

"""The I/O of a bucket: its state loaded from the files of the last snapshot, and written to those of the next."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Codes, Ints, to_array
from warren.domain.windows import COLUMNS, UNKNOWN, Windows, empty, is_filled
from warren.pipeline.head_samples import load_head_history
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import TABLES, TableKind
from warren.pipeline.working_bucket import BucketInputs, Names, Rows, WorkingBucket, new_rows
from warren.snapshot.manifest import Bucket
from warren.snapshot.schemas import GROUPS, PARTITIONS, RATES, WINDOW_COLUMNS
from warren.snapshot.store import Store

ENCODING = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in WINDOW_COLUMNS} | {
    field.name: "DELTA_BINARY_PACKED" for field in PARTITIONS if field.type == pa.int64()
}
"""Slots and counters differ little from row to row: deltas are a third of the bytes and no slower than plain."""

_PLAIN = ("partition", "status", "reason", "since_ms", "complete", "current_lag", "committed_offset", "head",
          "head_ms", "log_start", "offsets_log", "trend_floor", "unread_offset", "unread_since_ms", "unread_error_ms",
          "behind_method", "seconds_behind", "unread_record_ms", "oldest_unread_age_s", "rates_since_ms", *RATES,
          "catch_up_low_s", "catch_up_high_s", "retention_left_s", "lost")  # fmt: skip
"""The columns that files hold as they are in memory."""


def load_bucket(store: Store, plan: CyclePlan, number: int) -> WorkingBucket:
    """A bucket as the last snapshot has it."""
    if not plan.state:
        return WorkingBucket(new_rows(0, plan.intervals))
    table = store.read_parquet(plan.state[number].partitions)
    bucket = from_table(table, [cluster.name for cluster in plan.clusters], plan.intervals)
    bucket.move_times(plan.clock_step_ms)
    return bucket


def load_inputs(store: Store, plan: CyclePlan, number: int, tables: Mapping[TableKind, pa.Table]) -> BucketInputs:
    """What the steps of a bucket need: the tables addressed to it, head history, its groups in the last snapshot."""
    groups_before = store.read_parquet(plan.state[number].groups) if plan.state else GROUPS.empty_table()
    addressed = {kind.name.lower(): tables.get(kind, schema.empty_table()) for kind, schema in TABLES.items()}
    return BucketInputs(plan=plan, heads=load_head_history(store, plan), groups_before=groups_before, **addressed)


def write_bucket(store: Store, plan: CyclePlan, number: int, bucket: WorkingBucket) -> Bucket:
    """Write the files of a bucket under names that no other cycle uses."""
    stem = f"{plan.sequence:012d}-{number:04d}"
    table = to_table(bucket, [cluster.name for cluster in plan.clusters])
    partitions = store.write_table("partitions", stem, table, ENCODING)
    groups = store.write_table("groups", stem, bucket.group_table)
    return Bucket(partitions, groups, len(bucket.rows), bucket.group_table.num_rows)


def from_table(table: pa.Table, clusters: Sequence[str], intervals: int) -> WorkingBucket:
    """A bucket from its partitions table, without the rows of clusters that are no longer configured."""
    bucket = WorkingBucket(new_rows(0, intervals))
    table = table.unify_dictionaries().combine_chunks()
    columns = {name: to_array(table[name]) for name in table.column_names}
    cluster = Names(clusters).find(columns["cluster"])
    bucket.rows = Rows(
        cluster=cluster,
        group=bucket.groups.codes(columns["group"]),
        topic=bucket.topics.codes(columns["topic"]),
        owner=bucket.members.codes(columns["owner"]),
        client_id=bucket.members.codes(columns["client_id"]),
        windows=_to_windows([columns[name] for name in WINDOW_COLUMNS], table.num_rows, intervals),
        **{name: columns[name].to_numpy(zero_copy_only=False).copy() for name in _PLAIN},
    )
    bucket.keep(cluster >= 0)
    return bucket


def _to_windows(lists: Sequence[pa.ListArray], n: int, intervals: int) -> Windows:
    """Lists of slots, oldest first, as matrices with the newest at the right."""
    count = np.diff(lists[0].offsets.to_numpy()).astype(np.int32) if n else np.zeros(0, dtype=np.int32)
    width = max(int(count.max(initial=0)), intervals)
    columns = {name: column.flatten().to_numpy() for name, column in zip(COLUMNS, lists, strict=True)}
    if n and (count == width).all():
        windows = Windows(count, **{name: values.reshape(n, width).copy() for name, values in columns.items()})
    else:
        windows = empty(n, width)
        windows.count = count
        for name, values in columns.items():
            getattr(windows, name)[is_filled(windows)] = values
    if width > intervals:
        windows.count = np.minimum(count, intervals).astype(np.int32)
        for name in COLUMNS:
            setattr(windows, name, np.ascontiguousarray(getattr(windows, name)[:, width - intervals :]))
    return windows


def to_table(bucket: WorkingBucket, clusters: Sequence[str]) -> pa.Table:
    """The partitions table of the snapshot."""
    rows, windows = bucket.rows, bucket.rows.windows
    has_commit = windows.count > 0
    first = windows.intervals - np.maximum(windows.count, 1)
    is_slot = is_filled(windows)
    is_full = bool((windows.count == windows.intervals).all())
    ends = pa.array(np.concatenate([[0], np.cumsum(windows.count)]).astype(np.int32))

    def slots(matrix: Ints) -> pa.Array:
        values = matrix.reshape(-1) if is_full else matrix[is_slot]
        return pa.ListArray.from_arrays(ends, pa.array(values), type=PARTITIONS.field("offsets").type)

    def slot(matrix: Ints, column: Ints | int) -> Ints:
        return np.where(has_commit, matrix[np.arange(len(rows)), column], UNKNOWN)

    columns = {
        "cluster": _to_dictionary(rows.cluster, pa.array(clusters, pa.string())),
        "group": _to_dictionary(rows.group, bucket.groups.values),
        "topic": _to_dictionary(rows.topic, bucket.topics.values),
        "owner": _to_dictionary(np.maximum(rows.owner, 0), bucket.members.values),
        "client_id": _to_dictionary(np.maximum(rows.client_id, 0), bucket.members.values),
        "start_offset": slot(windows.offset, first),
        "start_ms": slot(windows.time_ms, first),
        "start_lag": slot(windows.lag, first),
        "end_offset": slot(windows.offset, -1),
        "end_ms": slot(windows.time_ms, -1),
        "end_lag": slot(windows.lag, -1),
        **{column: slots(getattr(windows, name)) for name, column in zip(COLUMNS, WINDOW_COLUMNS, strict=True)},
        **{name: getattr(rows, name) for name in _PLAIN},
    }
    return pa.table({name: columns[name] for name in PARTITIONS.names}, schema=PARTITIONS)


def _to_dictionary(codes: Codes, names: pa.StringArray) -> pa.DictionaryArray:
    """A column of names that carries only those in use, so that files do not keep the names of what is gone."""
    is_used = np.zeros(len(names), dtype=np.bool_)
    is_used[codes] = True
    if not is_used.all():
        codes = (np.cumsum(is_used, dtype=np.int32) - 1)[codes].astype(np.int32, copy=False)
        names = names.filter(pa.array(is_used))
    return pa.DictionaryArray.from_arrays(pa.array(codes), names)

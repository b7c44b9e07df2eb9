"""The step that rolls up judged partitions to groups."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.pipeline.columns import to_ints
from warren.pipeline.working_bucket import BucketInputs, Names, WorkingBucket
from warren.snapshot.schemas import GROUPS

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Statuses = NDArray[np.int8]

_COUNTED = {
    "count_ok": Status.OK,
    "count_warn": Status.WARN,
    "count_stop": Status.STOP,
    "count_stall": Status.STALL,
    "count_rewind": Status.REWIND,
}


def roll_up_groups(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Make one row per group: the worst status of its partitions, with Burrow's ERR for what is worse than WARN."""
    rows, clusters = bucket.rows, [cluster.name for cluster in inputs.plan.clusters]
    if len(rows) == 0:
        return bucket
    key = bucket.group_keys()
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    size = np.diff(np.append(first, len(rows)))
    group = np.repeat(np.arange(first.size), size)

    worst = np.maximum.reduceat(rows.status, first)
    status = np.where(worst > Status.ERR, Status.ERR, worst).astype(np.int8)
    lag = np.maximum(rows.current_lag, 0)
    end_ms = np.where(rows.windows.count > 0, rows.windows.time_ms[:, -1], UNKNOWN)
    maxlag = np.maximum.reduceat(lag, first)
    columns: dict[str, object] = {
        "cluster": pa.DictionaryArray.from_arrays(pa.array(rows.cluster[first]), pa.array(clusters)),
        "group": bucket.groups.values.take(pa.array(rows.group[first])),
        "status": status,
        "worst_status": worst,
        "since_ms": _since(status, key[first], bucket, inputs),
        "complete": np.add.reduceat(rows.complete == 1.0, first, dtype=np.float32) / size.astype(np.float32),
        "totallag": np.add.reduceat(lag, first),
        "maxlag": maxlag,
        "maxlag_row": _first_row(lag == maxlag[group], group, first),
        "worst_row": _worst_row(rows.status, worst, lag, group, first),
        "first_row": first,
        "partitions": size.astype(np.int32),
        "newest_commit_ms": np.maximum.reduceat(end_ms, first),
        **{name: np.add.reduceat(rows.status == counted, first, dtype=np.int32) for name, counted in _COUNTED.items()},
    }
    bucket.group_table = pa.table({name: columns[name] for name in GROUPS.names}, schema=GROUPS)
    return bucket


def _first_row(holds: Bools, group: Ints, first: Ints) -> Ints:
    """The first row of each group for which a condition holds."""
    rows = np.flatnonzero(holds)
    _, index = np.unique(group[rows], return_index=True)
    return rows[index] if index.size == first.size else first


def _worst_row(status: Statuses, worst: Statuses, lag: Ints, group: Ints, first: Ints) -> Ints:
    """Of each group the partition with the worst status, and among those the one with the largest lag."""
    is_worst = status == worst[group]
    lag_of_worst = np.where(is_worst, lag, UNKNOWN)
    return _first_row(is_worst & (lag_of_worst == np.maximum.reduceat(lag_of_worst, first)[group]), group, first)


def _since(status: Statuses, keys: Ints, bucket: WorkingBucket, inputs: BucketInputs) -> Ints:
    """Since when each group has its status: what it was before, if that is the same."""
    since = np.full(status.size, inputs.plan.now_ms, dtype=np.int64)
    if inputs.groups_before.num_rows == 0:
        return since
    before = inputs.groups_before.unify_dictionaries().combine_chunks()
    clusters = Names(pa.array([cluster.name for cluster in inputs.plan.clusters], pa.string()))
    cluster = clusters.codes_of_dictionary(before["cluster"].chunk(0))
    column = before["group"].chunk(0)
    group = Names(bucket.groups.values).codes_of_dictionary(
        column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    )
    old_keys = np.where(group < len(bucket.groups), bucket.group_keys(cluster, group), -1)
    order = np.argsort(old_keys, kind="stable")
    index = order[np.minimum(np.searchsorted(old_keys, keys, sorter=order), old_keys.size - 1)]
    is_same = (old_keys[index] == keys) & (to_ints(before["status"])[index] == status)
    return np.where(is_same, to_ints(before["since_ms"])[index], since)

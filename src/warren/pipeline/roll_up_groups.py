"""The step that rolls up judged partitions to groups."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.arrays import Bools, Ints, SmallInts, to_array, to_ints
from warren.domain.status import Status
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.pipeline.working_bucket import BucketInputs, Names, Rows, WorkingBucket, search
from warren.snapshot.schemas import GROUPS, RATES

_COUNTED = {
    f"count_{status.name.lower()}": status for status in Status if f"count_{status.name.lower()}" in GROUPS.names
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
        "worst_row": _worst_row(rows, worst, group, first),
        "first_row": first,
        "partitions": size.astype(np.int32),
        "newest_commit_ms": np.maximum.reduceat(end_ms, first),
        "unknown_since_ms": np.maximum.reduceat(bucket.unknown_since_ms, first),
        **{name: np.add.reduceat(rows.status == counted, first, dtype=np.int32) for name, counted in _COUNTED.items()},
        **_time_lag(rows, group, first),
        **{name: _sum(getattr(rows, name), first) for name in (*RATES, "lost")},
        "catch_up_low_s": _largest(rows.catch_up_low_s, first),
        "catch_up_high_s": _largest(rows.catch_up_high_s, first),
        "retention_left_s": _smallest(rows.retention_left_s, first),
    }
    bucket.group_table = pa.table({name: columns[name] for name in GROUPS.names}, schema=GROUPS)
    return bucket


def _first_row(holds: Bools, group: Ints, first: Ints) -> Ints:
    """The first row of each group for which a condition holds."""
    rows = np.flatnonzero(holds)
    _, index = np.unique(group[rows], return_index=True)
    return rows[index] if index.size == first.size else first


def _worst_row(rows: Rows, worst: SmallInts, group: Ints, first: Ints) -> Ints:
    """Of each group the partition with the worst status; among those the furthest behind, in time and then in lag."""
    is_worst = rows.status == worst[group]
    for values in (rows.seconds_behind, rows.current_lag):
        of_worst = np.where(is_worst, values, UNKNOWN - 1)
        is_worst = is_worst & (of_worst == np.maximum.reduceat(of_worst, first)[group])
    return _first_row(is_worst, group, first)


def _time_lag(rows: Rows, group: Ints, first: Ints) -> dict[str, object]:
    """The time lag of each group: the largest of its partitions, at least that if not all are known."""
    behind = np.maximum.reduceat(rows.seconds_behind, first)
    row = _first_row(rows.seconds_behind == behind[group], group, first)
    method = rows.behind_method[row]
    is_partly_known = np.logical_or.reduceat((rows.behind_method == TimeLagMethod.UNKNOWN), first) & (behind > 0)
    method = np.where(is_partly_known, TimeLagMethod.AT_LEAST, method).astype(np.int8)
    age = np.maximum.reduceat(rows.oldest_unread_age_s, first)
    return {"seconds_behind": behind, "behind_method": method, "behind_row": row, "oldest_unread_age_s": age}


def _sum(values: NDArray[np.number], first: Ints) -> NDArray[np.number]:
    """The sum of the known values of each group; UNKNOWN if none is."""
    known = np.add.reduceat(np.maximum(values, 0), first)
    return np.where(np.maximum.reduceat(values, first) == UNKNOWN, values.dtype.type(UNKNOWN), known)


def _largest(values: NDArray[np.float32], first: Ints) -> NDArray[np.float32]:
    """The largest value of each group; UNKNOWN if one of them is, unless another is infinite."""
    largest = np.maximum.reduceat(values, first)
    is_unknown = (np.minimum.reduceat(values, first) == UNKNOWN) & np.isfinite(largest)
    return np.where(is_unknown, np.float32(UNKNOWN), largest)


def _smallest(values: NDArray[np.float32], first: Ints) -> NDArray[np.float32]:
    """The smallest known value of each group; UNKNOWN if none is."""
    known = np.fmin.reduceat(np.where(values == UNKNOWN, np.float32(np.nan), values), first)
    return np.where(np.isnan(known), np.float32(UNKNOWN), known)


def _since(status: SmallInts, keys: Ints, bucket: WorkingBucket, inputs: BucketInputs) -> Ints:
    """Since when each group has its status: what it was before, if that is the same."""
    before = inputs.groups_before.unify_dictionaries()
    if before.num_rows == 0:
        return np.full(status.size, inputs.plan.now_ms, dtype=np.int64)
    clusters = Names([cluster.name for cluster in inputs.plan.clusters])
    cluster = clusters.find(to_array(before["cluster"]))
    group = bucket.groups.find(to_array(before["group"]))
    index = search(np.where(group >= 0, bucket.group_keys(cluster, group), -1), keys)
    is_same = (index >= 0) & (to_ints(before["status"])[index] == status)
    return np.where(is_same, to_ints(before["since_ms"])[index] + inputs.plan.clock_step_ms, inputs.plan.now_ms)

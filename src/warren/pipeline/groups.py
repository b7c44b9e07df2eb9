"""From judged partitions to groups, and from groups to one summary a cluster."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.pipeline.plan import CyclePlan
from warren.pipeline.state import Names, State
from warren.snapshot.schemas import GROUPS

Ints = NDArray[np.int64]

_COUNTED = {
    "count_ok": Status.OK,
    "count_warn": Status.WARN,
    "count_stop": Status.STOP,
    "count_stall": Status.STALL,
    "count_rewind": Status.REWIND,
}


def to_groups(state: State, before: pa.Table | None, plan: CyclePlan) -> pa.Table:
    """One row a group: the worst of its partitions, with Burrow's ERR for what is worse than WARN."""
    rows = state.rows
    if len(rows) == 0:
        return GROUPS.empty_table()
    wide = len(state.groups.values) + 1
    key = rows.cluster.astype(np.int64) * wide + rows.group
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    size = np.diff(np.append(first, len(rows)))
    number = np.repeat(np.arange(first.size), size)

    worst = np.maximum.reduceat(rows.status, first)
    status = np.where(worst > Status.ERR, Status.ERR, worst).astype(np.int8)
    lag = np.maximum(rows.current_lag, 0)
    end_ms = np.where(rows.windows.count > 0, rows.windows.time_ms[:, -1], UNKNOWN)
    maxlag = np.maximum.reduceat(lag, first)
    columns: dict[str, object] = {
        "cluster": pa.DictionaryArray.from_arrays(
            pa.array(rows.cluster[first]), pa.array([c.name for c in plan.clusters])
        ),
        "group": state.groups.values.take(pa.array(rows.group[first])),
        "status": status,
        "worst_status": worst,
        "since_ms": _since(status, key[first], before, state, plan),
        "complete": np.add.reduceat(rows.complete == 1.0, first, dtype=np.float32) / size.astype(np.float32),
        "totallag": np.add.reduceat(lag, first),
        "maxlag": maxlag,
        "maxlag_row": _first_where(lag == maxlag[number], number, first),
        "worst_row": _worst_row(rows.status, worst, lag, number, first),
        "first_row": first,
        "partitions": size.astype(np.int32),
        "newest_commit_ms": np.maximum.reduceat(end_ms, first),
    }
    for name, counted in _COUNTED.items():
        columns[name] = np.add.reduceat(rows.status == counted, first, dtype=np.int32)
    return pa.table({name: columns[name] for name in GROUPS.names}, schema=GROUPS)


def _first_where(holds: NDArray[np.bool_], number: Ints, first: Ints) -> Ints:
    """The first row of each group for which something holds."""
    places = np.flatnonzero(holds)
    _, at = np.unique(number[places], return_index=True)
    return places[at] if at.size == first.size else first


def _worst_row(status: NDArray[np.int8], worst: NDArray[np.int8], lag: Ints, number: Ints, first: Ints) -> Ints:
    """Of each group the partition with the worst status, and among those the one that lags most."""
    is_worst = status == worst[number]
    lag_of_worst = np.where(is_worst, lag, UNKNOWN)
    return _first_where(is_worst & (lag_of_worst == np.maximum.reduceat(lag_of_worst, first)[number]), number, first)


def _since(status: NDArray[np.int8], key: Ints, before: pa.Table | None, state: State, plan: CyclePlan) -> Ints:
    """Since when each group has its status: what it was before, if that is the same."""
    since = np.full(status.size, plan.now_ms, dtype=np.int64)
    if before is None or before.num_rows == 0:
        return since
    before = before.unify_dictionaries().combine_chunks()
    clusters = Names(pa.array([c.name for c in plan.clusters], pa.string()))
    old_cluster = clusters.codes_of_dictionary(before["cluster"].chunk(0)).astype(np.int64)
    group = before["group"].chunk(0)
    names = Names(state.groups.values)
    old_group = names.codes_of_dictionary(group if pa.types.is_dictionary(group.type) else group.dictionary_encode())
    wide = len(state.groups.values) + 1
    old_key = np.where(old_group < len(state.groups.values), old_cluster * wide + old_group, -1)
    order = np.argsort(old_key, kind="stable")
    at = order[np.minimum(np.searchsorted(old_key, key, sorter=order), old_key.size - 1)]
    is_same = (old_key[at] == key) & (before["status"].to_numpy()[at] == status)
    return np.where(is_same, before["since_ms"].to_numpy()[at], since)


def cluster_summaries(
    state: State, groups: pa.Table, commits: pa.Table, names: list[str]
) -> dict[str, dict[str, object]]:
    """What the driver needs of each cluster in this bucket; a few numbers, however many groups there are."""
    rows = state.rows
    summaries: dict[str, dict[str, object]] = {}
    group_cluster = groups["cluster"].combine_chunks().indices.to_numpy() if groups.num_rows else np.zeros(0)
    group_status = groups["status"].to_numpy()
    commit_cluster = commits["cluster"].to_numpy()
    is_commit = ~commits["is_tombstone"].to_numpy()
    time_ms = commits["time_ms"].to_numpy()
    for number, name in enumerate(names):
        own = rows.cluster == number
        times = time_ms[(commit_cluster == number) & is_commit]
        summaries[name] = {
            "groups": _counted(group_status[group_cluster == number]),
            "partitions": _counted(rows.status[own]),
            "totallag": int(np.maximum(rows.current_lag[own], 0).sum()),
            "commits": int(times.size),
            "newest_ms": int(times.max()) if times.size else None,
        }
    return summaries


def _counted(status: NDArray[np.int8]) -> dict[str, int]:
    values, counts = np.unique(status, return_counts=True)
    return {Status(int(value)).name: int(count) for value, count in zip(values, counts, strict=True)}

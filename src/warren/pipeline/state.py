"""One bucket of the state in memory: columns of numbers, names as codes, windows as matrices; to disk and back."""

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.windows import UNKNOWN, Windows, concat, empty, take_rows
from warren.snapshot.schemas import PARTITIONS, WINDOW_COLUMNS

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bytes = NDArray[np.int8]

_MATRICES = ("offset", "time_ms", "order", "lag", "lag_low", "lag_high")


class Names:
    """A growing list of distinct names; a name's code is its place."""

    def __init__(self, values: pa.StringArray) -> None:
        self.values = values

    def codes(self, wanted: pa.StringArray) -> Codes:
        """The codes of names (nulls give -1); names not seen before are added."""
        found = pc.index_in(wanted, value_set=self.values)
        missing = pc.and_(pc.is_null(found), pc.is_valid(wanted))
        if pc.any(missing).as_py():
            new = pc.unique(wanted.filter(missing))
            self.values = pa.concat_arrays([self.values, new])
            found = pc.index_in(wanted, value_set=self.values)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int32)  # type: ignore[no-any-return]

    def codes_of_dictionary(self, column: pa.DictionaryArray) -> Codes:
        """The codes of a dictionary-encoded column, looked up once a distinct name."""
        known = self.codes(column.dictionary.cast(pa.string()))
        place = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
        if known.size == 0:
            return np.full(len(column), -1, dtype=np.int32)
        return np.where(place >= 0, known[place], -1).astype(np.int32)

    def ranks(self) -> Codes:
        """Each name's place in sorted order."""
        order = pc.sort_indices(self.values).to_numpy()
        ranks = np.empty(order.size, dtype=np.int32)
        ranks[order] = np.arange(order.size, dtype=np.int32)
        return ranks


@dataclass(slots=True)
class Rows:
    """The partitions of a bucket, one a row; `cluster` counts the plan's clusters, other names are codes."""

    cluster: Codes
    group: Codes
    topic: Codes
    partition: Codes
    owner: Codes
    client_id: Codes
    status: Bytes
    reason: Bytes
    since_ms: Ints
    complete: NDArray[np.float32]
    current_lag: Ints
    committed_offset: Ints
    head: Ints
    log_start: Ints
    trend_floor: NDArray[np.float64]
    windows: Windows

    def __len__(self) -> int:
        return int(self.cluster.size)


def new_rows(n: int, intervals: int) -> Rows:
    """Rows of which nothing is known but that they exist."""

    def unknown() -> Ints:
        return np.full(n, UNKNOWN, dtype=np.int64)

    def no_code() -> Codes:
        return np.full(n, -1, dtype=np.int32)

    return Rows(
        cluster=no_code(),
        group=no_code(),
        topic=no_code(),
        partition=no_code(),
        owner=no_code(),
        client_id=no_code(),
        current_lag=unknown(),
        committed_offset=unknown(),
        head=unknown(),
        log_start=unknown(),
        trend_floor=np.full(n, UNKNOWN, dtype=np.float64),
        status=np.ones(n, dtype=np.int8),
        reason=np.zeros(n, dtype=np.int8),
        since_ms=np.zeros(n, dtype=np.int64),
        complete=np.zeros(n, dtype=np.float32),
        windows=empty(n, intervals),
    )


def select(rows: Rows, index: NDArray[np.int64] | NDArray[np.bool_]) -> Rows:
    """Some of the rows, by place or by mask."""
    place = np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.int64, copy=False)
    columns = {f.name: getattr(rows, f.name)[place] for f in fields(rows) if f.name != "windows"}
    return Rows(**columns, windows=take_rows(rows.windows, place))


def stack(above: Rows, below: Rows) -> Rows:
    """Two sets of rows as one."""
    columns = {
        f.name: np.concatenate([getattr(above, f.name), getattr(below, f.name)])
        for f in fields(above)
        if f.name != "windows"
    }
    return Rows(**columns, windows=concat(above.windows, below.windows))


@dataclass(slots=True)
class State:
    """The rows of a bucket and the names their codes stand for."""

    rows: Rows
    groups: Names
    topics: Names
    people: Names

    def _key(self, cluster: Codes, group: Codes, topic: Codes, partition: Codes, widest: int) -> Ints:
        """One number for each (cluster, group, topic, partition below `widest`), equal exactly where all four are."""
        groups, topics = len(self.groups.values) + 1, len(self.topics.values) + 1
        clusters = int(cluster.max(initial=0)) + 1
        if clusters * groups * topics * (widest + 1) >= 2**62:
            raise OverflowError("a bucket holds more names than a key can tell apart: raise pipeline.buckets")
        key = (cluster.astype(np.int64) * groups + group) * topics + topic
        return key * (widest + 1) + partition + 1

    def _find(self, wanted: Ints, widest: int) -> Ints:
        """The row of each key, -1 where there is none."""
        rows = self.rows
        own = self._key(rows.cluster, rows.group, rows.topic, rows.partition, widest)
        if own.size == 0:
            return np.full(wanted.size, -1, dtype=np.int64)
        order = np.argsort(own, kind="stable")
        at = np.minimum(np.searchsorted(own, wanted, sorter=order), own.size - 1)
        place = order[at]
        return np.where(own[place] == wanted, place, -1)

    def place(self, cluster: Codes, group: Codes, topic: Codes, partition: Codes, may_add: NDArray[np.bool_]) -> Ints:
        """The row of each named partition, -1 where there is none; one that may be added is."""
        # Keys are only comparable when both sides are made with the same width.
        widest = int(max(partition.max(initial=0), self.rows.partition.max(initial=0))) + 1
        key = self._key(cluster, group, topic, partition, widest)
        placed = self._find(key, widest)
        is_new = (placed == -1) & may_add
        if is_new.any():
            distinct, first = np.unique(key[is_new], return_index=True)
            at = np.flatnonzero(is_new)[first]
            fresh = new_rows(distinct.size, self.rows.windows.intervals)
            fresh.cluster, fresh.group, fresh.topic, fresh.partition = (
                cluster[at],
                group[at],
                topic[at],
                partition[at],
            )
            # Rows that may not add (a tombstone between two commits) still have to find what others added.
            lost = np.flatnonzero(placed == -1)
            near = np.minimum(np.searchsorted(distinct, key[lost]), distinct.size - 1)
            placed[lost] = np.where(distinct[near] == key[lost], len(self.rows) + near, -1)
            self.rows = stack(self.rows, fresh)
        return placed


def empty_state(intervals: int) -> State:
    """A bucket in which nothing has happened yet."""
    return State(
        new_rows(0, intervals),
        Names(pa.array([], pa.string())),
        Names(pa.array([], pa.string())),
        Names(pa.array([""], pa.string())),
    )


def from_table(table: pa.Table, clusters: list[str], intervals: int) -> State:
    """The state back from its file; rows of clusters that are no longer configured are left behind."""
    state = empty_state(intervals)
    table = table.unify_dictionaries().combine_chunks()
    cluster = Names(pa.array(clusters, pa.string())).codes_of_dictionary(_one(table, "cluster"))
    plain = ("partition", "status", "reason", "since_ms", "complete", "current_lag", "committed_offset", "head",
             "log_start", "trend_floor")  # fmt: skip
    rows = Rows(
        cluster=np.where(cluster < len(clusters), cluster, -1).astype(np.int32),
        group=state.groups.codes_of_dictionary(_one(table, "group")),
        topic=state.topics.codes_of_dictionary(_one(table, "topic")),
        owner=state.people.codes_of_dictionary(_one(table, "owner")),
        client_id=state.people.codes_of_dictionary(_one(table, "client_id")),
        windows=_windows(table, table.num_rows, intervals),
        **{name: _one(table, name).to_numpy(zero_copy_only=False).copy() for name in plain},
    )
    state.rows = rows if (rows.cluster >= 0).all() else select(rows, rows.cluster >= 0)
    return state


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _windows(table: pa.Table, n: int, intervals: int) -> Windows:
    """Lists of slots, oldest first, as matrices with the newest at the right."""
    lists = _one(table, WINDOW_COLUMNS[0])
    count = np.diff(lists.offsets.to_numpy()).astype(np.int32) if n else np.zeros(0, dtype=np.int32)
    widest = max(int(count.max(initial=0)), intervals)
    columns = {
        name: _one(table, column).flatten().to_numpy() for name, column in zip(_MATRICES, WINDOW_COLUMNS, strict=True)
    }
    if n and (count == widest).all():
        windows = Windows(count, **{name: values.reshape(n, widest).copy() for name, values in columns.items()})
    else:
        windows = empty(n, widest)
        windows.count = count
        is_filled = np.arange(widest) >= (widest - count)[:, None]
        for name, values in columns.items():
            getattr(windows, name)[is_filled] = values
    if widest > intervals:
        windows.count = np.minimum(count, intervals).astype(np.int32)
        for name in _MATRICES:
            setattr(windows, name, np.ascontiguousarray(getattr(windows, name)[:, widest - intervals :]))
    return windows


def sorted_by_name(state: State) -> State:
    """The rows in the order readers rely on: cluster, group, topic, partition."""
    rows = state.rows
    group, topic = state.groups.ranks()[rows.group], state.topics.ranks()[rows.topic]
    order = np.lexsort((rows.partition, topic, group, rows.cluster))
    if not np.array_equal(order, np.arange(len(rows))):
        state.rows = select(rows, order)
    return state


def to_table(state: State, clusters: list[str]) -> pa.Table:
    """The partitions table of the snapshot."""
    rows, windows = state.rows, state.rows.windows
    n, intervals = len(rows), windows.offset.shape[1]
    has_commit = windows.count > 0
    first = intervals - np.maximum(windows.count, 1)
    at = np.arange(n)
    is_filled = np.arange(intervals) >= (intervals - windows.count)[:, None]
    is_full = bool((windows.count == intervals).all())
    edges = pa.array(np.concatenate([[0], np.cumsum(windows.count)]).astype(np.int32))

    def slots(matrix: Ints) -> pa.Array:
        values = matrix.reshape(-1) if is_full else matrix[is_filled]
        return pa.ListArray.from_arrays(edges, pa.array(values), type=PARTITIONS.field("offsets").type)

    def edge(matrix: Ints, column: Ints | int) -> Ints:
        return np.where(has_commit, matrix[at, column], UNKNOWN)

    columns = {
        "cluster": _named(rows.cluster, pa.array(clusters, pa.string())),
        "group": _named(rows.group, state.groups.values),
        "topic": _named(rows.topic, state.topics.values),
        "owner": _named(np.maximum(rows.owner, 0), state.people.values),
        "client_id": _named(np.maximum(rows.client_id, 0), state.people.values),
        "start_offset": edge(windows.offset, first),
        "start_ms": edge(windows.time_ms, first),
        "start_lag": edge(windows.lag, first),
        "end_offset": edge(windows.offset, -1),
        "end_ms": edge(windows.time_ms, -1),
        "end_lag": edge(windows.lag, -1),
        **{column: slots(getattr(windows, name)) for name, column in zip(_MATRICES, WINDOW_COLUMNS, strict=True)},
    }
    for name in PARTITIONS.names:
        if name not in columns:
            columns[name] = getattr(rows, name)
    return pa.table({name: columns[name] for name in PARTITIONS.names}, schema=PARTITIONS)


ENCODING = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in WINDOW_COLUMNS} | {
    field.name: "DELTA_BINARY_PACKED" for field in PARTITIONS if field.type == pa.int64()
}
"""Slots and counters differ little from row to row: deltas are a third of the bytes and no slower than plain."""


def _named(codes: Codes, names: pa.StringArray) -> pa.DictionaryArray:
    """A column of names that carries only those in use: what is gone must not stay in the files for ever."""
    is_used = np.zeros(len(names), dtype=np.bool_)
    is_used[codes] = True
    if not is_used.all():
        codes = (np.cumsum(is_used, dtype=np.int32) - 1)[codes].astype(np.int32, copy=False)
        names = names.filter(pa.array(is_used))
    return pa.DictionaryArray.from_arrays(pa.array(codes), names)

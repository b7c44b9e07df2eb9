"""One bucket in memory, on its way through the steps of a cycle: names are codes, windows are matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Bools, Codes, Floats, Ints, SmallInts, to_bools, to_codes, to_ints
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, Windows, concat, empty, is_filled, take_rows
from warren.pipeline.head_history import RowHeads
from warren.pipeline.head_samples import HeadHistory
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import LISTED, LISTED_PARTITIONS
from warren.snapshot.schemas import GROUPS, RATES

Integers = NDArray[np.integer]
Rates = NDArray[np.float32]


class Names:
    """A growing list of distinct names; the code of a name is its index."""

    def __init__(self, values: Sequence[str] = ()) -> None:
        self.values: pa.StringArray = pa.array(values, pa.string())

    def __len__(self) -> int:
        return len(self.values)

    def find(self, names: pa.StringArray | pa.DictionaryArray) -> Codes:
        """The codes of names; -1 for nulls and for names that are not in the list."""
        if isinstance(names, pa.DictionaryArray):  # each distinct name is looked up once
            return _by_index(self.find(names.dictionary), names)
        return to_codes(pc.index_in(names.cast(pa.string()), value_set=self.values))

    def codes(self, names: pa.StringArray | pa.DictionaryArray) -> Codes:
        """The codes of names (nulls give -1); new names are added."""
        if isinstance(names, pa.DictionaryArray):
            return _by_index(self.codes(names.dictionary), names)
        codes = self.find(names)
        is_new = (codes < 0) & to_bools(names.is_valid())
        if is_new.any():
            new = pc.unique(names.filter(pa.array(is_new))).cast(pa.string())
            self.values = pa.concat_arrays([self.values, new])
            codes = self.find(names)
        return codes

    def ranks(self) -> Codes:
        """The position of each name in sorted order."""
        order = pc.sort_indices(self.values).to_numpy()
        ranks = np.empty(order.size, dtype=np.int32)
        ranks[order] = np.arange(order.size, dtype=np.int32)
        return ranks


def _by_index(codes: Codes, column: pa.DictionaryArray) -> Codes:
    """The codes of a column from those of its dictionary; a null has the index -1, which gives the last."""
    return np.append(codes, np.int32(-1))[to_ints(column.indices)]


@dataclass(slots=True)
class Rows:
    """The partitions of a bucket, one per row; `cluster` is an index into the plan's, other names are codes."""

    cluster: Codes
    group: Codes
    topic: Codes
    partition: Codes
    owner: Codes
    client_id: Codes
    status: SmallInts
    reason: SmallInts
    since_ms: Ints
    complete: NDArray[np.float32]
    current_lag: Ints
    committed_offset: Ints
    head: Ints
    head_ms: Ints
    log_start: Ints
    offsets_log: Codes
    trend_floor: Floats
    unread_offset: Ints
    unread_since_ms: Ints
    unread_error_ms: Ints
    behind_method: SmallInts
    seconds_behind: Floats
    unread_record_ms: Ints
    oldest_unread_age_s: Floats
    rates_since_ms: Ints
    produced_1m: Rates
    produced_10m: Rates
    consumed_1m: Rates
    consumed_10m: Rates
    catch_up_low_s: Rates
    catch_up_high_s: Rates
    retention_left_s: Rates
    lost: Ints
    windows: Windows

    def __len__(self) -> int:
        return int(self.cluster.size)

    def take(self, rows: Ints | Bools) -> "Rows":
        """Some of the rows, by index or by mask."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        columns = {name: getattr(self, name)[index] for name in _NEW}
        return Rows(**columns, windows=take_rows(self.windows, index))

    def append(self, rows: "Rows") -> "Rows":
        """These rows and others after them."""
        columns = {name: np.concatenate([getattr(self, name), getattr(rows, name)]) for name in _NEW}
        return Rows(**columns, windows=concat(self.windows, rows.windows))


_CODES = ("cluster", "group", "topic", "partition", "owner", "client_id", "offsets_log")
_NEW: dict[str, tuple[type[np.generic], int]] = {
    **dict.fromkeys(_CODES, (np.int32, -1)),
    "status": (np.int8, Status.OK),
    "reason": (np.int8, 0),
    "since_ms": (np.int64, 0),
    "complete": (np.float32, 0),
    **dict.fromkeys(("current_lag", "committed_offset", "head", "head_ms", "log_start"), (np.int64, UNKNOWN)),
    "trend_floor": (np.float64, UNKNOWN),
    **dict.fromkeys(("unread_offset", "unread_since_ms", "unread_error_ms", "rates_since_ms"), (np.int64, UNKNOWN)),
    "behind_method": (np.int8, UNKNOWN),
    "unread_record_ms": (np.int64, UNKNOWN),
    **dict.fromkeys(("seconds_behind", "oldest_unread_age_s"), (np.float64, UNKNOWN)),
    **dict.fromkeys(RATES, (np.float32, UNKNOWN)),
    **dict.fromkeys(("catch_up_low_s", "catch_up_high_s", "retention_left_s"), (np.float32, UNKNOWN)),
    "lost": (np.int64, 0),
}
"""The columns beside the windows: their types, and what a row holds of which nothing is known yet."""


def new_rows(n: int, intervals: int) -> Rows:
    """Rows of which nothing is known but that they exist."""
    columns = {name: np.full(n, unknown, dtype=dtype) for name, (dtype, unknown) in _NEW.items()}
    return Rows(**columns, windows=empty(n, intervals))


@dataclass(slots=True)
class WorkingBucket:
    """The rows of a bucket with their names, and what the steps of this cycle found out.

    Every step updates the working bucket in place and returns it; nothing else changes it.
    """

    rows: Rows
    groups: Names = field(default_factory=Names)
    topics: Names = field(default_factory=Names)
    members: Names = field(default_factory=lambda: Names([""]))
    """Hosts and client ids of group members."""
    commit_rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The row of each commit of the inputs; -1 for commits that do not count and for tombstones of groups."""
    commit_times: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The time of each commit of the inputs, by our clock."""
    commit_errors: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """How far off each of these times may be."""
    is_sorted: bool = True
    renewed_deletions: tuple[str, ...] = ()
    """The ids of deletions whose groups have committed again."""
    unverified_rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The rows whose verdict waits until their tail is verified."""
    unknown_since_ms: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Since when the group of each row is unknown; UNKNOWN where it was judged, or its whole cluster was not."""
    unlisted_groups: tuple[tuple[str, str], ...] = ()
    """Clusters and names of some groups that their brokers do not list."""
    group_table: pa.Table = field(default_factory=GROUPS.empty_table)
    heads: RowHeads | None = None
    """The head history of the rows, once they are sorted and none is added or dropped any more."""

    def rows_of(self, cluster: int) -> Ints:
        """The rows of a cluster, once they are sorted."""
        first, end = np.searchsorted(self.rows.cluster, [cluster, cluster + 1]).tolist()
        return np.arange(first, end)

    def group_keys(self, cluster: Integers | None = None, group: Integers | None = None) -> Ints:
        """One number for each (cluster, group): of the rows, or of the given ones."""
        cluster = self.rows.cluster if cluster is None else cluster
        group = self.rows.group if group is None else group
        return cluster.astype(np.int64) * (len(self.groups) + 1) + group

    def move_times(self, step_ms: int) -> None:
        """Move the times of the rows with our clock, which was set."""
        if step_ms:
            windows = self.rows.windows
            windows.time_ms = np.where(is_filled(windows), windows.time_ms + step_ms, windows.time_ms)
            rows = self.rows
            for times in (rows.since_ms, rows.head_ms, rows.unread_since_ms, rows.rates_since_ms):
                times[times > 0] += step_ms

    def keep(self, is_kept: Bools) -> None:
        """Drop the other rows."""
        if not is_kept.all():
            self.rows = self.rows.take(is_kept)

    def _keys(self, cluster: Codes, group: Codes, topic: Codes, partition: Codes, width: int) -> Ints:
        """One number for each (cluster, group, topic, partition below `width`), equal only where all four are."""
        topics = len(self.topics) + 1
        if (int(cluster.max(initial=0)) + 1) * (len(self.groups) + 1) * topics * (width + 1) >= 2**62:
            raise OverflowError("a bucket holds more names than a key can tell apart: raise pipeline.buckets")
        return (self.group_keys(cluster, group) * topics + topic) * (width + 1) + partition + 1

    def locate(self, cluster: Codes, group: Codes, topic: Codes, partition: Codes, may_add: Bools) -> Ints:
        """The row of each named partition, -1 where there is none; rows that are missing and may be added are."""
        rows = self.rows
        # Keys are only comparable when both sides use the same width.
        width = int(max(partition.max(initial=0), rows.partition.max(initial=0))) + 1
        keys = self._keys(cluster, group, topic, partition, width)
        located = search(self._keys(rows.cluster, rows.group, rows.topic, rows.partition, width), keys)
        is_new = (located == -1) & may_add
        if is_new.any():
            new_keys, first = np.unique(keys[is_new], return_index=True)
            at = np.flatnonzero(is_new)[first]
            added = new_rows(at.size, rows.windows.intervals)
            added.cluster, added.group, added.topic, added.partition = cluster[at], group[at], topic[at], partition[at]
            # Those that may not add a row (a tombstone between two commits) still have to find what others added.
            missing = np.flatnonzero(located == -1)
            among_new = search(new_keys, keys[missing])
            located[missing] = np.where(among_new >= 0, len(rows) + among_new, -1)
            self.rows = rows.append(added)
            self.is_sorted = False
        return located


def search(keys: Ints, wanted: Ints) -> Ints:
    """The index of each wanted key, -1 where there is none."""
    if keys.size == 0:
        return np.full(wanted.size, -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    index = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), keys.size - 1)]
    return np.where(keys[index] == wanted, index, -1)


@dataclass(frozen=True, slots=True)
class BucketInputs:
    """What the steps of one bucket work with: the plan, the tables addressed to it, heads, and its groups before."""

    plan: CyclePlan
    commits: pa.Table
    owners: pa.Table
    seeds: pa.Table
    rejects: pa.Table
    heads: HeadHistory
    groups_before: pa.Table = field(default_factory=GROUPS.empty_table)
    listed: pa.Table = field(default_factory=LISTED.empty_table)
    listed_partitions: pa.Table = field(default_factory=LISTED_PARTITIONS.empty_table)

    def row_heads(self, bucket: WorkingBucket) -> RowHeads:
        """The head history of the bucket's rows."""
        rows = bucket.rows
        return RowHeads(self.heads, rows.cluster, rows.topic, rows.partition, bucket.topics.values)


BucketStep = Callable[[WorkingBucket, BucketInputs], WorkingBucket]


def sort_partitions(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Sort the rows as readers rely on: by cluster, group, topic, partition."""
    if not bucket.is_sorted:
        rows = bucket.rows
        group, topic = bucket.groups.ranks()[rows.group], bucket.topics.ranks()[rows.topic]
        bucket.rows = rows.take(np.lexsort((rows.partition, topic, group, rows.cluster)))
        bucket.is_sorted = True
    return bucket

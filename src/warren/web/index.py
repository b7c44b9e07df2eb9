"""A snapshot as the server holds it in memory: flat columns, and where each group and topic stands in them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.history.recent import Recent, nothing_recent
from warren.snapshot.reader import Snapshot, group_keys
from warren.web.partition_json import PartitionJson

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

_NUMBERS = (
    "partition", "status", "complete", "current_lag",
    "start_offset", "start_ms", "start_lag", "end_offset", "end_ms", "end_lag",
)  # fmt: skip
_NAMES = ("topic", "owner", "client_id")
_OF_GROUPS = (
    "status", "totallag", "maxlag", "since_ms", "maxlag_row", "worst_row", "first_row", "partitions", "bucket",
    "newest_commit_ms",
)  # fmt: skip
_AT_ONCE = 2_000
"""How many names are made into Python strings in one go: others need the interpreter too."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one cluster, sorted: how many partitions each has, and where they stand among the heads."""

    names: list[str]
    places: dict[str, int]
    partitions: Ints
    first_row: Ints


@dataclass(frozen=True)
class Index:
    """Everything an answer needs but the windows; partitions are in the order of their groups, whole and sorted."""

    snapshot: Snapshot | None
    groups: dict[str, dict[str, int]]
    """By cluster, the number of each group, in the order of their names."""
    group_names: pa.StringArray
    group_cluster: Codes
    clusters: list[str]
    of_groups: dict[str, Ints]
    first: Ints
    """The first row of each group, and where the last one ends."""
    partition_count: Ints
    complete: NDArray[np.float32]
    topic: Codes
    owner: Codes
    client_id: Codes
    names: dict[str, pa.StringArray]
    """Of topics, owners and clients each name once; the codes of rows count them."""
    columns: dict[str, NDArray[np.generic]]
    runs: "Runs"
    topics: dict[str, Topics]
    heads: Ints
    log_starts: Ints
    recent: Recent

    @property
    def rows(self) -> int:
        """How many partitions of groups there are."""
        return int(self.topic.size)

    def number(self, cluster: str, group: str) -> int | None:
        """A group's number, or None when there is no such group."""
        return self.groups.get(cluster, {}).get(group)

    def rows_of(self, number: int) -> tuple[int, int]:
        """The rows of a group: from, and to."""
        return int(self.first[number]), int(self.first[number + 1])

    def topic_counts(self, number: int) -> list[tuple[int, int, int]]:
        """The topics of a group: its first row there, how many follow, and how many partitions the topic has."""
        begin, end = self.runs.first_of_group[number], self.runs.first_of_group[number + 1]
        run = slice(int(begin), int(end))
        return list(
            zip(
                self.runs.first[run].tolist(), self.runs.size[run].tolist(), self.runs.padded[run].tolist(), strict=True
            )
        )

    def consumers_of(self, cluster: str, topic: str) -> list[str]:
        """The groups that have committed to a topic, sorted."""
        found = self.runs.groups_of(self._pair(cluster, topic))
        return sorted(self.group_names.take(pa.array(found)).to_pylist())

    def readers_of(self, topic: str) -> Ints:
        """The groups of all clusters that have committed to a topic of this name, by number."""
        found = [self.runs.groups_of(self._pair(cluster, topic)) for cluster in self.clusters]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))

    def runs_of(self, cluster: str, topic: str) -> list[tuple[int, int, int]]:
        """The groups of a topic, by number: the first row of each there and how many follow."""
        place = self.runs.places_of(self._pair(cluster, topic))
        columns = (self.runs.groups[place], self.runs.first[place], self.runs.size[place])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _pair(self, cluster: str, topic: str) -> int:
        code = self._topic_codes.get(topic)
        if code is None or cluster not in self.clusters:
            return -1
        return self.clusters.index(cluster) * len(self._topic_codes) + code

    @cached_property
    def _topic_codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(_strings(self.names["topic"]))}

    @cached_property
    def texts(self) -> PartitionJson:
        """The JSON of the partitions."""
        return PartitionJson(self)


@dataclass(frozen=True, slots=True)
class Runs:
    """Stretches of rows of one group and one topic, in the order of the rows."""

    first: Ints
    size: Ints
    padded: Ints
    """As many partitions as the topic has; those a group never committed to are shown too."""
    first_of_group: Ints
    by_topic: Ints
    pairs: Ints
    """Cluster and topic of each run in the order of `by_topic`."""
    groups: Ints

    def padded_rows(self, begin: int, end: int, partition: NDArray[np.generic]) -> tuple[Ints, Ints, Ints]:
        """All partitions of some runs, also those never committed to: their run, number, and row, or -1."""
        size, padded = self.size[begin:end], self.padded[begin:end]
        run = np.repeat(np.arange(begin, end), padded)
        ours = np.arange(int(size.sum())) + (int(self.first[begin]) if end > begin else 0)
        if run.size == ours.size:
            return run, partition[ours].astype(np.int64), ours
        first = np.cumsum(padded) - padded
        number = np.arange(run.size) - np.repeat(first, padded)
        within = ours - np.repeat(self.first[begin:end], size)
        # Where nothing is missing the numbers may be any, as nobody knows how many partitions the topic has.
        place = np.where(np.repeat(size == padded, size), within, partition[ours])
        row = np.full(run.size, -1, dtype=np.int64)
        row[np.repeat(first, size) + place] = ours
        return run, np.where(row < 0, number, partition[row]), row

    def groups_of(self, pair: int) -> Ints:
        """The groups with a run of this cluster and topic."""
        return self.groups[self.places_of(pair)]

    def places_of(self, pair: int) -> Ints:
        """The runs of this cluster and topic."""
        begin, end = np.searchsorted(self.pairs, [pair, pair + 1])
        return self.by_topic[begin:end]


def build_index(
    snapshot: Snapshot,
    hidden: Collection[tuple[str, str]] = (),
    recent_of: Callable[[pa.StringArray, int], Recent] | None = None,
) -> Index:
    """Load a snapshot; `hidden` groups are left out, as they are about to be deleted."""
    groups = snapshot.groups()
    table = snapshot.partitions([*_NAMES, *_NUMBERS], as_codes=True)
    keep, rows = _kept(groups, snapshot, hidden)
    groups = groups.take(keep)
    codes, names = _codes(table)
    take = None if rows.size == table.num_rows and np.array_equal(rows, np.arange(rows.size)) else rows
    columns = {name: table[name].to_numpy() if take is None else table[name].to_numpy()[take] for name in _NUMBERS}
    if take is not None:
        codes = {name: held[take] for name, held in codes.items()}
    size = groups["partitions"].to_numpy().astype(np.int64)
    first = np.concatenate([[0], np.cumsum(size)])
    clusters = sorted(set(pc.unique(groups["cluster"]).to_pylist()))
    cluster = pc.index_in(groups["cluster"], pa.array(clusters, pa.string())).to_numpy().astype(np.int32)
    topics, heads, log_starts = _topics(snapshot)
    runs = _runs(codes["topic"], columns["partition"], first, cluster, names["topic"], clusters, topics)
    count = _sum_by(runs.padded, runs.first_of_group)
    is_complete = np.add.reduceat(columns["complete"] == 1.0, first[:-1], dtype=np.int64) if size.size else size
    of_groups = {name: groups[name].to_numpy().astype(np.int64) for name in _OF_GROUPS}
    group_names = groups["group"].combine_chunks()
    keys = group_keys(groups["cluster"], groups["group"]).combine_chunks()
    return Index(
        snapshot=snapshot,
        groups=_numbered(clusters, cluster, group_names),
        group_names=group_names,
        group_cluster=cluster,
        clusters=clusters,
        of_groups=of_groups,
        first=first,
        partition_count=count,
        complete=(is_complete / np.maximum(count, 1)).astype(np.float32),
        **codes,
        names=names,
        columns=columns,
        runs=runs,
        topics=topics,
        heads=heads,
        log_starts=log_starts,
        recent=recent_of(keys, snapshot.manifest.now_ms) if recent_of else nothing_recent(keys),
    )


def empty_index() -> Index:
    """What is known before the first snapshot: nothing."""
    none, no_codes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    no_names = pa.array([], pa.string())
    return Index(
        snapshot=None,
        groups={},
        group_names=no_names,
        group_cluster=no_codes,
        clusters=[],
        of_groups=dict.fromkeys(_OF_GROUPS, none),
        first=np.zeros(1, dtype=np.int64),
        partition_count=none,
        complete=np.zeros(0, dtype=np.float32),
        topic=no_codes,
        owner=no_codes,
        client_id=no_codes,
        names=dict.fromkeys(_NAMES, no_names),
        columns=dict.fromkeys(_NUMBERS, none),
        runs=Runs(none, none, none, np.zeros(1, dtype=np.int64), none, none, none),
        topics={},
        heads=none,
        log_starts=none,
        recent=nothing_recent(no_names),
    )


def _kept(groups: pa.Table, snapshot: Snapshot, hidden: Collection[tuple[str, str]]) -> tuple[pa.Array, Ints]:
    """The groups to show, sorted by cluster and name, and the rows of theirs in that order."""
    order = pc.sort_indices(groups, [("cluster", "ascending"), ("group", "ascending")]).to_numpy()
    if hidden:
        names = zip(groups["cluster"].to_pylist(), groups["group"].to_pylist(), strict=True)
        gone = np.fromiter((name in hidden for name in names), np.bool_, groups.num_rows)
        order = order[~gone[order]]
    in_bucket = np.array([bucket.partition_rows for bucket in snapshot.manifest.buckets], dtype=np.int64)
    start_of_bucket = np.concatenate([[0], np.cumsum(in_bucket)])[:-1]
    first = groups["first_row"].to_numpy() + start_of_bucket[groups["bucket"].to_numpy()]
    first, size = first[order], groups["partitions"].to_numpy().astype(np.int64)[order]
    ends = np.cumsum(size)
    rows = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(first - (ends - size), size)
    return pa.array(order), rows


def _codes(table: pa.Table) -> tuple[dict[str, Codes], dict[str, pa.StringArray]]:
    """Names as places in a list of distinct ones; no owner is an empty name."""
    codes, names = {}, {}
    for name in _NAMES:
        column = table[name].combine_chunks()
        known = column.dictionary.cast(pa.string())
        codes[name] = pc.fill_null(column.indices, len(known)).to_numpy(zero_copy_only=False).astype(np.int32)
        names[name] = pa.concat_arrays([known, pa.array([""], pa.string())])
    return codes, names


def _strings(names: pa.StringArray) -> list[str]:
    found: list[str] = []
    for at in range(0, len(names), _AT_ONCE):
        found += names.slice(at, _AT_ONCE).to_pylist()
    return found


def _numbered(clusters: Sequence[str], cluster: Codes, names: pa.StringArray) -> dict[str, dict[str, int]]:
    """Each cluster's groups and their numbers; the groups are sorted by cluster already."""
    edges = np.searchsorted(cluster, np.arange(len(clusters) + 1)).tolist()
    return {
        name: dict(zip(_strings(names.slice(begin, end - begin)), range(begin, end), strict=True))
        for name, begin, end in zip(clusters, edges[:-1], edges[1:], strict=True)
    }


def _topics(snapshot: Snapshot) -> tuple[dict[str, Topics], Ints, Ints]:
    layout = snapshot.topics()
    heads = log_starts = np.zeros(0, dtype=np.int64)
    if layout.num_rows:
        table = snapshot.heads()
        heads, log_starts = table["head"].to_numpy(), table["log_start"].to_numpy()
    found = {}
    for cluster in pc.unique(layout["cluster"]).to_pylist():
        own = layout.filter(pc.equal(layout["cluster"], cluster)).sort_by("topic")
        names = _strings(own["topic"].combine_chunks())
        found[cluster] = Topics(
            names,
            {name: place for place, name in enumerate(names)},
            own["partitions"].to_numpy().astype(np.int64),
            own["first_row"].to_numpy(),
        )
    return found, heads, log_starts


def _runs(
    topic: Codes,
    partition: NDArray[np.generic],
    first: Ints,
    cluster: Codes,
    topic_names: pa.StringArray,
    clusters: Sequence[str],
    topics: dict[str, Topics],
) -> Runs:
    rows = topic.size
    begins = np.zeros(rows, dtype=np.bool_)
    begins[first[:-1]] = True
    begins[1:] |= topic[1:] != topic[:-1]
    start = np.flatnonzero(begins)
    size = np.diff(np.append(start, rows))
    group = np.searchsorted(first, start, side="right") - 1
    pair = cluster[group].astype(np.int64) * len(topic_names) + topic[start]
    distinct, place = np.unique(pair, return_inverse=True)
    known = np.zeros(distinct.size, dtype=np.int64)
    for number, name in enumerate(clusters):
        if name in topics:
            own = np.flatnonzero(distinct // len(topic_names) == number)
            wanted = topic_names.take(pa.array(distinct[own] % len(topic_names)))
            at = pc.index_in(wanted, pa.array(topics[name].names, pa.string()))
            is_found = np.asarray(at.is_valid())
            known[own[is_found]] = topics[name].partitions[at.drop_null().to_numpy()]
    highest = np.maximum.reduceat(partition, start).astype(np.int64) + 1 if rows else size
    # Without its topic nobody knows how many there are: what was committed to is all.
    padded = np.where(known[place] >= highest, known[place], size) if rows else size
    by_topic = np.argsort(pair, kind="stable")
    return Runs(start, size, padded, np.searchsorted(start, first), by_topic, pair[by_topic], group)


def _sum_by(values: Ints, first: Ints) -> Ints:
    total: Ints = np.concatenate([[0], np.cumsum(values)])
    return total[first[1:]] - total[first[:-1]]

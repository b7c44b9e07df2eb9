"""A snapshot as points in telegraf's shape: burrow_topic, burrow_partition and burrow_group, as whole columns.

What is not known is left out of a point. So are groups and topics of a cluster that cannot be judged: what is known of
them is of before. That it cannot be judged is said by warren_cluster, which every cluster has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.config.sinks import Sink
from warren.domain.matching import matches_globs
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.snapshot.manifest import ClusterState, Manifest
from warren.snapshot.reader import Snapshot

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

TELEGRAF_CODES = {Status.OK: 1, Status.NOTFOUND: 2, Status.WARN: 3, Status.ERR: 4, Status.STOP: 5, Status.STALL: 6}
"""A status that telegraf does not know is 0: a partition that went back. `burrow_code` tells it."""
_CODES = np.array([TELEGRAF_CODES.get(status, 0) for status in Status], dtype=np.int64)
_WORDS = pa.array([status.name for status in Status])
_REASONS = pa.array([reason.name.lower() for reason in Reason])
_COLUMNS = [
    "cluster", "group", "topic", "partition", "owner", "client_id", "status", "reason", "current_lag", "end_offset",
    "end_ms",
]  # fmt: skip
_OF_GROUPS = (Status.OK, Status.WARN, Status.ERR)
_OF_PARTITIONS = (Status.OK, Status.WARN, Status.STOP, Status.STALL, Status.REWIND)


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one measurement: names by which they are told apart, and what is known of each."""

    name: str
    tags: Mapping[str, pa.StringArray]
    words: Mapping[str, pa.StringArray]
    """Fields that are texts; an empty one is left out."""
    numbers: Mapping[str, Ints]
    """Fields that are whole numbers; one that is UNKNOWN is left out."""

    def __len__(self) -> int:
        return len(next(iter(self.tags.values())))

    def some(self, begin: int, end: int) -> "Points":
        """The points from one place to another."""
        count = end - begin
        return Points(
            self.name,
            {name: column.slice(begin, count) for name, column in self.tags.items()},
            {name: column.slice(begin, count) for name, column in self.words.items()},
            {name: column[begin:end] for name, column in self.numbers.items()},
        )


def points_of(snapshot: Snapshot, sink: Sink, at_ms: int) -> list[Points]:
    """All that a sink wants of a snapshot, at a moment."""
    found = []
    if sink.detail != "group":
        found.append(_topics(snapshot, sink))
    partitions = snapshot.partitions(_COLUMNS, as_codes=True).combine_chunks()
    if sink.detail == "partition":
        found.append(_partitions(partitions, snapshot.manifest, sink))
    found.append(_groups(snapshot, partitions, sink))
    found.append(_clusters(snapshot.manifest, sink, at_ms))
    return [points for points in found if len(points)]


def _is_known(clusters: pa.Array, manifest: Manifest, sink: Sink) -> Mask:
    """Mark the names of clusters that a sink wants and that can be judged."""
    away = manifest.unknown_clusters()
    is_wanted = matches_globs(clusters, sink.clusters_include, sink.clusters_exclude)
    return is_wanted & ~np.asarray(_is_in(clusters, away)) if away else is_wanted


def _clusters(manifest: Manifest, sink: Sink, at_ms: int) -> Points:
    """How each cluster fares, and the pipeline with it."""
    names = pa.array(manifest.clusters, pa.string())
    kept = names.filter(pa.array(matches_globs(names, sink.clusters_include, sink.clusters_exclude)))
    states = [manifest.clusters[name] for name in kept.to_pylist()]
    of_all = {"age_ms": max(at_ms - manifest.now_ms, 0), "cycle_ms": sum(manifest.cycle_ms.values())}
    rows = [
        {
            **_health(state),
            "rejected": sum(manifest.rejects.get(name, {}).values()),
            **of_all,
            **(_roll_up(state) if state.is_judged else {}),
        }
        for name, state in zip(kept.to_pylist(), states, strict=True)
    ]
    fields = list(dict.fromkeys(field for row in rows for field in row))
    return Points(
        "warren_cluster",
        {"cluster": kept},
        {"error": pa.array([state.error or "" for state in states], pa.string())},
        {field: np.array([row.get(field, UNKNOWN) for row in rows], np.int64) for field in fields},
    )


def _health(state: ClusterState) -> dict[str, int]:
    return {
        "judged": int(state.is_judged),
        "catching_up": int(state.is_catching_up),
        "backlog": state.backlog,
        "held_by_transaction": sum(position.held_by_transactions for position in state.positions()),
    }


def _roll_up(state: ClusterState) -> dict[str, int]:
    return {
        **{f"groups_{one.name.lower()}": state.groups_by_status.get(one.name, 0) for one in _OF_GROUPS},
        **{f"partitions_{one.name.lower()}": state.partitions_by_status.get(one.name, 0) for one in _OF_PARTITIONS},
        "total_lag": state.totallag,
    }


def _is_in(names: pa.Array, some: Sequence[str]) -> Mask:
    return np.isin(_texts(names).to_numpy(zero_copy_only=False), some)


def _topics(snapshot: Snapshot, sink: Sink) -> Points:
    layout = snapshot.topics().combine_chunks()
    heads = np.asarray(snapshot.heads()["head"]) if layout.num_rows else np.zeros(0, np.int64)
    clusters, topics = _chunk(layout, "cluster"), _chunk(layout, "topic")
    is_wanted = _is_known(clusters, snapshot.manifest, sink) & matches_globs(
        topics, sink.topics_include, sink.topics_exclude
    )
    kept = np.flatnonzero(is_wanted)
    topic, partition, row = partitions_of(layout, kept)
    offset = heads[row]
    is_there = offset != UNKNOWN
    rows = pa.array(topic[is_there])
    tags = {"cluster": clusters.take(rows), "topic": topics.take(rows), "partition": _numbers(partition[is_there])}
    return Points("burrow_topic", tags, {}, {"offset": offset[is_there]})


def partitions_of(layout: pa.Table, topics: Ints) -> tuple[Ints, Ints, Ints]:
    """The partitions of some topics of a layout: the row of its topic, its number, and its place among the heads."""
    count, first = np.asarray(layout["partitions"])[topics].astype(np.int64), np.asarray(layout["first_row"])[topics]
    topic = np.repeat(topics, count)
    partition = np.arange(topic.size) - np.repeat(np.cumsum(count) - count, count)
    return topic, partition, np.repeat(first, count) + partition


def _partitions(table: pa.Table, manifest: Manifest, sink: Sink) -> Points:
    columns = {name: _chunk(table, name) for name in _COLUMNS}
    is_wanted = (
        _is_known(columns["cluster"], manifest, sink)
        & matches_globs(columns["group"], sink.groups_include, sink.groups_exclude)
        & matches_globs(columns["topic"], sink.topics_include, sink.topics_exclude)
    )
    kept = pa.array(np.flatnonzero(is_wanted))
    held = {name: column.take(kept) for name, column in columns.items()}
    status = np.asarray(held["status"]).astype(np.int64)
    return Points(
        "burrow_partition",
        {
            "cluster": _texts(held["cluster"]),
            "group": _texts(held["group"]),
            "topic": _texts(held["topic"]),
            "partition": _numbers(np.asarray(held["partition"])),
        },
        {
            "status": _WORDS.take(pa.array(status)),
            "reason": _REASONS.take(held["reason"]),
            "owner": _texts(held["owner"]),
            "client_id": _texts(held["client_id"]),
        },
        {
            "status_code": _CODES[status],
            "burrow_code": status,
            "lag": np.asarray(held["current_lag"]),
            "offset": np.asarray(held["end_offset"]),
            "timestamp": np.asarray(held["end_ms"]),
        },
    )


def _groups(snapshot: Snapshot, partitions: pa.Table, sink: Sink) -> Points:
    groups = snapshot.groups().combine_chunks()
    clusters, names = _chunk(groups, "cluster"), _chunk(groups, "group")
    offset, at_ms = _sums(snapshot.manifest, groups, partitions)
    is_wanted = _is_known(clusters, snapshot.manifest, sink) & matches_globs(
        names, sink.groups_include, sink.groups_exclude
    )
    kept = np.flatnonzero(is_wanted)
    rows = pa.array(kept)
    status = np.asarray(groups["status"])[kept].astype(np.int64)
    return Points(
        "burrow_group",
        {"cluster": _texts(clusters.take(rows)), "group": _texts(names.take(rows))},
        {"status": _WORDS.take(pa.array(status))},
        {
            "status_code": _CODES[status],
            "burrow_code": status,
            "partition_count": np.asarray(groups["partitions"])[kept].astype(np.int64),
            "total_lag": np.asarray(groups["totallag"])[kept],
            "lag": np.maximum(np.asarray(groups["maxlag"])[kept], 0),
            "offset": offset[kept],
            "timestamp": at_ms[kept],
        },
    )


def _sums(manifest: Manifest, groups: pa.Table, partitions: pa.Table) -> tuple[Ints, Ints]:
    """Of each group the sum of its offsets, and the time of its newest commit."""
    if not groups.num_rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Rows are counted within the file of a bucket.
    before = np.cumsum([0, *(bucket.partition_rows for bucket in manifest.buckets)])[:-1]
    first = before[np.asarray(groups["bucket"])] + np.asarray(groups["first_row"])
    offset, at_ms = np.asarray(partitions["end_offset"]), np.asarray(partitions["end_ms"])
    known = np.where(offset == UNKNOWN, 0, offset)
    return np.add.reduceat(known, first), np.maximum.reduceat(at_ms, first)


def _chunk(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _texts(names: pa.Array) -> pa.StringArray:
    return names.cast(pa.string()).fill_null("")


def _numbers(values: NDArray[np.generic]) -> pa.StringArray:
    return pa.array(values).cast(pa.string())

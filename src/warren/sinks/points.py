"""A snapshot as points in telegraf's shape: burrow_topic, burrow_partition and burrow_group, as whole columns.

Fields that are unknown are left out. A cluster that is not judged has no points for groups and topics, only its
warren_cluster, which says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.config.sinks import Sink
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.text_columns import as_text
from warren.domain.windows import UNKNOWN
from warren.sinks.filters import Mask, SinkFilter
from warren.snapshot.manifest import ClusterState, Manifest
from warren.snapshot.reader import Snapshot

Ints = NDArray[np.int64]

TELEGRAF_CODES = {Status.OK: 1, Status.NOTFOUND: 2, Status.WARN: 3, Status.ERR: 4, Status.STOP: 5, Status.STALL: 6}
"""REWIND, which telegraf does not know, is 0; the field `burrow_code` has it."""
_CODES = np.array([TELEGRAF_CODES.get(status, 0) for status in Status], dtype=np.int64)
_STATUS_NAMES = pa.array([status.name for status in Status])
_REASON_NAMES = pa.array([reason.name.lower() for reason in Reason])
_COLUMNS = [
    "cluster", "group", "topic", "partition", "owner", "client_id", "status", "reason", "current_lag", "end_offset",
    "end_ms",
]  # fmt: skip
_GROUP_STATUSES = ("OK", "WARN", "ERR")
_PARTITION_STATUSES = ("OK", "WARN", "STOP", "STALL", "REWIND")


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one measurement, with their tags and fields."""

    name: str
    tags: Mapping[str, pa.StringArray]
    texts: Mapping[str, pa.StringArray]
    """Text fields; an empty one is left out."""
    numbers: Mapping[str, Ints]
    """Integer fields; one that is UNKNOWN is left out."""

    def __len__(self) -> int:
        return len(next(iter(self.tags.values())))

    def batches(self, size: int) -> Iterator["Points"]:
        """The points in batches of at most a size."""
        for start in range(0, len(self), size):
            yield Points(
                self.name,
                {name: column.slice(start, size) for name, column in self.tags.items()},
                {name: column.slice(start, size) for name, column in self.texts.items()},
                {name: column[start : start + size] for name, column in self.numbers.items()},
            )


def points_of(snapshot: Snapshot, sink: Sink, at_ms: int) -> list[Points]:
    """The points that a sink wants of a snapshot at a time, by measurement."""
    measurements = []
    if sink.detail != "group":
        measurements.append(_topics(snapshot, sink))
    partitions = snapshot.partitions(_COLUMNS, as_codes=True).combine_chunks()
    if sink.detail == "partition":
        measurements.append(_partitions(partitions, snapshot.manifest, sink))
    measurements.append(_groups(snapshot, partitions, sink))
    measurements.append(_clusters(snapshot.manifest, sink, at_ms))
    return [points for points in measurements if len(points)]


def _is_wanted(
    sink: Sink, manifest: Manifest, clusters: pa.Array, groups: pa.Array | None = None, topics: pa.Array | None = None
) -> Mask:
    """Mark the rows that a sink wants and whose cluster is judged."""
    is_wanted = SinkFilter.of(sink).matches(clusters, groups, topics)
    unknown = manifest.unknown_clusters()
    return is_wanted & ~np.isin(_texts(clusters).to_numpy(zero_copy_only=False), unknown) if unknown else is_wanted


def _clusters(manifest: Manifest, sink: Sink, at_ms: int) -> Points:
    """The state of each cluster and of the pipeline."""
    names = pa.array(manifest.clusters, pa.string())
    names = names.filter(pa.array(SinkFilter.of(sink).matches(names)))
    states = [manifest.clusters[name] for name in names.to_pylist()]
    pipeline = {"age_ms": max(at_ms - manifest.now_ms, 0), "cycle_ms": sum(manifest.cycle_ms.values())}
    rows = [
        {
            **_health(state),
            "rejected": sum(manifest.rejects.get(name, {}).values()),
            **pipeline,
            **(_totals(state) if state.is_judged else {}),
        }
        for name, state in zip(names.to_pylist(), states, strict=True)
    ]
    fields = list(dict.fromkeys(field for row in rows for field in row))
    return Points(
        "warren_cluster",
        {"cluster": names},
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


def _totals(state: ClusterState) -> dict[str, int]:
    return {
        **{f"groups_{name.lower()}": state.groups_by_status.get(name, 0) for name in _GROUP_STATUSES},
        **{f"partitions_{name.lower()}": state.partitions_by_status.get(name, 0) for name in _PARTITION_STATUSES},
        "total_lag": state.totallag,
    }


def _topics(snapshot: Snapshot, sink: Sink) -> Points:
    layout = snapshot.topics().combine_chunks()
    heads = np.asarray(snapshot.heads()["head"]) if layout.num_rows else np.zeros(0, np.int64)
    clusters, topics = array_of(layout, "cluster"), array_of(layout, "topic")
    wanted = np.flatnonzero(_is_wanted(sink, snapshot.manifest, clusters, topics=topics))
    topic, partition, row = partitions_of(layout, wanted)
    offset = heads[row]
    is_known = offset != UNKNOWN
    rows = pa.array(topic[is_known])
    tags = {"cluster": clusters.take(rows), "topic": topics.take(rows), "partition": as_text(partition[is_known])}
    return Points("burrow_topic", tags, {}, {"offset": offset[is_known]})


def partitions_of(layout: pa.Table, topics: Ints) -> tuple[Ints, Ints, Ints]:
    """The partitions of some topics of a layout: the row of the topic, the partition, and its row among the heads."""
    count, first = np.asarray(layout["partitions"])[topics].astype(np.int64), np.asarray(layout["first_row"])[topics]
    topic = np.repeat(topics, count)
    partition = np.arange(topic.size) - np.repeat(np.cumsum(count) - count, count)
    return topic, partition, np.repeat(first, count) + partition


def _partitions(table: pa.Table, manifest: Manifest, sink: Sink) -> Points:
    columns = {name: array_of(table, name) for name in _COLUMNS}
    wanted = np.flatnonzero(_is_wanted(sink, manifest, *(columns[name] for name in ("cluster", "group", "topic"))))
    rows = {name: column.take(pa.array(wanted)) for name, column in columns.items()}
    status = np.asarray(rows["status"]).astype(np.int64)
    return Points(
        "burrow_partition",
        {
            "cluster": _texts(rows["cluster"]),
            "group": _texts(rows["group"]),
            "topic": _texts(rows["topic"]),
            "partition": as_text(np.asarray(rows["partition"])),
        },
        {
            "status": _STATUS_NAMES.take(pa.array(status)),
            "reason": _REASON_NAMES.take(rows["reason"]),
            "owner": _texts(rows["owner"]),
            "client_id": _texts(rows["client_id"]),
        },
        {
            "status_code": _CODES[status],
            "burrow_code": status,
            "lag": np.asarray(rows["current_lag"]),
            "offset": np.asarray(rows["end_offset"]),
            "timestamp": np.asarray(rows["end_ms"]),
        },
    )


def _groups(snapshot: Snapshot, partitions: pa.Table, sink: Sink) -> Points:
    groups = snapshot.groups().combine_chunks()
    clusters, names = array_of(groups, "cluster"), array_of(groups, "group")
    offset, newest_ms = _sums(snapshot.manifest, groups, partitions)
    wanted = np.flatnonzero(_is_wanted(sink, snapshot.manifest, clusters, names))
    rows = pa.array(wanted)
    status = np.asarray(groups["status"])[wanted].astype(np.int64)
    return Points(
        "burrow_group",
        {"cluster": _texts(clusters.take(rows)), "group": _texts(names.take(rows))},
        {"status": _STATUS_NAMES.take(pa.array(status))},
        {
            "status_code": _CODES[status],
            "burrow_code": status,
            "partition_count": np.asarray(groups["partitions"])[wanted].astype(np.int64),
            "total_lag": np.asarray(groups["totallag"])[wanted],
            "lag": np.maximum(np.asarray(groups["maxlag"])[wanted], 0),
            "offset": offset[wanted],
            "timestamp": newest_ms[wanted],
        },
    )


def _sums(manifest: Manifest, groups: pa.Table, partitions: pa.Table) -> tuple[Ints, Ints]:
    """The sum of the offsets of each group, and the time of its newest commit."""
    if not groups.num_rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = partition_rows(manifest, groups, "first_row")
    offset = np.asarray(partitions["end_offset"])
    known = np.where(offset == UNKNOWN, 0, offset)
    return np.add.reduceat(known, first), np.maximum.reduceat(np.asarray(partitions["end_ms"]), first)


def partition_rows(manifest: Manifest, groups: pa.Table, column: str) -> Ints:
    """Row numbers in the table of all partitions, from a column of groups that counts within the file of a bucket."""
    starts = np.cumsum([0, *(bucket.partition_rows for bucket in manifest.buckets)])[:-1]
    rows: Ints = starts[np.asarray(groups["bucket"])] + np.asarray(groups[column])
    return rows


def array_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    column = table[name]
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _texts(names: pa.Array) -> pa.StringArray:
    return names.cast(pa.string()).fill_null("")

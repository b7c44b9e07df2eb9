"""A snapshot as points in telegraf's shape: burrow_topic, burrow_partition and burrow_group, as whole columns.

Fields that are unknown are left out, as are times of what never happens. A group that is not judged has no points; the
warren_cluster of its cluster counts it. A cluster that is not judged has no points for topics either.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.config.sinks import Sink
from warren.domain.arrays import Floats, Ints, to_ints
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.text_columns import as_text
from warren.domain.windows import UNKNOWN
from warren.sinks.filters import matches_filters
from warren.sinks.time_lag_fields import TIME_LAG_COLUMNS, falling_behind, forecasts, rates
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot, is_judged

TELEGRAF_CODES = {Status.OK: 1, Status.NOTFOUND: 2, Status.WARN: 3, Status.ERR: 4, Status.STOP: 5, Status.STALL: 6}
"""REWIND, which telegraf does not know, is 0; the field `burrow_code` has it."""
_CODES = np.array([TELEGRAF_CODES.get(status, 0) for status in Status], dtype=np.int64)
STATUS_NAMES = pa.array([status.name for status in Status])
REASON_NAMES = pa.array([reason.name.lower() for reason in Reason])
_COLUMNS = [
    "cluster", "group", "topic", "partition", "owner", "client_id", "status", "reason", "current_lag", "end_offset",
    "end_ms", *TIME_LAG_COLUMNS,
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
    decimals: Mapping[str, Floats] = field(default_factory=dict)
    """Decimal fields; one that is NaN is left out."""

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
                {name: column[start : start + size] for name, column in self.decimals.items()},
            )


def points_of(snapshot: Snapshot, sink: Sink, at_ms: int) -> list[Points]:
    """The points that a sink wants of a snapshot at a time, by measurement."""
    measurements = []
    if sink.detail != "group":
        measurements.append(_topics(snapshot, sink))
    partitions, groups = snapshot.partitions(_COLUMNS), snapshot.groups()
    is_known = is_judged(groups)
    if sink.detail == "partition":
        # The partitions of all groups are in the order of the groups.
        judged = partitions.filter(pa.array(np.repeat(is_known, np.asarray(groups["partitions"]))))
        measurements.append(_partitions(_wanted(judged, sink)))
    judged = _with_offsets(groups, snapshot, partitions).filter(pa.array(is_known))
    measurements.append(_groups(_wanted(judged, sink)))
    unknown = pc.value_counts(groups.filter(pa.array(~is_known))["cluster"]).to_pylist()
    unknown_groups = {count["values"]: count["counts"] for count in unknown}
    measurements.append(_clusters(snapshot.manifest, sink, at_ms, unknown_groups))
    return [points for points in measurements if len(points)]


def _wanted(table: pa.Table, sink: Sink) -> pa.Table:
    return table.filter(pa.array(matches_filters(table, sink.filters)))


def _clusters(manifest: Manifest, sink: Sink, at_ms: int, unknown_groups: Mapping[str, int]) -> Points:
    """The state of each cluster and of the pipeline."""
    clusters = pa.table({"cluster": pa.array(manifest.clusters, pa.string())})
    clusters = _wanted(clusters, sink)
    states = {name: manifest.clusters[name] for name in clusters["cluster"].to_pylist()}
    rows = []
    for name, state in states.items():
        row = {
            "judged": int(state.is_judged),
            "catching_up": int(state.is_catching_up),
            "backlog": state.backlog,
            "held_by_transaction": sum(position.held_by_transactions for position in state.positions()),
            "groups_unknown": unknown_groups.get(name, 0),
            "rejected": sum(manifest.rejects.get(name, {}).values()),
            "age_ms": max(at_ms - manifest.now_ms, 0),
            "cycle_ms": sum(manifest.cycle_ms.values()),
        }
        if state.is_judged:
            row |= {f"groups_{status.lower()}": state.groups_by_status.get(status, 0) for status in _GROUP_STATUSES}
            counts = state.partitions_by_status
            row |= {f"partitions_{status.lower()}": counts.get(status, 0) for status in _PARTITION_STATUSES}
            row["total_lag"] = state.totallag
        rows.append(row)
    fields = dict.fromkeys(field for row in rows for field in row)
    return Points(
        "warren_cluster",
        {"cluster": _texts(clusters, "cluster")},
        {"error": pa.array([state.error or "" for state in states.values()], pa.string())},
        {field: np.array([row.get(field, UNKNOWN) for row in rows], np.int64) for field in fields},
    )


def _topics(snapshot: Snapshot, sink: Sink) -> Points:
    layout = _wanted(snapshot.topics(), sink)
    unknown = pa.array(snapshot.manifest.unknown_clusters(), pa.string())
    layout = layout.filter(pc.invert(pc.is_in(layout["cluster"], value_set=unknown)))
    topic, partition, row = partitions_of(layout)
    offset = np.asarray(snapshot.heads()["head"])[row]
    is_known = offset != UNKNOWN
    topics = layout.select(["cluster", "topic"]).take(pa.array(topic[is_known]))
    tags = {name: _texts(topics, name) for name in topics.column_names}
    tags["partition"] = as_text(partition[is_known])
    return Points("burrow_topic", tags, {}, {"offset": offset[is_known]})


def partitions_of(layout: pa.Table) -> tuple[Ints, Ints, Ints]:
    """The partitions of topics: the row of the topic in the layout, the partition, and its row among the heads."""
    count = to_ints(layout["partitions"])
    topic = np.repeat(np.arange(count.size), count)
    partition = np.arange(topic.size) - np.repeat(np.cumsum(count) - count, count)
    return topic, partition, np.repeat(to_ints(layout["first_row"]), count) + partition


def _partitions(rows: pa.Table) -> Points:
    tags = {name: _texts(rows, name) for name in ("cluster", "group", "topic")}
    tags["partition"] = as_text(to_ints(rows["partition"]))
    status = to_ints(rows["status"])
    texts = {
        "status": STATUS_NAMES.take(pa.array(status)),
        "reason": REASON_NAMES.take(rows["reason"].combine_chunks()),
    }
    texts |= {name: _texts(rows, name) for name in ("owner", "client_id")}
    columns = {"lag": "current_lag", "offset": "end_offset", "timestamp": "end_ms", "lost_messages": "lost"}
    numbers = {"status_code": _CODES[status], "burrow_code": status, "falling_behind": falling_behind(rows)}
    numbers |= {name: to_ints(rows[column]) for name, column in columns.items()}
    return Points("burrow_partition", tags, texts, numbers, forecasts(rows))


def _groups(rows: pa.Table) -> Points:
    status = to_ints(rows["status"])
    return Points(
        "burrow_group",
        {name: _texts(rows, name) for name in ("cluster", "group")},
        {"status": STATUS_NAMES.take(pa.array(status))},
        {
            "status_code": _CODES[status],
            "burrow_code": status,
            "partition_count": to_ints(rows["partitions"]),
            "total_lag": to_ints(rows["totallag"]),
            "lag": np.maximum(to_ints(rows["maxlag"]), 0),
            "offset": to_ints(rows["offset"]),
            "total_offset": to_ints(rows["total_offset"]),
            "timestamp": to_ints(rows["timestamp"]),
            "lost_messages": to_ints(rows["lost"]),
            "falling_behind": falling_behind(rows),
        },
        forecasts(rows) | rates(rows),
    )


def _with_offsets(groups: pa.Table, snapshot: Snapshot, partitions: pa.Table) -> pa.Table:
    """Groups with the highest and the sum of their offsets, and the time of their newest commit."""
    first = snapshot.partition_rows(groups, "first_row")
    offset, newest_ms = to_ints(partitions["end_offset"]), to_ints(partitions["end_ms"])
    total = np.where(offset == UNKNOWN, 0, offset)
    if first.size:
        offset, newest_ms = np.maximum.reduceat(offset, first), np.maximum.reduceat(newest_ms, first)
        total = np.add.reduceat(total, first)
    columns = {"offset": offset, "total_offset": total, "timestamp": newest_ms}
    for name, column in columns.items():
        groups = groups.append_column(name, pa.array(column))
    return groups


def _texts(table: pa.Table, column: str) -> pa.StringArray:
    return table[column].combine_chunks().cast(pa.string()).fill_null("")

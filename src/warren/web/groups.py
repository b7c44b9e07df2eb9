"""What Burrow answers of a consumer group, made from the index when it is asked for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.web.go_json import dumps, to_number
from warren.web.index import Index

Value = dict[str, Any]

_STATUS = [status.name for status in Status]
_OK = int(Status.OK)


def group_status(index: Index, cluster: str, group: str, *, show_all: bool) -> bytes | None:
    """A group's verdict with all its partitions, or with those alone that are worse than OK; None if it is unknown."""
    number = index.number(cluster, group)
    return None if number is None else status_of(index, number, show_all=show_all)


def status_of(index: Index, number: int, *, show_all: bool) -> bytes:
    """The verdict of a group that is known by its number, as JSON."""
    texts, begin, end = index.texts.of(number)
    head, tail = texts.groups[number - texts.first_group]
    if show_all:
        return head + texts.whole(begin, end) + tail
    if index.of_groups["status"][number] == _OK:
        return head + tail
    first, last = index.rows_of(number)
    return head + texts.some(np.flatnonzero(index.columns["status"][first:last] != _OK) + first) + tail


def not_found(cluster: str, group: str) -> bytes:
    """What Burrow says of a group that it does not know."""
    return dumps(
        {
            "cluster": cluster,
            "group": group,
            "status": Status.NOTFOUND.name,
            "complete": 1,
            "partitions": [],
            "partition_count": 0,
            "maxlag": None,
            "totallag": 0,
        }
    )


def consumer_topics(index: Index, cluster: str, group: str) -> Value | None:
    """A group's windows by topic, padded with nulls as Burrow's rings are; reads the windows from the snapshot."""
    number = index.number(cluster, group)
    if number is None or index.snapshot is None:
        return None
    found = index.snapshot.group(cluster, group)
    if found is None:
        return None
    intervals = index.snapshot.manifest.intervals
    topics: dict[str, list[Value]] = {}
    _, rows = found
    counts = dict(_topic_sizes(index, number))
    for row in rows.to_pylist():
        held = topics.setdefault(row["topic"], [_no_window() for _ in range(counts.get(row["topic"], 0))])
        held.extend(_no_window() for _ in range(row["partition"] + 1 - len(held)))
        held[row["partition"]] = _window(row, intervals)
    return topics


def _topic_sizes(index: Index, number: int) -> list[tuple[str, int]]:
    return [
        (index.names["topic"][int(index.topic[first])].as_py(), padded)
        for first, _, padded in index.topic_counts(number)
    ]


def _no_window() -> Value:
    return {"offsets": [], "owner": "", "client_id": "", "current-lag": 0}


def _slots(row: Value) -> list[Value]:
    return [
        {"offset": offset, "timestamp": at, "observedAt": at // 1000 * 1000, "lag": None if lag == UNKNOWN else lag}
        for offset, at, lag in zip(row["offsets"], row["times_ms"], row["lags"], strict=True)
    ]


def _window(row: Value, intervals: int) -> Value:
    slots = _slots(row)
    return {
        "offsets": [None] * (intervals - len(slots)) + slots if slots else [],
        "owner": row["owner"] or "",
        "client_id": row["client_id"] or "",
        "current-lag": max(row["current_lag"], 0),
    }


@dataclass(frozen=True, slots=True)
class Only:
    """Which partitions of a group are wanted: all, those of a topic, or one."""

    topic: str | None = None
    partition: int | None = None

    def rows(self, partitions: pa.Table) -> list[Value]:
        """The rows that are wanted."""
        if self.topic is not None:
            partitions = partitions.filter(pc.equal(partitions["topic"], self.topic))
        if self.partition is not None:
            partitions = partitions.filter(pc.equal(partitions["partition"], self.partition))
        found: list[Value] = partitions.to_pylist()
        return found


def explained(index: Index, cluster: str, group: str, only: Only) -> Value | None:
    """A group with the reason of each of its partitions in words, and with its window if it is asked for alone."""
    snapshot = index.snapshot
    found = snapshot.group(cluster, group) if snapshot and index.number(cluster, group) is not None else None
    if snapshot is None or found is None:
        return None
    row, partitions = found
    state = snapshot.manifest.clusters.get(cluster)
    return {
        "cluster": cluster,
        "group": group,
        "status": _STATUS[row["status"]],  # type: ignore[call-overload]
        "since": row["since_ms"],
        "judged_at": snapshot.manifest.now_ms,
        "unknown_since": state.unknown_since_ms if state else None,
        "totallag": row["totallag"],
        "partitions": [
            {
                "topic": one["topic"],
                "partition": one["partition"],
                "owner": one["owner"] or "",
                "client_id": one["client_id"] or "",
                "status": _STATUS[one["status"]],
                "since": one["since_ms"],
                "reason": snapshot.reason(one),
                "committed": _known(one["committed_offset"]),
                "head": _known(one["head"]),
                "log_start": _known(one["log_start"]),
                "current_lag": _known(one["current_lag"]),
                "complete": to_number(one["complete"]),
                **({"window": _slots(one)} if only.partition is not None else {}),
            }
            for one in only.rows(partitions)
        ],
    }


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value

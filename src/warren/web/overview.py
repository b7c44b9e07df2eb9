"""All clusters and groups at a glance: what the dashboard's first pages show."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from warren.config import Config
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.history.recent import HOUR_MS
from warren.incidents.store.reader import read_leadership
from warren.web.cluster_lag import roll_up
from warren.web.index import Index
from warren.web.readiness import not_ready
from warren.web.sinks import sinks_answer

Value = dict[str, Any]
Ints = NDArray[np.int64]

WORST_MOST = 25
CHANGED_MOST = 100
_STATUS = [status.name for status in Status]


def overview(index: Index, config: Config, now_ms: int) -> Value:
    """Clusters, the worst groups, what has changed within the hour, and how the pipeline is."""
    snapshot = index.snapshot
    why = not_ready(snapshot, now_ms)
    manifest = snapshot.manifest if snapshot else None
    status = index.of_groups["status"]
    duty = read_leadership(config.pipeline.data_dir, now_ms)
    return {
        "now": now_ms,
        "not_ready": why.partition("\n")[2].strip() if why else None,
        "sequence": manifest.sequence if manifest else None,
        "judged_at": manifest.now_ms if manifest else None,
        "trigger_ms": manifest.trigger_ms if manifest else None,
        "cycle_ms": sum(manifest.cycle_ms.values()) if manifest else None,
        "backlog": _backlog(index),
        "rejects": {name: sum(held.values()) for name, held in manifest.rejects.items()} if manifest else {},
        "groups": int(status.size),
        "partitions": index.rows,
        "clusters": [roll_up(index, name) for name in sorted(config.clusters)],
        "worst": _worst(index),
        "changed": _changed(index, now_ms),
        "notifying": {"state": duty.state, "why": duty.why},
        "sinks": sinks_answer(config),
    }


def group_columns(index: Index, topic: str | None = None) -> bytes:
    """Every group of every cluster, a list a column, as JSON; with a topic only the groups that read it."""
    numbers = np.arange(index.of_groups["status"].size) if topic is None else index.readers_of(topic)
    recent, snapshot = index.recent, index.snapshot
    now_ms = snapshot.manifest.now_ms if snapshot else 0
    lag = index.of_groups["totallag"]
    columns: Value = {
        "sequence": snapshot.manifest.sequence if snapshot else None,
        "judged_at": now_ms or None,
        "clusters": index.clusters,
        "cluster": index.group_cluster[numbers],
        "group": index.group_names.take(pa.array(numbers)).to_pylist(),
        "status": [_STATUS[code] for code in index.of_groups["status"][numbers].tolist()],
        "totallag": lag[numbers],
        "maxlag": index.of_groups["maxlag"][numbers],
        "since": index.of_groups["since_ms"][numbers],
        "partitions": index.partition_count[numbers],
        "growth": np.round(recent.growth(lag, now_ms)[numbers], 2),
        "spark": recent.sparklines(lag, now_ms).take(pa.array(numbers)).to_pylist(),
        # Lag in seconds and when a group will have caught up have their places here.
        "seconds": None,
        "forecast": None,
    }
    return orjson.dumps(columns, option=orjson.OPT_SERIALIZE_NUMPY)


def _backlog(index: Index) -> int:
    """How many offsets of the offsets topics are still to be read."""
    return index.snapshot.manifest.backlog if index.snapshot else 0


def _worst(index: Index) -> list[Value]:
    """The groups that need somebody most: ERR before WARN, within it the largest lag first."""
    status, lag = index.of_groups["status"], index.of_groups["totallag"]
    bad = np.flatnonzero(status > int(Status.OK))
    order = bad[np.lexsort((-lag[bad], -status[bad]))][:WORST_MOST]
    if index.snapshot is None or not order.size:
        return []
    places: list[Value] = [
        {name: int(index.of_groups[name][number]) for name in ("bucket", "worst_row")} for number in order
    ]
    worst = index.snapshot.worst(places)
    growth = index.recent.growth(lag, index.snapshot.manifest.now_ms)
    return [
        {
            **_named(index, number),
            "totallag": int(lag[number]),
            "growth": None if np.isnan(growth[number]) else round(float(growth[number]), 2),
            "since": int(index.of_groups["since_ms"][number]),
            "partition_status": _STATUS[int(str(partition["status"]))],
            "topic": partition["topic"],
            "partition": partition["partition"],
            "reason": index.snapshot.reason(partition),
        }
        for number, partition in zip(order.tolist(), worst, strict=True)
    ]


def _changed(index: Index, now_ms: int) -> list[Value]:
    """The groups whose status has changed within the hour, the last first, with what it was."""
    since_ms = index.of_groups["since_ms"]
    before = index.recent.status_before(since_ms)
    status = index.of_groups["status"]
    # A group that is new and well has not changed.
    is_changed = (since_ms >= now_ms - HOUR_MS) & (before != status) & ((before > 0) | (status != int(Status.OK)))
    found = np.flatnonzero(is_changed)
    found = found[np.argsort(-since_ms[found], kind="stable")][:CHANGED_MOST]
    return [
        {
            **_named(index, number),
            "before": _STATUS[int(before[number])] if before[number] else None,
            "since": int(since_ms[number]),
        }
        for number in found.tolist()
    ]


def _named(index: Index, number: int) -> Value:
    return {
        "cluster": index.clusters[int(index.group_cluster[number])],
        "group": index.group_names[number].as_py(),
        "status": _STATUS[int(index.of_groups["status"][number])],
    }


def topic_detail(index: Index, cluster: str, topic: str) -> Value | None:
    """A topic's heads, how fast they move, and its consumers side by side; None if there is no such topic."""
    held = index.topics.get(cluster)
    place = held.places.get(topic) if held else None
    if held is None or place is None or index.snapshot is None:
        return None
    first, count = int(held.first_row[place]), int(held.partitions[place])
    heads, starts = index.heads[first : first + count], index.log_starts[first : first + count]
    rates = _rates(index, cluster, topic, heads)
    known = rates[~np.isnan(rates)]
    return {
        "cluster": cluster,
        "topic": topic,
        "judged_at": index.snapshot.manifest.now_ms,
        "rate": round(float(known.sum()), 2) if known.size else None,
        "partitions": [
            {
                "partition": number,
                "head": None if head == UNKNOWN else head,
                "log_start": None if start == UNKNOWN else start,
                "rate": None if np.isnan(rate) else round(rate, 2),
            }
            for number, (head, start, rate) in enumerate(
                zip(heads.tolist(), starts.tolist(), rates.tolist(), strict=True)
            )
        ],
        "consumers": _consumers(index, cluster, topic),
    }


RATE_MS = 60_000
"""Over how long the rate of a topic is measured, if heads have been known for that long."""


def _rates(index: Index, cluster: str, topic: str, heads: Ints) -> NDArray[np.float64]:
    """Messages a second of each partition of a topic; NaN where it is not known."""
    assert index.snapshot is not None
    samples = index.snapshot.manifest.heads
    taken = [sample.taken_ms[cluster][1] if cluster in sample.taken_ms else 0 for sample in samples]
    unknown = np.full(heads.size, np.nan)
    now_ms = taken[-1]
    usable = [number for number, at_ms in enumerate(taken[:-1]) if 0 < at_ms < now_ms]
    if not usable:
        return unknown
    before = min(usable, key=lambda number: abs(now_ms - RATE_MS - taken[number]))
    older = index.snapshot.heads_of(samples[before], cluster, topic)
    if older is None or older.size != heads.size:
        return unknown
    is_known = (older != UNKNOWN) & (heads != UNKNOWN) & (heads >= older)
    return np.where(is_known, (heads - older) * 1000.0 / (now_ms - taken[before]), np.nan)


def _consumers(index: Index, cluster: str, topic: str) -> list[Value]:
    """Each group of a topic with what it has there."""
    found = []
    for number, first, size in index.runs_of(cluster, topic):
        lag, status = index.columns["current_lag"][first : first + size], index.columns["status"][first : first + size]
        lags: Mapping[int, int] = dict(
            zip(index.columns["partition"][first : first + size].tolist(), lag.tolist(), strict=True)
        )
        found.append(
            {
                **_named(index, number),
                "totallag": int(np.maximum(lag, 0).sum()),
                "since": int(index.of_groups["since_ms"][number]),
                "statuses": _count(status.tolist()),
                "lags": [[partition, None if held == UNKNOWN else held] for partition, held in lags.items()],
            }
        )
    return sorted(found, key=lambda one: (-one["totallag"], one["group"]))


def _count(codes: Sequence[int]) -> dict[str, int]:
    return {_STATUS[code]: codes.count(code) for code in sorted(set(codes))}

"""A topic with its heads, its rate and its consumers side by side."""

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from warren.domain.arrays import Ints
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.errors import RequestError
from warren.snapshot.reader import Snapshot
from warren.snapshot.status import TimeMs
from warren.snapshot.time_lag import SecondsBehind, known_or_none
from warren.web.api import Api
from warren.web.groups import Head, LogStart, NamedGroup, Since, StatusCounts, group_answer
from warren.web.http import Request, Response, known, success
from warren.web.index import Index

RATE_MS = 60_000
"""The time over which the rate of a topic is measured, if heads have been known for that long."""


Rate = Annotated[float | None, Meta(description="New messages per second; null if unknown")]


class TopicPartition(Struct):
    """A partition of a topic."""

    partition: int
    head: Head
    log_start: LogStart
    rate: Rate


class TopicConsumer(NamedGroup):
    """A group that consumes a topic, with its status over all topics and its lag on this one."""

    totallag: int
    since: Since
    statuses: Annotated[StatusCounts, Meta(description="Number of this topic's partitions by status")]
    seconds_behind: SecondsBehind
    lags: Annotated[list[tuple[int, int | None]], Meta(description="Partitions with their lags; null if unknown")]


class TopicDetail(Struct):
    """A topic with its consumers."""

    cluster: str
    topic: str
    judged_at: TimeMs
    rate: Rate
    partitions: list[TopicPartition]
    consumers: list[TopicConsumer]


def topic_detail(api: Api, request: Request) -> Response:
    """Get the heads of a topic, the rates at which they move, and the lag of its consumers."""
    index, cluster, topic = api.index, request.params["cluster"], request.params["topic"]
    rows = index.head_rows(cluster, topic) if cluster in api.config.clusters else None
    if rows is None:
        raise RequestError("cluster or topic not found", 404)
    heads, log_starts = index.heads[rows], index.log_starts[rows]
    rates = _rates(index.snapshot, cluster, topic, heads)
    measured = rates[~np.isnan(rates)]
    columns = zip(heads.tolist(), log_starts.tolist(), rates.tolist(), strict=True)
    detail = TopicDetail(
        cluster=cluster,
        topic=topic,
        judged_at=index.snapshot.manifest.now_ms,
        rate=round(float(measured.sum()), 2) if measured.size else None,
        partitions=[
            TopicPartition(partition, known(head), known(log_start), None if np.isnan(rate) else round(rate, 2))
            for partition, (head, log_start, rate) in enumerate(columns)
        ],
        consumers=_consumers(index, cluster, topic),
    )
    return success(request, "topic detail returned", topic=detail)


def _rates(snapshot: Snapshot, cluster: str, topic: str, heads: Ints) -> NDArray[np.float64]:
    """Messages per second of each partition; NaN where the rate is unknown."""
    samples = snapshot.manifest.heads
    taken_ms = [sample.taken_ms[cluster][1] if cluster in sample.taken_ms else 0 for sample in samples]
    unknown = np.full(heads.size, np.nan)
    now_ms = taken_ms[-1]
    usable = [position for position, at_ms in enumerate(taken_ms[:-1]) if 0 < at_ms < now_ms]
    if not usable:
        return unknown
    before = min(usable, key=lambda position: abs(now_ms - RATE_MS - taken_ms[position]))
    older = snapshot.heads_of(samples[before], cluster, topic)
    if older is None or older.size != heads.size:
        return unknown
    is_known = (older != UNKNOWN) & (heads != UNKNOWN) & (heads >= older)
    return np.where(is_known, (heads - older) * 1000.0 / (now_ms - taken_ms[before]), np.nan)


def _consumers(index: Index, cluster: str, topic: str) -> list[TopicConsumer]:
    """Each group of a topic with its lag there, the largest lag first."""
    consumers = []
    for run in index.runs_of(cluster, topic).tolist():
        group_row, first = int(index.runs.group[run]), int(index.runs.first[run])
        rows = slice(first, first + int(index.runs.size[run]))
        partitions, lags, statuses = (index.columns[name][rows] for name in ("partition", "current_lag", "status"))
        codes, counts = np.unique(statuses, return_counts=True)
        consumers.append(
            TopicConsumer(
                **group_answer(index, group_row),
                totallag=int(np.maximum(lags, 0).sum()),
                since=int(index.group_columns["since_ms"][group_row]),
                statuses={Status(code).name: int(count) for code, count in zip(codes, counts, strict=True)},
                seconds_behind=known_or_none(float(index.columns["seconds_behind"][rows].max())),
                lags=[
                    (partition, known(lag)) for partition, lag in zip(partitions.tolist(), lags.tolist(), strict=True)
                ],
            )
        )
    return sorted(consumers, key=lambda consumer: (-consumer.totallag, consumer.group))

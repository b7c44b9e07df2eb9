"""All clusters and sinks at a glance: the first page of the dashboard."""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from warren.config import Config
from warren.config.sinks import LakeSink, Sink
from warren.delivery.sink_status import SinkStatus, read_status
from warren.domain.status import Status
from warren.history.recent import HOUR_MS
from warren.incidents.store.reader import read_leadership
from warren.snapshot.status import StatusName, TimeMs
from warren.snapshot.time_lag import TimeLag
from warren.web.admin import Reload, last_reload
from warren.web.api import Api, not_ready
from warren.web.groups import ClusterSummary, Growth, NamedGroup, Since, UnknownSince, cluster_summary, group_answer
from warren.web.http import Request, Response, known, success, to_answer
from warren.web.incidents import LeadershipSummary
from warren.web.index import Index

MAX_WORST = 25
MAX_CHANGED = 100
LATE_INTERVALS = 3
"""How many intervals may wait before a sink is behind: one is always under way."""

SinkStateName = Literal["starting", "well", "behind", "trouble"]


class WorstGroup(NamedGroup):
    """A group that is not OK, with its most severe partition."""

    totallag: int
    growth: Growth
    since: Since
    unknown_since: UnknownSince
    time_lag: TimeLag
    partition_status: StatusName
    topic: str
    partition: int
    reason: str


class ChangedGroup(NamedGroup):
    """A group whose status has changed."""

    before: Annotated[StatusName | None, Meta(description="The status before; null if the group is new")]
    since: Since


class SinkSummary(Struct, rename={"class_name": "class", "delivered_ms": "delivered", "oldest_ms": "oldest"}):
    """A sink and its deliveries; one interval is one sample of all lags."""

    name: str
    class_name: str
    state: SinkStateName
    interval: Annotated[float, Meta(description="Seconds between samples")]
    points: Annotated[int, Meta(description="Points per interval")]
    delivered_ms: Annotated[int | None, Meta(description="Time of the last delivered interval")]
    waiting: Annotated[int, Meta(description="Intervals that are not delivered yet")]
    waiting_bytes: int
    oldest_ms: Annotated[int | None, Meta(description="Time of the oldest interval that is not delivered yet")]
    dropped: Annotated[int, Meta(description="Intervals dropped to make room, since the process started")]
    refused: Annotated[int, Meta(description="Requests that the server refused, since the process started")]
    trouble: Annotated[str, Meta(description="The last error; empty if there is none")]


class Overview(Struct):
    """All clusters at a glance."""

    now: TimeMs
    not_ready: Annotated[str | None, Meta(description="Why the verdicts are not current; null if they are")]
    sequence: Annotated[int | None, Meta(description="The snapshot's number")]
    judged_at: int | None
    trigger_ms: Annotated[int | None, Meta(description="How often a cycle runs")]
    cycle_ms: Annotated[int | None, Meta(description="How long the last cycle took")]
    backlog: Annotated[int, Meta(description="Records of the offsets topics that are not read yet")]
    rejects: Annotated[dict[str, int], Meta(description="Records that could not be decoded, by cluster")]
    groups: int
    partitions: int
    clusters: list[ClusterSummary]
    worst: list[WorstGroup]
    changed: Annotated[list[ChangedGroup], Meta(description="Changes of the last hour, newest first")]
    notifying: LeadershipSummary
    sinks: list[SinkSummary]
    configuration: Reload | None


def overview(api: Api, request: Request) -> Response:
    """Get all clusters, the worst groups, the changes of the last hour and the state of the pipeline."""
    index, now_ms = api.index, api.clock_ms()
    why, manifest = not_ready(index.snapshot, now_ms), index.snapshot.manifest
    leadership = read_leadership(api.data_dir, now_ms)
    answer = Overview(
        now=now_ms,
        not_ready=why.partition("\n")[2].strip() if why else None,
        sequence=manifest.sequence or None,
        judged_at=manifest.now_ms or None,
        trigger_ms=manifest.trigger_ms or None,
        cycle_ms=sum(manifest.cycle_ms.values()) if index.snapshot.is_judged else None,
        backlog=manifest.backlog,
        rejects={name: sum(counts.values()) for name, counts in manifest.rejects.items()},
        groups=len(index.group_names),
        partitions=index.rows,
        clusters=[cluster_summary(index, name) for name in sorted(api.config.clusters)],
        worst=_worst(index),
        changed=_changed(index, now_ms),
        notifying=LeadershipSummary(state=leadership.state, why=leadership.why),
        sinks=sink_answers(api.config),
        configuration=last_reload(api.data_dir),
    )
    return success(request, "overview returned", overview=answer)


def _worst(index: Index) -> list[WorstGroup]:
    """The most severe groups: ERR before WARN, then by lag."""
    columns, snapshot = index.group_columns, index.snapshot
    status, lag = columns["status"], columns["totallag"]
    bad = np.flatnonzero(status > int(Status.OK))
    rows = bad[np.lexsort((-lag[bad], -status[bad]))][:MAX_WORST].tolist()
    partitions = snapshot.worst([{name: int(columns[name][row]) for name in ("bucket", "worst_row")} for row in rows])
    growth = index.recent.growth(lag, snapshot.manifest.now_ms)
    return [
        to_answer(
            WorstGroup,
            partition,
            **group_answer(index, row),
            totallag=int(lag[row]),
            growth=None if np.isnan(growth[row]) else round(float(growth[row]), 2),
            since=int(columns["since_ms"][row]),
            unknown_since=known(int(columns["unknown_since_ms"][row])),
            time_lag=index.time_lag.at(row),
            partition_status=Status(partition["status"]).name,
            reason=snapshot.reason(partition),
        )
        for row, partition in zip(rows, partitions, strict=True)
    ]


def _changed(index: Index, now_ms: int) -> list[ChangedGroup]:
    """The groups whose status has changed within the last hour, the latest first, with the status before."""
    status, since_ms = index.group_columns["status"], index.group_columns["since_ms"]
    before = index.recent.status_before(since_ms)
    # A new group that is OK is no change.
    is_changed = (since_ms >= now_ms - HOUR_MS) & (before != status) & ((before > 0) | (status != int(Status.OK)))
    rows = np.flatnonzero(is_changed)
    rows = rows[np.argsort(-since_ms[rows], kind="stable")][:MAX_CHANGED]
    return [
        ChangedGroup(
            **group_answer(index, row),
            before=Status(before[row]).name if before[row] else None,
            since=int(since_ms[row]),
        )
        for row in rows.tolist()
    ]


def sinks(api: Api, request: Request) -> Response:
    """Get the status of every sink: what is delivered, what waits, and the last error."""
    return success(request, "sinks returned", sinks=sink_answers(api.config))


def sink_answers(config: Config) -> list[SinkSummary]:
    """The status of every configured sink."""
    answers = []
    for name, sink in sorted(config.sinks.items()):
        status = read_status(config.pipeline.data_dir, name) or SinkStatus(name, sink.class_name)
        given = {"name": name, "class_name": sink.class_name, "interval": sink.interval}
        answers.append(to_answer(SinkSummary, status, state=state_of(status, sink), **given))
    return answers


def state_of(status: SinkStatus, sink: Sink) -> SinkStateName:
    """The state of a sink in one word: starting, well, behind or trouble."""
    if status.noted_ms == 0:
        return "starting"
    if status.trouble:
        return "trouble"
    # A lake collects several intervals on purpose.
    collected = round(sink.write_interval / sink.interval) if isinstance(sink, LakeSink) else 0
    return "behind" if status.waiting > LATE_INTERVALS + collected else "well"

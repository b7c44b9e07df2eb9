"""All clusters at a glance: the first page of the dashboard."""

import numpy as np

from warren.domain.status import Status
from warren.history.recent import HOUR_MS
from warren.incidents.store.reader import read_leadership
from warren.snapshot.reader import status_name
from warren.web.answers.clusters import ChangedGroup, LeadershipSummary, Overview, WorstGroup
from warren.web.api import Api, not_ready
from warren.web.groups import cluster_summary
from warren.web.http import Request, Response, success, to_answer
from warren.web.index import Index
from warren.web.sinks import sink_answers

MAX_WORST = 25
MAX_CHANGED = 100


def overview(api: Api, request: Request) -> Response:
    """Get all clusters, the worst groups, the changes of the last hour and the state of the pipeline."""
    index, now_ms = api.index, api.clock_ms()
    why = not_ready(index.snapshot, now_ms)
    manifest = index.snapshot.manifest if index.snapshot else None
    leadership = read_leadership(api.data_dir, now_ms)
    answer = Overview(
        now=now_ms,
        not_ready=why.partition("\n")[2].strip() if why else None,
        sequence=manifest.sequence if manifest else None,
        judged_at=manifest.now_ms if manifest else None,
        trigger_ms=manifest.trigger_ms if manifest else None,
        cycle_ms=sum(manifest.cycle_ms.values()) if manifest else None,
        backlog=manifest.backlog if manifest else 0,
        rejects={name: sum(counts.values()) for name, counts in manifest.rejects.items()} if manifest else {},
        groups=len(index.group_names),
        partitions=index.rows,
        clusters=[cluster_summary(index, name) for name in sorted(api.config.clusters)],
        worst=_worst(index),
        changed=_changed(index, now_ms),
        notifying=LeadershipSummary(state=leadership.state, why=leadership.why),
        sinks=sink_answers(api.config),
    )
    return success(request, "overview returned", overview=answer)


def _worst(index: Index) -> list[WorstGroup]:
    """The most severe groups: ERR before WARN, then by lag."""
    columns, snapshot = index.group_columns, index.snapshot
    status, lag = columns["status"], columns["totallag"]
    bad = np.flatnonzero(status > int(Status.OK))
    rows = bad[np.lexsort((-lag[bad], -status[bad]))][:MAX_WORST].tolist()
    if snapshot is None or not rows:
        return []
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
            partition_status=status_name(partition["status"]),
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


def group_answer(index: Index, group_row: int) -> dict[str, str]:
    """A group's names and status."""
    cluster, group = index.group_key(group_row)
    return {"cluster": cluster, "group": group, "status": Status(index.group_columns["status"][group_row]).name}

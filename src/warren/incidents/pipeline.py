"""The incident pipeline: from the verdicts of a snapshot to stored incidents and notifications.

    known → routed → not silenced → decided → grouped → notifications → committed

`STEPS` lists the way. Each step takes the evaluation of a snapshot and returns it with its own part added.
"""

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.incidents.decide import decide
from warren.incidents.evaluation import Evaluation, PipelineState, new_id
from warren.incidents.model import BadPartition, Incident, to_columns
from warren.incidents.notifications import with_notifications
from warren.incidents.routing import NotificationRouter
from warren.incidents.silences import find_silenced
from warren.incidents.store.database import StoreError
from warren.incidents.store.store import IncidentStore
from warren.incidents.storms import with_storms
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot, group_keys
from warren.snapshot.schemas import Row
from warren.snapshot.status import GroupName, GroupResult, read_group_results
from warren.snapshot.store import Store

MAX_PARTITIONS = 20
"""How many of an incident's partitions are stored, the most severe first."""
DAY_MS = 86_400_000
CLEANUP_MS = 3_600_000
"""How often expired incidents and notifications are deleted."""


def with_acknowledgements(evaluation: Evaluation) -> Evaluation:
    """The open incidents with their acknowledgements of now."""
    times = {incident_id: each.at_ms for incident_id, each in evaluation.actions.acknowledgements.items()}
    changed = {
        name: replace(incident, acknowledged_ms=times.get(incident.id))
        for name, incident in evaluation.state.incidents.items()
        if incident.acknowledged_ms != times.get(incident.id)
    }
    incidents = {**evaluation.state.incidents, **changed}
    return replace(evaluation, state=replace(evaluation.state, incidents=incidents))


def with_verdicts(evaluation: Evaluation) -> Evaluation:
    """The verdict of every group that can be judged, and None for open incidents of groups that cannot."""
    rows, state = evaluation.rows, evaluation.state
    seen = state.seen.union(name for name in rows if name[0] in evaluation.partially_known)
    verdicts: dict[GroupName, Status | None] = {}
    for name in {**rows, **state.incidents}:
        row = rows.get(name)
        if name[0] in evaluation.unknown_clusters or (row and row["unknown_since_ms"] != UNKNOWN):
            if name in state.incidents:
                verdicts[name] = None
        elif row:
            verdicts[name] = Status(row["status"])
        elif name in seen or name[0] not in evaluation.partially_known:
            # A group that only another Warren has seen may still exist.
            verdicts[name] = Status.NOTFOUND
    return replace(evaluation, verdicts=verdicts, state=replace(state, seen=seen))


def with_recipients(evaluation: Evaluation) -> Evaluation:
    """The notifiers, team and channels of every group."""
    return replace(evaluation, recipients=evaluation.router.recipients_of(evaluation.verdicts))


def with_silences(evaluation: Evaluation) -> Evaluation:
    """The groups that a silence matches now."""
    silenced = find_silenced(evaluation.actions.silences, evaluation.now_ms, list(evaluation.verdicts))
    return replace(evaluation, silenced=silenced)


def with_decisions(evaluation: Evaluation) -> Evaluation:
    """What follows for each group, if anything: opened, changed or closed incidents, and due notifications."""
    decisions = []
    for name, status in evaluation.verdicts.items():
        incident = evaluation.state.incidents.get(name)
        notifiers = evaluation.recipients[name].notifiers
        if incident is not None and status is not None and status <= Status.OK:
            # A notifier that was sent the open is sent the close, even if routes have changed since.
            notified = [each for each in evaluation.router.notifiers.values() if each.name in incident.notified]
            notifiers = (*notified, *(notifier for notifier in notifiers if notifier not in notified))
        reported = evaluation.state.reported.get(name, {})
        is_silenced = name in evaluation.silenced
        row = evaluation.rows.get(name)
        decision = decide(
            name, incident, reported, status, notifiers, evaluation.now_ms, new_id,
            lost_messages=row["lost"] if row else 0, is_silenced=is_silenced,
        )  # fmt: skip
        if decision.due or decision.incident != incident:
            decisions.append(decision)
    return replace(evaluation, decisions=decisions)


def with_incidents(evaluation: Evaluation) -> Evaluation:
    """The changed incidents with their most severe partitions; a closed incident keeps those it had."""
    rows = [evaluation.rows[each.name] for each in evaluation.decisions if each.name in evaluation.rows]
    results = evaluation.read_results(rows) if rows else {}
    incidents = [
        _with_partitions(decision.incident, results.get(decision.name))
        for decision in evaluation.decisions
        if decision.incident is not None
    ]
    return replace(evaluation, results=results, incidents=incidents)


STEPS: Sequence[Callable[[Evaluation], Evaluation]] = (
    with_acknowledgements,
    with_verdicts,  # known
    with_recipients,  # routed
    with_silences,  # not silenced
    with_decisions,  # decided
    with_storms,  # grouped
    with_incidents,
    with_notifications,
)


class IncidentPipeline:
    """Runs the steps on every snapshot; open incidents are in memory, and all of them in the store."""

    def __init__(
        self,
        incident_store: IncidentStore,
        snapshots: Store,
        keep_days: int,
        router: NotificationRouter | None = None,
        on_notifications: Callable[[], None] = lambda: None,
        partially_known: Collection[str] = (),
    ) -> None:
        self._incident_store = incident_store
        self._snapshots = snapshots
        self._on_notifications = on_notifications
        self.configure(router or NotificationRouter(), keep_days, partially_known)
        self._state = PipelineState({}, {})
        self._load()
        self._last_cleanup_ms = 0

    def configure(self, router: NotificationRouter, keep_days: int, partially_known: Collection[str] = ()) -> None:
        """Notify other recipients from the next snapshot on; open incidents stay, with what was sent of them."""
        self._router = router
        self._keep_ms = max(keep_days, 1) * DAY_MS
        self._partially_known = frozenset(partially_known)

    def _load(self) -> None:
        """Take over the open incidents and storms of the store."""
        incidents = {incident.name: incident for incident in self._incident_store.open_incidents()}
        storms = {storm.id: storm for storm in self._incident_store.open_storms()}
        self._state = replace(self._state, incidents=incidents, storms=storms)

    def process(self, manifest: Manifest) -> None:
        """Decide what a snapshot opens, changes and closes, and store it with its notifications."""
        evaluation = self._read(manifest)
        for step in STEPS:
            evaluation = step(evaluation)
        self._commit(evaluation)
        now_ms = manifest.now_ms
        if not 0 <= now_ms - self._last_cleanup_ms < CLEANUP_MS:
            self._incident_store.delete_expired(now_ms - self._keep_ms, now_ms - DAY_MS)
            self._last_cleanup_ms = now_ms

    def _read(self, manifest: Manifest) -> Evaluation:
        groups = Snapshot(self._snapshots, manifest).groups()
        is_bad = pc.greater(groups["status"], int(Status.OK))
        rows = _rows(groups if self._router.reports_ok_groups else groups.filter(is_bad))
        others = [name for name in self._state.incidents if name not in rows]
        if others:
            is_other = pc.is_in(
                group_keys(groups["cluster"], groups["group"]), value_set=group_keys(*to_columns(others))
            )
            rows |= _rows(groups.filter(is_other))
        return Evaluation(
            now_ms=manifest.now_ms,
            state=self._state,
            actions=self._incident_store.operator_actions(manifest.now_ms),
            router=self._router,
            rows=rows,
            unknown_clusters=frozenset(manifest.unknown_clusters()),
            partially_known=self._partially_known,
            read_results=lambda rows: read_group_results(self._snapshots, manifest, rows),
        )

    def _commit(self, evaluation: Evaluation) -> None:
        """Store what has changed; on an error the next snapshot decides again, from what the store has."""
        updates = evaluation.storm_updates
        if evaluation.decisions or updates:
            try:
                self._incident_store.write(evaluation.incidents, evaluation.notifications, updates)
            except StoreError:
                self._load()
                raise
        self._state = evaluation.next_state
        if evaluation.notifications:
            self._on_notifications()


def _with_partitions(incident: Incident, result: GroupResult | None) -> Incident:
    """An incident with its most severe partitions; one without bad partitions keeps those that it had."""
    if result is None or result.bad_partitions == 0:
        return incident
    partitions = tuple(
        BadPartition(partition.topic, partition.partition, Status[partition.status], lag)
        for partition, lag in zip(result.status.partitions[:MAX_PARTITIONS], result.lags, strict=False)
    )
    return replace(incident, partitions=partitions, partition_count=result.bad_partitions)


def _rows(groups: pa.Table) -> dict[GroupName, Row]:
    return {(row["cluster"], row["group"]): row for row in groups.to_pylist()}

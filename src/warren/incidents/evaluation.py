"""The evaluation of one snapshot: the value that passes through the steps of the incident pipeline, and its parts."""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from warren.domain.status import Status
from warren.incidents.model import Event, Incident, Notification, Notified, Storm, StormKey
from warren.incidents.routing import NotificationRouter, Recipients
from warren.incidents.silences import OperatorActions
from warren.snapshot.schemas import Row
from warren.snapshot.status import GroupName, GroupResult


def new_id() -> str:
    """A new id of an incident or a storm."""
    return str(uuid.uuid4())


class DueNotification(Struct, frozen=True):
    """A notification that is due; its sequence counts this notifier's notifications of this incident, from 1."""

    notifier: str
    event: Event
    sequence: int
    reason: str


class Decision(Struct, frozen=True):
    """What follows from a verdict: the group's incident, open or just closed, and due notifications."""

    name: GroupName
    incident: Incident | None
    due: tuple[DueNotification, ...] = ()
    reported: Mapping[str, Notified] = {}
    """What was reported of the group since it is OK, by notifier."""


class PendingNotification(Struct, frozen=True):
    """A notification that is due for one incident, unless a storm includes it."""

    incident: Incident
    due: DueNotification


class StormUpdate(Struct, frozen=True):
    """The new state of a storm, and the notification that is due for it, if any."""

    storm: Storm
    due: DueNotification | None = None
    joined: tuple[str, ...] = ()
    """The ids of the incidents that have just joined it."""
    has_ended: bool = False


class PipelineState(Struct, frozen=True):
    """What the pipeline keeps in memory from one snapshot to the next."""

    incidents: Mapping[GroupName, Incident]
    """The open incidents."""
    storms: Mapping[str, Storm]
    """The storms that have not ended, by id."""
    recent: Mapping[StormKey, Sequence[int]] = {}
    """When groups turned bad that were notified one by one."""
    reported: Mapping[GroupName, Mapping[str, Notified]] = {}
    """The reports on groups that are OK, by notifier."""
    seen: frozenset[GroupName] = frozenset()
    """The groups of partially known clusters that this Warren has seen itself."""


class Evaluation(Struct, frozen=True):
    """What is read before the steps, and then what each step adds."""

    now_ms: int
    state: PipelineState
    actions: OperatorActions
    router: NotificationRouter
    rows: Mapping[GroupName, Row]
    """The groups that are not OK, those with an open incident, and all others if any notifier wants reports."""
    unknown_clusters: Collection[str]
    partially_known: Collection[str]
    """Clusters with groups that this Warren may not know, because it did not read their past commits."""
    read_results: Callable[[Iterable[Row]], Mapping[GroupName, GroupResult]]
    """Reads the partitions of groups from the snapshot."""

    verdicts: Mapping[GroupName, Status | None] = {}
    recipients: Mapping[GroupName, Recipients] = {}
    silenced: Collection[GroupName] = ()
    decisions: Sequence[Decision] = ()
    single: Sequence[PendingNotification] = ()
    """The notifications of single incidents."""
    storm_updates: Sequence[StormUpdate] = ()
    results: Mapping[GroupName, GroupResult] = {}
    incidents: Sequence[Incident] = ()
    notifications: Sequence[Notification] = ()

    @property
    def open_incidents(self) -> dict[GroupName, Incident]:
        """The incidents that are open from now on."""
        incidents = {**self.state.incidents, **{incident.name: incident for incident in self.incidents}}
        return {name: incident for name, incident in incidents.items() if incident.closed_ms is None}

    @property
    def silenced_incidents(self) -> set[str]:
        """The ids of the silenced incidents that were open before."""
        return {self.state.incidents[name].id for name in self.silenced if name in self.state.incidents}

    @property
    def next_state(self) -> PipelineState:
        """What is kept for the next snapshot."""
        reported = {**self.state.reported, **{each.name: each.reported for each in self.decisions}}
        storms = {**self.state.storms, **{update.storm.id: update.storm for update in self.storm_updates}}
        ended = {update.storm.id for update in self.storm_updates if update.has_ended}
        return replace(
            self.state,
            incidents=self.open_incidents,
            storms={storm_id: storm for storm_id, storm in storms.items() if storm_id not in ended},
            reported={name: reports for name, reports in reported.items() if reports},
        )

"""The evaluation of one snapshot: the value that passes through the steps of the incident pipeline."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warren.domain.status import Status
from warren.incidents.model import Decision, Incident, Notification, Notified
from warren.incidents.routing import NotificationRouter, Recipients
from warren.incidents.silences import OperatorActions
from warren.incidents.storms import OpenStorms, StormOutcome
from warren.snapshot.schemas import Row
from warren.snapshot.status import GroupName, GroupResult

_NO_STORMS = StormOutcome((), (), (), OpenStorms())


@dataclass(frozen=True, slots=True)
class PipelineState:
    """What the pipeline keeps in memory from one snapshot to the next."""

    incidents: Mapping[GroupName, Incident]
    """The open incidents."""
    storms: OpenStorms
    reported: Mapping[GroupName, Mapping[str, Notified]] = field(default_factory=dict)
    """The reports on groups that are OK, by notifier."""
    seen: frozenset[GroupName] = frozenset()
    """The groups of partially known clusters that this Warren has seen itself."""


@dataclass(frozen=True, slots=True)
class Evaluation:
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

    verdicts: Mapping[GroupName, Status | None] = field(default_factory=dict)
    recipients: Mapping[GroupName, Recipients] = field(default_factory=dict)
    silenced: Collection[GroupName] = ()
    decisions: Sequence[Decision] = ()
    storms: StormOutcome = _NO_STORMS
    results: Mapping[GroupName, GroupResult] = field(default_factory=dict)
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
        reported = {name: reports for name, reports in reported.items() if reports}
        return PipelineState(self.open_incidents, self.storms.open_storms, reported, self.state.seen)

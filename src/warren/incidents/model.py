"""The data model of incidents: what is known of a group in trouble, and what its notifiers were told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from warren.domain.status import Status

CHANGES_MOST = 200


class Event(StrEnum):
    """What a message is about."""

    OPEN = "open"
    WORSE = "worse"
    REMINDER = "reminder"
    CLOSE = "close"
    REPORT = "report"
    """How a group is, for those who want to hear of good ones too; belongs to no incident."""


@dataclass(frozen=True, slots=True)
class NotifierPolicy:
    """What one notifier wants to hear."""

    name: str
    threshold: Status = Status.WARN
    send_interval_ms: int = 60_000
    is_once: bool = False
    wants_close: bool = False
    must_repeat: bool = False
    """Its receiver forgets what it does not hear again."""
    storm_from: int = 0
    """From how many groups that turn bad together it hears of all of them at once; 0 for never."""


@dataclass(frozen=True, slots=True)
class Notified:
    """What a listener has heard of an incident, or of a group that is well."""

    count: int
    last_ms: int
    worst: Status
    storm: str = ""
    """The storm it was told as part of, if it was."""


@dataclass(frozen=True, slots=True)
class StatusChange:
    """The verdict from a moment on."""

    at_ms: int
    status: Status


@dataclass(frozen=True, slots=True)
class Incident:
    """A group in trouble, from the first bad verdict to the first good one."""

    id: str
    cluster: str
    group: str
    opened_ms: int
    changes: tuple[StatusChange, ...]
    worst: Status
    told: Mapping[str, Notified] = field(default_factory=dict)
    acknowledged_ms: int | None = None
    closed_ms: int | None = None

    @property
    def status(self) -> Status:
        """How the group is now, or was at last."""
        return self.changes[-1].status

    @property
    def notification_ids(self) -> list[str]:
        """What messages about it are filed under: itself, and the storms it was part of."""
        return sorted({self.id, *(told.storm for told in self.told.values() if told.storm)})

    def told_in(self, listener: str, storm: str) -> "Incident":
        """The same, told to a listener as part of a storm."""
        return replace(self, told={**self.told, listener: replace(self.told[listener], storm=storm)})

    def changed(self, status: Status, now_ms: int) -> "Incident":
        """The same with another verdict; of very many changes the first and the last are kept."""
        changes = (*self.changes, StatusChange(now_ms, status))
        if len(changes) > CHANGES_MOST:
            changes = (*changes[: CHANGES_MOST // 2], *changes[-CHANGES_MOST // 2 :])
        return replace(self, changes=changes, worst=max(self.worst, status))


@dataclass(frozen=True, slots=True)
class DueNotification:
    """A message that is due. Its number counts what this listener has been told of this incident, from 1."""

    listener: str
    event: Event
    number: int
    why: str


@dataclass(frozen=True, slots=True)
class GroupState:
    """What is remembered of a group: its open incident, if it has one, and what was told of it while it was well."""

    incident: Incident | None = None
    reported: Mapping[str, Notified] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is remembered from now on, an incident that has just ended, and what is to be said."""

    known: GroupState
    closed: Incident | None = None
    due: tuple[DueNotification, ...] = ()

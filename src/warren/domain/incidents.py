"""What is due to be said of a group, to whom, and why: a pure function of what was said, the verdict, and the time.

An incident opens when a group is worse than OK and closes when it is OK again, or gone. Who listens has a threshold:
below it nothing is said, but the incident is the same for all. While a group's cluster is away nothing is due.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from warren.domain.rules import Status

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
class Listener:
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
class Told:
    """What a listener has heard of an incident, or of a group that is well."""

    count: int
    last_ms: int
    worst: Status
    storm: str = ""
    """The storm it was told as part of, if it was."""


@dataclass(frozen=True, slots=True)
class Change:
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
    changes: tuple[Change, ...]
    worst: Status
    told: Mapping[str, Told] = field(default_factory=dict)
    acknowledged_ms: int | None = None
    closed_ms: int | None = None

    @property
    def status(self) -> Status:
        """How the group is now, or was at last."""
        return self.changes[-1].status

    @property
    def letter_ids(self) -> list[str]:
        """What messages about it are filed under: itself, and the storms it was part of."""
        return sorted({self.id, *(told.storm for told in self.told.values() if told.storm)})

    def told_in(self, listener: str, storm: str) -> "Incident":
        """The same, told to a listener as part of a storm."""
        return replace(self, told={**self.told, listener: replace(self.told[listener], storm=storm)})

    def changed(self, status: Status, now_ms: int) -> "Incident":
        """The same with another verdict; of very many changes the first and the last are kept."""
        changes = (*self.changes, Change(now_ms, status))
        if len(changes) > CHANGES_MOST:
            changes = (*changes[: CHANGES_MOST // 2], *changes[-CHANGES_MOST // 2 :])
        return replace(self, changes=changes, worst=max(self.worst, status))


@dataclass(frozen=True, slots=True)
class Due:
    """A message that is due. Its number counts what this listener has been told of this incident, from 1."""

    listener: str
    event: Event
    number: int
    why: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a group: its open incident, if it has one, and what was told of it while it was well."""

    incident: Incident | None = None
    reported: Mapping[str, Told] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is remembered from now on, an incident that has just ended, and what is to be said."""

    known: Known
    closed: Incident | None = None
    due: tuple[Due, ...] = ()


def decide(
    known: Known,
    cluster: str,
    group: str,
    status: Status | None,
    listeners: Sequence[Listener],
    now_ms: int,
    new_id: Callable[[], str],
    *,
    is_silenced: bool = False,
) -> Decision:
    """What follows from a verdict; None is that of a group whose cluster is away, NOTFOUND of one that is gone."""
    incident = known.incident
    if status is None:
        due = () if incident is None or is_silenced else _due_while_away(incident, listeners, now_ms)
        return Decision(known if incident is None else Known(_with_told(incident, due, now_ms)), due=due)
    if status > Status.OK:
        incident = _continued(incident, status, now_ms) or Incident(
            new_id(), cluster, group, now_ms, (Change(now_ms, status),), status
        )
        due = () if is_silenced else _due_while_open(incident, listeners, now_ms)
        return Decision(Known(_with_told(incident, due, now_ms)), due=due)
    if incident is not None:
        closed = replace(incident.changed(status, now_ms), closed_ms=now_ms)
        due = _due_at_close(incident, status, listeners)
        return Decision(Known(), _with_told(closed, due, now_ms), due)
    if status is Status.NOTFOUND:
        return Decision(Known())
    due = () if is_silenced else _due_while_well(known.reported, listeners, now_ms)
    reported = {**known.reported, **{one.listener: Told(one.number, now_ms, Status.OK) for one in due}}
    return Decision(Known(reported=reported), due=due)


def _continued(incident: Incident | None, status: Status, now_ms: int) -> Incident | None:
    if incident is None or incident.status == status:
        return incident
    return incident.changed(status, now_ms)


def _due_while_open(incident: Incident, listeners: Sequence[Listener], now_ms: int) -> tuple[Due, ...]:
    return tuple(
        due
        for listener in listeners
        if incident.status >= listener.threshold
        and (due := _due_to(listener, incident, incident.told.get(listener.name), now_ms)) is not None
    )


def _due_while_away(incident: Incident, listeners: Sequence[Listener], now_ms: int) -> tuple[Due, ...]:
    """Only that it is as it was, to those who would take silence for its end."""
    found = (
        (listener, told)
        for listener in listeners
        if listener.must_repeat and (told := incident.told.get(listener.name)) is not None
    )
    return tuple(
        Due(listener.name, Event.REMINDER, told.count + 1, "its cluster is away; nothing is known to have changed")
        for listener, told in found
        if not 0 <= now_ms - told.last_ms < listener.send_interval_ms
    )


def _due_to(listener: Listener, incident: Incident, told: Told | None, now_ms: int) -> Due | None:
    word = incident.status.name
    if told is None:
        return Due(listener.name, Event.OPEN, 1, f"it is {word}, and nobody has said so here yet")
    if listener.is_once and not listener.must_repeat:
        return None
    number = told.count + 1
    if incident.status > told.worst:
        return Due(listener.name, Event.WORSE, number, f"it has become {word}; {told.worst.name} was the worst before")
    if incident.acknowledged_ms is not None and not listener.must_repeat:
        return None
    # A clock that was set back must not silence anybody for that long.
    if not 0 <= now_ms - told.last_ms < listener.send_interval_ms:
        return Due(listener.name, Event.REMINDER, number, f"it is still {word} after its send-interval")
    return None


def _due_at_close(incident: Incident, status: Status, listeners: Sequence[Listener]) -> tuple[Due, ...]:
    why = "it is OK again" if status is Status.OK else "the group is gone"
    return tuple(
        Due(listener.name, Event.CLOSE, incident.told[listener.name].count + 1, why)
        for listener in listeners
        if listener.wants_close and listener.name in incident.told
    )


def _due_while_well(reported: Mapping[str, Told], listeners: Sequence[Listener], now_ms: int) -> tuple[Due, ...]:
    due = []
    for listener in listeners:
        told = reported.get(listener.name)
        is_quiet = told is not None and (listener.is_once or 0 <= now_ms - told.last_ms < listener.send_interval_ms)
        if listener.threshold <= Status.OK and not is_quiet:
            number = 1 if told is None else told.count + 1
            due.append(Due(listener.name, Event.REPORT, number, "its threshold is OK"))
    return tuple(due)


def _with_told(incident: Incident, due: Sequence[Due], now_ms: int) -> Incident:
    if not due:
        return incident
    storms = {name: told.storm for name, told in incident.told.items()}
    said = {one.listener: Told(one.number, now_ms, incident.worst, storms.get(one.listener, "")) for one in due}
    return replace(incident, told={**incident.told, **said})

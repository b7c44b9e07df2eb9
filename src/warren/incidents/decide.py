"""What is due to be said of a group, to whom, and why: a pure function of what was said, the verdict, and the time.

An incident opens when a group is worse than OK and closes when it is OK again, or gone. Who listens has a threshold:
below it nothing is said, but the incident is the same for all. While a group's cluster is away nothing is due.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from warren.domain.status import Status
from warren.incidents.model import (
    Decision,
    DueNotification,
    Event,
    GroupState,
    Incident,
    Notified,
    NotifierPolicy,
    StatusChange,
)


def decide(
    known: GroupState,
    cluster: str,
    group: str,
    status: Status | None,
    listeners: Sequence[NotifierPolicy],
    now_ms: int,
    new_id: Callable[[], str],
    *,
    is_silenced: bool = False,
) -> Decision:
    """What follows from a verdict; None is that of a group whose cluster is away, NOTFOUND of one that is gone."""
    incident = known.incident
    if status is None:
        due = () if incident is None or is_silenced else _due_while_away(incident, listeners, now_ms)
        return Decision(known if incident is None else GroupState(_with_told(incident, due, now_ms)), due=due)
    if status > Status.OK:
        incident = _continued(incident, status, now_ms) or Incident(
            new_id(), cluster, group, now_ms, (StatusChange(now_ms, status),), status
        )
        due = () if is_silenced else _due_while_open(incident, listeners, now_ms)
        return Decision(GroupState(_with_told(incident, due, now_ms)), due=due)
    if incident is not None:
        closed = replace(incident.changed(status, now_ms), closed_ms=now_ms)
        due = _due_at_close(incident, status, listeners)
        return Decision(GroupState(), _with_told(closed, due, now_ms), due)
    if status is Status.NOTFOUND:
        return Decision(GroupState())
    due = () if is_silenced else _due_while_well(known.reported, listeners, now_ms)
    reported = {**known.reported, **{one.listener: Notified(one.number, now_ms, Status.OK) for one in due}}
    return Decision(GroupState(reported=reported), due=due)


def _continued(incident: Incident | None, status: Status, now_ms: int) -> Incident | None:
    if incident is None or incident.status == status:
        return incident
    return incident.changed(status, now_ms)


def _due_while_open(
    incident: Incident, listeners: Sequence[NotifierPolicy], now_ms: int
) -> tuple[DueNotification, ...]:
    return tuple(
        due
        for listener in listeners
        if incident.status >= listener.threshold
        and (due := _due_to(listener, incident, incident.told.get(listener.name), now_ms)) is not None
    )


def _due_while_away(
    incident: Incident, listeners: Sequence[NotifierPolicy], now_ms: int
) -> tuple[DueNotification, ...]:
    """Only that it is as it was, to those who would take silence for its end."""
    found = (
        (listener, told)
        for listener in listeners
        if listener.must_repeat and (told := incident.told.get(listener.name)) is not None
    )
    return tuple(
        DueNotification(
            listener.name, Event.REMINDER, told.count + 1, "its cluster is away; nothing is known to have changed"
        )
        for listener, told in found
        if not 0 <= now_ms - told.last_ms < listener.send_interval_ms
    )


def _due_to(listener: NotifierPolicy, incident: Incident, told: Notified | None, now_ms: int) -> DueNotification | None:
    word = incident.status.name
    if told is None:
        return DueNotification(listener.name, Event.OPEN, 1, f"it is {word}, and nobody has said so here yet")
    if listener.is_once and not listener.must_repeat:
        return None
    number = told.count + 1
    if incident.status > told.worst:
        return DueNotification(
            listener.name, Event.WORSE, number, f"it has become {word}; {told.worst.name} was the worst before"
        )
    if incident.acknowledged_ms is not None and not listener.must_repeat:
        return None
    # A clock that was set back must not silence anybody for that long.
    if not 0 <= now_ms - told.last_ms < listener.send_interval_ms:
        return DueNotification(listener.name, Event.REMINDER, number, f"it is still {word} after its send-interval")
    return None


def _due_at_close(
    incident: Incident, status: Status, listeners: Sequence[NotifierPolicy]
) -> tuple[DueNotification, ...]:
    why = "it is OK again" if status is Status.OK else "the group is gone"
    return tuple(
        DueNotification(listener.name, Event.CLOSE, incident.told[listener.name].count + 1, why)
        for listener in listeners
        if listener.wants_close and listener.name in incident.told
    )


def _due_while_well(
    reported: Mapping[str, Notified], listeners: Sequence[NotifierPolicy], now_ms: int
) -> tuple[DueNotification, ...]:
    due = []
    for listener in listeners:
        told = reported.get(listener.name)
        is_quiet = told is not None and (listener.is_once or 0 <= now_ms - told.last_ms < listener.send_interval_ms)
        if listener.threshold <= Status.OK and not is_quiet:
            number = 1 if told is None else told.count + 1
            due.append(DueNotification(listener.name, Event.REPORT, number, "its threshold is OK"))
    return tuple(due)


def _with_told(incident: Incident, due: Sequence[DueNotification], now_ms: int) -> Incident:
    if not due:
        return incident
    storms = {name: told.storm for name, told in incident.told.items()}
    said = {one.listener: Notified(one.number, now_ms, incident.worst, storms.get(one.listener, "")) for one in due}
    return replace(incident, told={**incident.told, **said})

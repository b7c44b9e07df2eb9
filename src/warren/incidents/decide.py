"""Which notifications are due for a group, and why: a pure function of its state, its verdict and the time.

An incident opens when a group is worse than OK and closes when it is OK again, or gone. It is the same for all
notifiers, and each is notified from its threshold on. While a group cannot be judged, nothing opens or closes.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from warren.config import Notifier
from warren.domain.status import Status
from warren.incidents.evaluation import Decision, DueNotification
from warren.incidents.model import Event, Incident, Notified, StatusChange
from warren.snapshot.status import GroupName


def decide(
    name: GroupName,
    incident: Incident | None,
    reported: Mapping[str, Notified],
    status: Status | None,
    notifiers: Sequence[Notifier],
    now_ms: int,
    new_id: Callable[[], str],
    *,
    lost_messages: int = 0,
    is_silenced: bool = False,
) -> Decision:
    """What follows from a verdict for a group, with its open incident and what was reported of it while it was OK.

    The verdict is None if the group cannot be judged, and NOTFOUND if it is gone. `lost_messages` were deleted before
    the group read them.
    """
    if status is not None and status > Status.OK:
        if incident is None:
            incident = Incident(new_id(), *name, now_ms, (StatusChange(now_ms, status),), status)
        elif incident.status != status:
            incident = incident.with_status(status, now_ms)
    elif status is not None and incident is not None:
        incident = replace(incident.with_status(status, now_ms), closed_ms=now_ms)
    if incident is not None and status is not None:
        incident = incident.with_lost_messages(lost_messages)
    notified = reported if incident is None else incident.notified
    worst = Status.OK if incident is None else incident.worst
    due, sent = [], dict(notified)
    for notifier in notifiers:
        last = notified.get(notifier.name)
        event, reason = _due_event(notifier, incident, status, last, now_ms)
        if event is Event.CLOSE or (event is not None and not is_silenced):
            sequence = 1 if last is None else last.count + 1
            due.append(DueNotification(notifier.name, event, sequence, reason))
            sent[notifier.name] = Notified(sequence, now_ms, worst, last.storm if last else "")
    if incident is None:
        return Decision(name, None, tuple(due), sent)
    return Decision(name, replace(incident, notified=sent) if due else incident, tuple(due))


def _due_event(
    notifier: Notifier, incident: Incident | None, status: Status | None, last: Notified | None, now_ms: int
) -> tuple[Event | None, str]:
    """The event that one notifier is notified of, and why; `last` is what it was sent before."""
    # A clock that was set back must not delay notifications for that long.
    is_interval_over = last is None or not 0 <= now_ms - last.last_ms < notifier.send_interval_ms
    if incident is None:
        is_due = last is None or (not notifier.send_once and is_interval_over)
        is_report = status is Status.OK and notifier.threshold <= Status.OK and is_due
        return (Event.REPORT, "the group is OK") if is_report else (None, "")
    if incident.closed_ms is not None:
        reason = "the group is OK again" if status is Status.OK else "the group is gone"
        return (Event.CLOSE, reason) if notifier.wants_close and last is not None else (None, "")
    if status is None:
        # Receivers that need repetition would resolve the alert without a reminder.
        is_reminder = notifier.must_repeat and last is not None and is_interval_over
        reason = f"the group cannot be judged; it was {incident.status.name} before"
        return (Event.REMINDER, reason) if is_reminder else (None, "")
    if status < notifier.threshold:
        return None, ""
    if last is None:
        return Event.OPEN, f"the group is {status.name}"
    if notifier.send_once and not notifier.must_repeat:
        return None, ""
    if status > last.worst:
        return Event.WORSE, f"the group is now {status.name}; the worst before was {last.worst.name}"
    if is_interval_over and (notifier.must_repeat or incident.acknowledged_ms is None):
        return Event.REMINDER, f"the group is still {status.name}"
    return None, ""

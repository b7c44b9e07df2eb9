"""Which notifications are due for a group, and why: a pure function of its state, its verdict and the time.

An incident opens when a group is worse than OK and closes when it is OK again, or gone. It is the same for all
notifiers, and each is notified from its threshold on. While a group's cluster cannot be judged nothing opens or closes.
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
from warren.snapshot.status import GroupName


def decide(
    state: GroupState,
    name: GroupName,
    status: Status | None,
    policies: Sequence[NotifierPolicy],
    now_ms: int,
    new_id: Callable[[], str],
    *,
    is_silenced: bool = False,
) -> Decision:
    """What follows from a verdict: None if the group's cluster cannot be judged, NOTFOUND if the group is gone."""
    incident = state.incident
    if status is None:
        if incident is None:
            return Decision(name, state)
        due = () if is_silenced else _due_while_unknown(incident, policies, now_ms)
        return Decision(name, GroupState(_with_notified(incident, due, now_ms)), due=due)
    if status > Status.OK:
        if incident is None:
            incident = Incident(new_id(), *name, now_ms, (StatusChange(now_ms, status),), status)
        elif incident.status != status:
            incident = incident.with_status(status, now_ms)
        due = () if is_silenced else _due_while_open(incident, policies, now_ms)
        return Decision(name, GroupState(_with_notified(incident, due, now_ms)), due=due)
    if incident is not None:
        closed = replace(incident.with_status(status, now_ms), closed_ms=now_ms)
        due = _due_at_close(incident, status, policies)
        return Decision(name, GroupState(), _with_notified(closed, due, now_ms), due)
    if status is Status.NOTFOUND:
        return Decision(name, GroupState())
    due = () if is_silenced else _due_while_ok(state.reported, policies, now_ms)
    reported = {each.notifier: Notified(each.sequence, now_ms, Status.OK) for each in due}
    return Decision(name, GroupState(reported={**state.reported, **reported}), due=due)


def _due_while_open(incident: Incident, policies: Sequence[NotifierPolicy], now_ms: int) -> tuple[DueNotification, ...]:
    return tuple(
        due
        for policy in policies
        if incident.status >= policy.threshold and (due := _due_for_policy(incident, policy, now_ms)) is not None
    )


def _due_for_policy(incident: Incident, policy: NotifierPolicy, now_ms: int) -> DueNotification | None:
    notified, status = incident.notified.get(policy.name), incident.status.name
    if notified is None:
        return DueNotification(policy.name, Event.OPEN, 1, f"the group is {status}")
    if policy.sends_once and not policy.must_repeat:
        return None
    sequence = notified.count + 1
    if incident.status > notified.worst:
        reason = f"the group is now {status}; the worst before was {notified.worst.name}"
        return DueNotification(policy.name, Event.WORSE, sequence, reason)
    if incident.acknowledged_ms is not None and not policy.must_repeat:
        return None
    if _is_interval_over(notified, policy, now_ms):
        return DueNotification(policy.name, Event.REMINDER, sequence, f"the group is still {status}")
    return None


def _due_while_unknown(
    incident: Incident, policies: Sequence[NotifierPolicy], now_ms: int
) -> tuple[DueNotification, ...]:
    """Reminders for the notifiers whose receiver would resolve the alert without them."""
    return tuple(
        DueNotification(
            policy.name,
            Event.REMINDER,
            notified.count + 1,
            f"the cluster cannot be judged; the group was {incident.status.name} before",
        )
        for policy in policies
        if policy.must_repeat
        and (notified := incident.notified.get(policy.name)) is not None
        and _is_interval_over(notified, policy, now_ms)
    )


def _due_at_close(
    incident: Incident, status: Status, policies: Sequence[NotifierPolicy]
) -> tuple[DueNotification, ...]:
    reason = "the group is OK again" if status is Status.OK else "the group is gone"
    return tuple(
        DueNotification(policy.name, Event.CLOSE, incident.notified[policy.name].count + 1, reason)
        for policy in policies
        if policy.wants_close and policy.name in incident.notified
    )


def _due_while_ok(
    reported: Mapping[str, Notified], policies: Sequence[NotifierPolicy], now_ms: int
) -> tuple[DueNotification, ...]:
    due = []
    for policy in policies:
        last = reported.get(policy.name)
        is_due = last is None or (not policy.sends_once and _is_interval_over(last, policy, now_ms))
        if policy.threshold <= Status.OK and is_due:
            sequence = 1 if last is None else last.count + 1
            due.append(DueNotification(policy.name, Event.REPORT, sequence, "the group is OK"))
    return tuple(due)


def _is_interval_over(notified: Notified, policy: NotifierPolicy, now_ms: int) -> bool:
    # A clock that was set back must not delay notifications for that long.
    return not 0 <= now_ms - notified.last_ms < policy.send_interval_ms


def _with_notified(incident: Incident, due: Sequence[DueNotification], now_ms: int) -> Incident:
    if not due:
        return incident
    storms = {name: notified.storm for name, notified in incident.notified.items()}
    notified = {
        each.notifier: Notified(each.sequence, now_ms, incident.worst, storms.get(each.notifier, "")) for each in due
    }
    return replace(incident, notified={**incident.notified, **notified})

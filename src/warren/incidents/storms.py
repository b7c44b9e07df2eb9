"""Storms: groups of one cluster that turn bad together are grouped into one notification.

A storm grows while groups join it, and ends when all its groups are OK or gone. All of this is pure: from the
notifications that are due for single groups, and the open storms, to the notifications that are sent.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from warren.config import Notifier
from warren.domain.status import Status
from warren.incidents.evaluation import Decision, DueNotification, Evaluation, PendingNotification, StormUpdate, new_id
from warren.incidents.model import Event, Incident, Notified, Storm, StormKey

TOGETHER_MS = 60_000
"""Groups that turn bad within this time do so together."""
JOIN_MS = 600_000
"""A storm without a new group for this long grows no more: what turns bad later has another cause."""


def find_members(incidents: Iterable[Incident]) -> dict[str, set[str]]:
    """The ids of the incidents that each storm includes."""
    members: dict[str, set[str]] = {}
    for incident in incidents:
        for notified in incident.notified.values():
            if notified.storm:
                members.setdefault(notified.storm, set()).add(incident.id)
    return members


def group_notifications(
    notifier: Notifier,
    key: StormKey,
    pending: Sequence[PendingNotification],
    storms: Mapping[str, Storm],
    members: Mapping[str, set[str]],
    silenced: Collection[str],
    recent: int,
    now_ms: int,
    new_id: Callable[[], str],
) -> tuple[list[PendingNotification], list[StormUpdate]]:
    """Group the pending notifications of one key into those of single incidents and updates of storms.

    `storms` are the open storms of the key by id, and `members` the open incidents of each. `silenced` has the ids of
    silenced incidents. `recent` is how many groups turned bad within `TOGETHER_MS` and were notified one by one.
    """
    opening: list[PendingNotification] = []
    single: list[PendingNotification] = []
    by_storm: dict[str, list[PendingNotification]] = {storm_id: [] for storm_id in storms}
    for each in pending:
        notified = each.incident.notified.get(notifier.name)
        if each.due.event is Event.OPEN:
            opening.append(each)
        else:
            by_storm.get(notified.storm if notified else "", single).append(each)
    growing = next((storm.id for storm in storms.values() if 0 <= now_ms - storm.grown_ms < JOIN_MS), None)
    updates = []
    if growing is None:
        if opening and 0 < notifier.storm_from <= recent + len(opening):
            updates.append(_open_storm(new_id(), key, opening, now_ms))
        else:
            single += opening
    for storm_id, storm in storms.items():
        joining = opening if storm_id == growing else []
        bad = members.get(storm_id, set())
        update = _update_storm(notifier, storm, by_storm[storm_id], joining, bad, bad.difference(silenced), now_ms)
        if update is not None:
            updates.append(update)
    return single, updates


def _open_storm(storm_id: str, key: StormKey, opening: Sequence[PendingNotification], now_ms: int) -> StormUpdate:
    notified = Notified(1, now_ms, max(each.incident.worst for each in opening))
    storm = Storm(storm_id, key.notifier, key.cluster, key.channel, now_ms, now_ms, notified, len(opening))
    reason = f"{len(opening)} groups of {key.cluster} turned bad together"
    due = DueNotification(key.notifier, Event.OPEN, 1, reason)
    return StormUpdate(storm, due, tuple(each.incident.id for each in opening))


def _update_storm(
    notifier: Notifier,
    storm: Storm,
    pending: Sequence[PendingNotification],
    joining: Sequence[PendingNotification],
    bad: Collection[str],
    unsilenced: Collection[str],
    now_ms: int,
) -> StormUpdate | None:
    if joining:
        count = len(joining)
        storm = replace(storm, total=storm.total + count, unreported=storm.unreported + count, grown_ms=now_ms)
    sequence = storm.notified.count + 1
    if not bad and not joining:
        reason = f"all {storm.total} groups are OK again, or gone"
        due = DueNotification(notifier.name, Event.CLOSE, sequence, reason) if notifier.wants_close else None
        return StormUpdate(storm, due, has_ended=True)
    joined = tuple(each.incident.id for each in joining)
    pending = [*pending, *joining]
    event, reason = _due_event(notifier, storm, pending, len(unsilenced) + len(joining), now_ms)
    if event is None:
        return StormUpdate(storm, None, joined) if joining else None
    worst = max([storm.notified.worst, *(each.incident.worst for each in pending)])
    storm = replace(storm, notified=Notified(sequence, now_ms, worst), unreported=0)
    return StormUpdate(storm, DueNotification(notifier.name, event, sequence, reason), joined)


def _due_event(
    notifier: Notifier, storm: Storm, pending: Sequence[PendingNotification], unsilenced: int, now_ms: int
) -> tuple[Event | None, str]:
    if not unsilenced:
        return None, ""
    since_last_ms = now_ms - storm.notified.last_ms
    status = max((each.incident.status for each in pending), default=Status.NOTFOUND)
    if status > storm.notified.worst and not notifier.send_once:
        return Event.WORSE, f"some groups are now {status.name}; the worst before was {storm.notified.worst.name}"
    if storm.unreported and not 0 <= since_last_ms < TOGETHER_MS:
        groups = "group" if storm.unreported == 1 else "groups"
        return Event.WORSE, f"{storm.unreported} more {groups} turned bad"
    has_reminder = any(each.due.event is Event.REMINDER for each in pending)
    if has_reminder and not notifier.send_once and not 0 <= since_last_ms < notifier.send_interval_ms:
        return Event.REMINDER, f"{unsilenced} of {storm.total} groups are still bad"
    return None, ""


def with_storms(evaluation: Evaluation) -> Evaluation:
    """Group the notifications of groups that turned bad together."""
    state, now_ms = evaluation.state, evaluation.now_ms
    changed = [decision.incident for decision in evaluation.decisions if decision.incident is not None]
    closed = {incident.id for incident in changed if incident.closed_ms is not None}
    members = find_members(incident for incident in state.incidents.values() if incident.id not in closed)
    pending = _pending_by_key(evaluation)
    recent = {key: [at for at in times if 0 <= now_ms - at < TOGETHER_MS] for key, times in state.recent.items()}
    silenced = evaluation.silenced_incidents
    single: list[PendingNotification] = []
    updates: list[StormUpdate] = []
    for key in {**pending, **{storm.key: [] for storm in state.storms.values()}}:
        storms = {storm_id: storm for storm_id, storm in state.storms.items() if storm.key == key}
        notifier = evaluation.router.notifiers.get(key.notifier)
        if notifier is None:
            updates += [StormUpdate(storm, has_ended=True) for storm in storms.values()]
            continue
        times, own_pending = recent.get(key, []), pending.get(key, [])
        own_single, own_updates = group_notifications(
            notifier, key, own_pending, storms, members, silenced, len(times), now_ms, new_id
        )
        single += own_single
        updates += own_updates
        opened = [now_ms for each in own_single if each.due.event is Event.OPEN]
        recent[key] = [*times, *opened][-max(notifier.storm_from, 1) :]
    return replace(
        evaluation,
        decisions=_with_joined(evaluation.decisions, updates),
        single=single,
        storm_updates=updates,
        state=replace(state, recent={key: times for key, times in recent.items() if times}),
    )


def _pending_by_key(evaluation: Evaluation) -> dict[StormKey, list[PendingNotification]]:
    pending: dict[StormKey, list[PendingNotification]] = {}
    for decision in evaluation.decisions:
        incident = decision.incident
        if incident is None:
            continue
        for due in decision.due:
            notified = incident.notified.get(due.notifier)
            storm = evaluation.state.storms.get(notified.storm) if notified is not None else None
            channel = evaluation.recipients[decision.name].channels.get(due.notifier, "")
            key = StormKey(incident.cluster, due.notifier, channel) if storm is None else storm.key
            pending.setdefault(key, []).append(PendingNotification(incident, due))
    return pending


def _with_joined(decisions: Sequence[Decision], updates: Sequence[StormUpdate]) -> Sequence[Decision]:
    """The decisions, with the storms that their incidents have joined."""
    joined: dict[str, dict[str, str]] = {}
    for update in updates:
        for incident_id in update.joined:
            joined.setdefault(incident_id, {})[update.storm.notifier] = update.storm.id
    return [
        replace(each, incident=each.incident.with_storms(joined[each.incident.id]))
        if each.incident is not None and each.incident.id in joined
        else each
        for each in decisions
    ]

"""Storms: groups of one cluster that turn bad together are grouped into one notification.

A storm grows while groups join it, and ends when all its groups are OK or gone. All of this is pure: from the
notifications that are due for single groups, and the open storms, to the notifications that are sent.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from warren.domain.status import Status
from warren.incidents.model import Decision, DueNotification, Event, Incident, Notified, NotifierPolicy
from warren.incidents.routing import Recipients
from warren.snapshot.status import GroupName

TOGETHER_MS = 60_000
"""Groups that turn bad within this time do so together."""
JOIN_MS = 600_000
"""A storm without a new group for this long grows no more: what turns bad later has another cause."""


class StormKey(NamedTuple):
    """What the groups of a storm have in common."""

    cluster: str
    notifier: str
    channel: str


@dataclass(frozen=True, slots=True)
class Storm:
    """Groups of a cluster that a notifier is notified of as one."""

    id: str
    notifier: str
    cluster: str
    channel: str
    opened_ms: int
    grown_ms: int
    notified: Notified
    total: int
    """How many groups have been part of it."""
    unreported: int = 0
    """How many groups have joined since its last notification."""

    @property
    def key(self) -> StormKey:
        """What its groups have in common."""
        return StormKey(self.cluster, self.notifier, self.channel)


@dataclass(frozen=True, slots=True)
class PendingNotification:
    """A notification that is due for one incident, unless a storm includes it."""

    incident: Incident
    due: DueNotification


@dataclass(frozen=True, slots=True)
class StormUpdate:
    """The new state of a storm, and the notification that is due for it, if any."""

    storm: Storm
    due: DueNotification | None = None
    joined: tuple[str, ...] = ()
    """The ids of the incidents that have just joined it."""
    has_ended: bool = False


def find_members(incidents: Iterable[Incident]) -> dict[str, set[str]]:
    """The ids of the incidents that each storm includes."""
    members: dict[str, set[str]] = {}
    for incident in incidents:
        for notified in incident.notified.values():
            if notified.storm:
                members.setdefault(notified.storm, set()).add(incident.id)
    return members


def group_notifications(
    policy: NotifierPolicy,
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
        notified = each.incident.notified.get(policy.name)
        if each.due.event is Event.OPEN:
            opening.append(each)
        else:
            by_storm.get(notified.storm if notified else "", single).append(each)
    growing = next((storm.id for storm in storms.values() if 0 <= now_ms - storm.grown_ms < JOIN_MS), None)
    updates = []
    if growing is None:
        if opening and 0 < policy.storm_threshold <= recent + len(opening):
            updates.append(_open_storm(new_id(), key, opening, now_ms))
        else:
            single += opening
    for storm_id, storm in storms.items():
        joining = opening if storm_id == growing else []
        bad = members.get(storm_id, set())
        update = _update_storm(policy, storm, by_storm[storm_id], joining, bad, bad.difference(silenced), now_ms)
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
    policy: NotifierPolicy,
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
        due = DueNotification(policy.name, Event.CLOSE, sequence, reason) if policy.wants_close else None
        return StormUpdate(storm, due, has_ended=True)
    joined = tuple(each.incident.id for each in joining)
    pending = [*pending, *joining]
    event, reason = _due_event(policy, storm, pending, len(unsilenced) + len(joining), now_ms)
    if event is None:
        return StormUpdate(storm, None, joined) if joining else None
    worst = max([storm.notified.worst, *(each.incident.worst for each in pending)])
    storm = replace(storm, notified=Notified(sequence, now_ms, worst), unreported=0)
    return StormUpdate(storm, DueNotification(policy.name, event, sequence, reason), joined)


def _due_event(
    policy: NotifierPolicy, storm: Storm, pending: Sequence[PendingNotification], unsilenced: int, now_ms: int
) -> tuple[Event | None, str]:
    if not unsilenced:
        return None, ""
    since_last_ms = now_ms - storm.notified.last_ms
    status = max((each.incident.status for each in pending), default=Status.NOTFOUND)
    if status > storm.notified.worst and not policy.sends_once:
        return Event.WORSE, f"some groups are now {status.name}; the worst before was {storm.notified.worst.name}"
    if storm.unreported and not 0 <= since_last_ms < TOGETHER_MS:
        groups = "group" if storm.unreported == 1 else "groups"
        return Event.WORSE, f"{storm.unreported} more {groups} turned bad"
    has_reminder = any(each.due.event is Event.REMINDER for each in pending)
    if has_reminder and not policy.sends_once and not 0 <= since_last_ms < policy.send_interval_ms:
        return Event.REMINDER, f"{unsilenced} of {storm.total} groups are still bad"
    return None, ""


@dataclass(frozen=True, slots=True)
class StormOutcome:
    """What one snapshot leads to: notifications of single incidents, updates of storms, and the storms left open."""

    decisions: Sequence[Decision]
    """The decisions, with the storms that their incidents have joined."""
    single: Sequence[PendingNotification]
    updates: Sequence[StormUpdate]
    open_storms: "OpenStorms"


@dataclass(frozen=True, slots=True)
class OpenStorms:
    """The storms that have not ended, by id, and what is needed to update them."""

    storms: Mapping[str, Storm] = field(default_factory=dict)
    recent: Mapping[StormKey, Sequence[int]] = field(default_factory=dict)
    """When groups turned bad that were notified one by one."""

    def update(
        self,
        incidents: Iterable[Incident],
        decisions: Sequence[Decision],
        recipients: Mapping[GroupName, Recipients],
        policies: Mapping[str, NotifierPolicy],
        silenced: Collection[str],
        now_ms: int,
        new_id: Callable[[], str],
    ) -> StormOutcome:
        """Group the notifications of some decisions; `incidents` were open before, `silenced` has the ids of some."""
        closed = {each.incident.id for each in decisions if each.incident and each.incident.closed_ms is not None}
        members = find_members(incident for incident in incidents if incident.id not in closed)
        pending = self._pending_by_key(decisions, recipients)
        recent = {key: [at for at in times if 0 <= now_ms - at < TOGETHER_MS] for key, times in self.recent.items()}
        single: list[PendingNotification] = []
        updates: list[StormUpdate] = []
        for key in {**pending, **{storm.key: [] for storm in self.storms.values()}}:
            storms = {storm_id: storm for storm_id, storm in self.storms.items() if storm.key == key}
            policy = policies.get(key.notifier)
            if policy is None:
                updates += [StormUpdate(storm, has_ended=True) for storm in storms.values()]
                continue
            times = recent.get(key, [])
            own_pending = pending.get(key, [])
            own_single, own_updates = group_notifications(
                policy, key, own_pending, storms, members, silenced, len(times), now_ms, new_id
            )
            single += own_single
            updates += own_updates
            opened = [now_ms for each in own_single if each.due.event is Event.OPEN]
            recent[key] = [*times, *opened][-max(policy.storm_threshold, 1) :]
        return StormOutcome(_with_storms(decisions, updates), single, updates, self._after(updates, recent))

    def _pending_by_key(
        self, decisions: Sequence[Decision], recipients: Mapping[GroupName, Recipients]
    ) -> dict[StormKey, list[PendingNotification]]:
        pending: dict[StormKey, list[PendingNotification]] = {}
        for decision in decisions:
            incident = decision.incident
            if incident is None:
                continue
            for due in decision.due:
                notified = incident.notified.get(due.notifier)
                storm = self.storms.get(notified.storm) if notified is not None else None
                channel = recipients[decision.name].channels.get(due.notifier, "")
                key = StormKey(incident.cluster, due.notifier, channel) if storm is None else storm.key
                pending.setdefault(key, []).append(PendingNotification(incident, due))
        return pending

    def _after(self, updates: Sequence[StormUpdate], recent: Mapping[StormKey, Sequence[int]]) -> "OpenStorms":
        storms = {**self.storms, **{update.storm.id: update.storm for update in updates}}
        for update in updates:
            if update.has_ended:
                del storms[update.storm.id]
        return OpenStorms(storms, {key: times for key, times in recent.items() if times})


def _with_storms(decisions: Sequence[Decision], updates: Sequence[StormUpdate]) -> Sequence[Decision]:
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

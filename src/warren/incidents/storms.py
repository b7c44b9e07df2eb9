"""The storms that are not over: which groups are part of which, and what a snapshot makes of them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warren.incidents.grouping import (
    TOGETHER_MS,
    PendingNotification,
    RemainingGroups,
    Storm,
    StormUpdate,
    group_notifications,
)
from warren.incidents.model import DueNotification, Event, Incident
from warren.incidents.notifications import GroupChange
from warren.incidents.recipients import NotificationRouter

_Place = tuple[str, str, str]
"""A cluster, a listener's name, and where that one hears of it."""


@dataclass(frozen=True, slots=True)
class StormOutcome:
    """What is said one by one, what of storms, the changes with what they are part of, and the storms that are left."""

    changed: Sequence[GroupChange]
    singles: Sequence[tuple[GroupChange, DueNotification]]
    storms: Sequence[StormUpdate]
    after: "OpenStorms"


@dataclass(frozen=True, slots=True)
class OpenStorms:
    """The storms that are not over, the open incidents of each, and when groups were notified one by one lately."""

    held: Mapping[str, Storm] = field(default_factory=dict)
    left: Mapping[str, frozenset[str]] = field(default_factory=dict)
    lately: Mapping[_Place, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, storms: Iterable[Storm], incidents: Iterable[Incident]) -> "OpenStorms":
        """OpenStorms as the book holds them."""
        held = {one.id: one for one in storms}
        left: dict[str, set[str]] = {name: set() for name in held}
        for incident in incidents:
            for told in incident.told.values():
                if told.storm in left:
                    left[told.storm].add(incident.id)
        return cls(held, {name: frozenset(ids) for name, ids in left.items()})

    def after(
        self,
        changed: Sequence[GroupChange],
        audiences: NotificationRouter,
        silenced: Collection[str],
        now_ms: int,
        new_id: Callable[[], str],
    ) -> StormOutcome:
        """What becomes of changes and storms when those are told of as one; `silenced` are incidents by their ids."""
        listeners = audiences.listeners
        left = self._left_after(changed)
        singles, said = self._sorted(changed, audiences)
        lately = {place: [at for at in times if _is_near(at, now_ms)] for place, times in self.lately.items()}
        made: list[StormUpdate] = []
        for place in {**said, **{_place(one): None for one in self.held.values()}}:
            cluster, name, channel = place
            storms = {key: one for key, one in self.held.items() if _place(one) == place}
            if name not in listeners:
                made += [StormUpdate(one, None, is_over=True) for one in storms.values()]
                continue
            messages = said.get(place, {})
            about = [
                PendingNotification(one.incident, due) for one, due in messages.values() if one.incident is not None
            ]
            counts = {key: RemainingGroups(len(left[key]), len(left[key].difference(silenced))) for key in storms}
            recently = lately.get(place, [])
            gathered = group_notifications(
                listeners[name], cluster, channel, about, storms, counts, len(recently), now_ms, new_id
            )
            alone = [messages[one.incident.id] for one in gathered.single]
            singles += alone
            made += gathered.storms
            opened = [now_ms for _, due in alone if due.event is Event.OPEN]
            lately[place] = [*recently, *opened][-max(listeners[name].storm_from, 1) :]
        return StormOutcome(_with_storms(changed, made), singles, made, self._with(made, left, lately))

    def _sorted(
        self, changed: Sequence[GroupChange], audiences: NotificationRouter
    ) -> tuple[list[tuple[GroupChange, DueNotification]], dict[_Place, dict[str, tuple[GroupChange, DueNotification]]]]:
        """What no storm can be made of, and the rest by where it is told, each under its incident."""
        singles: list[tuple[GroupChange, DueNotification]] = []
        said: dict[_Place, dict[str, tuple[GroupChange, DueNotification]]] = {}
        hearings = audiences.of(one.name for one in changed)
        for one in changed:
            for due in one.decision.due:
                if one.incident is None or due.event is Event.REPORT:
                    singles.append((one, due))
                    continue
                told = one.incident.told.get(due.listener)
                storm = self.held.get(told.storm) if told is not None else None
                channel = hearings[one.name].channels.get(due.listener, "")
                place = (one.name[0], due.listener, channel) if storm is None else _place(storm)
                said.setdefault(place, {})[one.incident.id] = one, due
        return singles, said

    def _left_after(self, changed: Sequence[GroupChange]) -> dict[str, frozenset[str]]:
        closed = {one.decision.closed.id for one in changed if one.decision.closed is not None}
        return {name: ids - closed for name, ids in self.left.items()}

    def _with(
        self, made: Sequence[StormUpdate], left: dict[str, frozenset[str]], lately: Mapping[_Place, Sequence[int]]
    ) -> "OpenStorms":
        held = dict(self.held)
        for one in made:
            key = one.storm.id
            if one.is_over:
                held.pop(key, None)
                left.pop(key, None)
            else:
                held[key] = one.storm
                left[key] = left.get(key, frozenset()) | set(one.joined)
        return OpenStorms(held, left, {place: times for place, times in lately.items() if times})


def _place(storm: Storm) -> _Place:
    return storm.cluster, storm.listener, storm.channel


def _is_near(at_ms: int, now_ms: int) -> bool:
    return 0 <= now_ms - at_ms < TOGETHER_MS


def _with_storms(changed: Sequence[GroupChange], made: Sequence[StormUpdate]) -> list[GroupChange]:
    """The changes, with the storms that their incidents have become part of."""
    joined: dict[str, list[Storm]] = {}
    for one in made:
        for incident in one.joined:
            joined.setdefault(incident, []).append(one.storm)
    return [_joined(one, joined) for one in changed] if joined else list(changed)


def _joined(one: GroupChange, joined: Mapping[str, Sequence[Storm]]) -> GroupChange:
    incident = one.decision.known.incident
    if incident is None or incident.id not in joined:
        return one
    for storm in joined[incident.id]:
        incident = incident.told_in(storm.listener, storm.id)
    return replace(one, decision=replace(one.decision, known=replace(one.decision.known, incident=incident)))

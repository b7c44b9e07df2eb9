"""OpenStorms: many groups of one cluster that turn bad together, told of as one.

A pure function, as all that is due: from the messages that would go to one listener about one cluster, and the storms
that it knows of, to the messages that do. A storm is over when all its groups are; it grows for as long as groups join.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from warren.domain.status import Status
from warren.incidents.model import DueNotification, Event, Incident, Notified, NotifierPolicy

TOGETHER_MS = 60_000
"""Groups that turn bad within this time do so together."""
JOIN_MS = 600_000
"""After so long without a new group a storm grows no more: what turns bad later has another cause."""


@dataclass(frozen=True, slots=True)
class Storm:
    """Groups of a cluster that a listener hears of as one."""

    id: str
    listener: str
    cluster: str
    channel: str
    opened_ms: int
    grown_ms: int
    told: Notified
    total: int
    """How many groups have been in it."""
    untold: int = 0
    """How many have joined since the last message."""


@dataclass(frozen=True, slots=True)
class RemainingGroups:
    """How many groups of a storm are still bad, and how many of those are not silenced."""

    bad: int = 0
    loud: int = 0


@dataclass(frozen=True, slots=True)
class PendingNotification:
    """A message that would be due about one incident."""

    incident: Incident
    due: DueNotification


@dataclass(frozen=True, slots=True)
class StormUpdate:
    """A storm as it is from now on, and what is to be said of it, if anything; one that is over is forgotten."""

    storm: Storm
    due: DueNotification | None
    joined: tuple[str, ...] = ()
    """The incidents that are part of it from now on."""
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class GroupingResult:
    """What goes to a listener about one cluster: messages about single groups, and what becomes of storms."""

    single: tuple[PendingNotification, ...]
    storms: tuple[StormUpdate, ...] = ()


def group_notifications(
    listener: NotifierPolicy,
    cluster: str,
    channel: str,
    said: Sequence[PendingNotification],
    storms: Mapping[str, Storm],
    left: Mapping[str, RemainingGroups],
    recently: int,
    now_ms: int,
    new_id: Callable[[], str],
) -> GroupingResult:
    """What is said as one.

    `storms` are those of this listener, cluster and channel by id, `left` the groups of each that are still bad, and
    `recently` how many were told of one by one within `TOGETHER_MS`.
    """
    of_storms: dict[str, list[PendingNotification]] = {}
    opening: list[PendingNotification] = []
    single: list[PendingNotification] = []
    for one in said:
        told = one.incident.told.get(listener.name)
        if one.due.event is Event.OPEN:
            opening.append(one)
        elif told is not None and told.storm in storms:
            of_storms.setdefault(told.storm, []).append(one)
        else:
            single.append(one)
    growing = next((one.id for one in storms.values() if 0 <= now_ms - one.grown_ms < JOIN_MS), None)
    is_storm = 0 < listener.storm_from <= recently + len(opening)
    made = []
    if opening and growing is None and is_storm:
        made.append(_begun(listener, cluster, channel, opening, now_ms, new_id()))
    elif growing is None:
        single += opening
    for storm_id, storm in storms.items():
        joining = opening if storm_id == growing else []
        after = _after(
            listener, storm, of_storms.get(storm_id, ()), joining, left.get(storm_id, RemainingGroups()), now_ms
        )
        if after is not None:
            made.append(after)
    return GroupingResult(tuple(single), tuple(made))


def _begun(
    listener: NotifierPolicy,
    cluster: str,
    channel: str,
    opening: Sequence[PendingNotification],
    now_ms: int,
    storm_id: str,
) -> StormUpdate:
    count, worst = len(opening), max(one.incident.worst for one in opening)
    storm = Storm(storm_id, listener.name, cluster, channel, now_ms, now_ms, Notified(1, now_ms, worst), count)
    why = f"{count} groups of {cluster} turned bad together"
    return StormUpdate(
        storm, DueNotification(listener.name, Event.OPEN, 1, why), tuple(one.incident.id for one in opening)
    )


def _after(
    listener: NotifierPolicy,
    storm: Storm,
    said: Sequence[PendingNotification],
    joining: Sequence[PendingNotification],
    left: RemainingGroups,
    now_ms: int,
) -> StormUpdate | None:
    if joining:
        count = len(joining)
        storm = replace(storm, total=storm.total + count, untold=storm.untold + count, grown_ms=now_ms)
    joined = tuple(one.incident.id for one in joining)
    if left.bad + len(joining) == 0:
        why = f"all {storm.total} groups are OK again, or gone"
        due = DueNotification(listener.name, Event.CLOSE, storm.told.count + 1, why) if listener.wants_close else None
        return StormUpdate(storm, due, is_over=True)
    event, why = _news(listener, storm, [*said, *joining], left.loud + len(joining), now_ms)
    if event is None:
        return StormUpdate(storm, None, joined) if joining else None
    worst = max([storm.told.worst, *(one.incident.worst for one in (*said, *joining))])
    number = storm.told.count + 1
    told = replace(storm, told=Notified(number, now_ms, worst), untold=0)
    return StormUpdate(told, DueNotification(listener.name, event, number, why), joined)


def _news(
    listener: NotifierPolicy, storm: Storm, said: Sequence[PendingNotification], left: int, now_ms: int
) -> tuple[Event | None, str]:
    quiet_ms = now_ms - storm.told.last_ms
    now_worst = max((one.incident.status for one in said), default=Status.NOTFOUND)
    if not left:
        # Nobody wants to hear of those that are left.
        return None, ""
    if now_worst > storm.told.worst and not listener.is_once:
        return Event.WORSE, f"some have become {now_worst.name}; {storm.told.worst.name} was the worst before"
    if storm.untold and not 0 <= quiet_ms < TOGETHER_MS:
        return Event.WORSE, f"{storm.untold} more turned bad"
    is_asked = any(one.due.event is Event.REMINDER for one in said)
    if is_asked and not listener.is_once and not 0 <= quiet_ms < listener.send_interval_ms:
        return Event.REMINDER, f"{left} of {storm.total} groups are still bad"
    return None, ""

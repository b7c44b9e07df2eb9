"""Grouping of storms: groups that turn bad together get each notification, then a few, then each when all are over."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.kit.incidents import notifier
from warren.config import Notifier
from warren.domain.status import Status
from warren.incidents.evaluation import DueNotification, PendingNotification, StormUpdate
from warren.incidents.model import Event, Incident, Notified, StatusChange, Storm, StormKey
from warren.incidents.storms import JOIN_MS, TOGETHER_MS, group_notifications

WARN, ERR = Status.WARN, Status.ERR
HOOK = notifier("hook", storm_groups=3, send_close=True, send_interval=300)
START = 1_000_000


def due_for(
    index: int, event: Event = Event.OPEN, status: Status = WARN, storm: str = "", now_ms: int = START
) -> PendingNotification:
    notified = {"hook": Notified(1, now_ms, status, storm)} if event is not Event.OPEN else {}
    incident = Incident(f"i{index}", "c", f"g{index}", now_ms, (StatusChange(now_ms, status),), status, notified)
    return PendingNotification(incident, DueNotification("hook", event, 1, "why"))


def storm(**changes: object) -> Storm:
    fields = {"id": "s", "notifier": "hook", "cluster": "c", "channel": "#c", "opened_ms": START, "grown_ms": START,
              "notified": Notified(1, START, WARN), "total": 5, **changes}  # fmt: skip
    return Storm(**fields)  # type: ignore[arg-type]


class Grouped(NamedTuple):
    single: list[PendingNotification]
    storms: list[StormUpdate]


def group(
    pending: Sequence[PendingNotification],
    known: Storm | None = None,
    bad: int = 0,
    now_ms: int = START,
    recent: int = 0,
    policy: Notifier = HOOK,
    unsilenced: int | None = None,
) -> Grouped:
    storms = {} if known is None else {known.id: known}
    members = {"s": {f"m{index}" for index in range(bad)}}
    silenced = [] if unsilenced is None else sorted(members["s"])[unsilenced:]
    key = StormKey("c", "hook", "#c")
    return Grouped(*group_notifications(policy, key, pending, storms, members, silenced, recent, now_ms, lambda: "new"))


@pytest.mark.parametrize(
    ("count", "recent", "threshold", "is_storm"),
    [(2, 0, 3, False), (3, 0, 3, True), (2, 1, 3, True), (1, 2, 3, True), (1, 0, 3, False), (500, 0, 0, False)],
)
def test_enough_groups_together_are_a_storm(count: int, recent: int, threshold: int, is_storm: bool) -> None:
    pending = [due_for(index) for index in range(count)]
    grouped = group(pending, recent=recent, policy=notifier("hook", storm_groups=threshold))
    assert len(grouped.single) == (0 if is_storm else count)
    assert len(grouped.storms) == (1 if is_storm else 0)


def test_a_storm_opens_with_one_notification() -> None:
    [opened] = group([due_for(1), due_for(2, status=ERR), due_for(3)]).storms
    assert opened.due == DueNotification("hook", Event.OPEN, 1, "3 groups of c turned bad together")
    assert opened.storm == Storm("new", "hook", "c", "#c", START, START, Notified(1, START, ERR), 3)
    assert opened.joined == ("i1", "i2", "i3")


@pytest.mark.parametrize(
    ("elapsed_ms", "unreported", "expected"),
    [
        (10_000, 0, None),
        (10_000, 7, None),
        (TOGETHER_MS, 0, "1 more group turned bad"),
        (TOGETHER_MS, 7, "8 more groups turned bad"),
        (-5_000, 0, "1 more group turned bad"),
    ],
)
def test_groups_that_join_are_notified_once_per_minute(elapsed_ms: int, unreported: int, expected: str | None) -> None:
    known = storm(unreported=unreported, grown_ms=START + min(elapsed_ms, 0))
    grouped = group([due_for(9)], known, bad=5, now_ms=START + elapsed_ms)
    assert grouped.single == []
    [update] = grouped.storms
    assert update.joined == ("i9",)
    assert (update.due.reason if update.due else None) == expected
    assert update.storm.total == 6
    assert update.storm.unreported == (0 if expected else unreported + 1)


def test_joined_groups_are_notified_even_if_no_more_join() -> None:
    [update] = group([], storm(unreported=4), bad=5, now_ms=START + TOGETHER_MS).storms
    assert update.due == DueNotification("hook", Event.WORSE, 2, "4 more groups turned bad")


def test_a_group_that_turns_bad_long_after_is_not_part_of_the_storm() -> None:
    grouped = group([due_for(9)], storm(), bad=1, now_ms=START + JOIN_MS)
    assert [each.incident.id for each in grouped.single] == ["i9"]
    assert grouped.storms == []


def test_another_storm_may_open_beside_an_old_one() -> None:
    now_ms = START + JOIN_MS
    grouped = group([due_for(index) for index in range(3)], storm(), bad=1, now_ms=now_ms)
    assert [each.storm.id for each in grouped.storms] == ["new"]


def test_a_worse_status_is_notified_at_once_and_once() -> None:
    worse = [due_for(index, Event.WORSE, ERR, "s") for index in range(4)]
    [update] = group(worse, storm(), bad=5, now_ms=START + 1).storms
    assert update.due == DueNotification("hook", Event.WORSE, 2, "some groups are now ERR; the worst before was WARN")
    assert group([due_for(8, Event.WORSE, ERR, "s")], update.storm, bad=5, now_ms=START + 2).storms == []


@pytest.mark.parametrize(("elapsed_ms", "expected"), [(299_999, None), (300_000, "3 of 5 groups are still bad")])
def test_reminders_of_many_groups_are_one_per_send_interval(elapsed_ms: int, expected: str | None) -> None:
    reminders = [due_for(index, Event.REMINDER, WARN, "s") for index in range(3)]
    grouped = group(reminders, storm(), bad=3, now_ms=START + elapsed_ms)
    assert grouped.single == []
    assert [each.due.reason for each in grouped.storms if each.due] == ([expected] if expected else [])


def test_a_storm_closes_when_all_its_groups_are_ok_or_gone() -> None:
    ends = [due_for(1, Event.CLOSE, storm="s"), due_for(2, Event.CLOSE, storm="s")]
    assert group(ends, storm(), bad=3) == Grouped([], [])
    [update] = group(ends, storm(), bad=0).storms
    assert update.has_ended
    assert update.due == DueNotification("hook", Event.CLOSE, 2, "all 5 groups are OK again, or gone")


def test_a_storm_ends_without_notification_if_its_notifier_wants_no_close() -> None:
    [update] = group([], storm(), bad=0, policy=notifier("hook", storm_groups=3)).storms
    assert (update.has_ended, update.due) == (True, None)


ONCE = notifier("hook", storm_groups=3, send_once=True)


def test_a_notifier_that_sends_once_is_notified_of_each_group_once() -> None:
    [update] = group(
        [due_for(9, status=ERR)], storm(unreported=3), bad=5, now_ms=START + TOGETHER_MS, policy=ONCE
    ).storms
    assert update.due == DueNotification("hook", Event.WORSE, 2, "4 more groups turned bad")
    again = [due_for(1, Event.WORSE, ERR, "s"), due_for(2, Event.REMINDER, ERR, "s")]
    assert group(again, update.storm, bad=5, now_ms=START + JOIN_MS, policy=ONCE).storms == []


def test_silenced_groups_are_notified_only_when_the_storm_closes() -> None:
    later = START + TOGETHER_MS
    assert group([], storm(unreported=4), bad=5, now_ms=later, unsilenced=0).storms == []
    [update] = group([], storm(unreported=4), bad=0, now_ms=later, unsilenced=0).storms
    assert update.has_ended
    [update] = group(
        [due_for(1, Event.REMINDER, WARN, "s")], storm(), bad=5, now_ms=START + 300_000, unsilenced=2
    ).storms
    assert update.due is not None
    assert update.due.reason == "2 of 5 groups are still bad"


def test_groups_notified_one_by_one_stay_so() -> None:
    single = [due_for(7, Event.WORSE, ERR), due_for(8, Event.CLOSE), due_for(9, Event.REMINDER)]
    grouped = group(single, storm(), bad=5)
    assert [each.incident.id for each in grouped.single] == ["i7", "i8", "i9"]

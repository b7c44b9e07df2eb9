"""OpenStorms: many groups that turn bad together are one message, then a few, then one end."""

from collections.abc import Sequence

import pytest

from warren.domain.status import Status
from warren.incidents.model import DueNotification, Event, Incident, Notified, NotifierPolicy, StatusChange
from warren.incidents.storms import (
    JOIN_MS,
    TOGETHER_MS,
    GroupedNotifications,
    PendingNotification,
    RemainingGroups,
    Storm,
    StormKey,
    group_notifications,
)

WARN, ERR = Status.WARN, Status.ERR
HOOK = NotifierPolicy("hook", storm_threshold=3, wants_close=True, send_interval_ms=300_000)
BEGAN = 1_000_000


def said(
    number: int, event: Event = Event.OPEN, status: Status = WARN, storm: str = "", now_ms: int = BEGAN
) -> PendingNotification:
    told = {"hook": Notified(1, now_ms, status, storm)} if event is not Event.OPEN else {}
    incident = Incident(f"i{number}", "c", f"g{number}", now_ms, (StatusChange(now_ms, status),), status, told)
    return PendingNotification(incident, DueNotification("hook", event, 1, "why"))


def storm(**changes: object) -> Storm:
    fields = {"id": "s", "notifier": "hook", "cluster": "c", "channel": "#c", "opened_ms": BEGAN, "grown_ms": BEGAN,
              "notified": Notified(1, BEGAN, WARN), "total": 5, **changes}  # fmt: skip
    return Storm(**fields)  # type: ignore[arg-type]


def gathered(
    messages: Sequence[PendingNotification],
    known: Storm | None = None,
    left: int = 0,
    now_ms: int = BEGAN,
    recently: int = 0,
    listener: NotifierPolicy = HOOK,
    loud: int | None = None,
) -> GroupedNotifications:
    storms = {} if known is None else {known.id: known}
    counts = {"s": RemainingGroups(left, left if loud is None else loud)}
    return group_notifications(
        listener, StormKey("c", "hook", "#c"), messages, storms, counts, recently, now_ms, lambda: "new"
    )


@pytest.mark.parametrize(
    ("count", "recently", "storm_from", "is_storm"),
    [(2, 0, 3, False), (3, 0, 3, True), (2, 1, 3, True), (1, 2, 3, True), (1, 0, 3, False), (500, 0, 0, False)],
)
def test_enough_groups_together_are_a_storm(count: int, recently: int, storm_from: int, is_storm: bool) -> None:
    messages = [said(number) for number in range(count)]
    made = gathered(messages, recently=recently, listener=NotifierPolicy("hook", storm_threshold=storm_from))
    assert len(made.single) == (0 if is_storm else count)
    assert len(made.storms) == (1 if is_storm else 0)


def test_a_storm_begins_with_one_message_about_all() -> None:
    [begun] = gathered([said(1), said(2, status=ERR), said(3)]).storms
    assert begun.due == DueNotification("hook", Event.OPEN, 1, "3 groups of c turned bad together")
    assert begun.storm == Storm("new", "hook", "c", "#c", BEGAN, BEGAN, Notified(1, BEGAN, ERR), 3)
    assert begun.joined == ("i1", "i2", "i3")


@pytest.mark.parametrize(
    ("later_ms", "untold", "expected"),
    [
        (10_000, 0, None),
        (10_000, 7, None),
        (TOGETHER_MS, 0, "1 more groups turned bad"),
        (TOGETHER_MS, 7, "8 more groups turned bad"),
        (-5_000, 0, "1 more groups turned bad"),
    ],
)
def test_groups_that_join_are_told_of_once_a_minute(later_ms: int, untold: int, expected: str | None) -> None:
    known = storm(unreported=untold, grown_ms=BEGAN + min(later_ms, 0))
    made = gathered([said(9)], known, left=5, now_ms=BEGAN + later_ms)
    assert made.single == ()
    [after] = made.storms
    assert after.joined == ("i9",)
    assert (after.due.reason if after.due else None) == expected
    assert after.storm.total == 6
    assert after.storm.unreported == (0 if expected else untold + 1)


def test_what_joined_is_told_of_even_when_nobody_joins_any_more() -> None:
    [after] = gathered([], storm(unreported=4), left=5, now_ms=BEGAN + TOGETHER_MS).storms
    assert after.due == DueNotification("hook", Event.WORSE, 2, "4 more groups turned bad")


def test_what_turns_bad_long_after_is_not_part_of_it() -> None:
    made = gathered([said(9)], storm(), left=1, now_ms=BEGAN + JOIN_MS)
    assert [one.incident.id for one in made.single] == ["i9"]
    assert made.storms == ()


def test_another_storm_may_begin_beside_an_old_one() -> None:
    now_ms = BEGAN + JOIN_MS
    made = gathered([said(number) for number in range(3)], storm(), left=1, now_ms=now_ms)
    assert [one.storm.id for one in made.storms] == ["new"]


def test_worse_is_told_at_once_and_once() -> None:
    worse = [said(number, Event.WORSE, ERR, "s") for number in range(4)]
    [after] = gathered(worse, storm(), left=5, now_ms=BEGAN + 1).storms
    assert after.due == DueNotification("hook", Event.WORSE, 2, "some groups are now ERR; the worst before was WARN")
    assert gathered([said(8, Event.WORSE, ERR, "s")], after.storm, left=5, now_ms=BEGAN + 2).storms == ()


@pytest.mark.parametrize(("later_ms", "expected"), [(299_999, None), (300_000, "3 of 5 groups are still bad")])
def test_reminders_of_many_are_one_each_send_interval(later_ms: int, expected: str | None) -> None:
    reminders = [said(number, Event.REMINDER, WARN, "s") for number in range(3)]
    made = gathered(reminders, storm(), left=3, now_ms=BEGAN + later_ms)
    assert made.single == ()
    assert [one.due.reason for one in made.storms if one.due] == ([expected] if expected else [])


def test_ends_are_told_when_all_are_over() -> None:
    ends = [said(1, Event.CLOSE, storm="s"), said(2, Event.CLOSE, storm="s")]
    assert gathered(ends, storm(), left=3) == GroupedNotifications(())
    [after] = gathered(ends, storm(), left=0).storms
    assert after.has_ended
    assert after.due == DueNotification("hook", Event.CLOSE, 2, "all 5 groups are OK again, or gone")


def test_who_does_not_want_ends_gets_none_and_the_storm_is_forgotten() -> None:
    [after] = gathered([], storm(), left=0, listener=NotifierPolicy("hook", storm_threshold=3)).storms
    assert (after.has_ended, after.due) == (True, None)


ONCE = NotifierPolicy("hook", storm_threshold=3, sends_once=True)


def test_who_wants_to_hear_once_hears_of_each_group_once() -> None:
    [after] = gathered(
        [said(9, status=ERR)], storm(unreported=3), left=5, now_ms=BEGAN + TOGETHER_MS, listener=ONCE
    ).storms
    assert after.due == DueNotification("hook", Event.WORSE, 2, "4 more groups turned bad")
    again = [said(1, Event.WORSE, ERR, "s"), said(2, Event.REMINDER, ERR, "s")]
    assert gathered(again, after.storm, left=5, now_ms=BEGAN + JOIN_MS, listener=ONCE).storms == ()


def test_of_groups_that_are_silenced_nothing_is_said_but_the_end() -> None:
    later = BEGAN + TOGETHER_MS
    assert gathered([], storm(unreported=4), left=5, now_ms=later, loud=0).storms == ()
    [after] = gathered([], storm(unreported=4), left=0, now_ms=later, loud=0).storms
    assert after.has_ended
    [some] = gathered([said(1, Event.REMINDER, WARN, "s")], storm(), left=5, now_ms=BEGAN + 300_000, loud=2).storms
    assert some.due is not None
    assert some.due.reason == "2 of 5 groups are still bad"


def test_groups_told_of_one_by_one_stay_so() -> None:
    lone = [said(7, Event.WORSE, ERR), said(8, Event.CLOSE), said(9, Event.REMINDER)]
    made = gathered(lone, storm(), left=5)
    assert [one.incident.id for one in made.single] == ["i7", "i8", "i9"]

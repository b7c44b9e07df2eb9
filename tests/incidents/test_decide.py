"""What is due to be said of a group, as stories: verdicts at times, and who hears what then."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType

import pytest

from warren.domain.status import Status
from warren.incidents.decide import decide
from warren.incidents.model import MAX_CHANGES, Decision, GroupState, Incident, NotifierPolicy

OK, WARN, ERR, GONE, AWAY = Status.OK, Status.WARN, Status.ERR, Status.NOTFOUND, None
MINUTE = 60_000
PLAIN = NotifierPolicy("plain")
CLOSES = NotifierPolicy("closes", wants_close=True)
ONCE = NotifierPolicy("once", sends_once=True, wants_close=True)
ONLY_ERR = NotifierPolicy("only-err", threshold=ERR, wants_close=True)
ALL = NotifierPolicy("all", threshold=OK, wants_close=True)
RARE = NotifierPolicy("rare", send_interval_ms=10 * MINUTE)

Summary = Sequence[tuple[float, Status | None, str]]
"""The minute, the verdict, and what is said then: `listener event`, with commas between."""


class Notified:
    """A group's life, decision after decision."""

    def __init__(self, *listeners: NotifierPolicy) -> None:
        self.listeners = listeners
        self.state = GroupState()
        self.closed: list[Incident] = []
        self.keys: list[tuple[str, str, int]] = []
        self._ids = count(1)

    def see(self, now_ms: int, status: Status | None, *, is_silenced: bool = False) -> Decision:
        before = self.state.incident
        made = decide(
            self.state, ("c", "g"), status, self.listeners, now_ms, lambda: f"id-{next(self._ids)}",
            is_silenced=is_silenced,
        )  # fmt: skip
        self.state = made.state
        incident = made.closed or made.state.incident or before
        self.keys += [(incident.id if incident else "", due.notifier, due.sequence) for due in made.due]
        if made.closed:
            self.closed.append(made.closed)
        return made


def said(made: Decision) -> str:
    return ", ".join(f"{due.notifier} {due.event}" for due in made.due)


@pytest.mark.parametrize(
    ("name", "listeners", "story"),
    [
        ("nothing is wrong", [PLAIN, CLOSES], [(0, OK, ""), (1, OK, "")]),
        ("it opens at once", [PLAIN], [(0, WARN, "plain open")]),
        ("it opens with the first verdict there is", [PLAIN], [(0, ERR, "plain open")]),
        ("reminders come a send-interval apart", [PLAIN], [
            (0, WARN, "plain open"), (0.5, WARN, ""), (1, WARN, "plain reminder"), (1.9, WARN, ""),
            (2, WARN, "plain reminder"), (9, WARN, "plain reminder"), (9.9, WARN, ""),
        ]),
        ("who wants to hear the end hears it once", [PLAIN, CLOSES], [
            (0, ERR, "plain open, closes open"), (1, OK, "closes close"), (2, OK, ""),
        ]),
        ("it opens again as another one", [CLOSES], [
            (0, ERR, "closes open"), (0.1, OK, "closes close"), (0.2, WARN, "closes open"), (0.3, OK, "closes close"),
        ]),
        ("once is once, and the end", [ONCE], [
            (0, WARN, "once open"), (5, WARN, ""), (6, ERR, ""), (7, OK, "once close"), (8, WARN, "once open"),
        ]),
        ("a threshold is reached later", [PLAIN, ONLY_ERR], [
            (0, WARN, "plain open"), (0.2, ERR, "plain worse, only-err open"), (0.4, OK, "only-err close"),
        ]),
        ("who never heard of it does not hear its end", [ONLY_ERR], [(0, WARN, ""), (1, WARN, ""), (2, OK, "")]),
        ("below its threshold nothing reminds, and the end is told", [ONLY_ERR], [
            (0, ERR, "only-err open"), (1, WARN, ""), (5, WARN, ""), (6, ERR, "only-err reminder"), (7, WARN, ""),
            (8, OK, "only-err close"),
        ]),
        ("worse is told at once, better is not", [RARE], [
            (0, WARN, "rare open"), (1, ERR, "rare worse"), (2, WARN, ""), (3, ERR, ""), (10.9, ERR, ""),
            (11, ERR, "rare reminder"),
        ]),
        ("while its cluster is away nothing is due", [CLOSES], [
            (0, AWAY, ""), (1, WARN, "closes open"), (2, AWAY, ""), (9, AWAY, ""), (10, WARN, "closes reminder"),
            (11, AWAY, ""), (12, OK, "closes close"), (13, AWAY, ""),
        ]),
        ("a group that is gone needs nobody", [CLOSES], [
            (0, ERR, "closes open"), (1, GONE, "closes close"), (2, GONE, ""),
        ]),
        ("good groups are reported to who wants it", [ALL], [
            (0, OK, "all report"), (0.9, OK, ""), (1, OK, "all report"), (2, WARN, "all open"),
            (3, WARN, "all reminder"), (4, OK, "all close"), (4.1, OK, "all report"), (4.2, GONE, ""),
        ]),
        ("a clock that is set back silences nobody", [PLAIN], [(60, WARN, "plain open"), (0, WARN, "plain reminder")]),
        ("nobody listens", [], [(0, ERR, ""), (1, OK, "")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_story(name: str, listeners: list[NotifierPolicy], story: Summary) -> None:
    told = Notified(*listeners)
    for minute, status, expected in story:
        assert said(told.see(round(minute * MINUTE), status)) == expected, f"{name}, minute {minute}"
    assert len(told.keys) == len(set(told.keys)) or ALL in listeners, "no two messages have the same key"


def test_an_incident_remembers_its_course() -> None:
    told = Notified(CLOSES)
    for minute, status in enumerate([OK, WARN, ERR, ERR, WARN, OK]):
        told.see(minute * MINUTE, status)
    [incident] = told.closed
    assert (incident.id, incident.opened_ms, incident.closed_ms) == ("id-1", MINUTE, 5 * MINUTE)
    assert [(change.at_ms // MINUTE, change.status) for change in incident.changes] == [
        (1, WARN), (2, ERR), (4, WARN), (5, OK),
    ]  # fmt: skip
    assert (incident.worst, incident.status) == (ERR, OK)
    assert incident.notified["closes"].count == 5
    assert told.state == GroupState()


def test_a_silence_holds_back_all_but_the_end() -> None:
    told = Notified(CLOSES)
    assert said(told.see(0, WARN, is_silenced=True)) == ""
    opened = told.state.incident
    assert opened is not None, "there is an incident all the same"
    assert said(told.see(MINUTE, WARN)) == "closes open", "who could not be told then is told afterwards"
    assert said(told.see(2 * MINUTE, ERR, is_silenced=True)) == ""
    assert said(told.see(3 * MINUTE, OK, is_silenced=True)) == "closes close", "whoever heard it begin"
    assert told.closed[0].opened_ms == 0
    quiet = Notified(CLOSES)
    quiet.see(0, WARN, is_silenced=True)
    assert said(quiet.see(MINUTE, OK)) == "", "and nobody else"
    assert said(Notified(ALL).see(0, OK, is_silenced=True)) == ""


def test_what_is_acknowledged_reminds_nobody_but_gets_worse_aloud() -> None:
    told = Notified(CLOSES)
    told.see(0, WARN)
    assert told.state.incident is not None
    told.state = GroupState(replace(told.state.incident, acknowledged_ms=1))
    assert said(told.see(9 * MINUTE, WARN)) == ""
    assert said(told.see(10 * MINUTE, ERR)) == "closes worse"
    assert said(told.see(20 * MINUTE, ERR)) == ""
    assert said(told.see(21 * MINUTE, OK)) == "closes close"


def test_nothing_that_was_given_is_changed() -> None:
    told = Notified(CLOSES, ALL)
    told.see(0, WARN)
    incident = told.state.incident
    assert incident is not None
    frozen = GroupState(replace(incident, notified=MappingProxyType(dict(incident.notified))))
    for status in (WARN, ERR, OK, GONE, AWAY):
        decide(frozen, ("c", "g"), status, told.listeners, 5 * MINUTE, lambda: "new")
    assert frozen.incident is not None
    assert frozen.incident.notified == incident.notified


def test_an_incident_that_flaps_for_ever_stays_small() -> None:
    told = Notified(PLAIN)
    for turn in range(3 * MAX_CHANGES):
        told.see(turn, ERR if turn % 2 else WARN)
    assert told.state.incident is not None
    changes = told.state.incident.changes
    assert len(changes) == MAX_CHANGES
    assert (changes[0].at_ms, changes[-1].at_ms) == (0, 3 * MAX_CHANGES - 1)
    assert told.state.incident.worst == ERR


def test_every_message_says_why() -> None:
    told = Notified(CLOSES, ALL)
    reasons = [due.reason for minute, status in enumerate([OK, WARN, ERR, ERR, OK]) for due in
               told.see(minute * MINUTE, status).due]  # fmt: skip
    assert all(reasons)


def test_who_forgets_what_is_not_repeated_hears_it_while_the_cluster_is_away() -> None:
    told = Notified(CLOSES, NotifierPolicy("alerts", send_interval_ms=MINUTE, must_repeat=True, sends_once=True))
    told.see(0, WARN)
    assert told.state.incident is not None
    before = told.state.incident.changes
    assert said(told.see(2 * MINUTE, AWAY)) == "alerts reminder"
    assert told.state.incident.changes == before, "nothing is known to have changed"
    assert said(told.see(2 * MINUTE + 1, AWAY)) == ""
    assert said(told.see(4 * MINUTE, AWAY, is_silenced=True)) == ""
    assert said(Notified(NotifierPolicy("alerts", must_repeat=True)).see(0, AWAY)) == "", "there is nothing to repeat"

"""Decisions, as courses of verdicts: at each time the verdict of a group, and the notifications that are due."""

from collections.abc import Mapping, Sequence
from itertools import count
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from tests.kit.incidents import notifier
from warren.config import Notifier
from warren.domain.status import Status
from warren.incidents.decide import decide
from warren.incidents.evaluation import Decision
from warren.incidents.model import MAX_CHANGES, Incident, Notified

OK, WARN, ERR, GONE, UNKNOWN = Status.OK, Status.WARN, Status.ERR, Status.NOTFOUND, None
MINUTE = 60_000
PLAIN = notifier("plain")
CLOSES = notifier("closes", send_close=True)
ONCE = notifier("once", send_once=True, send_close=True)
ONLY_ERR = notifier("only-err", threshold=ERR, send_close=True)
ALL = notifier("all", threshold=OK, send_close=True)
RARE = notifier("rare", send_interval=600)

Course = Sequence[tuple[float, Status | None, str]]
"""The minute, the verdict, and what is due then: `notifier event`, separated by commas."""


class GroupCourse:
    """One group, decision after decision."""

    def __init__(self, *policies: Notifier) -> None:
        self.policies = policies
        self.incident: Incident | None = None
        self.reported: Mapping[str, Notified] = {}
        self.closed: list[Incident] = []
        self.keys: list[tuple[str, str, int]] = []
        self._ids = count(1)

    def judge(self, now_ms: int, status: Status | None, *, is_silenced: bool = False) -> Decision:
        decision = decide(
            ("c", "g"), self.incident, self.reported, status, self.policies, now_ms, lambda: f"id-{next(self._ids)}",
            is_silenced=is_silenced,
        )  # fmt: skip
        incident = decision.incident
        self.keys += [(incident.id if incident else "", due.notifier, due.sequence) for due in decision.due]
        if incident and incident.closed_ms is not None:
            self.closed.append(incident)
        is_open = incident is not None and incident.closed_ms is None
        self.incident, self.reported = incident if is_open else None, decision.reported
        return decision


def summary(decision: Decision) -> str:
    return ", ".join(f"{due.notifier} {due.event}" for due in decision.due)


@pytest.mark.parametrize(
    ("name", "policies", "course"),
    [
        ("nothing is wrong", [PLAIN, CLOSES], [(0, OK, ""), (1, OK, "")]),
        ("it opens at once", [PLAIN], [(0, WARN, "plain open")]),
        ("it opens with the first verdict", [PLAIN], [(0, ERR, "plain open")]),
        ("one reminder per send-interval", [PLAIN], [
            (0, WARN, "plain open"), (0.5, WARN, ""), (1, WARN, "plain reminder"), (1.9, WARN, ""),
            (2, WARN, "plain reminder"), (9, WARN, "plain reminder"), (9.9, WARN, ""),
        ]),
        ("close is sent once, to notifiers that want it", [PLAIN, CLOSES], [
            (0, ERR, "plain open, closes open"), (1, OK, "closes close"), (2, OK, ""),
        ]),
        ("a group that turns bad again has another incident", [CLOSES], [
            (0, ERR, "closes open"), (0.1, OK, "closes close"), (0.2, WARN, "closes open"), (0.3, OK, "closes close"),
        ]),
        ("send-once sends open and close", [ONCE], [
            (0, WARN, "once open"), (5, WARN, ""), (6, ERR, ""), (7, OK, "once close"), (8, WARN, "once open"),
        ]),
        ("a notifier is notified when its threshold is reached", [PLAIN, ONLY_ERR], [
            (0, WARN, "plain open"), (0.2, ERR, "plain worse, only-err open"), (0.4, OK, "only-err close"),
        ]),
        ("a notifier without open gets no close", [ONLY_ERR], [(0, WARN, ""), (1, WARN, ""), (2, OK, "")]),
        ("no reminders below the threshold, but a close", [ONLY_ERR], [
            (0, ERR, "only-err open"), (1, WARN, ""), (5, WARN, ""), (6, ERR, "only-err reminder"), (7, WARN, ""),
            (8, OK, "only-err close"),
        ]),
        ("worse is sent at once, better is not", [RARE], [
            (0, WARN, "rare open"), (1, ERR, "rare worse"), (2, WARN, ""), (3, ERR, ""), (10.9, ERR, ""),
            (11, ERR, "rare reminder"),
        ]),
        ("nothing is due while the cluster is unknown", [CLOSES], [
            (0, UNKNOWN, ""), (1, WARN, "closes open"), (2, UNKNOWN, ""), (9, UNKNOWN, ""),
            (10, WARN, "closes reminder"), (11, UNKNOWN, ""), (12, OK, "closes close"), (13, UNKNOWN, ""),
        ]),
        ("a group that is gone closes its incident", [CLOSES], [
            (0, ERR, "closes open"), (1, GONE, "closes close"), (2, GONE, ""),
        ]),
        ("OK groups are reported if the threshold is OK", [ALL], [
            (0, OK, "all report"), (0.9, OK, ""), (1, OK, "all report"), (2, WARN, "all open"),
            (3, WARN, "all reminder"), (4, OK, "all close"), (4.1, OK, "all report"), (4.2, GONE, ""),
        ]),
        ("a clock that is set back delays nothing", [PLAIN], [(60, WARN, "plain open"), (0, WARN, "plain reminder")]),
        ("there is no notifier", [], [(0, ERR, ""), (1, OK, "")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_course_of_verdicts(name: str, policies: list[Notifier], course: Course) -> None:
    group = GroupCourse(*policies)
    for minute, status, expected in course:
        assert summary(group.judge(round(minute * MINUTE), status)) == expected, f"{name}, minute {minute}"
    assert len(group.keys) == len(set(group.keys)) or ALL in policies, "no two notifications have the same key"


def test_an_incident_stores_its_status_changes() -> None:
    group = GroupCourse(CLOSES)
    for minute, status in enumerate([OK, WARN, ERR, ERR, WARN, OK]):
        group.judge(minute * MINUTE, status)
    [incident] = group.closed
    assert (incident.id, incident.opened_ms, incident.closed_ms) == ("id-1", MINUTE, 5 * MINUTE)
    assert [(change.at_ms // MINUTE, change.status) for change in incident.changes] == [
        (1, WARN), (2, ERR), (4, WARN), (5, OK),
    ]  # fmt: skip
    assert (incident.worst, incident.status) == (ERR, OK)
    assert incident.notified["closes"].count == 5
    assert (group.incident, group.reported) == (None, {})


def test_a_silence_suppresses_all_but_close() -> None:
    group = GroupCourse(CLOSES)
    assert summary(group.judge(0, WARN, is_silenced=True)) == ""
    opened = group.incident
    assert opened is not None, "the incident opens nevertheless"
    assert summary(group.judge(MINUTE, WARN)) == "closes open", "open is sent after the silence"
    assert summary(group.judge(2 * MINUTE, ERR, is_silenced=True)) == ""
    assert summary(group.judge(3 * MINUTE, OK, is_silenced=True)) == "closes close", "to the notifiers that got open"
    assert group.closed[0].opened_ms == 0
    quiet = GroupCourse(CLOSES)
    quiet.judge(0, WARN, is_silenced=True)
    assert summary(quiet.judge(MINUTE, OK)) == "", "and to no others"
    assert summary(GroupCourse(ALL).judge(0, OK, is_silenced=True)) == ""


def test_an_acknowledged_incident_has_no_reminders_but_is_notified_when_worse() -> None:
    group = GroupCourse(CLOSES)
    group.judge(0, WARN)
    assert group.incident is not None
    group.incident = replace(group.incident, acknowledged_ms=1)
    assert summary(group.judge(9 * MINUTE, WARN)) == ""
    assert summary(group.judge(10 * MINUTE, ERR)) == "closes worse"
    assert summary(group.judge(20 * MINUTE, ERR)) == ""
    assert summary(group.judge(21 * MINUTE, OK)) == "closes close"


def test_deciding_does_not_mutate_the_state() -> None:
    group = GroupCourse(CLOSES, ALL)
    group.judge(0, WARN)
    incident = group.incident
    assert incident is not None
    frozen = replace(incident, notified=MappingProxyType(dict(incident.notified)))
    for status in (WARN, ERR, OK, GONE, UNKNOWN):
        decide(("c", "g"), frozen, {}, status, group.policies, 5 * MINUTE, lambda: "new")
    assert frozen.notified == incident.notified


def test_a_flapping_incident_stays_small() -> None:
    group = GroupCourse(PLAIN)
    for turn in range(3 * MAX_CHANGES):
        group.judge(turn, ERR if turn % 2 else WARN)
    assert group.incident is not None
    changes = group.incident.changes
    assert len(changes) == MAX_CHANGES
    assert (changes[0].at_ms, changes[-1].at_ms) == (0, 3 * MAX_CHANGES - 1)
    assert group.incident.worst == ERR


def test_every_notification_has_a_reason() -> None:
    group = GroupCourse(CLOSES, ALL)
    reasons = [due.reason for minute, status in enumerate([OK, WARN, ERR, ERR, OK]) for due in
               group.judge(minute * MINUTE, status).due]  # fmt: skip
    assert all(reasons)


def test_notifiers_that_must_repeat_are_reminded_while_the_cluster_is_unknown() -> None:
    group = GroupCourse(CLOSES, notifier("alerts", send_interval=60, class_name="alertmanager", send_once=True))
    group.judge(0, WARN)
    assert group.incident is not None
    before = group.incident.changes
    assert summary(group.judge(2 * MINUTE, UNKNOWN)) == "alerts reminder"
    assert group.incident.changes == before, "no status change is known"
    assert summary(group.judge(2 * MINUTE + 1, UNKNOWN)) == ""
    assert summary(group.judge(4 * MINUTE, UNKNOWN, is_silenced=True)) == ""
    assert summary(GroupCourse(notifier("alerts", class_name="alertmanager")).judge(0, UNKNOWN)) == "", (
        "there is no incident to repeat"
    )

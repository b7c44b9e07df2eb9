"""Silences and acknowledgements in the pipeline: which notifications they suppress."""

from pathlib import Path

from msgspec.structs import replace

from tests.incidents.test_storms import MINUTE, StormScene, bad, ok
from tests.kit.incidents import ERR, OK, START, WARN, notifier
from warren.incidents.model import Event
from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.operator_actions import write_action

PLAIN = notifier("hook", send_close=True, send_interval=60)
RELEASE = Silence("s", "on?", "g1*", 0, START + 10 * MINUTE, "ann", "release")


def test_an_acknowledged_incident_has_no_reminders_unless_it_gets_worse(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, PLAIN, notifier("alerts", send_interval=60, class_name="alertmanager"))
    storms.process(0, bad(1, status=WARN))
    acknowledgement = Acknowledgement(storms.scene.incidents()[0].id, START, "bob", "I am on it")
    write_action(tmp_path, acknowledgement)
    sent = storms.process(2 * MINUTE, bad(1, status=WARN))
    assert [(each.notifier, each.event) for each in sent] == [("alerts", Event.REMINDER)], (
        "a receiver that resolves without repeats gets them"
    )
    assert [each.event for each in storms.process(3 * MINUTE, bad(1, status=ERR)) if each.notifier == "hook"] == [
        Event.WORSE
    ]
    [incident] = storms.scene.incidents()
    assert (incident.acknowledged_ms, incident.acknowledged_by, incident.acknowledged_why) == (
        START,
        "bob",
        "I am on it",
    )
    write_action(tmp_path, replace(acknowledgement, withdrawn_ms=START))
    assert [each.event for each in storms.process(5 * MINUTE, bad(1)) if each.notifier == "hook"] == [Event.REMINDER]


def test_silenced_groups_are_notified_after_the_silence(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, PLAIN)
    write_action(tmp_path, RELEASE)
    sent = storms.process(0, {**bad(1, 10, 2), **ok(11)})
    assert [each.group for each in sent] == ["g2"]
    assert len(storms.scene.incidents()) == 3, "the incidents are there"
    sent = storms.process(10 * MINUTE, bad(1, 2, 10))
    assert {(each.group, each.event) for each in sent} == {
        ("g1", Event.OPEN), ("g10", Event.OPEN), ("g2", Event.REMINDER),
    }  # fmt: skip


def test_close_is_sent_during_a_silence_if_open_was_sent(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, PLAIN)
    storms.process(0, bad(1))
    write_action(tmp_path, RELEASE)
    assert [each.event for each in storms.process(MINUTE, {1: OK})] == [Event.CLOSE]


def test_an_incident_that_is_silenced_throughout_is_never_notified(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, PLAIN)
    write_action(tmp_path, RELEASE)
    assert storms.process(0, bad(1)) + storms.process(MINUTE, ok(1)) == []


def test_a_silence_applies_from_its_start(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, PLAIN)
    write_action(tmp_path, replace(RELEASE, from_ms=START + MINUTE))
    assert [each.event for each in storms.process(0, bad(1))] == [Event.OPEN]
    assert storms.process(MINUTE, bad(1)) == []

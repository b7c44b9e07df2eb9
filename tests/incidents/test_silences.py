"""The keeper does as people said: no reminders of what somebody has in hand, nothing of what is silenced."""

from dataclasses import replace
from pathlib import Path

from tests.incidents.test_storms import MINUTE, Sky, bad, well
from tests.kit.incidents import ERR, OK, START, WARN
from warren.incidents.model import Event, NotifierPolicy
from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.operator_actions import write_action

PLAIN = NotifierPolicy("hook", wants_close=True, send_interval_ms=MINUTE)
RELEASE = Silence("s", "on?", "g1*", 0, START + 10 * MINUTE, "ann", "release")


def test_what_somebody_has_in_hand_is_not_told_again_unless_it_gets_worse(tmp_path: Path) -> None:
    sky = Sky(tmp_path, PLAIN, NotifierPolicy("alerts", send_interval_ms=MINUTE, must_repeat=True))
    sky.see(0, bad(1, status=WARN))
    in_hand = Acknowledgement(sky.scene.incidents()[0].id, START, "bob", "I look")
    write_action(tmp_path, in_hand)
    told = sky.see(2 * MINUTE, bad(1, status=WARN))
    assert [(one.notifier, one.event) for one in told] == [("alerts", Event.REMINDER)], "who forgets is told again"
    assert [one.event for one in sky.see(3 * MINUTE, bad(1, status=ERR)) if one.notifier == "hook"] == [Event.WORSE]
    [entry] = sky.scene.incidents()
    assert (entry.acknowledged_ms, entry.acknowledged_by, entry.acknowledged_why) == (START, "bob", "I look")
    write_action(tmp_path, replace(in_hand, withdrawn_ms=START))
    assert [one.event for one in sky.see(5 * MINUTE, bad(1)) if one.notifier == "hook"] == [Event.REMINDER]


def test_nobody_hears_of_what_is_silenced_until_the_silence_is_over(tmp_path: Path) -> None:
    sky = Sky(tmp_path, PLAIN)
    write_action(tmp_path, RELEASE)
    told = sky.see(0, {**bad(1, 10, 2), **well(11)})
    assert [one.group for one in told] == ["g2"]
    assert len(sky.scene.incidents()) == 3, "the incidents are there"
    told = sky.see(10 * MINUTE, bad(1, 2, 10))
    assert {(one.group, one.event) for one in told} == {
        ("g1", Event.OPEN), ("g10", Event.OPEN), ("g2", Event.REMINDER),
    }  # fmt: skip


def test_who_heard_the_beginning_hears_the_end_in_a_silence_too(tmp_path: Path) -> None:
    sky = Sky(tmp_path, PLAIN)
    sky.see(0, bad(1))
    write_action(tmp_path, RELEASE)
    assert [one.event for one in sky.see(MINUTE, {1: OK})] == [Event.CLOSE]


def test_what_was_silenced_from_beginning_to_end_was_never_told(tmp_path: Path) -> None:
    sky = Sky(tmp_path, PLAIN)
    write_action(tmp_path, RELEASE)
    assert sky.see(0, bad(1)) + sky.see(MINUTE, well(1)) == []

"""Who hears of what when the configuration, or what a Warren knows, has changed meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.incidents.test_storms import MINUTE, Sky, bad, well
from tests.kit.incidents import START
from warren.incidents.model import Event, NotifierPolicy
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter, NotifierFilter

HOOK = NotifierPolicy("hook", wants_close=True)


def test_who_heard_of_the_beginning_hears_of_the_end_though_it_would_not_hear_of_the_group_any_more(
    tmp_path: Path,
) -> None:
    sky = Sky(tmp_path, HOOK)
    sky.see(0, bad(1))
    sky.router = NotificationRouter([NotifierFilter(HOOK, denylist=".*")])
    sky.begin()
    assert sky.see(MINUTE, bad(1)) == []
    assert [one.event for one in sky.see(2 * MINUTE, well(1))] == [Event.CLOSE]


def test_a_group_that_others_told_of_and_this_one_never_heard_of_is_not_gone(tmp_path: Path) -> None:
    sky = Sky(tmp_path, HOOK)
    sky.see(0, bad(1, 2))
    # As one that took over and began to read where the topic ended.
    sky.scene.pipeline = IncidentPipeline(
        sky.scene.incident_store, sky.scene.store, 30, sky.router, partially_known={"one"}
    )
    assert sky.see(1_000, bad(1)) == [], "the other has not committed since"
    assert {one.group for one in sky.see(2_000, {})} == {"g1"}, "what it has seen can be gone"
    assert [one.group for one in sky.scene.incidents(is_open=True)] == ["g2"]
    assert [(one.group, one.event) for one in sky.see(3_000, well(2))] == [("g2", Event.CLOSE)]


def test_what_is_said_again_is_forgotten_after_a_day_and_what_was_said_is_not(tmp_path: Path) -> None:
    sky = Sky(tmp_path, HOOK)
    sky.see(0, bad(1))
    sky.see(2 * MINUTE, bad(1))
    for one in sky.letters():
        sky.scene.incident_store.update_notification(one.key, lambda held: replace(held, sent_ms=START))
    sky.see(25 * 60 * MINUTE, bad(1))
    assert [one.event for one in sky.letters()] == [Event.OPEN, Event.REMINDER]
    assert [one.sent_ms is None for one in sky.letters()] == [False, True], "only the newest is left"


def test_letters_that_nobody_takes_do_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.incidents.store.store.MAX_PENDING", 3)
    sky = Sky(tmp_path, HOOK)
    for turn in range(4):
        sky.see(2 * turn * 1000, bad(1))
        sky.see((2 * turn + 1) * 1000, well(1))
    assert len(sky.letters()) == 8
    sky.see(2 * 60 * MINUTE, well(1))
    assert [one.event for one in sky.letters()] == [Event.CLOSE, Event.OPEN, Event.CLOSE], "the newest are kept"

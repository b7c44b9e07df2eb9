"""Who is notified when the configuration, or what a Warren knows, has changed meanwhile; and what is deleted."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.incidents.test_storms import MINUTE, StormScene, bad, ok
from tests.kit.incidents import START, notifier
from warren.incidents.model import Event
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter

HOOK = notifier("hook", send_close=True)


def test_close_is_sent_to_a_notifier_that_does_not_accept_the_group_any_more(
    tmp_path: Path,
) -> None:
    storms = StormScene(tmp_path, HOOK)
    storms.process(0, bad(1))
    storms.router = NotificationRouter([replace(HOOK, group_denylist=".*")])
    storms.start()
    assert storms.process(MINUTE, bad(1)) == []
    assert [each.event for each in storms.process(2 * MINUTE, ok(1))] == [Event.CLOSE]


def test_a_group_that_only_another_warren_has_seen_is_not_gone(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, HOOK)
    storms.process(0, bad(1, 2))
    # Like a Warren that took over and reads only new commits.
    storms.scene.pipeline = IncidentPipeline(
        storms.scene.incident_store, storms.scene.store, 30, storms.router, partially_known={"one"}
    )
    assert storms.process(1_000, bad(1)) == [], "the other group has not committed since"
    assert {each.group for each in storms.process(2_000, {})} == {"g1"}, "a group that it has seen can be gone"
    assert [each.group for each in storms.scene.incidents(is_open=True)] == ["g2"]
    assert [(each.group, each.event) for each in storms.process(3_000, ok(2))] == [("g2", Event.CLOSE)]


def test_sent_reminders_are_deleted_after_a_day(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, HOOK)
    storms.process(0, bad(1))
    storms.process(2 * MINUTE, bad(1))
    for each in storms.notifications():
        storms.scene.incident_store.update_notification(each.key, sent_ms=START)
    storms.process(25 * 60 * MINUTE, bad(1))
    assert [each.event for each in storms.notifications()] == [Event.OPEN, Event.REMINDER]
    assert [each.sent_ms is None for each in storms.notifications()] == [False, True], "only the newest is left"


def test_undelivered_notifications_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.incidents.store.store.MAX_PENDING", 3)
    storms = StormScene(tmp_path, HOOK)
    for turn in range(4):
        storms.process(2 * turn * 1000, bad(1))
        storms.process((2 * turn + 1) * 1000, ok(1))
    assert len(storms.notifications()) == 8
    storms.process(2 * 60 * MINUTE, ok(1))
    assert [each.event for each in storms.notifications()] == [Event.CLOSE, Event.OPEN, Event.CLOSE], (
        "the newest are kept"
    )

"""Storms in the store: many groups get one notification, over restarts, until the last of them is OK."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit.incidents import ERR, OK, SECOND, STALL, START, WARN, IncidentScene, notifier
from warren.config import Notifier, Route
from warren.domain.status import Status
from warren.incidents.model import Event, Notification, StormGroup, StormStatus
from warren.incidents.notifications import MAX_STORM_GROUPS
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter
from warren.incidents.silences import Silence
from warren.incidents.store.database import open_read_only
from warren.incidents.store.operator_actions import write_action
from warren.incidents.store.reader import read_notifications
from warren.incidents.store.rows import read

MINUTE = 60 * SECOND
HOOK = notifier("hook", storm_groups=5, send_close=True, send_interval=300)
Verdicts = Mapping[int, Status]


class StormScene:
    """Groups of one cluster, and their notifications."""

    def __init__(self, root: Path, *policies: Notifier, routes: tuple[Route, ...] = ()) -> None:
        self.scene = IncidentScene(root)
        self.router = NotificationRouter(policies or (HOOK,), routes)
        self._root = root
        self.start()

    def start(self) -> None:
        """Start, or start again with what the store has."""
        self.scene.pipeline = IncidentPipeline(self.scene.incident_store, self.scene.store, 30, self.router)

    def process(self, at_ms: int, groups: Verdicts) -> list[Notification]:
        """Process one more snapshot; returns its notifications."""
        before = {each.key for each in self.notifications()}
        seen = {("one", f"g{index}"): [(status, index)] for index, status in groups.items()}
        self.scene.process(START + at_ms, seen)
        return [each for each in self.notifications() if each.key not in before]

    def notifications(self) -> list[Notification]:
        """All notifications, oldest first."""
        with open_read_only(self._root) as database:
            return read(database, Notification, "ORDER BY due_ms, key")


def bad(*indexes: int, status: Status = STALL) -> dict[int, Status]:
    return dict.fromkeys(indexes, status)


def ok(*indexes: int) -> dict[int, Status]:
    return bad(*indexes, status=OK)


@pytest.fixture
def storms(tmp_path: Path) -> StormScene:
    return StormScene(tmp_path)


def storm_status(notification: Notification) -> StormStatus:
    assert isinstance(notification.result, StormStatus)
    return notification.result


def test_many_groups_at_once_get_one_notification_that_lists_them(storms: StormScene) -> None:
    [notification] = storms.process(0, {**bad(*range(9)), **bad(9, status=WARN), **ok(50)})
    assert (notification.event, notification.cluster, notification.group, notification.reason) == (
        Event.OPEN, "one", "10 groups", "10 groups of one turned bad together",
    )  # fmt: skip
    result = storm_status(notification)
    assert (result.status, result.group_count, result.totallag) == ("ERR", 10, sum(range(10)))
    assert [each.group for each in result.groups] == [f"g{n}" for n in (8, 7, 6, 5, 4, 3, 2, 1, 0, 9)]
    assert result.groups[0] == StormGroup(group="g8", status="ERR", totallag=8, partitions=1)
    assert result.partition_count == 10
    assert result.maxlag is not None
    assert result.maxlag.current_lag == 9
    incidents = storms.scene.incidents()
    assert len(incidents) == 10, "each group has its own incident nevertheless"
    [sent], _ = read_notifications(storms.scene.root, incidents[0].notification_ids, 10)
    assert sent.key == notification.key, "and lists the notification of the storm"


def test_few_groups_are_notified_one_by_one(storms: StormScene) -> None:
    assert {each.group for each in storms.process(0, bad(1, 2, 3, 4))} == {"g1", "g2", "g3", "g4"}


def test_groups_that_turn_bad_one_after_another_become_a_storm(storms: StormScene) -> None:
    assert len(storms.process(0, bad(1, 2))) == 2
    assert len(storms.process(10 * SECOND, bad(1, 2, 3, 4))) == 2
    [notification] = storms.process(20 * SECOND, bad(*range(1, 8)))
    assert (notification.group, notification.event) == ("3 groups", Event.OPEN)


def test_a_growing_storm_is_notified_again_after_a_minute(storms: StormScene) -> None:
    [opened] = storms.process(0, bad(*range(5)))
    assert storms.process(10 * SECOND, bad(*range(500))) == []
    [grown] = storms.process(61 * SECOND, bad(*range(500)))
    assert (grown.event, grown.incident, grown.group) == (Event.WORSE, opened.incident, "500 groups")
    assert len(storm_status(grown).groups) == MAX_STORM_GROUPS
    assert grown.reason == "495 more groups turned bad"


def test_a_storm_closes_with_its_last_group_without_a_close_per_group(storms: StormScene) -> None:
    [opened] = storms.process(0, bad(*range(6)))
    assert storms.process(10 * SECOND, {**bad(1, 2), **ok(0, 3, 4, 5)}) == []
    [closed] = storms.process(20 * SECOND, ok(*range(6)))
    assert (closed.event, closed.incident, closed.group) == (Event.CLOSE, opened.incident, "6 groups")
    assert (closed.result.status, storm_status(closed).groups, storm_status(closed).group_count) == ("OK", [], 6)
    [again] = storms.process(30 * SECOND, bad(1))
    assert (again.event, again.group) == (Event.OPEN, "g1"), "later groups are notified one by one"


def test_a_storm_continues_over_a_restart(storms: StormScene) -> None:
    [opened] = storms.process(0, bad(*range(6), status=WARN))
    storms.start()
    assert storms.process(10 * SECOND, bad(*range(6), status=WARN)) == []
    [worse] = storms.process(20 * SECOND, bad(*range(6), status=ERR))
    storms.start()
    [reminder] = storms.process(6 * MINUTE, {**bad(1, 2, status=ERR), **ok(0, 3, 4, 5)})
    storms.start()
    [closed] = storms.process(7 * MINUTE, ok(*range(6)))
    assert [each.event for each in (worse, reminder, closed)] == [Event.WORSE, Event.REMINDER, Event.CLOSE]
    assert {each.incident for each in (worse, reminder, closed)} == {opened.incident}
    assert reminder.reason == "2 of 6 groups are still bad"
    assert len({each.key for each in storms.notifications()}) == 4


def test_a_notifier_without_storms_is_notified_of_each_group(tmp_path: Path) -> None:
    storms = StormScene(tmp_path, HOOK, notifier("pager", storm_groups=0))
    notifications = storms.process(0, bad(*range(7)))
    assert [each.group for each in notifications if each.notifier == "hook"] == ["7 groups"]
    assert len([each for each in notifications if each.notifier == "pager"]) == 7


def test_the_storm_of_a_removed_notifier_is_deleted(storms: StormScene) -> None:
    storms.process(0, bad(*range(6)))
    storms.router = NotificationRouter([notifier("other")])
    storms.start()
    storms.process(SECOND, bad(*range(6)))
    assert storms.scene.incident_store.open_storms() == []


def test_storms_are_sent_to_the_channel_of_their_team(tmp_path: Path) -> None:
    routes = (
        Route("1", ("hook",), group="g?", team="a", channel="#a"),
        Route("2", ("hook",), group="g1?", team="b", channel="#b"),
    )
    storms = StormScene(tmp_path / "one", routes=routes)
    [notification] = storms.process(0, bad(*range(10, 17)))
    assert (notification.team, notification.channel) == ("b", "#b")
    storms = StormScene(tmp_path / "both", routes=routes)
    sent = storms.process(0, bad(*range(17)))
    assert {(each.team, each.channel, each.group) for each in sent} == {
        ("a", "#a", "10 groups"),
        ("b", "#b", "7 groups"),
    }
    closed = storms.process(SECOND, ok(*range(17)))
    assert sorted((each.event, each.channel) for each in closed) == [(Event.CLOSE, "#a"), (Event.CLOSE, "#b")]


def test_silenced_groups_of_a_storm_are_not_counted_or_listed(storms: StormScene, tmp_path: Path) -> None:
    storms.process(0, bad(*range(6)))
    write_action(tmp_path, Silence("s", "*", "g[0-9]", 0, START + 60 * MINUTE, "ann", "a release"))
    write_action(tmp_path, Silence("t", "*", "g1", 0, START + 60 * MINUTE, "ann", "a release"))
    [reminder] = storms.process(6 * MINUTE, bad(*range(6)))
    assert reminder.group == "5 groups"
    assert "g1" not in [each.group for each in storm_status(reminder).groups]

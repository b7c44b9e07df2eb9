"""OpenStorms in the book: many groups at once are one letter, over restarts, until the last of them is well."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit.incidents import ERR, OK, SECOND, STALL, START, WARN, IncidentScene
from warren.config import Route
from warren.domain.status import Status
from warren.incidents.model import Event, Notification, NotifierPolicy, StormGroup, StormStatus
from warren.incidents.notifications import MAX_STORM_GROUPS
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter, NotifierFilter
from warren.incidents.silences import Silence
from warren.incidents.store.database import open_read_only
from warren.incidents.store.operator_actions import write_action
from warren.incidents.store.reader import read_notifications
from warren.incidents.store.rows import from_row, select

MINUTE = 60 * SECOND
HOOK = NotifierPolicy("hook", storm_threshold=5, wants_close=True, send_interval_ms=5 * MINUTE)
Verdicts = Mapping[int, Status]


class Sky:
    """Groups of one cluster, and the letters about them."""

    def __init__(self, root: Path, *listeners: NotifierPolicy, routes: tuple[Route, ...] = ()) -> None:
        self.scene = IncidentScene(root)
        self.router = NotificationRouter([NotifierFilter(one) for one in listeners or (HOOK,)], routes)
        self._root = root
        self.begin()

    def begin(self) -> None:
        """Start, or start again with what the book holds."""
        self.scene.pipeline = IncidentPipeline(self.scene.incident_store, self.scene.store, 30, self.router)

    def see(self, at_ms: int, groups: Verdicts) -> list[Notification]:
        """One more snapshot; gives the letters it led to."""
        before = {one.key for one in self.letters()}
        seen = {("one", f"g{number}"): [(status, number)] for number, status in groups.items()}
        self.scene.process(START + at_ms, seen)
        return [one for one in self.letters() if one.key not in before]

    def letters(self) -> list[Notification]:
        """All letters, in their order."""
        with open_read_only(self._root) as book:
            assert book is not None
            query = f"{select(Notification)} ORDER BY due_ms, key"
            return [from_row(Notification, row) for row in book.execute(query)]


def bad(*numbers: int, status: Status = STALL) -> dict[int, Status]:
    return dict.fromkeys(numbers, status)


def well(*numbers: int) -> dict[int, Status]:
    return bad(*numbers, status=OK)


@pytest.fixture
def sky(tmp_path: Path) -> Sky:
    return Sky(tmp_path)


def storm_status(letter: Notification) -> StormStatus:
    assert isinstance(letter.result, StormStatus)
    return letter.result


def test_many_groups_at_once_are_one_letter_with_their_count_and_list(sky: Sky) -> None:
    [letter] = sky.see(0, {**bad(*range(9)), **bad(9, status=WARN), **well(50)})
    assert (letter.event, letter.cluster, letter.group, letter.reason) == (
        Event.OPEN, "one", "10 groups", "10 groups of one turned bad together",
    )  # fmt: skip
    result = storm_status(letter)
    assert (result.status, result.group_count, result.totallag) == ("ERR", 10, sum(range(10)))
    assert [one.group for one in result.groups] == [f"g{n}" for n in (8, 7, 6, 5, 4, 3, 2, 1, 0, 9)]
    assert result.groups[0] == StormGroup(group="g8", status="ERR", totallag=8, partitions=1)
    assert result.partition_count == 10
    assert result.maxlag is not None
    assert result.maxlag.current_lag == 9
    entries = sky.scene.incidents()
    assert len(entries) == 10, "each group has its own incident all the same"
    [told], _ = read_notifications(sky.scene.root, entries[0].notification_ids, 10)
    assert told.key == letter.key, "and shows how it was told of"


def test_few_groups_are_told_of_one_by_one(sky: Sky) -> None:
    assert {one.group for one in sky.see(0, bad(1, 2, 3, 4))} == {"g1", "g2", "g3", "g4"}


def test_groups_that_turn_bad_one_after_another_become_a_storm(sky: Sky) -> None:
    assert len(sky.see(0, bad(1, 2))) == 2
    assert len(sky.see(10 * SECOND, bad(1, 2, 3, 4))) == 2
    [letter] = sky.see(20 * SECOND, bad(*range(1, 8)))
    assert (letter.group, letter.event) == ("3 groups", Event.OPEN)


def test_a_storm_that_grows_is_told_of_again_after_a_minute(sky: Sky) -> None:
    [opened] = sky.see(0, bad(*range(5)))
    assert sky.see(10 * SECOND, bad(*range(500))) == []
    [grown] = sky.see(61 * SECOND, bad(*range(500)))
    assert (grown.event, grown.incident, grown.group) == (Event.WORSE, opened.incident, "500 groups")
    assert len(storm_status(grown).groups) == MAX_STORM_GROUPS
    assert grown.reason == "495 more groups turned bad"


def test_it_is_over_when_its_last_group_is_well_and_nobody_hears_of_the_others(sky: Sky) -> None:
    [opened] = sky.see(0, bad(*range(6)))
    assert sky.see(10 * SECOND, {**bad(1, 2), **well(0, 3, 4, 5)}) == []
    [closed] = sky.see(20 * SECOND, well(*range(6)))
    assert (closed.event, closed.incident, closed.group) == (Event.CLOSE, opened.incident, "6 groups")
    assert (closed.result.status, storm_status(closed).groups, storm_status(closed).group_count) == ("OK", [], 6)
    [again] = sky.see(30 * SECOND, bad(1))
    assert (again.event, again.group) == (Event.OPEN, "g1"), "what comes after is told of as ever"


def test_a_storm_goes_on_over_a_restart(sky: Sky) -> None:
    [opened] = sky.see(0, bad(*range(6), status=WARN))
    sky.begin()
    assert sky.see(10 * SECOND, bad(*range(6), status=WARN)) == []
    [worse] = sky.see(20 * SECOND, bad(*range(6), status=ERR))
    sky.begin()
    [reminder] = sky.see(6 * MINUTE, {**bad(1, 2, status=ERR), **well(0, 3, 4, 5)})
    sky.begin()
    [closed] = sky.see(7 * MINUTE, well(*range(6)))
    assert [one.event for one in (worse, reminder, closed)] == [Event.WORSE, Event.REMINDER, Event.CLOSE]
    assert {one.incident for one in (worse, reminder, closed)} == {opened.incident}
    assert reminder.reason == "2 of 6 groups are still bad"
    assert len({one.key for one in sky.letters()}) == 4


def test_who_wants_each_group_gets_each(tmp_path: Path) -> None:
    sky = Sky(tmp_path, HOOK, NotifierPolicy("pager", storm_threshold=0))
    letters = sky.see(0, bad(*range(7)))
    assert [one.group for one in letters if one.notifier == "hook"] == ["7 groups"]
    assert len([one for one in letters if one.notifier == "pager"]) == 7


def test_a_storm_of_a_notifier_that_is_gone_is_forgotten(sky: Sky) -> None:
    sky.see(0, bad(*range(6)))
    sky.router = NotificationRouter([NotifierFilter(NotifierPolicy("other"))])
    sky.begin()
    sky.see(SECOND, bad(*range(6)))
    assert sky.scene.incident_store.open_storms() == []


def test_a_storm_of_one_team_is_told_where_that_team_is(tmp_path: Path) -> None:
    routes = (
        Route("1", ("hook",), group="g?", team="a", channel="#a"),
        Route("2", ("hook",), group="g1?", team="b", channel="#b"),
    )
    sky = Sky(tmp_path / "one", routes=routes)
    [letter] = sky.see(0, bad(*range(10, 17)))
    assert (letter.team, letter.channel) == ("b", "#b")
    sky = Sky(tmp_path / "both", routes=routes)
    told = sky.see(0, bad(*range(17)))
    assert {(one.team, one.channel, one.group) for one in told} == {("a", "#a", "10 groups"), ("b", "#b", "7 groups")}
    closed = sky.see(SECOND, well(*range(17)))
    assert sorted((one.event, one.channel) for one in closed) == [(Event.CLOSE, "#a"), (Event.CLOSE, "#b")]


def test_what_is_silenced_in_a_storm_is_not_counted_or_listed(sky: Sky, tmp_path: Path) -> None:
    sky.see(0, bad(*range(6)))
    write_action(tmp_path, Silence("s", "*", "g[0-9]", 0, START + 60 * MINUTE, "ann", "a release"))
    write_action(tmp_path, Silence("t", "*", "g1", 0, START + 60 * MINUTE, "ann", "a release"))
    [reminder] = sky.see(6 * MINUTE, bad(*range(6)))
    assert reminder.group == "5 groups"
    assert "g1" not in [one.group for one in storm_status(reminder).groups]

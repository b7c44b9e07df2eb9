"""A cluster that was never seen before: the first verdicts are those of an observer who has always watched it."""

from pathlib import Path

import pytest

from tests.kit.world import HOUR, MINUTE, TRIGGER, World
from warren.domain.status import Status
from warren.domain.time_lag import TimeLagMethod


def statuses(world: World) -> dict[str, Status]:
    return {name: Status(row["worst_status"]) for name, row in world.published().items()}


def expected(world: World) -> dict[str, Status]:
    return {name: group.life(world.now_ms).status for name, group in world.groups.items()}


@pytest.mark.parametrize("unwatched_ms", [20 * MINUTE, 5 * HOUR], ids=["20 minutes", "5 hours"])
def test_the_first_verdicts_of_a_cold_start_are_right(tmp_path: Path, unwatched_ms: int) -> None:
    world = World(tmp_path)
    world.population()
    world.pass_time(unwatched_ms)
    world.trigger()
    assert world.unknown() == set()
    assert statuses(world) == expected(world)
    for _ in range(6):
        world.trigger()
        assert statuses(world) == expected(world)


def test_time_lag_is_known_from_the_first_cycle_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.population()
    world.pass_time(2 * HOUR)
    world.trigger()
    rows = world.published()
    # They stopped five minutes after the start, or less than a commit before.
    behind_s = (world.now_ms - world.start_ms - 5 * MINUTE) / 1000
    for name in (name for name in rows if name.startswith("stopped")):
        assert rows[name]["behind_method"] == TimeLagMethod.RECORD_TIME
        assert rows[name]["seconds_behind"] == pytest.approx(behind_s, rel=0.1)
    for name in (name for name in rows if name.startswith("lagging")):
        # Between 350 and 480 messages at 20 per second, and what was produced since the last commit.
        assert 15 <= rows[name]["seconds_behind"] <= 24 + TRIGGER / 1000 + 5


def test_without_heads_of_the_past_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.kit.world.AGES_S", ())
    world = World(tmp_path)
    world.population()
    world.pass_time(20 * MINUTE)
    world.trigger()
    bad = {name for name, status in statuses(world).items() if status != Status.OK}
    assert all(status == expected(world)[name] for name, status in statuses(world).items() if name in bad)

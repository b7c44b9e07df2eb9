"""A cluster that was not watched, before the start or for a while: verdicts are right as soon as it is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.kit.world import DAY, HOUR, MINUTE, SECOND, TRIGGER, GroupLife, World
from warren.domain.arrays import Ints
from warren.domain.status import Status
from warren.domain.time_lag import TimeLagMethod
from warren.pipeline.past_head_reads import MIN_PAUSE_MS


def statuses(world: World) -> dict[str, Status]:
    return {name: Status(row["worst_status"]) for name, row in world.published().items()}


def expected(world: World) -> dict[str, Status]:
    return {name: group.life(world.now_ms).status for name, group in world.groups.items()}


def alarms(world: World) -> dict[str, Status]:
    return {name: status for name, status in statuses(world).items() if status != Status.OK}


@pytest.mark.parametrize(
    ("refresh_s", "commits_s", "unwatched_ms"),
    [(10, 10, 20 * MINUTE), (10, 10, 5 * HOUR), (5, 5, 20 * MINUTE), (1, 1, 20 * MINUTE), (1, 20, 20 * MINUTE)],
    ids=["every 10 s", "every 10 s, after 5 hours", "every 5 s", "every second", "every second, few commits"],
)
def test_the_first_verdicts_of_a_cold_start_are_right(
    tmp_path: Path, unwatched_ms: int, commits_s: int, refresh_s: int
) -> None:
    world = World(tmp_path, partitions=2, refresh_s=refresh_s)
    world.population(interval_ms=commits_s * SECOND)
    world.pass_time(unwatched_ms)
    world.trigger(refresh_s * SECOND)
    assert world.unknown() == set()
    assert statuses(world) == expected(world)
    for _ in range(12):
        world.trigger(refresh_s * SECOND)
        assert statuses(world) == expected(world)
    assert len(world.asked_times) == 1


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
    monkeypatch.setattr("warren.pipeline.past_head_reads.AGES_S", ())
    world = World(tmp_path)
    world.population()
    world.pass_time(20 * MINUTE)
    world.trigger()
    assert all(status == expected(world)[name] for name, status in alarms(world).items())


def out_of_order(appended_ms: Ints) -> Ints:
    """Every other record was made up to a minute before."""
    late_ms = np.random.default_rng(3).integers(0, MINUTE, appended_ms.size)
    return np.where(np.arange(appended_ms.size) % 2 == 0, appended_ms, appended_ms - late_ms)


def resent(appended_ms: Ints) -> Ints:
    """A mirror stood for ten minutes, and then sent them all: records of late look as any others."""
    stood_from_ms = appended_ms[0] + 30 * MINUTE
    is_resent = (appended_ms > stood_from_ms + 10 * MINUTE) & (appended_ms < stood_from_ms + 11 * MINUTE)
    return np.where(is_resent, stood_from_ms + (appended_ms - stood_from_ms - 10 * MINUTE) * 11, appended_ms)


STAMPS: dict[str, Callable[[Ints], Ints]] = {
    "a mirror, 8 s behind": lambda appended_ms: appended_ms - 8 * SECOND,
    "a mirror, 20 s behind": lambda appended_ms: appended_ms - 20 * SECOND,
    "a mirror, an hour behind": lambda appended_ms: appended_ms - HOUR,
    "a mirror that falls behind": lambda appended_ms: appended_ms[0] + (appended_ms - appended_ms[0]) // 2,
    "a mirror that has caught up": lambda appended_ms: appended_ms[-1] - (appended_ms[-1] - appended_ms) * 2,
    "a mirror that stood still": resent,
    "a replay of days ago": lambda appended_ms: appended_ms - 3 * DAY,
    "a replay, ten times as fast": lambda appended_ms: appended_ms[0] - 3 * DAY + (appended_ms - appended_ms[0]) * 10,
    "out of order": out_of_order,
    "producers 5 s ahead": lambda appended_ms: appended_ms + 5 * SECOND,
    "producers an hour ahead": lambda appended_ms: appended_ms + HOUR,
    "one record of the year 2099": lambda appended_ms: np.where(
        np.arange(appended_ms.size) == appended_ms.size // 2, 4_000_000_000_000, appended_ms
    ),
}


@pytest.mark.parametrize("refresh_s", [10, 1], ids="every {} s".format)
@pytest.mark.parametrize("stamp", STAMPS.values(), ids=STAMPS)
def test_wrong_timestamps_make_no_false_alarm(tmp_path: Path, stamp: Callable[[Ints], Ints], refresh_s: int) -> None:
    world = World(tmp_path, partitions=1, refresh_s=refresh_s)
    world.population(interval_ms=refresh_s * SECOND)
    for topic in world.topics.values():
        topic.stamp = stamp
    world.pass_time(41 * MINUTE)
    for _ in range(12):
        world.trigger(refresh_s * SECOND)
        assert all(status == expected(world)[name] for name, status in alarms(world).items())


@pytest.mark.parametrize("live_rate", [0.0, 0.05, 2.0], ids="{} live records per second".format)
@pytest.mark.parametrize("age_ms", [MINUTE, 300 * DAY], ids=["a minute", "300 days"])
@pytest.mark.parametrize("refresh_s", [10, 1], ids="every {} s".format)
def test_an_import_just_before_the_start_makes_no_false_alarm(
    tmp_path: Path, live_rate: float, age_ms: int, refresh_s: int
) -> None:
    """A group that has read everything has not stopped or stalled because of records that came just now."""
    world = World(tmp_path, partitions=1, refresh_s=refresh_s)
    world.add("healthy", "healthy", Status.OK, interval_ms=refresh_s * SECOND, rate=live_rate)
    world.add("silent", "healthy", Status.OK, interval_ms=refresh_s * SECOND, rate=live_rate)
    world.groups["silent"].lives.append(GroupLife(world.now_ms + 10 * MINUTE, "stopped", Status.OK))
    world.pass_time(10 * MINUTE)
    for topic in world.topics.values():
        topic.rate = 0.0  # what the silent ones have read is all there is
    world.pass_time(5 * MINUTE)
    for topic in world.topics.values():
        topic.rate = live_rate
    world.pass_time(5 * SECOND)
    for topic in world.topics.values():
        topic.import_records(5_000, world.now_ms, world.now_ms - age_ms - 2 * HOUR, world.now_ms - age_ms)
    world.trigger(SECOND)
    assert alarms(world) == {}


def test_heads_of_a_gap_are_asked_for_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.population()
    world.pass_time(20 * MINUTE)
    for _ in range(30):
        world.trigger()
    last_ms = world.now_ms
    for name in ("healthy-0", "healthy-1", "lagging-2"):
        world.groups[name].turn(world.now_ms + 10 * MINUTE, "stopped", Status.STOP)
    world.groups["healthy-2"].turn(world.now_ms + 10 * MINUTE, "stalled", Status.STALL)
    world.groups["lagging-3"].turn(world.now_ms + 10 * MINUTE, "slow", Status.WARN)
    world.pass_time(30 * MINUTE)
    world.start()
    for _ in range(20):
        world.trigger()
        assert statuses(world) == expected(world)
    assert len(world.asked_times) == 2
    assert last_ms < min(world.asked_times[1]) <= last_ms + 15 * MINUTE


@pytest.mark.parametrize("gap_ms", [0, 20 * SECOND, 40 * SECOND])
def test_heads_of_a_short_gap_are_not_asked_for(tmp_path: Path, gap_ms: int) -> None:
    world = World(tmp_path)
    world.population()
    world.pass_time(20 * MINUTE)
    for _ in range(5):
        world.trigger()
    world.pass_time(gap_ms)
    world.start()
    for _ in range(5):
        world.trigger()
    assert len(world.asked_times) == 1


def test_a_cluster_that_comes_and_goes_is_not_asked_each_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.population()
    world.pass_time(20 * MINUTE)
    world.trigger()
    for _ in range(8):
        world.error = "gone"
        for _ in range(7):
            world.trigger()
        world.error = None
        world.trigger()
    first, second, third = (times_ms[0] for times_ms in world.asked_times)
    assert min(third - second, second - first) >= MIN_PAUSE_MS
    for _ in range(15):
        world.trigger()
    assert statuses(world) == expected(world)


def test_a_clock_that_is_set_wrong_makes_no_false_alarm(tmp_path: Path) -> None:
    """After a step forward the samples have a gap, and heads are asked for times that have not come yet."""
    world = World(tmp_path)
    world.population()
    world.pass_time(20 * MINUTE)
    for step_ms in (0, 2 * HOUR, -HOUR, 0):
        world.wall_error_ms = step_ms
        for _ in range(12):
            world.trigger()
            assert all(status == expected(world)[name] for name, status in alarms(world).items())

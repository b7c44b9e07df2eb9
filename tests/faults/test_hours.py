"""Hours in which clocks, leaders, transactions and machines misbehave.

Every trigger, the verdict of every group is compared with what an all-knowing observer says.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.world import DAY, HOUR, INTERVALS, MINUTE, TRIGGER, OffsetsPartition, World
from warren.config.pipeline import Storage
from warren.domain.status import Status

YEAR_9999 = 253_402_300_799_000
RECENT = INTERVALS * TRIGGER + 2 * TRIGGER


def pass_triggers(world: World, duration_ms: int, may_be_unknown: Callable[[str], bool] = lambda _: False) -> None:
    """Let time pass; no verdict may be wrong, and only some groups may be unknown."""
    for _ in range(duration_ms // TRIGGER):
        wrong = world.trigger()
        assert wrong == {}, f"after {(world.now_ms - world.start_ms) / MINUTE:.1f} min"
        unknown = {name for name in world.unknown() if not may_be_unknown(name)}
        assert unknown == set(), f"after {(world.now_ms - world.start_ms) / MINUTE:.1f} min"


def anybody(_: str) -> bool:
    return True


def on(*numbers: int) -> Callable[[str], bool]:
    return lambda name: int(name.rsplit("-", 1)[1]) in numbers


def assert_all_right(world: World) -> None:
    """Every group has the observer's verdict, without any allowance for delays."""
    statuses = {name: Status(row["worst_status"]) for name, row in world.published().items()}
    assert statuses == {name: group.life(world.now_ms).status for name, group in world.groups.items()}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("origin"))
    world.population()
    pass_triggers(world, 9 * MINUTE)
    assert_all_right(world)
    return world


@pytest.fixture
def settled(origin: World, tmp_path: Path) -> World:
    """A world in which every group has shown what it is."""
    return origin.copy(tmp_path)


@pytest.mark.parametrize("error_ms", [10 * MINUTE, -10 * MINUTE, HOUR, -DAY, YEAR_9999], ids=str)
def test_one_client_stamps_its_commits_with_a_wrong_time(settled: World, error_ms: int) -> None:
    settled.groups["healthy-1"].stamp = lambda now_ms: min(now_ms + error_ms, YEAR_9999)
    pass_triggers(settled, 2 * MINUTE)
    settled.groups["healthy-1"].stamp = None
    pass_triggers(settled, 15 * MINUTE)
    assert_all_right(settled)
    assert settled.manifest.clusters["c"].implausible_commits > 0


@pytest.mark.parametrize("error_ms", [10 * MINUTE, -10 * MINUTE, HOUR, -HOUR], ids=str)
def test_a_broker_whose_clock_is_wrong_takes_over_and_gives_back(settled: World, error_ms: int) -> None:
    settled.broker_errors_ms[2] = error_ms
    pass_triggers(settled, 5 * MINUTE)
    settled.partitions[0].leader = 2
    pass_triggers(settled, 5 * MINUTE)
    settled.partitions[0].leader = 0
    settled.broker_errors_ms[2] = 0
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


@pytest.mark.parametrize("step_ms", [-HOUR, HOUR, -30 * MINUTE, 8 * DAY], ids=str)
def test_the_clock_of_this_machine_is_set_and_set_right_again(settled: World, step_ms: int) -> None:
    settled.wall_error_ms = step_ms
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)
    settled.wall_error_ms = 0
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)
    assert settled.manifest.clock_steps == 2


def test_the_clock_is_ahead_by_more_than_groups_are_kept_for_one_cycle(settled: World) -> None:
    settled.wall_error_ms = 30 * DAY
    pass_triggers(settled, TRIGGER)
    settled.wall_error_ms = 0
    pass_triggers(settled, 2 * MINUTE)
    assert_all_right(settled)


def test_the_clock_was_set_back_while_the_machine_was_off(settled: World) -> None:
    settled.wall_error_ms, settled.steady_error_ms, settled.boot_id = -HOUR, -2 * DAY, "another boot"
    settled.start()
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


@pytest.mark.parametrize("does_clock_stop", [False, True])
def test_the_machine_is_suspended(settled: World, does_clock_stop: bool) -> None:
    settled.pass_time(30 * MINUTE)
    settled.steady_error_ms -= 30 * MINUTE if does_clock_stop else 0
    pass_triggers(settled, 10 * MINUTE)
    assert_all_right(settled)


def test_a_group_that_dies_while_the_machine_is_suspended(settled: World) -> None:
    settled.groups["lagging-2"].turn(settled.now_ms + 10 * MINUTE, "stopped", Status.STOP)
    settled.pass_time(30 * MINUTE)
    # How far the topic had grown when the group last committed is known only after as long as heads count as recent.
    while wrong := settled.trigger():
        assert wrong == {"lagging-2": "OK, not STOP"}
        assert settled.now_ms < settled.start_ms + 39 * MINUTE + RECENT
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


def test_a_partition_without_a_leader(settled: World) -> None:
    for name in ("stopped-0", "stopped-1", "lagging-2", "stalled-3"):
        settled.topics[name].leaderless = True
    lags = {name: row["totallag"] for name, row in settled.published().items()}
    for _ in range(60):
        settled.trigger()
        published = settled.published()
        assert Status(published["stopped-0"]["worst_status"]) == Status.STOP
        assert Status(published["stalled-3"]["worst_status"]) == Status.STALL
        assert published["stopped-0"]["totallag"] == lags["stopped-0"]
    for topic in settled.topics.values():
        topic.leaderless = False
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


def test_an_open_transaction_holds_back_an_offsets_partition(settled: World) -> None:
    settled.partitions[1].held_at = settled.partitions[1].end
    began_ms = settled.now_ms
    pass_triggers(settled, 20 * MINUTE, on(1))
    assert settled.unknown() == {name for name in settled.groups if on(1)(name)}
    since = {row["unknown_since_ms"] for name, row in settled.published().items() if on(1)(name)}
    assert since == {began_ms}
    settled.partitions[1].held_at = None
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


def test_short_transactions_one_after_the_other_hold_back_nothing(settled: World) -> None:
    for _ in range(60):
        settled.partitions[1].held_at = settled.partitions[1].end - 3
        pass_triggers(settled, TRIGGER)
    assert_all_right(settled)


def test_a_group_dies_while_its_offsets_partition_is_held_back(settled: World) -> None:
    settled.partitions[1].held_at = settled.partitions[1].end
    settled.groups["lagging-1"].turn(settled.now_ms + 5 * MINUTE, "stopped", Status.STOP)
    pass_triggers(settled, 20 * MINUTE, on(1))
    settled.partitions[1].held_at = None
    pass_triggers(settled, 2 * MINUTE)
    assert_all_right(settled)


def test_a_backlog_that_is_read_in_parts(tmp_path: Path) -> None:
    world = World(tmp_path, max_records=40)
    world.population()
    pass_triggers(world, 9 * MINUTE, anybody)
    world.pass_time(30 * MINUTE)
    world.trigger()
    assert not world.manifest.is_ready
    cycles = 0
    while not world.manifest.is_ready:
        assert world.unknown() == set(world.groups), "nothing is judged half-read"
        world.trigger(duration_ms=10)
        cycles += 1
    assert cycles > 10
    pass_triggers(world, 3 * MINUTE)
    assert_all_right(world)


def test_the_offsets_topic_gets_more_partitions(settled: World) -> None:
    """Groups move to partitions whose offsets start at 0."""
    settled.partitions += [OffsetsPartition(0), OffsetsPartition(1)]
    pass_triggers(settled, MINUTE)
    for name in settled.homes:
        if on(1, 2)(name):
            settled.homes[name] += 3
    pass_triggers(settled, 10 * MINUTE)
    assert_all_right(settled)


def test_an_offsets_partition_without_a_leader(settled: World) -> None:
    settled.silent_partitions = {2}
    pass_triggers(settled, 10 * MINUTE, on(2))
    assert settled.unknown() == {name for name in settled.groups if on(2)(name)}
    settled.silent_partitions = set()
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


def test_the_whole_cluster_is_away(settled: World) -> None:
    settled.error = "no route to host"
    pass_triggers(settled, 10 * MINUTE, anybody)
    settled.error = None
    pass_triggers(settled, 5 * MINUTE)
    assert_all_right(settled)


def test_groups_are_deleted_during_an_outage(settled: World) -> None:
    settled.error = "no route to host"
    settled.trigger()
    settled.delete("slow-1")
    settled.delete("stopped-2", are_tombstones_gone=True)
    settled.pass_time(25 * HOUR)
    settled.error = None
    settled.trigger()
    assert "slow-1" not in settled.published()
    for _ in range(5):
        settled.trigger()
    assert set(settled.published()) == set(settled.groups), "the brokers were asked"


def test_a_restart_goes_on_where_it_was(settled: World) -> None:
    settled.pass_time(20 * MINUTE)
    settled.start()
    pass_triggers(settled, 2 * MINUTE)
    assert_all_right(settled)


def test_filters_apply_to_what_is_known_already(settled: World) -> None:
    settled.storage = Storage(intervals=INTERVALS, group_denylist="^stopped")
    settled.start()
    settled.trigger()
    assert not [name for name in settled.published() if name.startswith("stopped")]
    settled.storage = Storage(intervals=INTERVALS, group_allowlist="^(healthy|slow)")
    settled.start()
    settled.trigger()
    assert {name.split("-")[0] for name in settled.published()} == {"healthy", "slow"}


@pytest.mark.long
def test_an_ordinary_day(settled: World) -> None:
    pass_triggers(settled, DAY)
    assert_all_right(settled)

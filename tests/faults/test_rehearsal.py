"""Faults of all kinds mixed with ordinary life, at random: no verdict is wrong for longer than the documented delay.

Nothing is lost either, and nothing grows.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.world import HOUR, INTERVALS, MINUTE, SECOND, TRIGGER, OffsetsPartition, SimulatedGroup, World
from warren.domain.status import Status

LIVES = {
    "healthy": Status.OK,
    "lagging": Status.OK,
    "slow": Status.WARN,
    "stalled": Status.STALL,
    "stopped": Status.STOP,
}
RECENT = (INTERVALS + 2) * TRIGGER
"""How long heads count as recent: the delay that a gap in sampling adds."""
MAX_HEAD_FILES = 300
"""A day of head samples, and those of the past of each gap."""
MAX_OTHER_FILES = 200
MAX_MANIFEST_BYTES = 200_000


class Rehearsal:
    """One world, what is wrong with it at the moment, and since when each verdict has been wrong."""

    def __init__(self, root: Path, seed: int) -> None:
        self.world = World(root, seed=seed)
        self.random = random.Random(seed)
        self.wrong_since: dict[str, int] = {}
        self.excused_until: dict[str, int] = {}
        self.log: list[str] = []
        for number in range(12):
            self.new_group(number)
        self.groups = 12

    def new_group(self, number: int) -> None:
        kind = self.random.choice(list(LIVES))
        interval_ms = self.random.choice([TRIGGER, TRIGGER, 3 * SECOND, MINUTE])
        self.world.add(f"group-{number}", "lagging", Status.OK, interval_ms).turn(
            self.world.now_ms + 5 * MINUTE, kind, LIVES[kind]
        )

    def trigger(self) -> None:
        """Perhaps something happens; then a cycle runs, and its verdicts are compared."""
        if self.random.random() < 0.15:
            event = self.random.choice(EVENTS)
            self.log.append(f"{(self.world.now_ms - self.world.start_ms) // SECOND} s: {event.__name__}")
            event(self)
        wrong = self.world.trigger()
        now_ms = self.world.now_ms
        self.wrong_since = {name: self.wrong_since.get(name, now_ms) for name in wrong}
        for name, since_ms in self.wrong_since.items():
            allowed_ms = self.world.groups[name].delay_ms + RECENT
            excused_ms = self.excused_until.get(name, 0)
            assert now_ms - max(since_ms, excused_ms) <= allowed_ms, (name, wrong[name], self.log[-12:])

    def trigger_quietly(self) -> None:
        """A cycle in which nothing happens, and verdicts may still be on their way."""
        self.world.trigger()

    def excuse(self, group: SimulatedGroup) -> None:
        """What is true of a group at the moment is a matter of opinion."""
        self.excused_until[group.name] = self.world.now_ms + group.delay_ms

    def any_group(self) -> SimulatedGroup:
        return self.random.choice(list(self.world.groups.values()))


def another_life(run: Rehearsal) -> None:
    group, kind = run.any_group(), run.random.choice(list(LIVES))
    group.turn(run.world.now_ms, kind, LIVES[kind])
    run.excuse(group)


def another_group(run: Rehearsal) -> None:
    if len(run.world.groups) < 30:
        run.new_group(run.groups)
        run.excuse(run.world.groups[f"group-{run.groups}"])
        run.groups += 1


def a_group_is_deleted(run: Rehearsal) -> None:
    if len(run.world.groups) > 8:
        run.world.delete(run.any_group().name)


def the_clock_is_set(run: Rehearsal) -> None:
    run.world.wall_error_ms = run.random.choice([0, HOUR, -HOUR, 8 * 24 * HOUR, -5 * MINUTE])


def a_broker_clock_is_wrong(run: Rehearsal) -> None:
    broker = run.random.randrange(3)
    run.world.broker_errors_ms[broker] = run.random.choice([0, 0, HOUR, -HOUR, 20 * SECOND])


def a_leader_moves(run: Rehearsal) -> None:
    run.random.choice(run.world.partitions).leader = run.random.randrange(3)


def a_client_stamps_wrongly(run: Rehearsal) -> None:
    error_ms = run.random.choice([HOUR, -HOUR, 400 * 24 * HOUR])
    run.any_group().stamp = None if run.random.random() < 0.6 else lambda now_ms: now_ms + error_ms


def a_topic_has_no_leader(run: Rehearsal) -> None:
    group = run.any_group()
    topic = run.world.topics[group.topic]
    topic.leaderless = not topic.leaderless
    run.excused_until[group.name] = 2**60 if topic.leaderless else run.world.now_ms + group.delay_ms


def a_transaction_hangs(run: Rehearsal) -> None:
    partition = run.random.choice(run.world.partitions)
    partition.held_at = partition.end if partition.held_at is None else None


def an_offsets_partition_has_no_leader(run: Rehearsal) -> None:
    run.world.silent_partitions ^= {run.random.randrange(len(run.world.partitions))}


def the_cluster_is_away(run: Rehearsal) -> None:
    run.world.error = None if run.world.error else "no route to host"


def the_machine_is_suspended(run: Rehearsal) -> None:
    duration_ms = run.random.randrange(20 * MINUTE)
    run.world.pass_time(duration_ms)
    if run.random.random() < 0.5:
        run.world.steady_error_ms -= duration_ms
    for group in run.world.groups.values():
        run.excuse(group)


def warren_restarts(run: Rehearsal) -> None:
    run.world.pass_time(run.random.randrange(5 * MINUTE))
    run.world.start()
    for group in run.world.groups.values():
        run.excuse(group)


def the_offsets_topic_grows(run: Rehearsal) -> None:
    world = run.world
    if len(world.partitions) < 10:
        world.partitions.append(OffsetsPartition(run.random.randrange(3)))
        world.homes[run.any_group().name] = len(world.partitions) - 1


def all_is_mended(run: Rehearsal) -> None:
    world = run.world
    world.error, world.silent_partitions, world.wall_error_ms = None, set(), 0
    world.broker_errors_ms = dict.fromkeys(range(3), 0)
    for partition in world.partitions:
        partition.held_at = None
    for group in world.groups.values():
        group.stamp = None
        if world.topics[group.topic].leaderless:
            world.topics[group.topic].leaderless = False
            run.excuse(group)


EVENTS: list[Callable[[Rehearsal], None]] = [
    another_life, another_life, another_group, a_group_is_deleted, the_clock_is_set, a_broker_clock_is_wrong,
    a_leader_moves, a_client_stamps_wrongly, a_topic_has_no_leader, a_transaction_hangs,
    an_offsets_partition_has_no_leader, the_cluster_is_away, the_machine_is_suspended, warren_restarts,
    the_offsets_topic_grows, all_is_mended, all_is_mended,
]  # fmt: skip


def rehearse(run: Rehearsal, triggers: int) -> None:
    world = run.world
    for _ in range(triggers):
        run.trigger()
        files = [path for path in world.root.rglob("*") if path.is_file()]
        head_files = [path for path in files if path.parent.name == "heads"]
        assert len(head_files) <= MAX_HEAD_FILES
        assert len(files) - len(head_files) <= MAX_OTHER_FILES
        assert max(path.stat().st_size for path in files if path.suffix == ".json") <= MAX_MANIFEST_BYTES
    all_is_mended(run)
    for group in world.groups.values():
        group.turn(world.now_ms, group.life(world.now_ms).kind, group.life(world.now_ms).status)
    for _ in range((max(group.delay_ms for group in world.groups.values()) + RECENT) // TRIGGER):
        run.trigger_quietly()
    assert (world.contradictions(), world.unknown()) == ({}, set())
    committed = {name for name, group in world.groups.items() if group.commits}
    assert set(world.published()) == committed, "nothing is lost, and nothing is left over"


@pytest.mark.parametrize("seed", range(3))
def test_some_minutes_of_faults(tmp_path: Path, seed: int) -> None:
    rehearse(Rehearsal(tmp_path, seed), 120)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 105))
def test_two_thousand_triggers_of_faults(tmp_path: Path, seed: int) -> None:
    rehearse(Rehearsal(tmp_path, seed), 2_000)

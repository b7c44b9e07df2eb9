"""kill -9 under load, at named instants and at random: the windows stay those of the offsets topic itself."""

import bisect
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.kit.faults import environment
from tests.kit.kafka import create_timed_topics
from tests.kit.reference import Reference, assert_windows_equal, read_topic
from tests.kit.warrens import Recorder, Seen, WarrenRun, sections_for, wait_for
from warren.demo.broker import Kafka
from warren.demo.workload.committing_groups import AssignOnly, Slow
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Healthy, Pair, Transactional
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics
from warren.domain.windows import UNKNOWN

pytestmark = pytest.mark.timeout(1200)

TRIGGER_S = 0.5
MIN_DISTANCE_S = 1
RATE = 300.0
TOPIC, OUTPUT = "crashes", "crashes-output"
FILES = ("partitions", "groups", "heads", "layouts")
FAULT_POINTS = (
    *(f"{when}-{kind}" for kind in FILES for when in ("before", "after")),
    *("before-manifest", "after-draft", "after-manifest"),
    # Last, as nothing is cleaned up before it is two minutes old.
    *("before-cleanup", "within-cleanup", "after-cleanup"),
)
SOME_POINTS = ("after-partitions", "after-draft", "within-cleanup")
"""Some for every change; all of them are passed in the long rehearsal."""
RANDOM_KILLS = 2
LONGEST_LIFE_S = 15.0


def groups_of(bootstrap: str) -> list[ConsumerGroup]:
    """Groups whose windows are hard to get right: commits far closer than min-distance, aborts, rebalances."""
    at = bootstrap, TOPIC
    return [
        Healthy(*at, "crash-often", commit_every_s=0.1),
        Healthy(*at, "crash-rarely", commit_every_s=3.0),
        AssignOnly(*at, "crash-assign-only", commit_every_s=0.3),
        Transactional(*at, "crash-transactional", output=OUTPUT, commit_every_s=0.5, abort_every=2),
        Slow(*at, "crash-slow", produced_rate=RATE, fraction=0.8, commit_every_s=0.7),
        Pair(*at, "crash-pair", commit_every_s=0.4, rebalance_every_s=7.0),
    ]


@dataclass
class Stage:
    """A Warren under load that can be killed."""

    kafka: Kafka
    run: WarrenRun
    faults: Path
    record: Recorder
    killed_at: list[int] = field(default_factory=list)
    """The newest manifest at each kill."""

    def begin(self) -> None:
        """Start Warren and wait until it has judged."""
        before = max(self.run.store.sequences(), default=0)
        self.run.start()
        # The first new manifest only takes over; the one after it is judged.
        self.run.wait_for(lambda s: s.manifest.sequence >= before + 2, "a judged snapshot after the restart")

    def wait_killed(self) -> None:
        """Wait until Warren is dead, with all that belongs to it."""
        self.run.wait_killed()
        self.killed_at.append(max(self.run.store.sequences(), default=0))

    def is_whole(self) -> bool:
        """Whether every file of the newest manifest, if there is one, is there, unharmed."""
        return not self.run.store.newest_whole()[1]


@contextlib.contextmanager
def staged(kafka: Kafka, home: Path) -> Iterator[Stage]:
    """Producer and groups, running; a Warren not yet started."""
    create_timed_topics(kafka.bootstrap, {TOPIC: 3})
    create_topics(kafka.bootstrap, {OUTPUT: 3})
    faults = home / "faults"
    faults.mkdir()
    sections = sections_for({"local": kafka.bootstrap}, trigger=TRIGGER_S)
    sections["storage.memory"]["min-distance"] = MIN_DISTANCE_S
    run = WarrenRun(home, sections, environment(faults))
    producer, groups = Producer(kafka.bootstrap, TOPIC, RATE), groups_of(kafka.bootstrap)
    with contextlib.ExitStack() as parts:
        parts.callback(stop_all, groups)
        parts.enter_context(producer)
        for group in groups:
            group.start()
        record = parts.enter_context(Recorder(run.data))
        # A test that fails must not leave a run behind.
        parts.push(run.__exit__)
        yield Stage(kafka, run, faults, record)


def kill_at_fault_points(stage: Stage, points: Sequence[str]) -> None:
    """One kill at each named instant."""
    for number, point in enumerate(points):
        stage.begin()
        (stage.faults / point).touch()
        if point.endswith("-layouts"):
            # A layout is written only when topics change.
            create_topics(stage.kafka.bootstrap, {f"{TOPIC}-{number}": 1})
        stage.wait_killed()
        assert not (stage.faults / point).exists(), f"{point} was never passed"
        assert stage.is_whole(), f"after a kill at {point}"


def kill_at_random(stage: Stage, kills: int, lives_s: Callable[[], float]) -> None:
    """Kills at any moment, the start included."""
    for _ in range(kills):
        stage.run.start()
        time.sleep(lives_s())
        stage.run.kill()
        stage.killed_at.append(max(stage.run.store.sequences(), default=0))
        assert stage.is_whole()


def finish(stage: Stage) -> list[Seen]:
    """One last run that nobody disturbs, and all that was ever published."""
    stage.begin()
    stage.run.wait_for_cycles(2)
    assert stage.run.stop() == 0
    newest = max(stage.run.store.sequences())
    wait_for(lambda: stage.record.seen[-1].manifest.sequence == newest, "the last snapshot is recorded")
    return stage.record.seen


@dataclass
class Rehearsal:
    """What a series of crashes has left behind."""

    bootstrap: str
    snapshots: list[Seen]
    killed_at: list[int]
    reference: Reference
    appended_ms: dict[int, list[int]]
    """When each message of the topic was taken by the broker."""
    named: set[str]
    files: set[str]
    drafts: list[Path]


def rehearsed(stage: Stage, snapshots: list[Seen]) -> Rehearsal:
    """The record, and the truth beside it."""
    bootstrap, run = stage.kafka.bootstrap, stage.run
    appended: dict[int, list[int]] = {}
    for record in sorted(read_topic(bootstrap, TOPIC), key=lambda r: (r.partition, r.offset)):
        appended.setdefault(record.partition, []).append(record.time_ms)
    manifests = [run.store.manifest(sequence) for sequence in run.store.sequences()]
    return Rehearsal(
        bootstrap,
        snapshots,
        stage.killed_at,
        Reference(read_topic(bootstrap, "__consumer_offsets"), 10, MIN_DISTANCE_S * 1000),
        appended,
        {file.path for manifest in manifests for file in manifest.files()},
        {f"{kind}/{path.name}" for kind in FILES for path in (run.data / kind).iterdir()},
        list((run.data / "manifests").glob("*.draft")),
    )


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    chance = random.Random(7)
    with Kafka() as kafka, staged(kafka, tmp_path_factory.mktemp("crashes")) as stage:
        kill_at_random(stage, RANDOM_KILLS, lambda: chance.uniform(0.0, LONGEST_LIFE_S))
        kill_at_fault_points(stage, SOME_POINTS)
        snapshots = finish(stage)
        yield rehearsed(stage, snapshots)


def assert_lags_within_bounds(rehearsal: Rehearsal) -> None:
    """The lag of a commit lies within its bounds, and so does the true one, by the broker's own clock."""
    checked = 0
    for seen in rehearsal.snapshots[-1:] + rehearsal.snapshots[:: max(1, len(rehearsal.snapshots) // 50)]:
        for (_, group, topic, partition), row in seen.partitions.items():
            slots = zip(*(row[n] for n in ("offsets", "orders", "lags_low", "lags", "lags_high")), strict=True)
            for offset, order, low, lag, high in slots:
                if lag == UNKNOWN:
                    assert (low, high) == (UNKNOWN, UNKNOWN)
                    continue
                assert 0 <= low <= lag <= high
                if topic == TOPIC:
                    time_ms = rehearsal.reference.committed_ms[(group, topic, partition), order]
                    appended = rehearsal.appended_ms[partition]
                    least = max(bisect.bisect_left(appended, time_ms) - offset, 0)
                    most = max(bisect.bisect_right(appended, time_ms) - offset, 0)
                    where = f"{group} {topic}/{partition} offset {offset} at {time_ms} in {seen.manifest.sequence}"
                    assert low <= most, f"{where}: low {low}, in truth {least} to {most}"
                    assert high >= least, f"{where}: high {high}, in truth {least} to {most}"
                    checked += 1
    assert checked > 100


def test_the_windows_of_every_snapshot_are_those_of_the_offsets_topic(rehearsal: Rehearsal) -> None:
    assert_windows_equal(rehearsal.snapshots, "local", rehearsal.reference)


def test_the_lags_are_within_their_bounds_and_the_bounds_around_the_truth(rehearsal: Rehearsal) -> None:
    assert_lags_within_bounds(rehearsal)


def test_positions_never_go_back(rehearsal: Rehearsal) -> None:
    before: dict[int, int] = {}
    for seen in rehearsal.snapshots:
        positions = seen.manifest.clusters["local"].sources["__consumer_offsets"].positions
        now = {partition: position.next_offset for partition, position in positions.items()}
        assert all(now[partition] >= offset for partition, offset in before.items())
        before = now


def test_every_manifest_has_the_one_before_it_as_its_predecessor(rehearsal: Rehearsal) -> None:
    for seen in rehearsal.snapshots:
        assert seen.manifest.predecessor == seen.manifest.sequence - 1


def test_nothing_is_left_of_the_attempts_that_died(rehearsal: Rehearsal) -> None:
    assert rehearsal.files == rehearsal.named
    assert rehearsal.drafts == []


def test_there_was_a_judged_snapshot_between_the_kills(rehearsal: Rehearsal) -> None:
    assert len(rehearsal.killed_at) == RANDOM_KILLS + len(SOME_POINTS)
    judged = [seen.manifest.sequence for seen in rehearsal.snapshots]
    ends = rehearsal.killed_at[RANDOM_KILLS:]
    for begin, end in zip(rehearsal.killed_at[RANDOM_KILLS - 1 :], ends, strict=False):
        assert any(begin < sequence <= end for sequence in judged)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_kills_at_every_named_instant_and_20_at_random(tmp_path: Path) -> None:
    chance = random.Random()
    with Kafka() as kafka, staged(kafka, tmp_path) as stage:
        kill_at_random(stage, 20, lambda: chance.uniform(0.0, 2 * LONGEST_LIFE_S))
        kill_at_fault_points(stage, FAULT_POINTS)
        snapshots = finish(stage)
        ended = rehearsed(stage, snapshots)
    assert_windows_equal(ended.snapshots, "local", ended.reference)
    assert_lags_within_bounds(ended)

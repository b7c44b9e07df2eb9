"""Each kind of group behaves as its name says on a real Kafka, as the records of the offsets topic show."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.kit.workloads import Left, expected_status, heads, wait_for_commits
from warren.demo.broker import Kafka
from warren.demo.run import demo_workload
from warren.demo.workload.committing_groups import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Bursty, Healthy, Kip848, Pair, Stopped, Transactional
from warren.demo.workload.producer import Producer, messages_due
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import admin, create_topics, fill_topic
from warren.errors import DemoError
from warren.kafka.records.commits import RecordKind, decode_commits, decode_keys

INTERVALS = 10
RATE = 300.0
FILLED = 2_000
TOPIC, OUTPUT = "consumers-in", "consumers-out"
KEEPS_UP = ("healthy", "fast", "kip848", "bursty", "transactional", "assign-only", "catching-up", "pair")
ALL_KINDS = (*KEEPS_UP, "slow", "stalled", "stopped", "left", "rewinding")

Offsets = dict[tuple[str, int], list[int]]
"""Committed offsets by group and partition, in the order of the records."""


def commits_in(bootstrap: str, isolation: str) -> Offsets:
    """Every commit in the offsets topic."""
    records = read_topic(bootstrap, "__consumer_offsets", isolation)
    keys = decode_keys(pa.array([key for key, _ in records], pa.binary()))
    values = decode_commits(pa.array([value for _, value in records], pa.binary()))
    commits: Offsets = {}
    for row, (kind, group) in enumerate(zip(keys.kind, keys.group.to_pylist(), strict=True)):
        if kind == RecordKind.COMMIT and not values.is_tombstone[row]:
            commits.setdefault((group, int(keys.partition[row])), []).append(int(values.offset[row]))
    return commits


def read_topic(bootstrap: str, topic: str, isolation: str) -> list[tuple[bytes | None, bytes | None]]:
    """The keys and values of all records in a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "consumers-test-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        records: list[tuple[bytes | None, bytes | None]] = []
        unread = set(partitions)
        while unread:
            for message in consumer.consume(10_000, timeout=0.2):
                if message.error() is None:
                    records.append((message.key(), message.value()))
                else:
                    unread.discard(message.partition() or 0)
        return records
    finally:
        consumer.close()


def wait_until(condition: Callable[[], bool], description: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"not within a minute: {description}"
        time.sleep(0.1)


def members_of(bootstrap: str, group: str) -> int:
    client = admin(bootstrap)
    return len(client.describe_consumer_groups([group])[group].result(10).members)


def is_rewound(window: Sequence[int]) -> bool:
    """Burrow's rule."""
    for index, (before, after) in enumerate(pairwise(window)):
        if after < before:
            return all(offset < before for offset in window[index + 1 :])
    return False


@dataclass
class WorkloadRun:
    """The results of a run of every kind of group."""

    bootstrap: str
    groups: Mapping[str, ConsumerGroup]
    producer: Producer
    heads: dict[int, int]
    started_at: dict[int, int]
    members: dict[str, int]
    committed: Offsets
    uncommitted: Offsets

    def offsets(self, name: str) -> list[list[int]]:
        """What a group committed, one list per partition."""
        return [self.committed[self.groups[name].group, partition] for partition in sorted(self.heads)]


@pytest.fixture(scope="module")
def run(kafka: Kafka) -> WorkloadRun:
    """Run every kind of group on one topic until each has shown its behaviour, stop them, and read their commits."""
    at = kafka.bootstrap, TOPIC
    create_topics(kafka.bootstrap, {TOPIC: 3, OUTPUT: 3})
    fill_topic(*at, FILLED)
    started_at = heads(*at)
    producer = Producer(*at, RATE)
    groups: dict[str, ConsumerGroup] = {
        "healthy": Healthy(*at, "consumers-healthy", commit_every_s=0.5),
        "fast": Healthy(*at, "consumers-fast", commit_every_s=0.1),
        "kip848": Kip848(*at, "consumers-kip848", commit_every_s=0.5),
        "bursty": Bursty(*at, "consumers-bursty", commit_every_s=2.0, burst=4, gap_s=0.1),
        "transactional": Transactional(
            *at, "consumers-transactional", output=OUTPUT, commit_every_s=0.5, abort_every=3
        ),
        "assign-only": AssignOnly(*at, "consumers-assign-only", commit_every_s=0.5),
        "catching-up": CatchingUp(
            *at, "consumers-catching-up", produced_rate=RATE, fraction=3.0, behind=1_000, commit_every_s=0.5
        ),
        "pair": Pair(*at, "consumers-pair", commit_every_s=0.5, rebalance_every_s=3.0),
        "slow": Slow(*at, "consumers-slow", produced_rate=RATE, fraction=0.5, commit_every_s=0.5),
        "stalled": Stalled(*at, "consumers-stalled", behind=100, commit_every_s=0.5),
        "stopped": Stopped(*at, "consumers-stopped", healthy_s=3.0, commit_every_s=0.5),
        "left": Left(*at, "consumers-left", healthy_s=3.0, commit_every_s=0.5),
        "rewinding": Rewinding(*at, "consumers-rewinding", commit_every_s=0.5, every=4, step=20),
    }
    try:
        with producer:
            for group in groups.values():
                group.start()
            members = {}
            for name in ("stopped", "left"):
                wait_until(lambda name=name: not groups[name].running, f"{name} is gone")  # type: ignore[misc]
                members[name] = members_of(kafka.bootstrap, groups[name].group)
            for name in ("kip848", "assign-only"):
                members[name] = members_of(kafka.bootstrap, groups[name].group)
            for name in ("healthy", "slow", "stalled", "transactional"):
                wait_for_commits(groups[name], 2 * INTERVALS)
            wait_for_commits(groups["rewinding"], 3 * INTERVALS)
            pair = groups["pair"]
            assert isinstance(pair, Pair)
            wait_until(lambda: pair.rebalances >= 3, "three rebalances")
        ends = heads(*at)
        for name in KEEPS_UP:
            wait_until(lambda name=name: groups[name].committed == ends, f"{name} is at the heads")  # type: ignore[misc]
    finally:
        stop_all(groups.values())
    return WorkloadRun(
        kafka.bootstrap,
        groups,
        producer,
        ends,
        started_at,
        members,
        commits_in(kafka.bootstrap, "read_committed"),
        commits_in(kafka.bootstrap, "read_uncommitted"),
    )


@pytest.mark.parametrize(
    ("rate", "elapsed_s", "burst_every_s", "due"),
    [
        (1000.0, 0.0, 0.0, 0),
        (1000.0, 0.0205, 0.0, 20),
        (1000.0, 60.0, 0.0, 60_000),
        (0.5, 3.9, 0.0, 1),
        (100.0, 4.9, 5.0, 0),
        (100.0, 5.0, 5.0, 500),
        (100.0, 14.9, 5.0, 1000),
    ],
)
def test_the_number_of_messages_due_follows_the_rate(
    rate: float, elapsed_s: float, burst_every_s: float, due: int
) -> None:
    assert messages_due(rate, elapsed_s, burst_every_s) == due


def test_a_producer_writes_evenly_to_all_partitions(run: WorkloadRun) -> None:
    written = [run.heads[partition] - run.started_at[partition] for partition in run.heads]
    assert sum(written) == run.producer.produced
    assert max(written) - min(written) <= 1


@pytest.mark.parametrize("name", ALL_KINDS)
def test_a_group_knows_exactly_what_it_committed(run: WorkloadRun, name: str) -> None:
    group = run.groups[name]
    assert [offsets[-1] for offsets in run.offsets(name)] == [group.committed[p] for p in sorted(run.heads)]
    assert not any(offset > run.heads[p] for p, offset in group.committed.items())


@pytest.mark.parametrize("name", KEEPS_UP)
def test_a_group_that_keeps_up_never_falls_back_and_ends_at_the_heads(run: WorkloadRun, name: str) -> None:
    for partition, offsets in zip(sorted(run.heads), run.offsets(name), strict=True):
        assert offsets == sorted(offsets)
        assert offsets[-1] == run.heads[partition]


def test_a_slow_group_moves_on_and_stays_behind(run: WorkloadRun) -> None:
    for partition, offsets in zip(sorted(run.heads), run.offsets("slow"), strict=True):
        assert offsets == sorted(offsets)
        assert offsets[0] < offsets[-1] < run.heads[partition]


@pytest.mark.parametrize(
    ("fraction", "elapsed_s", "head", "committed"),
    [(0.99, 100.0, 200_000, 109_900), (0.5, 1.0, 200_000, 100_050), (1.5, 10.0, 200_000, 101_500)],
)
def test_a_paced_group_reads_its_fraction_exactly(fraction: float, elapsed_s: float, head: int, committed: int) -> None:
    slow = Slow("nowhere:1", "t", "g", produced_rate=300.0, fraction=fraction)
    slow._positions = {0: 0, 1: 0, 2: 0}
    slow._origins = {0: (100_000, 50.0)}
    assert slow._offset(0, head, 50.0 + elapsed_s) == committed


def test_a_paced_group_does_not_make_up_for_time_at_a_head() -> None:
    slow = Slow("nowhere:1", "t", "g", produced_rate=300.0, fraction=0.5)
    slow._positions = {0: 0, 1: 0, 2: 0}
    slow._origins = {0: (0, 0.0)}
    assert [slow._offset(0, 10, 60.0), slow._offset(0, 10_000, 62.0)] == [10, 110]


def test_a_stalled_group_commits_one_offset_again_and_again(run: WorkloadRun) -> None:
    for offsets in run.offsets("stalled"):
        assert len(offsets) == run.groups["stalled"].commits
        assert len(set(offsets)) == 1


def test_a_rewinding_group_is_rewound_in_every_window(run: WorkloadRun) -> None:
    for offsets in run.offsets("rewinding"):
        windows = [offsets[max(0, end - INTERVALS) : end] for end in range(2, len(offsets) + 1)]
        assert len(windows) >= 2 * INTERVALS
        assert all(is_rewound(window) for window in windows)


def test_each_rewind_goes_back_one_message_further() -> None:
    rewinding = Rewinding("nowhere:1", "t", "g", every=3, step=10)
    rewinding._origins = {0: (100, 0.0)}
    offsets = []
    for rewinding._round in range(8):
        offsets.append(rewinding._offset(0, 1_000, 0.0))
    assert offsets == [120, 99, 109, 119, 98, 108, 118, 97]


def test_a_stopped_group_dies_without_leaving_or_leaves(run: WorkloadRun) -> None:
    assert run.members["stopped"] == 1
    assert run.members["left"] == 0
    for name in ("stopped", "left"):
        assert all(run.groups[name].committed[p] < head for p, head in run.heads.items())


def test_a_stopped_group_that_is_started_again_continues_where_it_was(run: WorkloadRun) -> None:
    stopped = run.groups["left"]
    before = stopped.commits
    with stopped:
        wait_for_commits(stopped, before + 1)
        wait_until(lambda: stopped.committed == run.heads, "the rest is read")


def test_an_aborted_transaction_leaves_no_commit_and_no_message(run: WorkloadRun) -> None:
    group = run.groups["transactional"]
    assert isinstance(group, Transactional)
    assert group.aborted >= INTERVALS // 2
    for partition, offsets in enumerate(run.offsets("transactional")):
        assert len(offsets) == group.commits
        with_aborted = run.uncommitted[group.group, partition]
        assert len(with_aborted) >= len(offsets) + group.aborted
    # It began at the heads, which only the producer has moved since.
    seen_first = sum(offsets[0] for offsets in run.offsets("transactional"))
    written = len(read_topic(run.bootstrap, OUTPUT, "read_committed"))
    assert written >= sum(run.heads.values()) - seen_first
    assert written <= run.producer.produced


def test_the_consumer_protocol_has_a_member_and_assign_only_has_none(run: WorkloadRun) -> None:
    assert run.members["kip848"] == 1
    assert run.members["assign-only"] == 0
    client = admin(run.bootstrap)
    groups = client.list_consumer_groups().result(10).valid
    types = {group.group_id: group.type.name for group in groups}
    assert types["consumers-kip848"] == "CONSUMER"
    assert types["consumers-healthy"] == "CLASSIC"


def test_both_of_a_pair_commit(run: WorkloadRun) -> None:
    pair = run.groups["pair"]
    assert isinstance(pair, Pair)
    assert all(member.commits > 0 for member in pair.members)
    assert sum(member.commits for member in pair.members) == pair.commits


def test_the_demo_has_a_group_of_every_kind() -> None:
    _, groups = demo_workload("nowhere:1")
    assert {type(group) for group in groups} == {
        *(Healthy, Kip848, Bursty, Stopped, Pair, Transactional),
        *(Slow, CatchingUp, Stalled, Rewinding, AssignOnly),
    }
    assert {expected_status(group) for group in groups} == {"OK", "WARN", "ERR"}
    assert len({group.group for group in groups}) == len(groups)


class Broken(WorkloadThread):
    """A thread with a bug."""

    name = "broken"

    def _session(self) -> None:
        raise ZeroDivisionError


class Waiting(WorkloadThread):
    """A thread that only waits."""

    name = "waiting"

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def _session(self) -> None:
        self.began.set()
        self._stopping.wait()


def test_stopping_a_thread_that_died_raises_its_error() -> None:
    broken = Broken().start()
    with pytest.raises(DemoError, match="broken died: ZeroDivisionError"):
        broken.stop()


def test_a_thread_runs_once_at_a_time_and_again_after_a_stop() -> None:
    waiting = Waiting()
    for _ in range(2):
        waiting.began.clear()
        with waiting:
            assert waiting.began.wait(10)
            with pytest.raises(DemoError, match="already running"):
                waiting.start()
        assert not waiting.running


def test_all_are_stopped_even_if_one_has_died() -> None:
    waiting = [Waiting().start(), Waiting().start()]
    with pytest.raises(DemoError, match="broken died"):
        stop_all([Broken().start(), *waiting])
    assert not any(thread.running for thread in waiting)

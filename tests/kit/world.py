"""A Kafka without servers, in simulated time, whose groups are in a state that is known for certain.

Clocks, leaders and transactions misbehave as told. `Cycles` run on it as they are; only Spark and the sampler are
replaced.
"""

import copy
import random
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.kit.engines import InProcess, TestRead
from tests.kit.plans import Record, raw
from tests.kit.records import commit_key, commit_value, group_key
from warren.clock import ClockReading
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.config.pipeline import Storage
from warren.domain.arrays import Ints
from warren.domain.offsets_logs import RECONNECT_MS
from warren.domain.past_heads import NOTHING_SINCE, TimedAnswer
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.kafka.past_heads import PastHeads, to_past_heads
from warren.kafka.samples import ClusterSample, PartitionEnds, Topic
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import ClusterRead
from warren.pipeline.flow import map_records
from warren.pipeline.group_checks import GroupChecks
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import ADDRESSED
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.store import Store

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
TRIGGER = 10 * SECOND
START = 1_700_000_000_000
BOOTED = START - 3 * DAY
OFFSETS_TOPIC = "__consumer_offsets"
INTERVALS = 10


@dataclass
class OffsetsPartition:
    """An offsets partition: its records, the broker that leads it, and where an open transaction begins."""

    leader: int
    records: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    held_at: int | None = None

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def stable_end(self) -> int:
        return self.end if self.held_at is None else self.held_at


@dataclass
class GroupLife:
    """What a group does from a time on, and what an all-knowing observer says of it: the status of its partition."""

    from_ms: int
    kind: str
    status: Status


@dataclass
class SimulatedGroup:
    """A group with one partition of a topic; commits every `interval_ms`, behind the head by what its life says."""

    name: str
    topic: str
    interval_ms: int
    lives: list[GroupLife]
    behind: float = 0.0
    committed: int = 0
    commits: int = 0
    next_ms: int = 0
    stamp: Callable[[int], int] | None = None
    """What an old client stamps its commits with, given the true time; None if the broker stamps them."""

    def life(self, now_ms: int) -> GroupLife:
        return [self.lives[0], *(life for life in self.lives[1:] if life.from_ms <= now_ms)][-1]

    def turn(self, from_ms: int, kind: str, status: Status) -> None:
        """From a time on the group is another one."""
        self.lives.append(GroupLife(from_ms, kind, status))

    @property
    def delay_ms(self) -> int:
        """How long it may take until a verdict is right after the group's life has changed."""
        return (INTERVALS + 2) * max(self.interval_ms, TRIGGER) + 3 * TRIGGER


@dataclass
class SimulatedTopic:
    """A topic with one partition that grows at a steady rate, unless it has no leader."""

    name: str
    rate: float
    id: str = "1"
    leaderless: bool = False
    produced: float = 0.0
    stamp: Callable[[Ints], Ints] = lambda appended_ms: appended_ms
    """What producers stamp their records with, given when they are appended."""
    growth: list[tuple[int, float]] = field(default_factory=list)
    """Up to which time it has grown to how much, whenever its rate has changed."""
    imported: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Records with timestamps of their own: the first, the one after the last, and the timestamps of both."""

    @property
    def head(self) -> int:
        return 1_000 + int(self.produced)

    def grow(self, from_ms: int, until_ms: int) -> None:
        """Grow for some time."""
        before = self.produced
        self.produced += 0 if self.leaderless else self.rate * (until_ms - from_ms) / 1000
        if len(self.growth) >= 2 and _slope(*self.growth[-2:]) == _slope(self.growth[-1], (until_ms, self.produced)):
            self.growth.pop()
        self.growth += [] if self.growth else [(from_ms, before)]
        self.growth.append((until_ms, self.produced))

    def import_records(self, count: int, now_ms: int, from_ms: int, to_ms: int) -> None:
        """Records of another time are appended at once."""
        first, last = int(self.produced), int(self.produced) + count
        self.imported.append((first, last, from_ms, to_ms))
        self.produced += count
        self.growth += [(now_ms, self.produced - count), (now_ms, self.produced)]

    def first_from(self, times_ms: Sequence[int]) -> tuple[Ints, Ints]:
        """Offset and timestamp of the first record that is stamped with each time or later, as brokers tell it."""
        grown_ms, produced = zip(*(self.growth or [(0, 0.0)]), strict=True)
        appended_ms = np.interp(np.arange(1, int(self.produced) + 1), produced, grown_ms).astype(np.int64)
        stamps_ms = self.stamp(appended_ms)
        for first, last, from_ms, to_ms in self.imported:
            stamps_ms[first:last] = np.linspace(from_ms, to_ms, last - first)
        index = np.searchsorted(np.maximum.accumulate(stamps_ms), times_ms)
        is_found = index < stamps_ms.size
        stamps_ms = np.append(stamps_ms, UNKNOWN)[index]
        return np.where(is_found, 1_000 + index, NOTHING_SINCE), stamps_ms


def _slope(start: tuple[int, float], end: tuple[int, float]) -> float:
    return round((end[1] - start[1]) / max(end[0] - start[0], 1), 6)


class World(InProcess):
    """The cluster, its groups, the clocks, and a Warren that watches them."""

    def __init__(
        self, root: Path, partitions: int = 4, seed: int = 0, max_records: int = 5_000_000, refresh_s: int = 10
    ) -> None:
        self.root = root
        self.now_ms = self.start_ms = START
        """The true time."""
        self.wall_error_ms = 0
        self.steady_error_ms = 0
        self.boot_id = "boot"
        self.broker_errors_ms = {0: 0, 1: 0, 2: 0}
        self.partitions = [OffsetsPartition(p % 3) for p in range(partitions)]
        self.silent_partitions: set[int] = set()
        self.error: str | None = None
        self.topics: dict[str, SimulatedTopic] = {}
        self.groups: dict[str, SimulatedGroup] = {}
        self.random = random.Random(seed)
        self.storage = Storage(intervals=INTERVALS)
        self.pipeline = Pipeline(buckets=2, max_records=max_records, trigger=refresh_s)
        self.asked_times: list[list[int]] = []
        """At which times heads of the past were asked for, each time that they were."""
        self.homes: dict[str, int] = {}
        self.manifest: Manifest
        self.start()

    def start(self) -> None:
        """A Warren, for the first time or once more."""
        clusters = {"c": Cluster("c", ("a:1",), offset_refresh=int(self.pipeline.trigger))}
        consumers = {"c": Consumer("c", "c", ("a:1",))}
        config = Config(clusters, consumers, storage=self.storage, pipeline=self.pipeline)
        store = Store(self.root)
        checks = GroupChecks({"c": 0}, lambda _: list(self.groups), lambda _, asked: sorted({*asked} - {*self.groups}))
        self.cycles = Cycles(
            config,
            self,
            store,
            self.sample,
            lambda _: pa.table({}),
            clock=self.clock,
            group_checks=checks,
            read_past_heads=lambda _, times_ms: self.past_heads(times_ms),
        )

    def copy(self, root: Path) -> "World":
        """The same world in another directory, watched by a Warren that was just started."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        other = copy.copy(self)
        for name, value in vars(self).items():
            if name != "cycles":
                setattr(other, name, copy.deepcopy(value))
        other.root = root
        other.start()
        return other

    # The cluster

    def add(
        self, name: str, kind: str, status: Status, interval_ms: int = TRIGGER, rate: float = 20.0
    ) -> SimulatedGroup:
        """A group with a topic of its own."""
        self.topics[name] = SimulatedTopic(name, rate)
        group = SimulatedGroup(name, name, interval_ms, [GroupLife(self.now_ms, kind, status)])
        group.next_ms = self.now_ms + self.random.randrange(interval_ms)
        self.groups[name] = group
        self.homes[name] = len(self.homes) % len(self.partitions)
        return group

    def population(self, interval_ms: int = TRIGGER) -> None:
        """Groups of all kinds, on every offsets partition."""
        for number in range(len(self.partitions)):
            self.add(f"healthy-{number}", "healthy", Status.OK, interval_ms)
            self.add(f"rare-{number}", "healthy", Status.OK, interval_ms=MINUTE)
            self.add(f"lagging-{number}", "lagging", Status.OK, interval_ms)
            self.add(f"slow-{number}", "slow", Status.WARN, interval_ms)
            self.add(f"stalled-{number}", "stalled", Status.STALL, interval_ms)
            self.add(f"stopped-{number}", "stopped", Status.STOP, interval_ms)
        for name, group in self.groups.items():
            # The homes above follow the order of names; every kind shall live on every partition.
            self.homes[name] = int(name.rsplit("-", 1)[1])
            if name.startswith(("stalled", "stopped")):
                group.lives.insert(0, GroupLife(0, "lagging", Status.OK))
                group.lives[1].from_ms = START + 5 * MINUTE

    def pass_time(self, duration_ms: int) -> None:
        """Topics grow and groups commit, each at its own instants."""
        until = self.now_ms + duration_ms
        while True:
            group = min(self.groups.values(), key=lambda group: group.next_ms, default=None)
            if group is None or group.next_ms > until:
                break
            self._grow(group.next_ms)
            self._commit(group)
            group.next_ms += group.interval_ms
        self._grow(until)

    def _grow(self, until: int) -> None:
        for topic in self.topics.values():
            topic.grow(self.now_ms, until)
        self.now_ms = until

    def _commit(self, group: SimulatedGroup) -> None:
        kind, head = group.life(self.now_ms).kind, self.topics[group.topic].head
        seconds = group.interval_ms / 1000
        if kind == "stopped" or self.error or self.homes[group.name] in self.silent_partitions:
            return
        if kind == "healthy":
            group.committed = head
        elif kind == "lagging":  # at a distance that goes up and down
            group.behind = 350 if group.behind == 480 else 480
            group.committed = max(group.committed, head - int(group.behind))
        elif kind == "slow":
            group.behind += 0.3 * self.topics[group.topic].rate * seconds
            group.committed = max(group.committed, head - 500 - int(group.behind))
        time_ms = group.stamp(self.now_ms) if group.stamp else self.now_ms + self._leader_error(group.name)
        key, value = commit_key(group.name, group.topic, 0), commit_value(group.committed, time_ms)
        self.partitions[self.homes[group.name]].records.append((key, value))
        group.commits += 1

    def delete(self, name: str, *, are_tombstones_gone: bool = False) -> None:
        """The group is deleted: tombstones of its offsets and of its metadata are the last that is heard of it."""
        partition, group = self.partitions[self.homes.pop(name)], self.groups.pop(name)
        if not are_tombstones_gone:
            partition.records += [(commit_key(name, group.topic, 0), None), (group_key(name), None)]

    def _leader_error(self, group: str) -> int:
        return self.broker_errors_ms[self.partitions[self.homes[group]].leader]

    # What Warren is given

    def clock(self) -> ClockReading:
        """Both clocks of Warren's machine."""
        return ClockReading(self.now_ms + self.wall_error_ms, self.steady, self.boot_id)

    @property
    def steady(self) -> int:
        return self.now_ms - BOOTED + self.steady_error_ms

    def sample(self) -> dict[str, ClusterSample]:
        """The cluster as the sampler would see it."""
        if self.error:
            return {"c": ClusterSample("c", error=self.error)}
        at_ms = self.steady
        ends = {
            number: PartitionEnds(0, partition.stable_end, partition.end)
            for number, partition in enumerate(self.partitions)
            if number not in self.silent_partitions
        }
        topics = [self.topics[name] for name in sorted(self.topics)]
        heads = np.array([UNKNOWN if topic.leaderless else topic.head for topic in topics], np.int64)
        return {
            "c": ClusterSample(
                "c",
                ends_at_ms=(at_ms, at_ms),
                ends={OFFSETS_TOPIC: ends},
                offsets_topic_ids={OFFSETS_TOPIC: "id"},
                heads_at_ms=(at_ms, at_ms),
                topics=tuple(Topic(topic.name, topic.id, 1) for topic in topics),
                heads=heads,
                log_starts=np.where(heads == UNKNOWN, UNKNOWN, 0),
                topics_at_ms=at_ms,
            )
        }

    def past_heads(self, times_ms: Sequence[int]) -> PastHeads:
        """The heads of the past as the brokers tell them."""
        self.asked_times.append(list(times_ms))
        topics = [self.topics[name] for name in sorted(self.topics)]
        now_ms = self.now_ms + self.wall_error_ms
        times_ms = [now_ms + SECOND, *times_ms]
        offsets, stamps_ms = np.array([topic.first_from(times_ms) for topic in topics], np.int64).transpose(1, 2, 0)
        answers = [
            TimedAnswer(time_ms, now_ms, now_ms, *found)
            for time_ms, *found in zip(times_ms, offsets, stamps_ms, strict=True)
        ]
        heads = np.array([topic.head for topic in topics], np.int64)
        return to_past_heads(tuple(Topic(topic.name, topic.id, 1) for topic in topics), answers, heads, 1)

    def read(self, reads: Sequence[TopicRead], plan: CyclePlan) -> dict[str, ClusterRead]:
        """Reads and decodes without Spark."""
        return {"c": TestRead(pa.Table.from_batches(self._map(reads, plan), schema=ADDRESSED))}

    def _map(self, reads: Sequence[TopicRead], plan: CyclePlan) -> Iterable[pa.RecordBatch]:
        records = [
            Record(offset, *self.partitions[partition].records[offset], source, partition)
            for source, read in enumerate(reads)
            for partition, range_ in read.ranges.items()
            for offset in range(range_.start, range_.end)
        ]
        return map_records(plan)([raw(records)])

    # What the observer compares

    def trigger(self, duration_ms: int = TRIGGER) -> dict[str, str]:
        """Let a trigger's time pass and run a cycle; gives every group whose verdict contradicts the observer."""
        self.pass_time(duration_ms)
        self.manifest = self.cycles.run_once()
        for thread in threading.enumerate():
            if thread.name == "check for deleted groups":
                thread.join()
        return self.contradictions()

    def contradictions(self) -> dict[str, str]:
        """The groups whose published verdict is wrong, and how; unknown groups are in `unknown`."""
        if not self.manifest.clusters["c"].is_judged:
            return {}
        wrong: dict[str, str] = {}
        for name, row in self.published().items():
            if name not in self.groups:
                wrong |= {name: "was deleted"} if row["unknown_since_ms"] == UNKNOWN else {}
                continue
            group = self.groups[name]
            status = Status(row["worst_status"])
            right = {group.life(self.now_ms).status, group.life(self.now_ms - group.delay_ms).status}
            if len(right) > 1 or self.now_ms - self.start_ms < group.delay_ms:
                right |= {Status.OK, Status.WARN}
            if row["unknown_since_ms"] == UNKNOWN and status not in right:
                wrong[name] = f"{status.name}, not {'/'.join(s.name for s in right)}"
        return wrong

    def published(self) -> dict[str, dict[str, int]]:
        """The row of each group in the newest snapshot."""
        return {row["group"]: row for row in newest_snapshot(self.root).groups().to_pylist()}

    def unknown(self) -> set[str]:
        """The groups that are unknown; all of them if the cluster is."""
        if not self.manifest.clusters["c"].is_judged:
            return set(self.groups)
        return {name for name, row in self.published().items() if row["unknown_since_ms"] != UNKNOWN}


SETTLED = INTERVALS * MINUTE + RECONNECT_MS
"""How long the windows of the slowest group need to fill."""

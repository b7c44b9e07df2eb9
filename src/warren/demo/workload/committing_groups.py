"""Groups that fetch no messages: they compute the offsets they commit, so that their behaviour is exact."""

import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from warren.demo.workload.consumer_group import MAX_POLL_S, REQUEST_TIMEOUT_S, ConsumerGroup
from warren.demo.workload.thread import Schedule


@dataclass(eq=False, repr=False, kw_only=True)
class CommittingGroup(ConsumerGroup):
    """A member of its group whose partitions are paused; it commits the offsets that `_offset` computes.

    A group that has committed before continues there; a new one starts `behind` messages below each head.
    """

    behind: int = 0
    _partitions: list[int] = field(init=False, default_factory=list)
    _origins: dict[int, tuple[int, float]] = field(init=False, default_factory=dict)
    _round: int = field(init=False, default=0)

    def _reset(self) -> None:
        self._origins = {}
        self._round = 0

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        """The offset to commit now; `_origins` has the offset and time at which each partition started."""
        raise NotImplementedError

    def _work(self, consumer: Consumer) -> None:
        self._partitions = []
        self._join(consumer)
        schedule = Schedule([self.commit_every_s])
        while not self._is_done():
            consumer.poll(schedule.wait_s(MAX_POLL_S))
            if self._partitions and (not self._origins or schedule.is_due()):
                with self._tolerating_errors():
                    self._commit_round(consumer)

    def _join(self, consumer: Consumer) -> None:
        consumer.subscribe([self.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._partitions = sorted({*self._partitions, *(tp.partition for tp in partitions)})
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._partitions = sorted({*self._partitions} - {tp.partition for tp in partitions})
        consumer.incremental_unassign(partitions)

    def _commit_round(self, consumer: Consumer) -> None:
        watermarks = {partition: self._watermarks(consumer, partition) for partition in self._partitions}
        now_s = time.monotonic()
        if new := [partition for partition in watermarks if partition not in self._origins]:
            committed = self._last_committed(consumer, new)
            for partition in new:
                log_start, head = watermarks[partition]
                self._origins[partition] = max(log_start, committed.get(partition, head - self.behind)), now_s
        self._commit(consumer, {p: self._offset(p, head, now_s) for p, (_, head) in watermarks.items()})
        self._round += 1


@dataclass(eq=False, repr=False, kw_only=True)
class AssignOnly(CommittingGroup):
    """Assigns its partitions to itself, without joining the group, and commits the heads: always OK."""

    def _join(self, consumer: Consumer) -> None:
        self._partitions = sorted(consumer.list_topics(self.topic, REQUEST_TIMEOUT_S).topics[self.topic].partitions)
        topic_partitions = [TopicPartition(self.topic, partition) for partition in self._partitions]
        consumer.assign(topic_partitions)
        consumer.pause(topic_partitions)

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        return head


@dataclass(eq=False, repr=False, kw_only=True)
class Paced(CommittingGroup):
    """Reads `fraction` of the `produced_rate` of its topic, exactly paced by the clock.

    It never reads past a head, and does not make up for time that it waited at a head.
    """

    produced_rate: float
    fraction: float

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        origin, started_s = self._origins[partition]
        rate = self.fraction * self.produced_rate / len(self._partitions)
        offset = origin + int(rate * (now_s - started_s))
        if offset >= head:
            self._origins[partition] = head, now_s
        return min(offset, head)


@dataclass(eq=False, repr=False, kw_only=True)
class Slow(Paced):
    """Reads less than is produced: WARN. With `behind=0` it is OK while its window contains a lag of about 0."""

    fraction: float = 0.99


@dataclass(eq=False, repr=False, kw_only=True)
class CatchingUp(Paced):
    """Starts `behind` messages below each head and reads more than is produced: OK."""

    fraction: float = 1.5
    behind: int = 10_000


@dataclass(eq=False, repr=False, kw_only=True)
class Stalled(CommittingGroup):
    """Commits the same offset again and again while the head moves on: STALL."""

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        return self._origins[partition][0]


@dataclass(eq=False, repr=False, kw_only=True)
class Rewinding(CommittingGroup):
    """Reads `step` messages per commit and rewinds to its start every `every` commits: REWIND.

    Each time it rewinds one message further, so that no window that contains a rewind ever recovers.
    """

    behind: int = 1_000
    every: int = 5
    step: int = 50

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        # The first commit is the last one before a rewind, so that the second commit is a rewind already.
        return rewound_offset(self._origins[partition][0], self._round + self.every - 1, self.every, self.step)


def rewound_offset(origin: int, commit: int, every: int, step: int) -> int:
    """The offset of a commit, by its index, in a saw-tooth that falls by one message per rewind."""
    rewinds, steps = divmod(commit, every)
    return max(0, origin - rewinds + steps * step)

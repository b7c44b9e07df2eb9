"""Groups that fetch no messages: they compute the offsets they commit, so that their behaviour is exact."""

import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from warren.demo.workload.consumer_group import REQUEST_TIMEOUT_S, ConsumerGroup


@dataclass(eq=False, repr=False, kw_only=True)
class CommittingGroup(ConsumerGroup):
    """A member of its group whose partitions are paused; it commits the offsets that `_offset` computes."""

    _origins: dict[int, tuple[int, float]] = field(init=False, default_factory=dict)
    _round: int = field(init=False, default=0)

    def _reset(self) -> None:
        self._origins = {}
        self._round = 0

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        """The offset to commit now; `_origins` has the offset and time at which each partition started."""
        raise NotImplementedError

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super()._on_assign(consumer, partitions)
        consumer.pause(partitions)
        for tp in partitions:
            self._origins.setdefault(tp.partition, (self._positions[tp.partition], time.monotonic()))

    def _commit_positions(self, consumer: Consumer) -> None:
        now_s = time.monotonic()
        for partition in self._positions:
            _, head = self._watermarks(consumer, partition)
            self._positions[partition] = self._offset(partition, head, now_s)
        if self._positions:
            super()._commit_positions(consumer)
            self._round += 1


@dataclass(eq=False, repr=False, kw_only=True)
class AssignOnly(CommittingGroup):
    """Assigns its partitions to itself, without joining the group, and commits the heads: always OK."""

    def _join(self, consumer: Consumer) -> None:
        partitions = consumer.list_topics(self.topic, REQUEST_TIMEOUT_S).topics[self.topic].partitions
        self._positions = dict.fromkeys(partitions, 0)
        consumer.assign(self._topic_partitions(self._positions))
        consumer.pause(self._topic_partitions(self._positions))

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
        rate = self.fraction * self.produced_rate / len(self._positions)
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
        rewinds, steps = divmod(self._round + self.every - 1, self.every)
        return max(0, self._origins[partition][0] - rewinds + steps * self.step)

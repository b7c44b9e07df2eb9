"""Groups whose members really fetch and keep up; they differ in how they commit and how they end."""

import time
from collections.abc import Mapping
from typing import ClassVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.behaviour import OK, POLL_S, STOP, Behaviour
from warren.demo.workload.worker import Schedule, stop_all

_MOST_AT_ONCE = 5_000


class Healthy(Behaviour):
    """Reads all there is and commits its position every `commit_every_s`, moved or not: always OK."""

    expected: ClassVar[frozenset[str]] = OK
    kind: ClassVar[str] = "healthy"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        commit_every_s: float = 1.0,
        client_id: str | None = None,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s, client_id=client_id)
        self._positions: dict[int, int] = {}
        self.consumed = 0
        """How many messages it has read since it was made."""

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions it reads now."""
        return frozenset(self._positions.copy())

    def _session(self) -> None:
        self._positions = {}
        consumer = self._consumer()
        try:
            consumer.subscribe(
                [self.topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            self._read_and_commit(consumer)
        finally:
            consumer.close()

    def _gaps_s(self) -> list[float]:
        return [self.commit_every_s]

    def _read_and_commit(self, consumer: Consumer) -> None:
        schedule = Schedule(self._gaps_s())
        while not self._is_done():
            self._read(consumer, schedule.wait_s(POLL_S))
            if schedule.is_due():
                with self._going_on():
                    self._commit(consumer, self._positions)

    def _read(self, consumer: Consumer, for_s: float) -> int:
        read = 0
        for message in consumer.consume(_MOST_AT_ONCE, timeout=for_s):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition in self._positions and offset is not None:
                self._positions[partition] = offset + 1
                read += 1
        self.consumed += read
        return read

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # The first offset is settled here, so that a partition without messages is committed as well.
        wanted = [each.partition for each in partitions]
        start = self._committed_before(consumer, wanted)
        for partition in wanted:
            if partition not in start:
                start[partition] = self._watermarks(consumer, partition)[1]
        self._positions.update(start)
        consumer.incremental_assign(self._places(start))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        given_up = {each.partition: self._positions.pop(each.partition, -1) for each in partitions}
        with self._going_on():
            self._hand_over(consumer, {partition: at for partition, at in given_up.items() if at >= 0})
        consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._positions.pop(each.partition, None)
        consumer.incremental_unassign(partitions)

    def _hand_over(self, consumer: Consumer, offsets: dict[int, int]) -> None:
        self._commit(consumer, offsets)


class Kip848(Healthy):
    """Healthy, as a member of a group of the new protocol (`group.protocol=consumer`): always OK."""

    kind: ClassVar[str] = "kip848"

    def _membership(self) -> dict[str, str | int]:
        return {"group.protocol": "consumer"}


class Bursty(Healthy):
    """Keeps up; every `commit_every_s` it commits `burst` times, `gap_s` apart, and rests: always OK."""

    kind: ClassVar[str] = "bursty"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        commit_every_s: float = 8.0,
        burst: int = 4,
        gap_s: float = 0.1,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s)
        self.burst = burst
        self.gap_s = gap_s

    def _gaps_s(self) -> list[float]:
        within = [self.gap_s] * (self.burst - 1)
        return [*within, self.commit_every_s - sum(within)]


class Stopped(Healthy):
    """Healthy for `healthy_s`, then gone: STOP once its silence is longer than its window.

    With `leaves` it says good-bye to the group; without, it dies like a killed process: no last commit, and
    the broker finds out when the session times out. `healthy_s=None` waits for `stop()`; `start()` brings it
    back.
    """

    expected: ClassVar[frozenset[str]] = STOP
    kind: ClassVar[str] = "stopped"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        healthy_s: float | None = 15.0,
        leaves: bool = False,
        commit_every_s: float = 1.0,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s)
        self.healthy_s = healthy_s
        self.leaves = leaves
        self._ends: float | None = None

    def settles_after_s(self, intervals: int = 10, trigger_s: float = 10.0) -> float:
        """After the healthy time, a window of silence and a head ring that it has fallen behind."""
        return (self.healthy_s or 0.0) + max(intervals * self.commit_every_s, intervals * trigger_s) + 2 * trigger_s

    def _reset(self) -> None:
        self._ends = None

    def _is_done(self) -> bool:
        return super()._is_done() or (self._ends is not None and time.monotonic() >= self._ends)

    def _membership(self) -> dict[str, str | int]:
        # A static member does not leave when it closes: to the broker that looks like a sudden death.
        dying: dict[str, str | int] = {"group.instance.id": self.client_id, "session.timeout.ms": 6_000}
        return {**super()._membership(), **({} if self.leaves else dying)}

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super()._on_assign(consumer, partitions)
        if self._ends is None and self.healthy_s is not None:
            self._ends = time.monotonic() + self.healthy_s

    def _hand_over(self, consumer: Consumer, offsets: dict[int, int]) -> None:
        if self.leaves:
            super()._hand_over(consumer, offsets)


class Pair(Behaviour):
    """Two healthy members; every `rebalance_every_s` the second goes away or comes back: always OK."""

    expected: ClassVar[frozenset[str]] = OK
    kind: ClassVar[str] = "pair"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        commit_every_s: float = 1.0,
        rebalance_every_s: float = 20.0,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s)
        self.rebalance_every_s = rebalance_every_s
        self.members = tuple(_PairMember(self, f"{group}-{number}", commit_every_s) for number in (1, 2))
        self.rebalances = 0
        """How often the second member went or came back."""

    def _session(self) -> None:
        first, second = self.members
        try:
            first.start()
            second.start()
            while not self._stopping.wait(self.rebalance_every_s):
                if second.running:
                    second.stop()
                else:
                    second.start()
                self.rebalances += 1
        finally:
            stop_all(self.members)


class _PairMember(Healthy):
    """One of a pair: what it commits is the pair's commit."""

    def __init__(self, pair: Pair, client_id: str, commit_every_s: float) -> None:
        super().__init__(pair.bootstrap, pair.topic, pair.group, commit_every_s=commit_every_s, client_id=client_id)
        self._pair = pair

    def _note_commit(self, offsets: Mapping[int, int]) -> None:
        super()._note_commit(offsets)
        self._pair._note_commit(offsets)

    def _failed(self, error: KafkaException) -> None:
        super()._failed(error)
        self._pair.failures += 1

"""Groups that consume all messages and keep up; they differ in how they commit and how they end."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.consumer_group import REQUEST_TIMEOUT_S, ConsumerGroup, Membership
from warren.demo.workload.thread import is_fatal, stop_all
from warren.demo.workload.topics import PAYLOAD, new_producer


@dataclass(eq=False, repr=False, kw_only=True)
class Healthy(ConsumerGroup):
    """Consumes everything and commits where it is: always OK."""


@dataclass(eq=False, repr=False, kw_only=True)
class Kip848(Healthy):
    """A healthy group of the consumer protocol of KIP-848 (`group.protocol=consumer`): always OK."""

    _membership: ClassVar[Membership] = {"group.protocol": "consumer"}


@dataclass(eq=False, repr=False, kw_only=True)
class Bursty(Healthy):
    """Keeps up, and every `commit_every_s` commits `burst` times, `gap_s` apart: always OK."""

    commit_every_s: float = 8.0
    burst: int = 4
    gap_s: float = 0.1

    def _commit_gaps_s(self) -> list[float]:
        gaps = [self.gap_s] * (self.burst - 1)
        return [*gaps, self.commit_every_s - sum(gaps)]


@dataclass(eq=False, repr=False, kw_only=True)
class Stopped(Healthy):
    """Healthy for `healthy_s`, then gone: STOP once it has been silent for longer than its window.

    It ends like a killed process: without a last commit, and the broker notices when the session times out. `start()`
    brings it back.
    """

    # A static member does not leave the group when it closes: to the broker this looks like a killed process.
    _membership: ClassVar[Membership] = {
        **Healthy._membership,
        "group.instance.id": "killed",
        "session.timeout.ms": 6_000,
    }
    _commits_when_revoked: ClassVar[bool] = False
    healthy_s: float = 15.0
    _ends_at: float | None = field(init=False, default=None)

    def _reset(self) -> None:
        self._ends_at = None

    def _is_done(self) -> bool:
        return super()._is_done() or (self._ends_at is not None and time.monotonic() >= self._ends_at)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super()._on_assign(consumer, partitions)
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self.healthy_s


@dataclass(eq=False, repr=False, kw_only=True)
class Pair(ConsumerGroup):
    """Two healthy members; every `rebalance_every_s` the second one leaves or comes back: always OK."""

    rebalance_every_s: float = 20.0
    rebalances: int = field(init=False, default=0)
    """How many times the second member has left or come back."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.members = [
            _PairMember(
                *(self.bootstrap, self.topic, self.group),
                client_id=f"{self.group}-{i}",
                commit_every_s=self.commit_every_s,
                pair=self,
            )
            for i in (1, 2)
        ]

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


@dataclass(eq=False, repr=False, kw_only=True)
class _PairMember(Healthy):
    """A member of a pair; its commits count as commits of the pair."""

    pair: Pair

    def _count_commit(self, offsets: Mapping[int, int]) -> None:
        super()._count_commit(offsets)
        self.pair._count_commit(offsets)


@dataclass(eq=False, repr=False, kw_only=True)
class Transactional(Healthy):
    """Writes one message to `output` per message it consumes, in a transaction with its offsets: always OK.

    It aborts every `abort_every`-th transaction after sending its offsets, and consumes those messages again.
    """

    # Offsets are committed in transactions only, and none is open during a rebalance.
    _commits_when_revoked: ClassVar[bool] = False
    output: str
    abort_every: int = 4
    transactions: int = field(init=False, default=0)
    """How many transactions it has committed or aborted."""
    aborted: int = field(init=False, default=0)
    """How many of them it aborted on purpose."""
    _restart_positions: dict[int, int] = field(init=False, default_factory=dict)

    def _join(self, consumer: Consumer) -> None:
        self._restart_positions = {}
        settings = {"transactional.id": f"{self.group}:{self.topic}", "transaction.timeout.ms": "10000"}
        self._producer = new_producer(self.bootstrap, self.client_id, settings)
        self._producer.init_transactions(REQUEST_TIMEOUT_S)
        super()._join(consumer)

    def _commit_positions(self, consumer: Consumer) -> None:
        if not self._positions:
            return
        producer = self._producer
        is_aborted = (self.transactions + 1) % self.abort_every == 0
        offsets = dict(self._positions)
        consumed = sum(offset - self._restart_positions[partition] for partition, offset in offsets.items())
        producer.begin_transaction()
        try:
            producer.produce_batch(self.output, [{"value": PAYLOAD}] * consumed)
            producer.send_offsets_to_transaction(
                self._topic_partitions(offsets), consumer.consumer_group_metadata(), REQUEST_TIMEOUT_S
            )
            if is_aborted:
                producer.flush(REQUEST_TIMEOUT_S)
                self._abort(consumer)
            else:
                producer.commit_transaction(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            if not is_fatal(error):
                self._abort(consumer)
            raise
        self.transactions += 1
        if is_aborted:
            self.aborted += 1
        else:
            self._restart_positions.update(offsets)
            self._count_commit(offsets)

    def _abort(self, consumer: Consumer) -> None:
        """Abort the transaction, and consume its messages again."""
        self._producer.abort_transaction(REQUEST_TIMEOUT_S)
        self._positions.update({partition: self._restart_positions[partition] for partition in self._positions})
        for tp in self._topic_partitions(self._positions):
            with contextlib.suppress(KafkaException):
                consumer.seek(tp)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super()._on_assign(consumer, partitions)
        self._restart_positions.update({tp.partition: self._positions[tp.partition] for tp in partitions})

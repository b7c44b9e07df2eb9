"""What all consumer groups of the workload have in common: they join, take positions and commit them."""

import contextlib
import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.thread import CLIENT_LOG, WorkloadThread
from warren.demo.workload.topics import client_config

_MAX_POLL_S = 0.2
"""The longest time that a consumer waits for messages, and so how soon it notices `stop()`."""
REQUEST_TIMEOUT_S = 10.0
_MAX_MESSAGES_PER_POLL = 5_000

Membership = Mapping[str, str | int]
"""How a consumer is a member of its group, as settings of the client."""


@dataclass(eq=False, repr=False)
class ConsumerGroup(WorkloadThread):
    """A consumer group on one topic that consumes all messages and commits its positions every `commit_every_s`.

    A position is committed even if it has not moved. A group that has committed before continues there; a new one
    starts `behind` messages below each head.
    """

    bootstrap: str
    topic: str
    group: str
    _: KW_ONLY
    _membership: ClassVar[Membership] = {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 1_000,
    }
    _commits_when_revoked: ClassVar[bool] = True
    commit_every_s: float = 1.0
    client_id: str = ""
    behind: int = 0
    commits: int = field(init=False, default=0)
    """How many times it has committed, all partitions in one commit."""
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _committed: dict[int, int] = field(init=False, default_factory=dict)
    _positions: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.client_id = self.client_id or f"{self.group}-1"

    @property
    def name(self) -> str:
        """Its class and group."""
        return f"{type(self).__name__} group {self.group}"

    @property
    def committed(self) -> dict[int, int]:
        """The last offset that Kafka acknowledged for each partition."""
        with self._lock:
            return dict(self._committed)

    def _session(self) -> None:
        with contextlib.closing(self._consumer()) as consumer:
            self._positions = {}
            self._join(consumer)
            commit_times = itertools.accumulate(itertools.cycle(self._commit_gaps_s()), initial=time.monotonic())
            commits_at = next(commit_times)
            while not self._is_done():
                wait_s = min(max(commits_at - time.monotonic(), 0.0), _MAX_POLL_S)
                for message in consumer.consume(_MAX_MESSAGES_PER_POLL, timeout=wait_s):
                    partition, offset = message.partition(), message.offset()
                    if message.error() is None and partition in self._positions and offset is not None:
                        self._positions[partition] = offset + 1
                if time.monotonic() >= commits_at:
                    with self._tolerating_errors():
                        self._commit_positions(consumer)
                    # Without drift; times that were missed are skipped.
                    commits_at = next(at for at in commit_times if at > time.monotonic())

    def _join(self, consumer: Consumer) -> None:
        consumer.subscribe([self.topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def _commit_gaps_s(self) -> list[float]:
        return [self.commit_every_s]

    def _commit_positions(self, consumer: Consumer) -> None:
        self._commit(consumer, self._positions)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # The first position is set here, so that a partition without messages is committed as well.
        committed = consumer.committed(partitions, timeout=REQUEST_TIMEOUT_S)
        start = {tp.partition: tp.offset for tp in committed if tp.offset >= 0}
        for partition in {tp.partition for tp in partitions} - start.keys():
            log_start, head = self._watermarks(consumer, partition)
            start[partition] = max(log_start, head - self.behind)
        self._positions.update(start)
        consumer.incremental_assign(self._topic_partitions(start))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._commits_when_revoked:
            revoked = {tp.partition for tp in partitions} & self._positions.keys()
            with self._tolerating_errors():
                self._commit(consumer, {partition: self._positions[partition] for partition in revoked})
        self._on_lost(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            self._positions.pop(tp.partition, None)
        consumer.incremental_unassign(partitions)

    def _consumer(self) -> Consumer:
        config = {
            **client_config(self.bootstrap, self.client_id),
            "group.id": self.group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "latest",
            # Fetch few, large responses: many consumers share a small machine with the broker.
            "fetch.min.bytes": 1_000_000,
            "fetch.wait.max.ms": 50,
            **self._membership,
        }
        return Consumer(config, logger=CLIENT_LOG)

    def _commit(self, consumer: Consumer, offsets: Mapping[int, int]) -> None:
        """Commit and wait for the response; raises KafkaException when a partition is refused."""
        if not offsets:
            return
        results = consumer.commit(offsets=self._topic_partitions(offsets), asynchronous=False)
        if errors := [result.error for result in results if result.error is not None]:
            raise KafkaException(errors[0])
        self._count_commit(offsets)

    def _count_commit(self, offsets: Mapping[int, int]) -> None:
        with self._lock:
            self._committed.update(offsets)
            self.commits += 1

    def _topic_partitions(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()]

    def _watermarks(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        return consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=REQUEST_TIMEOUT_S)

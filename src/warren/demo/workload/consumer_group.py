"""What all consumer groups of the workload have in common: a topic and counted commits."""

import threading
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.thread import CLIENT_LOG, WorkloadThread
from warren.demo.workload.topics import client_config

MAX_POLL_S = 0.2
"""The longest time that a consumer waits for messages, and so how soon it notices `stop()`."""
REQUEST_TIMEOUT_S = 10.0


@dataclass(eq=False, repr=False)
class ConsumerGroup(WorkloadThread):
    """A consumer group on one topic that commits every `commit_every_s`, in the way its class defines."""

    bootstrap: str
    topic: str
    group: str
    _: KW_ONLY
    commit_every_s: float = 1.0
    client_id: str = ""
    commits: int = field(init=False, default=0)
    """How many times it has committed, all partitions in one commit."""
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _committed: dict[int, int] = field(init=False, default_factory=dict)

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
        consumer = self._consumer()
        try:
            self._work(consumer)
        finally:
            consumer.close()

    def _work(self, consumer: Consumer) -> None:
        """Subscribe and commit until `_is_done()`."""
        raise NotImplementedError

    def _membership(self) -> dict[str, str | int]:
        return {
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1_000,
        }

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
            **self._membership(),
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

    def _last_committed(self, consumer: Consumer, partitions: list[int]) -> dict[int, int]:
        """What the group has committed for these partitions; partitions without a commit are left out."""
        requested = [TopicPartition(self.topic, partition) for partition in partitions]
        committed = consumer.committed(requested, timeout=REQUEST_TIMEOUT_S)
        return {tp.partition: tp.offset for tp in committed if tp.offset >= 0}

    def _watermarks(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        return consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=REQUEST_TIMEOUT_S)

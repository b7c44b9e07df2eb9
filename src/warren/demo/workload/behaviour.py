"""What all consumers that behave on command share: group, topic, counted commits and an expected verdict."""

import threading
import time
from collections.abc import Mapping
from typing import ClassVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.topics import client_config
from warren.demo.workload.worker import CLIENT_LOG, Worker
from warren.errors import DemoError

OK = frozenset({"OK"})
WARN = frozenset({"WARN"})
STOP = frozenset({"STOP"})
STALL = frozenset({"STALL"})
REWIND = frozenset({"REWIND"})

POLL_S = 0.2
"""The longest that a consumer looks at nothing but its queue, and so how soon it notices `stop()`."""
ASK_S = 10.0


class Behaviour(Worker):
    """A consumer group on one topic that commits by a rule of its own every `commit_every_s`.

    `expected` names the verdicts its partitions may get once it has settled; until then they are those or OK.
    """

    expected: ClassVar[frozenset[str]] = OK
    kind: ClassVar[str] = ""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        commit_every_s: float = 1.0,
        client_id: str | None = None,
    ) -> None:
        super().__init__(f"{self.kind} group {group}")
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = group
        self.commit_every_s = commit_every_s
        self.client_id = client_id or f"{group}-1"
        self._known = threading.Condition()
        self._commits = 0
        self._committed: dict[int, int] = {}

    @property
    def expected_group_status(self) -> frozenset[str]:
        """The statuses its group may get, where STOP, STALL and REWIND are shown as ERR."""
        return frozenset("ERR" if status in STOP | STALL | REWIND else status for status in self.expected)

    @property
    def commits(self) -> int:
        """How often it has committed, all its partitions counting as one."""
        return self._commits

    @property
    def committed(self) -> dict[int, int]:
        """The last offset that Kafka acknowledged for each partition."""
        with self._known:
            return dict(self._committed)

    def wait_for_commits(self, count: int, timeout_s: float = 60.0) -> None:
        """Wait until it has committed so many times since it was made."""
        deadline = time.monotonic() + timeout_s
        with self._known:
            while self._commits < count:
                self.check()
                if time.monotonic() > deadline:
                    raise DemoError(f"{self.name}: {self._commits} of {count} commits within {timeout_s:g} s")
                self._known.wait(POLL_S)

    def settles_after_s(self, intervals: int = 10, trigger_s: float = 10.0) -> float:
        """How long after its start the verdict is one of `expected`, for windows of so many commits.

        `trigger_s` is the time between two looks at the heads. Sampling error comes on top: a rise that is
        small against what is produced within one trigger takes longer to be told from noise.
        """
        return 0.0 if self.expected == OK else (intervals + 1) * self.commit_every_s + 2 * trigger_s

    def _config(self) -> dict[str, str | int | float | bool]:
        return {
            **client_config(self.bootstrap, self.client_id),
            "group.id": self.group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "latest",
            # Fetch in few, larger answers: many consumers share a small machine with the broker.
            "fetch.min.bytes": 1_000_000,
            "fetch.wait.max.ms": 50,
            **self._membership(),
        }

    def _membership(self) -> dict[str, str | int]:
        return {
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1_000,
        }

    def _consumer(self) -> Consumer:
        return Consumer(self._config(), logger=CLIENT_LOG)

    def _commit(self, consumer: Consumer, offsets: Mapping[int, int]) -> None:
        """Commit and wait for the answer; raises KafkaException when it is a no."""
        if not offsets:
            return
        answers = consumer.commit(offsets=self._places(offsets), asynchronous=False)
        if refused := [answer.error for answer in answers if answer.error is not None]:
            raise KafkaException(refused[0])
        self._note_commit(offsets)

    def _note_commit(self, offsets: Mapping[int, int]) -> None:
        with self._known:
            self._committed.update(offsets)
            self._commits += 1
            self._known.notify_all()

    def _places(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()]

    def _committed_before(self, consumer: Consumer, partitions: list[int]) -> dict[int, int]:
        """What the group has committed for these partitions, without those it never committed."""
        asked = [TopicPartition(self.topic, partition) for partition in partitions]
        return {at.partition: at.offset for at in consumer.committed(asked, timeout=ASK_S) if at.offset >= 0}

    def _watermarks(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        return consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=ASK_S)

"""Groups whose lag in time is known: one topic per group, and of every message when it was appended."""

import math
import re
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Message, TopicPartition

from tests.kit.kafka import create_timed_topics, delete_topic
from warren.demo.workload.thread import WorkloadThread
from warren.demo.workload.topics import PAYLOAD, admin, create_topics, new_producer

TICK_S = 0.25
COMMIT_TIMEOUT_S = 5.0
HISTORY_EVERY_MS, HISTORY_MS = 5_000, 3_600_000
"""How far apart the timestamps of messages of the past are, and how far they reach back before where a group starts."""
APPEND_TIME, CREATE_TIME = "LogAppendTime", "CreateTime"
TO_THE_HEAD = math.inf


class Phase(IntEnum):
    """Where a Warren is in its life; groups change what they do from phase to phase."""

    EARLY = 0
    """Warren is not there yet."""
    STARTING = 1
    """It was started for the first time, and has published nothing."""
    WATCHING = 2
    DOWN = 3
    BACK = 4
    """It was started again."""


@dataclass
class TimedLog:
    """A topic from its creation to its deletion: of each message, by offset, its timestamp and when it was appended.

    That is known within bounds: from when it was sent, or the broker's own time, to when it was acknowledged.
    """

    created_ms: int
    deleted_ms: float = math.inf
    record_ms: list[int] = field(default_factory=list)
    appended_ms: list[tuple[int, int]] = field(default_factory=list)

    @property
    def head(self) -> int:
        return len(self.record_ms)


@dataclass
class TimedGroup:
    """A group on a topic of its own, with the rates per second at which it is written and read in each phase."""

    scenario: str
    timestamps: str
    produced: Sequence[float]
    consumed: Sequence[float]
    behind: int = 0
    """How many messages it stays below the head at least."""
    burst_s: float = 0.0
    """How often messages are sent: those of so many seconds at once."""
    age_ms: Sequence[int] = (0, 0, 0, 0, 0)
    """How much older than now the timestamps of the messages are."""
    starts_behind_ms: int = 0
    """The topic begins with messages of the past, and the group with the one whose timestamp is so long ago."""
    is_created_again: bool = False
    """Whether its topic is deleted and created again as soon as Warren watches."""
    logs: list[TimedLog] = field(default_factory=list)
    position: float = 0.0
    committed: int = -1
    due: float = 0.0
    sent_at: float = 0.0
    commit: "Future[Any] | None" = None

    @property
    def name(self) -> str:
        """The name of the group and of its topic."""
        return re.sub(r"\W+", "-", f"{self.scenario} {self.timestamps}").lower()

    @property
    def log(self) -> TimedLog:
        """The topic as it is now."""
        return self.logs[-1]

    def log_at(self, time_ms: int, noticed_ms: int) -> TimedLog | None:
        """The topic at a time; None when it was being deleted and created again, or Warren may not know it yet."""
        first = self.logs[0]
        known = (log for log in self.logs if log is first or log.created_ms + noticed_ms <= time_ms)
        return next((log for log in known if time_ms < log.deleted_ms), None)


class TimedWorkload(WorkloadThread):
    """Writes and reads the topics of timed groups on one Kafka, in one thread."""

    def __init__(self, bootstrap: str, groups: Sequence[TimedGroup]) -> None:
        super().__init__()
        self.groups = groups
        self.phase = Phase.EARLY
        self._bootstrap = bootstrap
        # One request at a time, so that messages keep their order.
        settings: dict[str, str | int | bool] = {"linger.ms": 0, "acks": "all", "max.in.flight": 1}
        self._producer = new_producer(bootstrap, "timed-groups", settings)
        self._admin = admin(bootstrap)
        self._failed: list[KafkaError] = []

    @property
    def name(self) -> str:
        """What the thread is called in errors."""
        return "timed groups"

    def prepare(self) -> None:
        """Create the topics, and write the messages with which they begin."""
        for timestamps, create in ((APPEND_TIME, create_timed_topics), (CREATE_TIME, create_topics)):
            create(self._bootstrap, {g.name: 1 for g in self.groups if g.timestamps == timestamps})
        for group in self.groups:
            group.logs.append(TimedLog(_now_ms()))
            if group.starts_behind_ms:
                until_ms, group.position = _now_ms(), float(HISTORY_MS // HISTORY_EVERY_MS)
                from_ms = until_ms - group.starts_behind_ms - HISTORY_MS
                for time_ms in range(from_ms, until_ms, HISTORY_EVERY_MS):
                    self._send(group, time_ms)
        self._flush()

    def finish(self) -> None:
        """End the thread and wait until all messages are acknowledged."""
        self.stop()
        self._flush()

    def _flush(self) -> None:
        assert self._producer.flush(60) == 0
        assert not self._failed, f"a message was refused: {self._failed[0]}"

    def _session(self) -> None:
        before = time.monotonic()
        while not self._is_done():
            phase, now = self.phase, time.monotonic()
            for group in self.groups:
                if phase >= Phase.WATCHING and group.is_created_again and len(group.logs) == 1:
                    self._create_again(group)
                self._write(group, phase, now, now - before)
                self._read(group, phase, now - before)
            before = now
            while (left := now + TICK_S - time.monotonic()) > 0:
                self._producer.poll(left)

    def _write(self, group: TimedGroup, phase: Phase, now: float, elapsed_s: float) -> None:
        group.due += group.produced[phase] * elapsed_s
        if now - group.sent_at < group.burst_s:
            return
        group.sent_at, count = now, int(group.due)
        group.due -= count
        for _ in range(count):
            self._send(group, _now_ms() - group.age_ms[phase])

    def _send(self, group: TimedGroup, time_ms: int) -> None:
        appended = partial(self._appended, group.log, group.timestamps, _now_ms())
        self._producer.produce(group.name, PAYLOAD, partition=0, timestamp=time_ms, on_delivery=appended)

    def _appended(
        self, log: TimedLog, timestamps: str, sent_ms: int, error: KafkaError | None, message: Message
    ) -> None:
        if error is not None or message.offset() != log.head:
            self._failed.append(error or KafkaError(KafkaError.UNKNOWN, f"offset {message.offset()}, not {log.head}"))
            return
        _, time_ms = message.timestamp()
        log.record_ms.append(time_ms)
        log.appended_ms.append((time_ms if timestamps == APPEND_TIME else sent_ms, _now_ms()))

    def _read(self, group: TimedGroup, phase: Phase, elapsed_s: float) -> None:
        """Move the group on, and commit where it is, if the last commit was answered."""
        rate, head = group.consumed[phase], group.log.head - group.behind
        if rate > 0:
            moved = head if rate == TO_THE_HEAD else group.position + rate * elapsed_s
            group.position = max(min(moved, head), 0.0)
        if group.commit is not None and group.commit.done():
            # A coordinator that has just started reads its offsets partition first.
            if not is_committed(group.commit):
                group.committed = -1
            group.commit = None
        if group.commit is None and group.committed != int(group.position):
            group.committed = int(group.position)
            offset = TopicPartition(group.name, 0, group.committed)
            request = ConsumerGroupTopicPartitions(group.name, [offset])
            group.commit = self._admin.alter_consumer_group_offsets([request], request_timeout=COMMIT_TIMEOUT_S)[
                group.name
            ]

    def _create_again(self, group: TimedGroup) -> None:
        self._flush()
        group.log.deleted_ms = _now_ms()
        delete_topic(self._bootstrap, group.name)
        create = create_timed_topics if group.timestamps == APPEND_TIME else create_topics
        create(self._bootstrap, {group.name: 1})
        group.logs.append(TimedLog(_now_ms()))
        group.position, group.committed, group.commit = 0.0, -1, None


def is_committed(commit: "Future[Any]") -> bool:
    """Whether a commit by an admin client was accepted, for all partitions."""
    return commit.exception() is None and all(answer.error is None for answer in commit.result().topic_partitions)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""The partitions of topics as one array: their leaders, and the requests for their offsets."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaException, TopicPartition

from warren.domain.arrays import Bools, Codes, Ints
from warren.domain.past_heads import NOTHING_SINCE
from warren.domain.windows import UNKNOWN
from warren.kafka.admin import Admin, OffsetRequest, OffsetsFuture, TopicDescription, batches
from warren.kafka.samples import Partition, Topic

# librdkafka searches a request's list once per answer in it, so the cost grows with the square of its size. With
# 200 partitions that is less than the round trip; one request of 5,000 partitions cost six times as much.
MAX_REQUEST_PARTITIONS = 200
# When some broker has answered, the next answer may take so long: one broker that is gone must not take up a sample.
_GRACE_S = 2.0
_UNRESPONSIVE_GRACE_S = 0.5
_NO_ANSWER = -1001

_ReadAnswer = Callable[[OffsetRequest, OffsetsFuture, float], Ints]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLayout:
    """Topics sorted by name and, for all their partitions in order, the leader of each.

    `starts` is the index of the first partition of each topic.
    """

    topics: tuple[Topic, ...]
    starts: Ints
    leaders: Codes

    @classmethod
    def of(cls, described: Mapping[str, TopicDescription]) -> Self:
        """The layout of these topics."""
        named = sorted((name, topic) for name, topic in described.items() if len(topic.leaders))
        topics = tuple(Topic(name, topic.id, len(topic.leaders)) for name, topic in named)
        counts = np.array([topic.partitions for topic in topics], np.int64)
        leaders = np.concatenate([np.empty(0, np.int32), *(topic.leaders for _, topic in named)])
        return cls(topics, np.cumsum(counts) - counts, leaders)

    def equals(self, other: Self | None) -> bool:
        """Whether the other has the same topics with the same leaders."""
        return other is not None and self.topics == other.topics and np.array_equal(self.leaders, other.leaders)

    def start_by_topic(self) -> dict[str, int]:
        """The index of the first partition of each topic."""
        return {topic.name: start for topic, start in zip(self.topics, self.starts.tolist(), strict=True)}

    def locate(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[str, int]]:
        """The id of its topic and the index of each of these partitions that exists."""
        topics = {topic.name: (topic, start) for topic, start in zip(self.topics, self.starts.tolist(), strict=True)}
        found = {(name, number): topics[name] for name, number in partitions if name in topics}
        return {
            (name, number): (topic.id, start + number)
            for (name, number), (topic, start) in found.items()
            if number < topic.partitions
        }

    def mark_whole_topics(self, is_marked: Bools) -> Bools:
        """Mark every partition of each topic that has a marked partition."""
        if not len(self.topics):
            return is_marked
        return np.repeat(np.logical_or.reduceat(is_marked, self.starts), [t.partitions for t in self.topics])


@dataclass(frozen=True, slots=True)
class _LeaderRequests:
    leader: int
    indices: npt.NDArray[np.intp]
    requests: list[OffsetRequest]


class OffsetQuery:
    """Reads the latest or earliest offset of every partition that has a leader, or the first one from a time on.

    Built once, sent many times.
    """

    def __init__(self, layout: PartitionLayout, offset_spec: int) -> None:
        self.partitions = int(np.count_nonzero(layout.leaders != UNKNOWN))
        """How many partitions have a leader."""
        self.unresponsive: frozenset[int] = frozenset()
        """The leaders that answered nothing when they were last asked."""
        self._size = len(layout.leaders)
        # A request has the partitions of one leader: librdkafka fails a whole request when it does not find one of
        # its leaders, and a broker that is down must not fail the requests to others.
        self._leaders: list[_LeaderRequests] = []
        for leader in np.unique(layout.leaders[layout.leaders != UNKNOWN]).tolist():
            indices = np.flatnonzero(layout.leaders == leader)
            topic = np.searchsorted(layout.starts, indices, side="right") - 1
            partition = indices - layout.starts[topic]
            partitions = [
                TopicPartition(layout.topics[t].name, p, offset_spec)
                for t, p in zip(topic.tolist(), partition.tolist(), strict=True)
            ]
            requests = batches(partitions, MAX_REQUEST_PARTITIONS)
            self._leaders.append(_LeaderRequests(leader, indices, requests))

    def send(self, admin: Admin, isolation: int, deadline: float) -> Callable[[], Ints]:
        """Send the requests; the result waits for the offsets, which are UNKNOWN where no answer came in time."""
        receive = self._send(admin, isolation, deadline, (to_offsets,))
        return lambda: receive()[0]

    def send_by_time(self, admin: Admin, isolation: int, deadline: float) -> Callable[[], Ints]:
        """Send the requests by time; the result waits for the offsets, and has the timestamps of their records too."""
        return self._send(admin, isolation, deadline, (to_offsets, to_timestamps))

    def _send(
        self, admin: Admin, isolation: int, deadline: float, columns: Sequence[_ReadAnswer]
    ) -> Callable[[], Ints]:
        """Send the requests; the result waits for the answers, and has one row per column that is read from them."""
        # A leader that did not answer last time comes last and gets little time, until it answers again.
        leaders = sorted(self._leaders, key=lambda leader: leader.leader in self.unresponsive)
        futures = [[admin.list_offsets(r, isolation, deadline) for r in leader.requests] for leader in leaders]

        def receive() -> Ints:
            values = np.full((len(columns), self._size), UNKNOWN, np.int64)
            every = [answer for answers in futures for answer in answers]
            wait(every, max(deadline - time.monotonic(), 0.0), FIRST_COMPLETED)
            for leader, answers in zip(leaders, futures, strict=True):
                grace_s = _UNRESPONSIVE_GRACE_S if leader.leader in self.unresponsive else _GRACE_S
                found = []
                for request, answer in zip(leader.requests, answers, strict=True):
                    until = min(time.monotonic() + grace_s, deadline)
                    found.append([read(request, answer, until) for read in columns])
                    grace_s = grace_s if answer.done() else 0.0
                values[:, leader.indices] = np.concatenate(found, axis=1)
                is_silent = (values[0, leader.indices] == UNKNOWN).all()
                change = self.unresponsive.union if is_silent else self.unresponsive.difference
                self.unresponsive = change({leader.leader})
            return values

        return receive


def to_offsets(request: OffsetRequest, future: OffsetsFuture, deadline: float) -> Ints:
    """The offsets in the order of the request, UNKNOWN where no answer came in time.

    A request by time is answered NOTHING_SINCE where there is no record from that time on.
    """
    answers = _answers(future, deadline)
    try:
        offsets = np.fromiter(map(attrgetter("offset"), map(answers.get, request)), np.int64, len(request))
    except AttributeError:  # some of the answers are errors, which have no offset
        known = (getattr(answers.get(tp), "offset", _NO_ANSWER) for tp in request)
        offsets = np.fromiter(known, np.int64, len(request))
    is_by_time = bool(request) and request[0].offset >= 0
    # After the death of a broker, librdkafka's own value for "no offset" is below 0 as well.
    return np.where(offsets >= 0, offsets, np.where(is_by_time & (offsets == -1), NOTHING_SINCE, UNKNOWN))


def to_timestamps(request: OffsetRequest, future: OffsetsFuture, deadline: float) -> Ints:
    """The timestamps of the records that a request by time was answered with, UNKNOWN where there is none."""
    answers = _answers(future, deadline)
    return np.fromiter((getattr(answers.get(tp), "timestamp", UNKNOWN) for tp in request), np.int64, len(request))


def _answers(future: OffsetsFuture, deadline: float) -> Mapping[TopicPartition, Any]:
    """The answers to a request, none if they did not come in time."""
    try:
        return future.result(max(deadline - time.monotonic(), 0.001))
    except (KafkaException, TimeoutError):
        return {}

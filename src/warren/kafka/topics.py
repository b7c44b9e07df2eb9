"""All partitions of some topics in one row: who leads them, and the requests that ask for their offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warren.domain.windows import UNKNOWN
from warren.kafka.admin import REQUEST_SIZE, Admin, Request, TopicLayout, to_request
from warren.kafka.samples import Offsets, Topic

_GRACE_S = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Topics by name and, in the order of topics x partitions, the leader of each partition."""

    topics: tuple[Topic, ...]
    starts: npt.NDArray[np.int64]
    leaders: npt.NDArray[np.int32]

    @classmethod
    def of(cls, described: Mapping[str, TopicLayout]) -> Layout:
        """Lays the partitions of these topics in a row."""
        named = sorted((name, topic) for name, topic in described.items() if len(topic.leaders))
        topics = tuple(Topic(name, topic.id, len(topic.leaders)) for name, topic in named)
        counts = np.array([topic.partitions for topic in topics], np.int64)
        leaders = np.concatenate([np.empty(0, np.int32), *(topic.leaders for _, topic in named)])
        return cls(topics, np.cumsum(counts) - counts, leaders)

    def same_as(self, other: Layout | None) -> bool:
        """Whether these are the same topics with the same leaders."""
        return other is not None and self.topics == other.topics and np.array_equal(self.leaders, other.leaders)

    def anywhere_in_topic(self, is_marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Marks every partition of a topic of which one is marked."""
        if not len(self.topics):
            return is_marked
        return np.repeat(np.logical_or.reduceat(is_marked, self.starts), [t.partitions for t in self.topics])


@dataclass(frozen=True, slots=True)
class _Leader:
    id: int
    order: npt.NDArray[np.intp]
    requests: list[Request]


class OffsetQuery:
    """The latest or earliest offset of every partition that has a leader: made once, asked many times."""

    def __init__(self, layout: Layout, kind: int) -> None:
        self._size = len(layout.leaders)
        self._mute: set[int] = set()
        names = [topic.name for topic in layout.topics]
        # A request holds partitions of one leader only: librdkafka fails a request as a whole when one of its
        # leaders cannot be found, and a broker that is down must not take the answers of others with it.
        self._leaders: list[_Leader] = []
        for leader in np.unique(layout.leaders[layout.leaders != UNKNOWN]).tolist():
            order = np.flatnonzero(layout.leaders == leader)
            topic = np.searchsorted(layout.starts, order, side="right") - 1
            partition = order - layout.starts[topic]
            asked = to_request([names[t] for t in topic.tolist()], partition.tolist(), kind)
            requests = [asked[i : i + REQUEST_SIZE] for i in range(0, len(asked), REQUEST_SIZE)]
            self._leaders.append(_Leader(leader, order, requests))

    @property
    def mute(self) -> frozenset[int]:
        """The leaders of which nothing was heard when they were last asked."""
        return frozenset(self._mute)

    @property
    def partitions(self) -> int:
        """How many partitions have a leader to ask."""
        return sum(len(leader.order) for leader in self._leaders)

    def ask(self, admin: Admin, isolation: int, deadline: float) -> Callable[[], Offsets]:
        """Sends the requests; what it gives waits for the answers, UNKNOWN where none came in time."""
        # A leader that said nothing last time comes last and is hardly waited for, until it speaks again.
        leaders = sorted(self._leaders, key=lambda leader: leader.id in self._mute)
        futures = [admin.ask_offsets(leader.requests, isolation, deadline) for leader in leaders]

        def take() -> Offsets:
            found = np.full(self._size, UNKNOWN, np.int64)
            for leader, asked in zip(leaders, futures, strict=True):
                is_mute = leader.id in self._mute
                until = min(time.monotonic() + _GRACE_S, deadline) if is_mute else deadline
                offsets = admin.take_offsets(leader.requests, asked, until)
                found[leader.order] = offsets
                if (offsets == UNKNOWN).all():
                    self._mute.add(leader.id)
                else:
                    self._mute.discard(leader.id)
            return found

        return take

"""Groups that fetch nothing: their commits are computed, so that they are as exact as their rule."""

import time
from typing import ClassVar

from confluent_kafka import Consumer, TopicPartition

from warren.demo.workload.behaviour import ASK_S, OK, POLL_S, REWIND, STALL, WARN, Behaviour
from warren.demo.workload.worker import Schedule


class Committer(Behaviour):
    """A member of its group whose partitions are paused; each commit is what `_offset` says.

    A group that has committed before goes on from there; a new one begins `behind` messages below each head.
    """

    def __init__(self, bootstrap: str, topic: str, group: str, *, commit_every_s: float = 1.0, behind: int = 0) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s)
        self.behind = behind
        self._partitions: list[int] = []
        self._origins: dict[int, tuple[int, float]] = {}
        self._turn = 0

    def _reset(self) -> None:
        self._origins = {}
        self._turn = 0

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        """What to commit now; `_origins` says at which offset and when each partition began."""
        raise NotImplementedError

    def _session(self) -> None:
        self._partitions = []
        consumer = self._consumer()
        try:
            self._join(consumer)
            schedule = Schedule([self.commit_every_s])
            while not self._is_done():
                consumer.poll(schedule.wait_s(POLL_S))
                if self._partitions and (not self._origins or schedule.is_due()):
                    with self._going_on():
                        self._take_turn(consumer)
        finally:
            consumer.close()

    def _join(self, consumer: Consumer) -> None:
        consumer.subscribe([self.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._partitions = sorted({*self._partitions, *(each.partition for each in partitions)})
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = {each.partition for each in partitions}
        self._partitions = [partition for partition in self._partitions if partition not in gone]
        consumer.incremental_unassign(partitions)

    def _take_turn(self, consumer: Consumer) -> None:
        ends = {partition: self._watermarks(consumer, partition) for partition in self._partitions}
        now_s = time.monotonic()
        unknown = [partition for partition in ends if partition not in self._origins]
        if unknown:
            before = self._committed_before(consumer, unknown)
            for partition in unknown:
                low, head = ends[partition]
                self._origins[partition] = max(low, before.get(partition, head - self.behind)), now_s
        self._commit(consumer, {at: self._offset(at, head, now_s) for at, (_, head) in ends.items()})
        self._turn += 1


class AssignOnly(Committer):
    """Takes its partitions with `assign()`, is no member of any group, and commits the heads: always OK."""

    expected: ClassVar[frozenset[str]] = OK
    kind: ClassVar[str] = "assign-only"

    def _join(self, consumer: Consumer) -> None:
        found = consumer.list_topics(self.topic, timeout=ASK_S).topics[self.topic].partitions
        places = [TopicPartition(self.topic, partition) for partition in found]
        consumer.assign(places)
        consumer.pause(places)
        self._partitions = sorted(found)

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        return head


class Paced(Committer):
    """Reads `fraction` of what is produced, exactly paced by the clock, and never past a head.

    Time spent waiting at a head is lost: it does not read faster afterwards.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        produced_rate: float,
        fraction: float,
        behind: int = 0,
        commit_every_s: float = 1.0,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s, behind=behind)
        self.produced_rate = produced_rate
        self.fraction = fraction

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        origin, began_s = self._origins[partition]
        rate = self.fraction * self.produced_rate / len(self._partitions)
        wanted = origin + int(rate * (now_s - began_s))
        if wanted >= head:
            self._origins[partition] = head, now_s
        return min(wanted, head)


class Slow(Paced):
    """Reads only `fraction` (less than 1) of the `produced_rate` of its topic: WARN.

    From `behind=0` it is OK as long as a lag of (about) nothing is in its window.
    """

    expected: ClassVar[frozenset[str]] = WARN
    kind: ClassVar[str] = "slow"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        produced_rate: float,
        fraction: float = 0.99,
        behind: int = 0,
        commit_every_s: float = 1.0,
    ) -> None:
        super().__init__(
            bootstrap,
            topic,
            group,
            produced_rate=produced_rate,
            fraction=fraction,
            behind=behind,
            commit_every_s=commit_every_s,
        )


class CatchingUp(Paced):
    """Begins `behind` messages below each head, reads `fraction` (over 1) of the produced rate: OK."""

    expected: ClassVar[frozenset[str]] = OK
    kind: ClassVar[str] = "catching-up"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        produced_rate: float,
        fraction: float = 1.5,
        behind: int = 10_000,
        commit_every_s: float = 1.0,
    ) -> None:
        super().__init__(
            bootstrap,
            topic,
            group,
            produced_rate=produced_rate,
            fraction=fraction,
            behind=behind,
            commit_every_s=commit_every_s,
        )


class Stalled(Committer):
    """Commits the same offset again and again while the head moves on: STALL."""

    expected: ClassVar[frozenset[str]] = STALL
    kind: ClassVar[str] = "stalled"

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        return self._origins[partition][0]


class Rewinding(Committer):
    """Reads `step` messages a commit and every `every` commits seeks back to where it began: REWIND.

    Each time it begins one message lower than the time before, so no window with a fall ever recovers.
    """

    expected: ClassVar[frozenset[str]] = REWIND
    kind: ClassVar[str] = "rewinding"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        commit_every_s: float = 1.0,
        behind: int = 1_000,
        every: int = 5,
        step: int = 50,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s, behind=behind)
        self.every = every
        self.step = step

    def _offset(self, partition: int, head: int, now_s: float) -> int:
        # The first commit is the top of a tooth, so that the second one falls already.
        return rewound_offset(self._origins[partition][0], self._turn + self.every - 1, self.every, self.step)


def rewound_offset(origin: int, turn: int, every: int, step: int) -> int:
    """A saw whose teeth sink by one message each."""
    tooth, place = divmod(turn, every)
    return max(0, origin - tooth + place * step)

"""A reader of ZooKeeper in this process, and what it gives to the cycles."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.kit.warrens import wait_for
from tests.kit.znodes import OldConsumers
from tests.kit.zookeeper import ZooKeeperServer
from warren.sources.zookeeper.layouts import ConsumersLayout
from warren.sources.zookeeper.reader import ZooKeeperReader
from warren.sources.zookeeper.samples import Ack, ReadTarget, ZooKeeperSample

Offset = tuple[str, str, int, int]
"""A group, a topic, a partition and an offset."""


@dataclass
class Taker:
    """Takes samples as cycles do, each published at once, from a reader in this process."""

    target: ReadTarget
    changes: list[Offset] = field(default_factory=list)
    tombstones: list[tuple[str, str, int]] = field(default_factory=list)
    owners: dict[str, dict[tuple[str, int], str]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    sample: ZooKeeperSample = field(default_factory=lambda: ZooKeeperSample("zk"))

    def __post_init__(self) -> None:
        self._answers: queue.SimpleQueue[ZooKeeperSample] = queue.SimpleQueue()
        self._ack: Ack | None = None
        self.reader = ZooKeeperReader(self.target, lambda _, sample: self._answers.put(sample))

    def take(self) -> ZooKeeperSample:
        self.reader.request(1, self._ack)
        self.sample = sample = self._answers.get(timeout=10.0)
        for row in sample.changes.to_pylist():
            key = (row["group"], row["topic"], row["partition"])
            if row["is_tombstone"]:
                self.tombstones.append(key)
            else:
                self.changes.append((*key, row["offset"]))
        for group in sample.owner_groups:
            self.owners[group] = {}
        for row in sample.owners.to_pylist():
            self.owners[row["group"]][row["topic"], row["partition"]] = row["owner"]
        self.reasons += sample.rejects["reason"].to_pylist()
        if sample.is_listed:
            self._ack = Ack(sample.instance, sample.version)
        return sample

    def until(self, holds: Callable[[], object], what: str) -> None:
        def is_so() -> bool:
            self.take()
            return bool(holds())

        wait_for(is_so, what, 60.0)


@contextlib.contextmanager
def reading(target: ReadTarget) -> Iterator[Taker]:
    taker = Taker(target)
    try:
        yield taker
    finally:
        taker.reader.close()


def target_of(server: ZooKeeperServer, znodes: OldConsumers) -> ReadTarget:
    return ReadTarget("zk", "local", (server.address,), ConsumersLayout(f"{znodes.chroot}/consumers"), timeout_s=4.0)

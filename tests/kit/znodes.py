"""Offsets in ZooKeeper, written as Kafka's old consumers and Storm's spouts write them."""

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping

from kazoo.client import KazooClient

from warren.demo.workload.thread import WorkloadThread
from warren.sources.zookeeper.session import new_client


class OldConsumers:
    """The znodes below a chroot; formats are those of Kafka 0.8's ZkUtils and of storm-kafka's PartitionManager."""

    def __init__(self, client: KazooClient, chroot: str) -> None:
        self.client = client
        self.chroot = chroot

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit as the high-level consumer of Kafka 0.8 does."""
        self.write(f"/consumers/{group}/offsets/{topic}/{partition}", str(offset).encode())

    def own(self, group: str, topic: str, partition: int, owner: str | None) -> None:
        """Own a partition as a consumer of Kafka 0.8 does, or give it up."""
        path = f"{self.chroot}/consumers/{group}/owners/{topic}/{partition}"
        if owner is None:
            self.client.delete(path)
        else:
            self.client.create(path, owner.encode(), ephemeral=True, makepath=True)

    def spout(self, spout: str, topic: str, partition: int, offset: int, *, has_topic_level: bool = False) -> None:
        """Write the state of a partition as storm-kafka does."""
        state = {
            "topology": {"id": "3c7a1c2e-orders", "name": "orders"},
            "offset": offset,
            "partition": partition,
            "broker": {"host": "kafka-01.example.com", "port": 9092},
            "topic": topic,
        }
        level = f"{topic}/" if has_topic_level else ""
        self.write(f"/{spout}/{level}partition_{partition}", json.dumps(state, separators=(",", ":")).encode())

    def write(self, path: str, value: bytes) -> None:
        """Write any value to any znode below the chroot."""
        path = self.chroot + path
        if self.client.exists(path):
            self.client.set(path, value)
        else:
            self.client.create(path, value, makepath=True)

    def delete(self, path: str) -> None:
        """Delete a znode and all below it."""
        self.client.delete(self.chroot + path, recursive=True)


class StalledInZooKeeper(WorkloadThread):
    """A group that commits the same offsets again and again."""

    def __init__(self, znodes: OldConsumers, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        super().__init__()
        self._znodes = znodes
        self._group = group
        self._topic = topic
        self._offsets = offsets

    @property
    def name(self) -> str:
        """The group."""
        return self._group

    def _session(self) -> None:
        while not self._stopping.wait(1.0):
            for partition, offset in self._offsets.items():
                self._znodes.commit(self._group, self._topic, partition, offset)


@contextlib.contextmanager
def old_consumers(address: str, chroot: str | None = None) -> Iterator[OldConsumers]:
    """A session with a chroot of its own."""
    client = new_client([address], 10.0)
    client.start()
    try:
        yield OldConsumers(client, f"/kafka-{uuid.uuid4().hex[:8]}" if chroot is None else chroot)
    finally:
        client.stop()
        client.close()

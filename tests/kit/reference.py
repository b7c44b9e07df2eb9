"""What the windows must be, computed straight from the records of an offsets topic, one at a time."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.kit.warrens import Seen
from warren.kafka.records.commits import RecordKind, decode_commits, decode_keys

Key = tuple[str, str, int]
"""Group, topic, partition."""
Slot = tuple[int, int, int]
"""Offset, time in ms, order."""


@dataclass(frozen=True)
class Record:
    """One message of a topic."""

    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


def read_topic(bootstrap: str, topic: str) -> list[Record]:
    """All that a topic holds now, without what was aborted."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "integration-reference",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in partitions}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        records: list[Record] = []
        unread = {partition for partition, end in ends.items() if end > 0}
        while unread:
            for message in consumer.consume(10_000, timeout=0.2):
                partition, offset, error = message.partition() or 0, message.offset() or 0, message.error()
                if error is None:
                    records.append(Record(partition, offset, message.timestamp()[1], message.key(), message.value()))
                # A partition that is written to all the time has no end, one that ends with a marker no last record.
                is_end = error is not None and error.code() == KafkaError._PARTITION_EOF
                if is_end or (error is None and offset >= ends[partition] - 1):
                    unread.discard(partition)
        return records
    finally:
        consumer.close()


@dataclass
class Ring:
    """Burrow's ring of one partition, said plainly."""

    slots: list[Slot] = field(default_factory=list)

    def take(self, commit: Slot, intervals: int, min_distance_ms: int) -> None:
        """One commit: a slot of its own, or, too soon after the newest slot, in that slot with the slot's time."""
        offset, time_ms, order = commit
        if self.slots and time_ms - self.slots[-1][1] < min_distance_ms:
            self.slots[-1] = (offset, self.slots[-1][1], order)
        else:
            self.slots = [*self.slots, commit][-intervals:]


class Reference:
    """The windows of an offsets topic as they are after any positions; asked with positions that only grow."""

    def __init__(self, records: Iterable[Record], intervals: int = 10, min_distance_ms: int = 0) -> None:
        self._intervals = intervals
        self._min_distance_ms = min_distance_ms
        self._queues: dict[int, list[tuple[Key, Slot | int]]] = {}
        self._next: dict[int, int] = {}
        self._rings: dict[Key, Ring] = {}
        self.committed_ms: dict[tuple[Key, int], int] = {}
        """When each commit was made, by key and order; a slot that merges several shows the time of its first."""
        kept = sorted((r for r in records if r.key is not None), key=lambda r: (r.partition, r.offset))
        keys = decode_keys(pa.array([record.key for record in kept], pa.binary()))
        values = decode_commits(pa.array([record.value for record in kept], pa.binary()))
        groups, topics = keys.group.to_pylist(), keys.topic.to_pylist()
        for row, record in enumerate(kept):
            queue = self._queues.setdefault(record.partition, [])
            key = (groups[row], topics[row], int(keys.partition[row]))
            if keys.kind[row] == RecordKind.COMMIT:
                is_tombstone = bool(values.is_tombstone[row])
                commit = (int(values.offset[row]), int(values.time_ms[row]), record.offset)
                queue.append((key, record.offset if is_tombstone else commit))
                self.committed_ms[key, record.offset] = commit[1]
            elif keys.kind[row] == RecordKind.GROUP and record.value is None:
                queue.append(((_group_of(record.key), "", -1), record.offset))

    def windows(self, positions: Mapping[int, int]) -> dict[Key, list[Slot]]:
        """The windows from all records below these positions."""
        for partition, upto in positions.items():
            queue = self._queues.get(partition, [])
            at = self._next.get(partition, 0)
            while at < len(queue) and _order(queue[at][1]) < upto:
                self._take(*queue[at])
                at += 1
            self._next[partition] = at
        return {key: ring.slots for key, ring in self._rings.items() if ring.slots}

    def _take(self, key: Key, what: Slot | int) -> None:
        if not isinstance(what, int):
            self._rings.setdefault(key, Ring()).take(what, self._intervals, self._min_distance_ms)
        elif key[2] >= 0:
            self._rings.pop(key, None)
        else:
            self._rings = {other: ring for other, ring in self._rings.items() if other[0] != key[0]}


def _order(what: Slot | int) -> int:
    return what if isinstance(what, int) else what[2]


def _group_of(key: bytes | None) -> str:
    assert key is not None
    (length,) = struct.unpack_from(">h", key, 2)
    return key[4 : 4 + length].decode()


def windows_of(seen: Seen, cluster: str) -> dict[Key, list[Slot]]:
    """The windows that a snapshot shows for a cluster; partitions that never committed have none."""
    return {
        (group, topic, partition): list(zip(row["offsets"], row["times_ms"], row["orders"], strict=True))
        for (own, group, topic, partition), row in seen.partitions.items()
        if own == cluster and row["offsets"]
    }


def positions_of(seen: Seen, cluster: str, topic: str = "__consumer_offsets") -> dict[int, int]:
    """How far a snapshot has read an offsets topic."""
    source = seen.manifest.clusters[cluster].sources.get(topic)
    return {partition: at.next_offset for partition, at in source.positions.items()} if source else {}


def assert_windows_equal(snapshots: Iterable[Seen], cluster: str, reference: Reference) -> None:
    """Every one of these snapshots, oldest first, holds exactly the windows of the records it says it has read."""
    for seen in snapshots:
        expected = reference.windows(positions_of(seen, cluster))
        shown = windows_of(seen, cluster)
        sequence = seen.manifest.sequence
        assert shown.keys() == expected.keys(), f"snapshot {sequence}: {sorted(shown.keys() ^ expected.keys())}"
        wrong = {key: (shown[key], expected[key]) for key in expected if shown[key] != expected[key]}
        assert not wrong, f"snapshot {sequence}: shown, expected: {wrong}"

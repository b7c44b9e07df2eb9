"""Commits for the benchmarks, encoded as Kafka 4.1 writes them, in an ordinary topic that serves as offsets topic."""

import struct
import time
from collections.abc import Iterator

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS_PER_GROUP = 50
_VALUE = struct.Struct(">hqiBqB")


def group_name(number: int) -> str:
    """Groups are named as people name them, not as short as possible."""
    return f"billing-service-{number:06d}"


def topic_name(number: int) -> str:
    """A few groups share a topic."""
    return f"orders.events.{number // 4:06d}"


def base_offset(group: int, partition: int) -> int:
    """Where the log of a partition stood at first: every one somewhere else."""
    return (group // 4 * 7_919 + partition * 104_729) * 977 % 1_000_000_000


def commit_key(group: int, partition: int) -> bytes:
    """An offset-commit key, version 1."""
    name, topic = group_name(group).encode(), topic_name(group).encode()
    return struct.pack(f">hh{len(name)}sh{len(topic)}si", 1, len(name), name, len(topic), topic, partition)


def commit_value(offset: int, time_ms: int) -> bytes:
    """An offset-commit value, version 4 with empty metadata and no tagged fields."""
    return _VALUE.pack(4, offset, -1, 1, time_ms, 0)


def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create an ordinary topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def produce(bootstrap: str, topic: str, records: Iterator[tuple[int, bytes, bytes]]) -> int:
    """Send (partition, key, value) records and wait for all of them; gives their number."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
            "linger.ms": 20,
            "batch.size": 1_000_000,
        }
    )
    sent = 0
    for partition, key, value in records:
        while True:
            try:
                producer.produce(topic, key=key, value=value, partition=partition)
                break
            except BufferError:
                producer.poll(0.2)
        sent += 1
        if sent % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return sent


def commits(
    groups: range, rounds: range, step: int, offsets_partitions: int, from_ms: int | None = None, every_ms: int = 10_000
) -> Iterator[tuple[int, bytes, bytes]]:
    """`rounds` commits of every partition of the groups, `every_ms` apart and about `step` further on each time."""
    keys = [
        (g % offsets_partitions, commit_key(g, p), base_offset(g, p), (g * 31 + p * 17) % 9_000)
        for g in groups
        for p in range(PARTITIONS_PER_GROUP)
    ]
    start = from_ms if from_ms is not None else time.time_ns() // 1_000_000 - len(rounds) * every_ms
    for number, done in enumerate(rounds):
        for partition, key, base, late in keys:
            chance = (base + late * 7_919 + done * 104_729) % 997
            offset = base + done * step + chance * step // 1_000
            after_ms = number * every_ms + (late + chance) * every_ms // 10_000
            yield partition, key, commit_value(offset, start + after_ms)

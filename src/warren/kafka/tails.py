"""Verifies tails: reads where the data of a partition ends.

Transaction markers and aborted messages have offsets, but no consumer sees them. A group that has read all the data
then stays a little behind the head. The cycle names the tails to verify; each is read once per head.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from warren.domain.arrays import Ints
from warren.domain.lag import SHORT_LAG
from warren.domain.windows import UNKNOWN
from warren.kafka.admin import batches
from warren.kafka.samples import Partition
from warren.kafka.topics import PartitionLayout

_log = logging.getLogger(__name__)

_BATCH_SIZE = 200
_BATCH_TIMEOUT_S = 10.0
_MAX_VERIFIED = 20_000

_SETTINGS: dict[str, str | int | bool] = {
    "log_level": 0,
    # The consumer assigns partitions itself and commits nothing, so this group is never created.
    "group.id": "warren-tails",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 50,
    "fetch.max.bytes": 4_194_304,
    "max.partition.fetch.bytes": 262_144,
    "queued.max.messages.kbytes": 8_192,
}


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the data of a partition when its head was `head`."""

    head: int
    end: int


class Tails:
    """The verified tails of one cluster; a thread reads the requested ones, one batch after the other."""

    def __init__(self, client_config: Mapping[str, str]) -> None:
        self._config = client_config
        self._verified: dict[Partition, Tail] = {}
        self._requests: queue.SimpleQueue[dict[Partition, int]] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._is_reading = False

    def verify(self, partitions: Sequence[Partition], layout: PartitionLayout, heads: Ints) -> None:
        """Begin to read the tails of these partitions; ignored while others are being read."""
        if not partitions or self._is_reading:
            return
        start = layout.start_by_topic()
        request = {}
        for topic, partition in partitions:
            head = int(heads[start[topic] + partition]) if topic in start else UNKNOWN
            tail = self._verified.get((topic, partition))
            if head != UNKNOWN and (tail is None or tail.head != head):
                request[topic, partition] = head
        if not request:
            return
        self._is_reading = True
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_forever, daemon=True)
            self._reader.start()
        self._requests.put(request)

    def apply(self, layout: PartitionLayout, heads: Ints) -> tuple[Ints, tuple[Partition, ...]]:
        """The heads, with the end of the data in place of each verified one, and the verified partitions.

        A tail counts as verified only while the head is the one it was read at.
        """
        tails = dict(self._verified)
        if not tails:
            return heads, ()
        start = layout.start_by_topic()
        heads = heads.copy()
        verified = []
        for (topic, partition), tail in tails.items():
            if topic in start and heads[start[topic] + partition] == tail.head:
                heads[start[topic] + partition] = tail.end
                verified.append((topic, partition))
            else:
                del self._verified[topic, partition]
        return heads, tuple(verified)

    def _read_forever(self) -> None:
        consumer: Consumer | None = None
        while True:
            request = self._requests.get()
            try:
                consumer = consumer or Consumer({**_SETTINGS, **self._config})
                for batch in batches(list(request.items()), _BATCH_SIZE):
                    self._add(read_tails(consumer, dict(batch), time.monotonic() + _BATCH_TIMEOUT_S))
            except Exception as error:  # noqa: BLE001 - a tail that cannot be read counts as data
                _log.warning("tails of %d partitions could not be read: %s", len(request), error)
                self._add({partition: Tail(head, head) for partition, head in request.items()})
            finally:
                self._is_reading = False

    def _add(self, tails: Mapping[Partition, Tail]) -> None:
        if len(self._verified) + len(tails) > _MAX_VERIFIED:
            self._verified = {}
        self._verified.update(tails)


def read_tails(consumer: Consumer, heads: Mapping[Partition, int], deadline: float) -> dict[Partition, Tail]:
    """The tail of each partition up to its head; a tail that cannot be read counts as data."""
    starts = {partition: max(head - SHORT_LAG, 0) for partition, head in heads.items()}
    ends = dict(starts)
    unread = set(heads)
    consumer.assign([TopicPartition(*partition, start) for partition, start in starts.items()])
    try:
        while unread and (left_s := deadline - time.monotonic()) > 0:
            message = consumer.poll(min(left_s, 1.0))
            if message is None:
                continue
            partition = message.topic() or "", _or_unknown(message.partition())
            offset = _or_unknown(message.offset())
            if partition not in unread:
                continue
            error = message.error()
            if error is None:
                ends[partition] = offset + 1
            elif error.code() != KafkaError._PARTITION_EOF or offset < heads[partition]:
                # An error, or the start of an open transaction: its messages may become data.
                ends[partition] = heads[partition]
            if error is not None or ends[partition] >= heads[partition]:
                unread.discard(partition)
                consumer.incremental_unassign([TopicPartition(*partition)])
    finally:
        with contextlib.suppress(KafkaException):
            consumer.unassign()
    ends |= {partition: heads[partition] for partition in unread}
    return {partition: Tail(head, min(ends[partition], head)) for partition, head in heads.items()}


def _or_unknown(value: int | None) -> int:
    return UNKNOWN if value is None else value

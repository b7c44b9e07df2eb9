"""Verifies tails: reads where the data of a partition ends.

Transaction markers and aborted messages have offsets, but no consumer sees them. A group that has read all the data
then stays a little behind the head. The cycle names the tails to verify. Data that was read proves, also when the head
has moved on, that a group with a lower committed offset has something left to read.
"""

import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from confluent_kafka import KafkaError, Message

from warren.config.kafka import Connection
from warren.domain.arrays import Ints
from warren.domain.lag import SHORT_LAG
from warren.domain.windows import UNKNOWN
from warren.kafka.admin import batches
from warren.kafka.partition_reader import PartitionReader, or_unknown
from warren.kafka.samples import Partition, VerifiedTail
from warren.kafka.topics import PartitionLayout

_log = logging.getLogger(__name__)

_BATCH_SIZE = 200
_BATCH_TIMEOUT_S = 10.0
_FETCH_BYTES = 262_144
_WITHOUT_RIGHT = "until then markers of transactions at its end count as lag"
_MAX_VERIFIED = 20_000
RETRY_S = 60.0
"""After how long a tail that could not be read is to be read again."""
_NO_LOG = UNKNOWN - 1
"""In place of a head: the partition does not exist any more, or is of another topic of that name."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the data of a partition when its head was `head`; not `is_read` if it only counts as data."""

    head: int
    end: int
    is_read: bool = True
    topic_id: str = ""
    read_at: float = 0.0
    """By the monotonic clock."""


class Tails:
    """The verified tails of one cluster; a thread reads the requested ones, one batch after the other."""

    def __init__(self, cluster: str, connection: Connection) -> None:
        self._partitions = PartitionReader(cluster, connection, _FETCH_BYTES, _WITHOUT_RIGHT)
        self._lock = threading.Lock()
        self._verified: dict[Partition, Tail] = {}
        """Those that were read last come last."""
        self._requests: queue.SimpleQueue[dict[Partition, tuple[str, int]] | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._is_reading = False

    def verify(self, partitions: Sequence[Partition], layout: PartitionLayout, heads: Ints) -> None:
        """Begin to read the tails of these partitions; ignored while others are being read."""
        if not partitions or self._is_reading:
            return
        located = layout.locate(partitions)
        request = {p: (topic_id, int(heads[i])) for p, (topic_id, i) in located.items() if heads[i] != UNKNOWN}
        with self._lock:
            known = {partition: (tail.topic_id, tail.head) for partition, tail in self._verified.items()}
        request = {partition: at for partition, at in request.items() if known.get(partition) != at}
        if not request:
            return
        self._is_reading = True
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_forever, daemon=True)
            self._reader.start()
        self._requests.put(request)

    def apply(self, layout: PartitionLayout, heads: Ints) -> tuple[Ints, tuple[VerifiedTail, ...]]:
        """The heads, with the end of the data in place of each that has not moved since, and the verified tails."""
        if not self._verified:
            return heads, ()
        heads = heads.copy()
        verified: list[VerifiedTail] = []
        retry_before = time.monotonic() - RETRY_S
        with self._lock:
            located = layout.locate(self._verified)
            for partition, tail in list(self._verified.items()):
                topic_id, index = located.get(partition, ("", 0))
                head = int(heads[index]) if topic_id == tail.topic_id else _NO_LOG
                is_same = head in (UNKNOWN, tail.head) and (tail.is_read or tail.read_at > retry_before)
                # Beyond that no lag is short, below it the log was cut: what was read says nothing any more.
                is_proof = tail.head < head <= tail.end + SHORT_LAG
                if is_same or is_proof:
                    verified.append((*partition, tail.end))
                if head == tail.head:
                    heads[index] = tail.end
                # What only counts as data counts once more after the head has moved. Then it has to be read again.
                if not is_same and not (is_proof and tail.is_read):
                    del self._verified[partition]
        return heads, tuple(verified)

    def close(self) -> None:
        """End the thread, after the batch that it reads."""
        self._requests.put(None)

    def _read_forever(self) -> None:
        while (request := self._requests.get()) is not None:
            try:
                for batch in batches(list(request), _BATCH_SIZE):
                    heads = {partition: request[partition][1] for partition in batch}
                    self._add(read_tails(self._partitions, heads, time.monotonic() + _BATCH_TIMEOUT_S), request)
            except Exception as error:  # noqa: BLE001 - a tail that cannot be read counts as data
                _log.warning("tails of %d partitions could not be read: %s", len(request), error)
                self._add({p: Tail(head, head, is_read=False) for p, (_, head) in request.items()}, request)
            finally:
                self._is_reading = False

    def _add(self, tails: Mapping[Partition, Tail], request: Mapping[Partition, tuple[str, int]]) -> None:
        with self._lock:
            for partition, tail in tails.items():
                self._verified.pop(partition, None)
                self._verified[partition] = replace(tail, topic_id=request[partition][0], read_at=time.monotonic())
            for partition in list(islice(self._verified, max(len(self._verified) - _MAX_VERIFIED, 0))):
                del self._verified[partition]


def read_tails(reader: PartitionReader, heads: Mapping[Partition, int], deadline: float) -> dict[Partition, Tail]:
    """The tail of each partition up to its head; one that cannot be read counts as data."""
    starts = {partition: max(head - SHORT_LAG, 0) for partition, head in heads.items()}
    ends = dict(starts)
    held: set[Partition] = set()

    def take(partition: Partition, message: Message) -> bool:
        error, offset = message.error(), or_unknown(message.offset())
        if error is None:
            ends[partition] = offset + 1
        elif error.code() != KafkaError._PARTITION_EOF or offset < heads[partition]:
            # An error, or the start of an open transaction: its messages may become data.
            held.add(partition)
        return ends[partition] >= heads[partition]

    held |= reader.read(starts, deadline, take)
    return {
        partition: Tail(head, head if partition in held else min(ends[partition], head), partition not in held)
        for partition, head in heads.items()
    }

"""Reads a few records of partitions, from given offsets on, with a consumer that belongs to no group."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from warren.config.kafka import Connection
from warren.domain.windows import UNKNOWN
from warren.kafka.client_errors import missing_right
from warren.kafka.options import to_librdkafka
from warren.kafka.samples import KnownTime, Partition, UnreadOffset

_log = logging.getLogger(__name__)

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
    "queued.max.messages.kbytes": 8_192,
}

TakeMessage = Callable[[Partition, Message], bool]
"""Takes a message of a partition, or an error in its place; gives whether the partition has been read far enough."""


class PartitionReader:
    """A consumer that is created when it is first needed, and anew when its options have changed.

    `fetch_bytes` is how much of a partition a fetch asks for. `without_right` is what happens to topics that Warren may
    not read, for the log, which names each of them once.
    """

    def __init__(self, cluster: str, connection: Connection, fetch_bytes: int, without_right: str) -> None:
        self._cluster, self._connection = cluster, connection
        self._settings = {**_SETTINGS, "max.partition.fetch.bytes": fetch_bytes}
        self._without_right = without_right
        self._consumer: Consumer | None = None
        self._options: dict[str, Any] = {}
        self._refused: set[str] = set()

    def read(self, starts: Mapping[Partition, int], deadline: float, take: TakeMessage) -> set[Partition]:
        """Read each partition from an offset on, until it has been read far enough or ends in an error.

        The end of the log is an error too. Gives the partitions that were not read far enough in time.
        """
        unread = set(starts)
        refused: set[str] = set()
        consumer = self._connected()
        consumer.assign([TopicPartition(*partition, start) for partition, start in starts.items()])
        try:
            while unread and (left_s := deadline - time.monotonic()) > 0:
                message = consumer.poll(min(left_s, 1.0))
                if message is None:
                    continue
                partition = message.topic() or "", or_unknown(message.partition())
                if partition not in unread:
                    continue
                error = message.error()
                if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    refused.add(partition[0])
                if take(partition, message) or error is not None:
                    unread.discard(partition)
                    consumer.incremental_unassign([TopicPartition(*partition)])
        finally:
            with contextlib.suppress(KafkaException):
                consumer.unassign()
        self._log_refused(refused)
        return unread

    def _connected(self) -> Consumer:
        if (newest := to_librdkafka(self._connection)) != self._options or self._consumer is None:
            self._consumer, self._options = Consumer({**self._settings, **newest}), newest
        return self._consumer

    def _log_refused(self, topics: set[str]) -> None:
        if new := topics - self._refused:
            self._refused |= new
            _log.warning("%s: %s; %s", self._cluster, missing_right("Read", sorted(new)), self._without_right)


def read_times(
    reader: PartitionReader, unread: Iterable[UnreadOffset], deadline: float
) -> dict[UnreadOffset, KnownTime]:
    """The times of the first records from given offsets on that a consumer reads; those that cannot be read lack."""
    found: dict[UnreadOffset, KnownTime] = {}
    left = list(unread)
    while left and time.monotonic() < deadline:
        offset_of = {each[:2]: each[2] for each in left}

        def take(partition: Partition, message: Message, offset_of: Mapping[Partition, int] = offset_of) -> bool:
            kind, time_ms = message.timestamp()
            is_record = message.error() is None and or_unknown(message.offset()) >= offset_of[partition]
            if is_record and kind != TIMESTAMP_NOT_AVAILABLE:
                found[*partition, offset_of[partition]] = (time_ms, 0, kind == TIMESTAMP_LOG_APPEND_TIME)
            return is_record

        reader.read(offset_of, deadline, take)
        left = [each for each in left if offset_of[each[:2]] != each[2]]
    return found


def or_unknown(value: int | None) -> int:
    """A number of a message, which an error may lack."""
    return UNKNOWN if value is None else value

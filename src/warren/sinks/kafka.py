"""A Kafka topic: telegraf's JSON, or changes of verdicts, keyed by cluster and group; each record exactly once.

A request is one transaction, and a header of each record has the position of its request. After a crash or a lost
answer, the last records of the topic show which request was the last, and requests up to it are not sent again.
"""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from warren.config.kafka import Connection
from warren.config.sinks import KafkaSink
from warren.domain.text_columns import bytes_of, joined, json_strings
from warren.errors import BusyError
from warren.kafka.error_callback import ErrorCallback
from warren.kafka.options import to_librdkafka
from warren.sinks.encode import telegraf_json
from warren.sinks.points import Points

RECORDS_PER_TRANSACTION = 20_000
TIMEOUT_S = 30.0
HEADER, CHANGES_HEADER = "warren", "warren-changes"
_KEYS = ("cluster", "group")


class KafkaWriter:
    """Writes records in transactions: points to `topic`, or changes of verdicts to `changes-topic`."""

    def __init__(self, sink: KafkaSink, connection: Connection, *, are_changes: bool = False) -> None:
        topic = sink.changes_topic if are_changes else sink.topic
        assert topic is not None
        self._sink = sink
        self._topic = topic
        self._header = CHANGES_HEADER if are_changes else HEADER
        self._name = f"warren-{'changes' if are_changes else 'sink'}-{sink.name}"
        self._connection = connection
        self._errors = ErrorCallback({})
        self._producer: Producer | None = None
        self._last_position = -1

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one time: one line per record, its key and its value separated by a tab."""
        for batch in points.batches(RECORDS_PER_TRANSACTION):
            names = [json_strings(batch.tags[name]) for name in _KEYS if name in batch.tags]
            key = joined("[", *[part for name in names for part in (name, ",")][:-1], "]")
            yield bytes_of(joined(key, "\t", telegraf_json(batch, tags, at_ms), "\n"))

    def deliver(self, request: bytes, position: int) -> None:
        """Send a compressed request, unless the topic has it already."""
        try:
            if self._producer is None:
                self._producer = self._begin()
            if position > self._last_position:
                self._send(self._producer, gzip.decompress(request), position)
        except KafkaException as error:
            if self._producer is not None:
                self._producer.poll(0)
            # Whether it was written is read from the topic.
            self._producer = None
            raise BusyError(self._errors.explained() or error.args[0].str()) from None

    def _settings(self) -> dict[str, Any]:
        options = to_librdkafka(self._connection)
        self._errors.forget(options)
        return {**options, "log_level": "0", "error_cb": self._errors}

    def _begin(self) -> Producer:
        # A new one each time, with the options of now: a password may have changed.
        producer = Producer({**self._settings(), "transactional.id": self._name, "compression.type": "zstd"})
        try:
            # From now on no other producer, not even an earlier run of this sink, can write under this name.
            producer.init_transactions(TIMEOUT_S)
        finally:
            producer.poll(0)
        self._last_position = self._read_last_position()
        return producer

    def _send(self, producer: Producer, request: bytes, position: int) -> None:
        producer.begin_transaction()
        headers: list[tuple[str, str | bytes | None]] = [(self._header, f"{self._sink.name}/{position}")]
        for line in request.splitlines():
            key, _, value = line.partition(b"\t")
            while True:
                try:
                    producer.produce(self._topic, value, key, headers=headers)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.commit_transaction(TIMEOUT_S)
        self._last_position = position

    def _read_last_position(self) -> int:
        """The position of the last request of this sink in the topic, from the last records of each partition."""
        settings = {**self._settings(), "group.id": self._name, "enable.auto.commit": False}
        # Its watermarks include transactions that are still open.
        with closing(Consumer({**settings, "isolation.level": "read_uncommitted"})) as consumer:
            topic = consumer.list_topics(self._topic, TIMEOUT_S).topics[self._topic]
            if topic.error is not None and topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(topic.error)
            partitions = [TopicPartition(self._topic, partition) for partition in topic.partitions]
            ends = {each.partition: consumer.get_watermark_offsets(each, TIMEOUT_S) for each in partitions}
        settings |= {"isolation.level": "read_committed", "enable.partition.eof": True}
        # The end of a partition shows in a fetch without records, which would wait longer by default.
        with closing(Consumer({**settings, "fetch.wait.max.ms": "10"})) as consumer:
            return max((self._last_in(consumer, partition, *edges) for partition, edges in ends.items()), default=-1)

    def _last_in(self, consumer: Consumer, partition: int, low: int, high: int) -> int:
        back = 16
        while True:
            # Control records of transactions take offsets too, so the last record may be farther back.
            start = max(high - back, low, 0)
            consumer.assign([TopicPartition(self._topic, partition, start)])
            last = max((self._position_of(message) for message in _read_to(consumer, high)), default=-1)
            if last >= 0 or start <= max(low, 0):
                return last
            back *= 16

    def _position_of(self, message: Message) -> int:
        headers: list[tuple[str, bytes]] = list(message.headers() or ())  # type: ignore[arg-type]
        for name, value in headers:
            sink, _, position = (value or b"").decode(errors="replace").rpartition("/")
            if name == self._header and sink == self._sink.name and position.isdigit():
                return int(position)
        return -1


def _read_to(consumer: Consumer, end: int) -> Iterator[Message]:
    """The committed records before an offset; waits for transactions that are still open."""
    while True:
        message = consumer.poll(TIMEOUT_S)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if (message.offset() or 0) >= end:
            return
        if error is None:
            yield message

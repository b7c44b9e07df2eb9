"""A topic of Kafka: telegraf's JSON, or changes of verdicts, by cluster and group; each record once.

A request is one transaction, and every record of it says which request it is of. After a crash, or an answer that never
came, the ends of the topic tell which request was the last, and what is there already is not sent again.
"""

import gzip
from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from warren.config.sinks import KafkaSink
from warren.domain.text_columns import bytes_of, joined, json_strings
from warren.errors import BusyError
from warren.sinks.encode import telegraf_json
from warren.sinks.points import Points

RECORDS = 20_000
"""In one transaction."""
WAIT_S = 30.0
HEADER, HEADER_OF_CHANGES = "warren", "warren-changes"
_KEYS = ("cluster", "group")


class KafkaWriter:
    """Writes records in transactions, those of points to one topic or those of changes to another."""

    def __init__(self, sink: KafkaSink, settings: Mapping[str, str], *, of_changes: bool = False) -> None:
        topic = sink.changes_topic if of_changes else sink.topic
        assert topic is not None
        self._sink = sink
        self._topic = topic
        self._header = HEADER_OF_CHANGES if of_changes else HEADER
        self._name = f"warren-{'changes' if of_changes else 'sink'}-{sink.name}"
        self._settings = {**settings, "log_level": "3"}
        self._producer: Producer | None = None
        self._done = -1

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one moment: a line a record, its key and its value with a tab between."""
        for at in range(0, len(points), RECORDS):
            some = points.some(at, min(at + RECORDS, len(points)))
            names = [json_strings(some.tags[name]) for name in _KEYS if name in some.tags]
            key = joined("[", *[part for name in names for part in (name, ",")][:-1], "]")
            yield bytes_of(joined(key, "\t", telegraf_json(some, tags, at_ms), "\n"))

    def deliver(self, request: bytes, place: int) -> None:
        """Send a packed request, unless it is there already."""
        try:
            if self._producer is None:
                self._begin()
            if place > self._done:
                self._send(gzip.decompress(request).splitlines(), place)
        except KafkaException as error:
            # What has become of it the topic will tell.
            self._producer = None
            raise BusyError(error.args[0].str()) from None

    def _begin(self) -> None:
        producer = Producer({**self._settings, "transactional.id": self._name, "compression.type": "zstd"})
        # From now on nobody else, not even an older self, can write under this name.
        producer.init_transactions(WAIT_S)
        self._done = self._last_place()
        self._producer = producer

    def _send(self, lines: Sequence[bytes], place: int) -> None:
        assert self._producer is not None
        self._producer.begin_transaction()
        headers: list[tuple[str, str | bytes | None]] = [(self._header, f"{self._sink.name}/{place}")]
        for line in lines:
            key, _, value = line.partition(b"\t")
            while True:
                try:
                    self._producer.produce(self._topic, value, key, headers=headers)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.commit_transaction(WAIT_S)
        self._done = place

    def _last_place(self) -> int:
        """The last request of this sink that is in the topic, by the last records of each partition."""
        consumer = Consumer(
            {
                **self._settings,
                "group.id": self._name,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                # An end is told by an answer without records, which else takes its time, in each partition.
                "fetch.wait.max.ms": "10",
            }
        )
        try:
            ends = self._ends()
            return max((self._last_of(consumer, partition, *edges) for partition, edges in ends.items()), default=-1)
        finally:
            consumer.close()

    def _ends(self) -> dict[int, tuple[int, int]]:
        """The first and the last offset of each partition, with what is in transactions that are still open."""
        consumer = Consumer({**self._settings, "group.id": self._name, "isolation.level": "read_uncommitted"})
        try:
            topic = consumer.list_topics(self._topic, WAIT_S).topics[self._topic]
            if topic.error is not None and topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(topic.error)
            places = [TopicPartition(self._topic, partition) for partition in topic.partitions]
            return {place.partition: consumer.get_watermark_offsets(place, WAIT_S) for place in places}
        finally:
            consumer.close()

    def _last_of(self, consumer: Consumer, partition: int, low: int, high: int) -> int:
        back = 16
        while True:
            # The ends of transactions take places too, so that it may be farther back.
            begin = max(high - back, low, 0)
            consumer.assign([TopicPartition(self._topic, partition, begin)])
            found = max((self._place_in(message) for message in _up_to(consumer, high)), default=-1)
            if found >= 0 or begin <= max(low, 0):
                return found
            back *= 16

    def _place_in(self, message: Message) -> int:
        held: list[tuple[str, bytes]] = list(message.headers() or ())  # type: ignore[arg-type]
        for name, value in held:
            of, _, place = (value or b"").decode(errors="replace").rpartition("/")
            if name == self._header and of == self._sink.name and place.isdigit():
                return int(place)
        return -1

    def close(self) -> None:
        """No more records come."""
        self._producer = None


def _up_to(consumer: Consumer, end: int) -> Iterator[Message]:
    """What is committed before an offset; while somebody's transaction is open there, it is waited for."""
    while True:
        message = consumer.poll(WAIT_S)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if (message.offset() or 0) >= end:
            return
        if error is None:
            yield message

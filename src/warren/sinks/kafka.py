"""A topic of Kafka: telegraf's JSON by cluster and group, and what has changed about verdicts; each record once.

A request is one transaction, and every record of it says which request it is of. After a crash, or an answer that never
came, the ends of the topic tell which request was the last, and what is there already is not sent again.
"""

import gzip
from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from warren.config.sinks import KafkaSink
from warren.domain.columns import bytes_of, in_json, joined
from warren.sinks.encode import telegraf_json
from warren.sinks.points import Points

RECORDS = 20_000
"""In one transaction."""
WAIT_S = 30.0
HEADER = "warren"
_KEYS = ("cluster", "group")


class KafkaWriter:
    """Writes records in transactions."""

    def __init__(self, sink: KafkaSink, settings: Mapping[str, str]) -> None:
        self._sink = sink
        self._name = f"warren-sink-{sink.name}"
        self._settings = {**settings, "log_level": "3"}
        self._producer: Producer | None = None
        self._done = -1

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one moment: a line a record, its key and its value with a tab between."""
        for at in range(0, len(points), RECORDS):
            some = points.some(at, min(at + RECORDS, len(points)))
            names = [in_json(some.tags[name]) for name in _KEYS if name in some.tags]
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
            raise ConnectionError(error.args[0].str()) from None

    def _begin(self) -> None:
        producer = Producer({**self._settings, "transactional.id": self._name, "compression.type": "zstd"})
        # From now on nobody else, not even an older self, can write under this name.
        producer.init_transactions(WAIT_S)
        self._done = self._last_place()
        self._producer = producer

    def _send(self, lines: Sequence[bytes], place: int) -> None:
        assert self._producer is not None
        self._producer.begin_transaction()
        headers: list[tuple[str, str | bytes | None]] = [(HEADER, f"{self._sink.name}/{place}")]
        for line in lines:
            key, _, value = line.partition(b"\t")
            while True:
                try:
                    self._producer.produce(self._sink.topic, value, key, headers=headers)
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
            }
        )
        try:
            topic = consumer.list_topics(self._sink.topic, WAIT_S).topics[self._sink.topic]
            return max((self._last_of(consumer, partition) for partition in topic.partitions), default=-1)
        finally:
            consumer.close()

    def _last_of(self, consumer: Consumer, partition: int) -> int:
        low, high = consumer.get_watermark_offsets(TopicPartition(self._sink.topic, partition), WAIT_S)
        back = 16
        while True:
            # The ends of transactions take places too, so that it may be farther back.
            begin = max(high - back, low, 0)
            consumer.assign([TopicPartition(self._sink.topic, partition, begin)])
            found = max((_place_in(message, self._sink.name) for message in _to_end(consumer)), default=-1)
            if found >= 0 or begin <= max(low, 0):
                return found
            back *= 16

    def close(self) -> None:
        """No more records come."""
        self._producer = None


def _to_end(consumer: Consumer) -> Iterator[Message]:
    while True:
        message = consumer.poll(WAIT_S)
        error = KafkaError(KafkaError._TIMED_OUT) if message is None else message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                return
            raise KafkaException(error)
        if message is not None:
            yield message


def _place_in(message: Message, sink: str) -> int:
    held: list[tuple[str, bytes]] = list(message.headers() or ())  # type: ignore[arg-type]
    for name, value in held:
        of, _, place = (value or b"").decode(errors="replace").rpartition("/")
        if name == HEADER and of == sink and place.isdigit():
            return int(place)
    return -1

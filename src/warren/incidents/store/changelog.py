"""The book of incidents as a log that several Warrens share: a compacted topic of one partition.

Only one writes incidents, in transactions; who begins to write fences the one before, whatever that one still believes.
What people want may be written by any.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from warren.errors import ReplicationError
from warren.incidents.store.changes import COLUMNS, RowChange

log = logging.getLogger(__name__)

WAIT_S = 20.0
BATCH = 10_000
REPLICAS = 3
_TOPIC = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    # A group with very many bad partitions is one record.
    "max.message.bytes": str(32 << 20),
    "segment.bytes": str(64 << 20),
}
_LARGEST = str(100_000_000)


class Changelog:
    """Reads and writes the shared log; one thread at a time may use it."""

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        self._settings: dict[str, str | int | float | bool] = {**settings, "log_level": "3"}
        self._topic = topic
        self._consumer: Consumer | None = None
        self._writer: Producer | None = None
        self._teller: Producer | None = None

    def create(self) -> None:
        """Make the topic where it is missing."""
        with _told(f"the topic {self._topic} could not be made"):
            admin = AdminClient(self._settings)
            # All topics are asked for: a broker would make the one that is named, in its own way.
            found = admin.list_topics(timeout=WAIT_S)
            if self._topic not in found.topics:
                self._make(admin, min(REPLICAS, len(found.brokers)))
            self._make_compacted(admin)

    def _make(self, admin: AdminClient, replicas: int) -> None:
        config = {**_TOPIC, "min.insync.replicas": str(max(replicas - 1, 1))}
        wanted = NewTopic(self._topic, 1, replicas, config=config)
        try:
            admin.create_topics([wanted], request_timeout=WAIT_S)[self._topic].result(2 * WAIT_S)
            log.info("made the topic %s, with %d replicas", self._topic, replicas)
        except KafkaException as error:
            # Another was faster.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def _make_compacted(self, admin: AdminClient) -> None:
        """A topic that somebody else made would forget what is old, and not what is outdone."""
        place = ConfigResource(ResourceType.TOPIC, self._topic)
        held = admin.describe_configs([place], request_timeout=WAIT_S)[place].result(2 * WAIT_S)
        other = {name: value for name, value in _TOPIC.items() if held[name].value != value}
        if "cleanup.policy" not in other:
            return
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in other.items()
        ]
        wanted = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=changes)
        admin.incremental_alter_configs([wanted], request_timeout=WAIT_S)[wanted].result(2 * WAIT_S)
        log.warning("the topic %s was there and is compacted from now on", self._topic)

    def begin_to_write(self) -> None:
        """From now on nobody else can write incidents, not even one who believes to have the lock still."""
        with _told("the log of incidents could not be taken over"):
            writer = Producer(
                {
                    **self._settings,
                    "transactional.id": f"warren-{self._topic}",
                    "transaction.timeout.ms": "60000",
                    "message.max.bytes": _LARGEST,
                    "compression.type": "zstd",
                    "linger.ms": "0",
                }
            )
            writer.init_transactions(WAIT_S)
            self._writer = writer

    def write(self, changes: Iterable[RowChange]) -> None:
        """Write changes as one; they are durable when it returns, and none of them is there when it fails."""
        if self._writer is None:
            raise ReplicationError("another Warren writes incidents")
        with _told("incidents could not be written to their log"):
            self._writer.begin_transaction()
            for change in changes:
                _produce(self._writer, self._topic, change)
            self._writer.commit_transaction(WAIT_S)

    def tell(self, changes: Iterable[RowChange]) -> None:
        """Write what people want, which anybody may."""
        with _told("what was said here could not be told to the others"):
            if self._teller is None:
                settings = {**self._settings, "enable.idempotence": "true", "message.timeout.ms": "15000"}
                self._teller = Producer(settings)
            failed: list[KafkaError] = []
            for change in changes:
                _produce(self._teller, self._topic, change, failed)
            left = self._teller.flush(WAIT_S)
            if left or failed:
                # One that has failed for good does not come back.
                self._teller = None
                raise KafkaException(failed[0] if failed else KafkaError(KafkaError._MSG_TIMED_OUT))

    def read_all(self) -> Iterator[list[RowChange]]:
        """Everything from the beginning to the end, in parts; `read_on` goes on from there."""
        self._end_reading()
        with _told("the log of incidents could not be read"):
            self._consumer = Consumer(
                {
                    **self._settings,
                    "group.id": f"warren-{self._topic}-reader",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    # A topic that was made anew is read anew.
                    "auto.offset.reset": "error",
                    "fetch.wait.max.ms": 50,
                }
            )
            self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
        while True:
            changes, is_end = self._read(WAIT_S)
            yield changes
            if is_end:
                return
            if not changes:
                raise ReplicationError(f"the log of incidents could not be read within {WAIT_S:g} s")

    def read_on(self) -> list[RowChange]:
        """What has been written since."""
        return self._read(0.0)[0]

    def _read(self, wait_s: float) -> tuple[list[RowChange], bool]:
        assert self._consumer is not None
        changes: list[RowChange] = []
        is_end = False
        with _told("the log of incidents could not be read"):
            # The first of a batch is waited for, and no longer for the rest.
            messages = self._consumer.consume(1, wait_s) if wait_s else []
            for message in [*messages, *self._consumer.consume(BATCH, 0.05 if wait_s else 0.0)]:
                error = message.error()
                if error is None:
                    changes += _changes_of(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    is_end = True
                else:
                    raise KafkaException(error)
        return changes, is_end

    def end_writing(self) -> None:
        """Write no more incidents."""
        self._writer = None

    def _end_reading(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None

    def close(self) -> None:
        """Let go of all connections."""
        self._end_reading()
        self._writer = self._teller = None


def _produce(producer: Producer, topic: str, change: RowChange, failed: list[KafkaError] | None = None) -> None:
    key = f"{change.table}/{change.key}".encode()
    value = None
    if change.row is not None:
        value = orjson.dumps(dict(zip(COLUMNS[change.table], change.row, strict=True)))

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None and failed is not None:
            failed.append(error)

    while True:
        try:
            producer.produce(topic, value, key, 0, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _changes_of(message: Message) -> Sequence[RowChange]:
    """A record as a change; one that is none of ours is told of and passed over."""
    try:
        table, _, key = (message.key() or b"").decode().partition("/")
        columns = COLUMNS[table]
        value = message.value()
        if value is None:
            return [RowChange(table, key)]
        row = orjson.loads(value)
        return [RowChange(table, key, [row[name] for name in columns])]
    except (ValueError, KeyError, TypeError) as error:
        log.warning("record %s of %s is no incident, and is passed over: %r", message.offset(), message.topic(), error)
        return []


class _told:  # noqa: N801 - reads as what it does
    """Turns what Kafka's client raises into a sentence of ours."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KafkaException):
            inner = error.args[0]
            said = inner.str() if isinstance(inner, KafkaError) else str(inner)
            raise ReplicationError(f"{self._what}: {said}") from None
        if isinstance(error, TimeoutError):
            raise ReplicationError(f"{self._what}: the brokers did not answer in time") from None

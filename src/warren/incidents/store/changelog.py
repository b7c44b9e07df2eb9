"""The changelog of the replicated store: a compacted Kafka topic with one partition.

Only the leader writes incidents, in transactions; a new leader fences the one before, whatever that one still believes.
Any Warren may write operator actions.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from msgspec.structs import replace

from warren.config.kafka import Connection
from warren.errors import ReplicationError, SecretError
from warren.incidents.store.records import RecordReject, RejectedRecord, decode_record, encode_record
from warren.incidents.store.rows import RowChange
from warren.kafka.client_errors import explain
from warren.kafka.error_callback import ErrorCallback
from warren.kafka.options import to_librdkafka

log = logging.getLogger(__name__)

TIMEOUT_S = 20.0
BATCH_SIZE = 10_000
MAX_REPLICAS = 3
_TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    # One record holds all bad partitions of a group.
    "max.message.bytes": str(32 << 20),
    "segment.bytes": str(64 << 20),
    # The time of a record is then the broker's, whatever its writer says.
    "message.timestamp.type": "LogAppendTime",
}


class Changelog:
    """Reads and writes the topic; only one thread at a time may use it."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._errors = ErrorCallback({})
        self._consumer: Consumer | None = None
        self._leader_producer: Producer | None = None
        self._own_offsets: set[int] = set()
        """The offsets of records that this Warren has written as the leader and not read back yet."""
        self._counted_to = 0
        """The first offset whose rejection has not been counted yet: the topic is read more than once."""
        self.rejects: Counter[str] = Counter()
        """How many records were rejected, by reason."""

    def _settings(self) -> dict[str, Any]:
        """The options of a new client: those of now, as a password may have changed."""
        options = to_librdkafka(self._connection)
        self._errors.forget(options)
        return {**options, "log_level": "0", "error_cb": self._errors}

    def create_topic(self, *, is_compacted: bool = True) -> None:
        """Create the topic if it is missing; make one that exists compacted, if it has to be and is not."""
        with self._replication_errors(f"cannot create the topic {self._topic}"):
            admin = AdminClient(self._settings())
            # Lists all topics: a broker may create a topic that is asked for by name, with its own settings.
            try:
                metadata = admin.list_topics(timeout=TIMEOUT_S)
            finally:
                admin.poll(0)
            if self._topic not in metadata.topics:
                self._create(admin, min(MAX_REPLICAS, len(metadata.brokers)))
            elif is_compacted:
                self._make_compacted(admin)

    def _create(self, admin: AdminClient, replicas: int) -> None:
        config = {**_TOPIC_CONFIG, "min.insync.replicas": str(max(replicas - 1, 1))}
        topic = NewTopic(self._topic, 1, replicas, config=config)
        try:
            admin.create_topics([topic], request_timeout=TIMEOUT_S)[self._topic].result(2 * TIMEOUT_S)
            log.info("created the topic %s with %d replicas", self._topic, replicas)
        except KafkaException as error:
            # Another Warren may have created it a moment before.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def _make_compacted(self, admin: AdminClient) -> None:
        """Change a topic that somebody else created: without compaction the broker would delete old rows."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        current = admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource].result(2 * TIMEOUT_S)
        if current["cleanup.policy"].value == _TOPIC_CONFIG["cleanup.policy"]:
            return
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in _TOPIC_CONFIG.items()
            if current[name].value != value
        ]
        altered = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=changes)
        admin.incremental_alter_configs([altered], request_timeout=TIMEOUT_S)[altered].result(2 * TIMEOUT_S)
        log.warning("the topic %s existed without compaction; it is compacted from now on", self._topic)

    def begin_to_write(self) -> None:
        """Fence any other writer of incidents, even one that still believes to be the leader."""
        with self._replication_errors("cannot take over the changelog of incidents"):
            producer = self._make_producer(
                {
                    "transactional.id": f"warren-{self._topic}",
                    "transaction.timeout.ms": "60000",
                    "message.max.bytes": "100000000",
                    "compression.type": "zstd",
                    "linger.ms": "0",
                }
            )
            try:
                producer.init_transactions(TIMEOUT_S)
            finally:
                producer.poll(0)
            self._leader_producer = producer
            self._own_offsets.clear()

    def write(self, changes: Iterable[RowChange]) -> None:
        """Write changes in one transaction: all are durable when it returns, and none when it raises."""
        if self._leader_producer is None:
            raise ReplicationError("another Warren writes incidents")
        with self._replication_errors("cannot write to the changelog of incidents"):
            self._leader_producer.begin_transaction()
            self._produce(self._leader_producer, changes)
            self._leader_producer.commit_transaction(TIMEOUT_S)

    def share(self, changes: Iterable[RowChange]) -> None:
        """Write operator actions, which any Warren may."""
        with self._replication_errors("cannot share silences and acknowledgements with the other Warrens"):
            # These are rare, and a producer with a fatal error does not recover: each call has its own.
            producer = self._make_producer({"enable.idempotence": "true", "message.timeout.ms": "15000"})
            errors = self._produce(producer, changes)
            if producer.flush(TIMEOUT_S) or errors:
                raise KafkaException(errors[0] if errors else KafkaError(KafkaError._MSG_TIMED_OUT))

    def _make_producer(self, settings: Mapping[str, str]) -> Producer:
        # No limit, so that all changes of a snapshot can be enqueued.
        return Producer({**self._settings(), "queue.buffering.max.messages": "0", **settings})

    def _produce(self, producer: Producer, changes: Iterable[RowChange]) -> list[KafkaError]:
        """Enqueue changes; the list gets the errors of their delivery, as long as the producer is polled."""
        errors: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            elif producer is self._leader_producer:
                self._own_offsets.add(message.offset() or 0)

        for change in changes:
            key, value = encode_record(change)
            producer.produce(self._topic, value, key, 0, on_delivery=on_delivery)
        return errors

    def read_all(self) -> list[RowChange]:
        """Read from the beginning to the current end; `read_new` continues from there."""
        self._close_consumer()
        with self._replication_errors("cannot read the changelog of incidents"):
            self._consumer = Consumer(
                {
                    **self._settings(),
                    "group.id": f"warren-{self._topic}-reader",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    # A topic that was recreated is read from its beginning.
                    "auto.offset.reset": "error",
                    "fetch.wait.max.ms": 50,
                }
            )
            self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
        changes: list[RowChange] = []
        while True:
            batch, is_end = self._read(TIMEOUT_S)
            changes += batch
            if is_end:
                return changes
            if not batch:
                raise ReplicationError(f"cannot read the changelog of incidents: no records within {TIMEOUT_S:g} s")

    def read_new(self) -> list[RowChange]:
        """Read what has been written since the last read."""
        return self._read(0.0)[0]

    def _read(self, wait_s: float) -> tuple[list[RowChange], bool]:
        assert self._consumer is not None
        changes: list[RowChange] = []
        is_end = False
        with self._replication_errors("cannot read the changelog of incidents"):
            # Waits for the first message only.
            messages = self._consumer.consume(1, wait_s) if wait_s else []
            for message in [*messages, *self._consumer.consume(BATCH_SIZE, 0.05 if wait_s else 0.0)]:
                error = message.error()
                if error is None:
                    changes += self._decode(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    is_end = True
                else:
                    raise KafkaException(error)
            if not changes and explain(self._errors.newest):
                # Without this it would only seem that nothing new is written.
                raise KafkaException(KafkaError(KafkaError._AUTHENTICATION))
        return changes, is_end

    def _decode(self, message: Message) -> list[RowChange]:
        """The change that a record stands for; one that is rejected deletes the row of its key, if it has one."""
        offset = message.offset() or 0
        is_own = offset in self._own_offsets
        self._own_offsets.discard(offset)
        time_type, written_ms = message.timestamp()
        change: RowChange | None
        try:
            change = decode_record(
                message.key(), message.value(), None if time_type == TIMESTAMP_NOT_AVAILABLE else written_ms
            )
        except RejectedRecord as rejected:
            if offset >= self._counted_to:
                self.count_reject(
                    rejected.reason, f"record {offset} with the key {message.key()!r:.200}", rejected.detail
                )
            change = rejected.change
        self._counted_to = max(self._counted_to, offset + 1)
        return [] if change is None else [replace(change, is_own=is_own)]

    def count_reject(self, reason: RecordReject, what: str, detail: str = "") -> None:
        """Count a record that is rejected; the first one for each reason is logged."""
        if not self.rejects[reason.value]:
            log.error(
                "the topic %s has a record that no Warren has written: %s is rejected: %s%s; "
                "only the user of the Warrens should have the right to write to the topic",
                *(self._topic, what, reason.value, detail and f" ({detail})"),
            )
        self.rejects[reason.value] += 1

    def end_writing(self) -> None:
        """Stop writing incidents."""
        self._leader_producer = None

    def _close_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None

    def close(self) -> None:
        """Close all connections."""
        self._close_consumer()
        self._leader_producer = None

    @contextmanager
    def _replication_errors(self, summary: str) -> Iterator[None]:
        """Raise errors of the Kafka client as ReplicationError."""
        try:
            yield
        except KafkaException as error:
            cause = error.args[0]
            detail = self._errors.explained() or (cause.str() if isinstance(cause, KafkaError) else str(cause))
            raise ReplicationError(f"{summary}: {detail}") from None
        except SecretError as error:
            raise ReplicationError(f"{summary}: {error}") from None
        except TimeoutError:
            raise ReplicationError(f"{summary}: the brokers did not answer in time") from None

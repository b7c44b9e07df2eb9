"""Commits, records, topics and transactions on a real Kafka."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.kit.warrens import wait_for
from warren.demo.workload.topics import admin, create_topics

_COORDINATOR_NOT_READY = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit these offsets of a topic for a group, once, without joining it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        partitions = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        wait_for(lambda: _is_committed(consumer, partitions), "the coordinator accepts the commit", 60)
    finally:
        consumer.close()


def _is_committed(consumer: Consumer, partitions: list[TopicPartition]) -> bool:
    try:
        return all(answer.error is None for answer in consumer.commit(offsets=partitions, asynchronous=False))
    except KafkaException as error:
        # A broker that has just started reads its offsets topic first.
        if error.args[0].code() not in _COORDINATOR_NOT_READY:
            raise
        return False


def produce(bootstrap: str, topic: str, records: list[tuple[bytes | None, bytes | None]], partition: int = 0) -> None:
    """Write records with these keys and values to one partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(topic, value, key, partition)
    assert producer.flush(30) == 0


def create_timed_topics(bootstrap: str, partitions: Mapping[str, int]) -> None:
    """Create topics whose messages have the time of the broker, so that the head at any time can be looked up."""
    config = {"message.timestamp.type": "LogAppendTime"}
    new_topics = [NewTopic(name, count, 1, config=config) for name, count in partitions.items()]
    client = admin(bootstrap)
    for future in client.create_topics(new_topics).values():
        future.result(30)
    create_topics(bootstrap, partitions)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic."""
    client = admin(bootstrap)
    client.delete_topics([topic], operation_timeout=30)[topic].result(30)


@contextmanager
def open_transaction(bootstrap: str, name: str, group: str, topic: str) -> Iterator[None]:
    """A transaction with a commit of a group; it is open during the block and aborted afterwards."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 600_000})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], consumer.consumer_group_metadata(), 30)
        yield
        producer.abort_transaction(30)
    finally:
        consumer.close()

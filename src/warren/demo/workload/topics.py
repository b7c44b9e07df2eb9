"""Creates and fills the topics of a workload."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from warren.demo.workload.thread import CLIENT_LOG
from warren.errors import DemoError

PAYLOAD = b"a message of the demo"


def client_config(bootstrap: str, client_id: str) -> dict[str, str | int | float | bool]:
    """The settings of every Kafka client of a workload."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "reconnect.backoff.max.ms": 1000,
        # Brokers are killed on purpose.
        "log.connection.close": False,
    }


def admin(bootstrap: str) -> AdminClient:
    """An admin client that does not log to stderr."""
    return AdminClient(client_config(bootstrap, "warren-demo-admin"), logger=CLIENT_LOG)


def new_producer(bootstrap: str, client_id: str, settings: Mapping[str, str | int | bool]) -> Producer:
    """A producer that does not log to stderr."""
    return Producer({**client_config(bootstrap, client_id), **settings}, logger=CLIENT_LOG)


def create_topics(
    bootstrap: str, partitions: Mapping[str, int], *, replicas: int = -1, timeout_s: float = 30.0
) -> None:
    """Create topics with so many partitions, unless they exist, and wait until all partitions have leaders.

    Brokers before 2.4 have no default for the number of replicas.
    """
    client = admin(bootstrap)
    new_topics = [NewTopic(name, num_partitions=n, replication_factor=replicas) for name, n in partitions.items()]
    for name, future in client.create_topics(new_topics, operation_timeout=timeout_s).items():
        try:
            future.result(timeout_s)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise DemoError(f"topic {name} could not be created: {error.args[0].str()}") from error
    deadline = time.monotonic() + timeout_s
    while missing := [name for name, n in partitions.items() if _led_partitions(client, name) < n]:
        if time.monotonic() > deadline:
            raise DemoError(f"no leader for all partitions of {', '.join(missing)} within {timeout_s:g} s")
        time.sleep(0.1)


def _led_partitions(client: AdminClient, topic: str) -> int:
    partitions = client.list_topics(topic, timeout=10).topics[topic].partitions
    return sum(partition.leader >= 0 for partition in partitions.values())


def count_partitions(client: AdminClient | Producer | Consumer, topic: str, *, timeout_s: float = 10.0) -> int:
    """The number of partitions of a topic; waits for a new topic, which not every broker knows at once."""
    deadline = time.monotonic() + timeout_s
    while (metadata := client.list_topics(topic, timeout=10).topics[topic]).error is not None:
        if metadata.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() > deadline:
            raise KafkaException(metadata.error)
        time.sleep(0.1)
    return len(metadata.partitions)


def fill_topic(bootstrap: str, topic: str, per_partition: int, timeout_s: float = 60.0) -> None:
    """Write so many messages to each partition of a topic."""
    settings = {"linger.ms": 20, "queue.buffering.max.messages": 10_000_000}
    producer = new_producer(bootstrap, "warren-demo-fill", settings)
    messages = [{"value": PAYLOAD}] * per_partition
    for partition in range(count_partitions(producer, topic)):
        producer.produce_batch(topic, messages, partition=partition)
    if left := producer.flush(timeout_s):
        raise DemoError(f"{left} messages for {topic} were not written within {timeout_s:g} s")

"""Real brokers: they start, come back with their data, and always end."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.kit.brokers import KafkaTrio
from warren.demo.broker import Kafka
from warren.errors import DemoError


@pytest.fixture(scope="module")
def three() -> Iterator[KafkaTrio]:
    with KafkaTrio() as kafka:
        yield kafka


def create_topic(kafka: Kafka | KafkaTrio, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=partitions)])[topic].result(30)


def partitions_of(kafka: Kafka | KafkaTrio, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    return len(admin.list_topics(topic, timeout=30).topics[topic].partitions)


def produce(kafka: Kafka | KafkaTrio, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all", "log_level": 0})
    undelivered: list[object] = []
    for i in range(count):
        producer.produce(
            topic, str(i).encode(), on_delivery=lambda error, _: undelivered.append(error) if error else None
        )
    assert producer.flush(60) == 0
    assert undelivered == []


def end_offset(kafka: Kafka | KafkaTrio, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "broker-test", "log_level": 0})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
    finally:
        consumer.close()


def await_gone(path: Path) -> bool:
    deadline = time.monotonic() + 120
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not path.exists()


def test_one_broker_has_the_cluster_id_it_reports(kafka: Kafka) -> None:
    create_topic(kafka, "broker-one")
    produce(kafka, "broker-one", 10)

    assert end_offset(kafka, "broker-one") == 10
    cluster = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10)
    assert cluster.cluster_id == kafka.cluster_id
    assert list(cluster.brokers) == [0]


def test_settings_reach_the_broker() -> None:
    with Kafka(config={"num.partitions": "5", "offsets.topic.num.partitions": "3"}) as kafka:
        create_topic(kafka, "default-size", partitions=-1)
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "broker-test"})
        consumer.commit(offsets=[TopicPartition("default-size", 0, 0)], asynchronous=False)
        consumer.close()

        assert partitions_of(kafka, "default-size") == 5
        assert partitions_of(kafka, "__consumer_offsets") == 3


def test_a_kept_directory_keeps_its_data(tmp_path: Path) -> None:
    with Kafka(dir=tmp_path) as first:
        create_topic(first, "kept")
        produce(first, "kept", 5)
    with Kafka(dir=tmp_path, cluster_id=first.cluster_id) as second:
        assert end_offset(second, "kept") == 5


def test_a_temporary_directory_is_removed() -> None:
    with Kafka() as kafka:
        directory = kafka.log.parent
        assert directory.is_dir()
    assert not directory.exists()


def test_three_brokers_lose_nothing_when_one_is_killed_and_brought_back(three: KafkaTrio) -> None:
    create_topic(three, "replicated")
    produce(three, "replicated", 10)
    address = three.address(1)

    three.kill(1)
    produce(three, "replicated", 10)
    assert end_offset(three, "replicated") == 20

    three.start(1)
    assert three.address(1) == address
    cluster = AdminClient({"bootstrap.servers": address}).list_topics(timeout=10)
    assert cluster.brokers.keys() == {0, 1, 2}
    produce(three, "replicated", 10)
    assert end_offset(three, "replicated") == 30


def test_killing_twice_and_starting_a_running_broker_do_nothing(three: KafkaTrio) -> None:
    three.start(2)
    three.kill(2)
    three.kill(2)
    three.start(2)
    assert 2 in AdminClient({"bootstrap.servers": three.address(2)}).list_topics(timeout=10).brokers


def test_a_broker_that_cannot_start_raises_the_reason() -> None:
    with (
        pytest.raises(DemoError, match=r"no\.such|Invalid value"),
        Kafka(config={"num.io.threads": "no.such"}),
    ):
        pass


def test_brokers_and_temporary_data_do_not_outlive_a_killed_parent() -> None:
    parent_code = (
        "import time\n"
        "from warren.demo.broker import Kafka\n"
        "with Kafka() as kafka:\n"
        "    print(kafka.pid, kafka.log.parent, flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", parent_code], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        process_id, directory = parent.stdout.readline().split()
        assert Path("/proc", process_id).exists()
        assert Path(directory).exists()
    finally:
        parent.kill()
        parent.communicate()
    assert await_gone(Path("/proc", process_id))
    assert await_gone(Path(directory))

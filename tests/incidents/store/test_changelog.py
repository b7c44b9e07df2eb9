"""The log that several Warrens share, on a real Kafka: made right, whoever made the topic, and fenced."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.kit.kafka import produce
from tests.kit.warrens import wait_for
from warren.demo.broker import Kafka
from warren.demo.workload.topics import admin
from warren.errors import ReplicationError
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.rows import RowChange
from warren.notify.locks import KafkaLock

STORM = {
    "id": "s1", "listener": "hook", "cluster": "c", "channel": "#c", "opened_ms": 1, "grown_ms": 2,
    "told": '[1, 2, 3, ""]', "total": 4, "untold": 5,
}  # fmt: skip


@pytest.fixture
def topic() -> str:
    return f"journal-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def journal(kafka: Kafka, topic: str) -> Iterator[Changelog]:
    journal = Changelog({"bootstrap.servers": kafka.bootstrap}, topic)
    yield journal
    journal.close()


def create(kafka: Kafka, topic: str, partitions: int) -> None:
    client = admin(kafka.bootstrap)
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


def policy(kafka: Kafka, topic: str) -> str:
    place = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(kafka.bootstrap)
    held = client.describe_configs([place])[place].result(20)
    return str(held["cleanup.policy"].value)


def read(journal: Changelog) -> list[RowChange]:
    return [change for part in journal.read_all() for change in part]


def test_the_topic_is_made_with_one_partition_and_compacted(kafka: Kafka, journal: Changelog, topic: str) -> None:
    journal.create_topic()
    journal.create_topic()
    made = admin(kafka.bootstrap).list_topics(topic, 20).topics[topic]
    assert len(made.partitions) == 1
    assert policy(kafka, topic) == "compact"


def test_a_topic_that_somebody_else_made_is_compacted_from_then_on(
    kafka: Kafka, journal: Changelog, topic: str
) -> None:
    create(kafka, topic, partitions=3)
    assert policy(kafka, topic) == "delete"
    journal.create_topic()
    assert policy(kafka, topic) == "compact"


def test_what_was_written_is_read_back_and_what_is_none_of_ours_is_passed_over(
    kafka: Kafka, journal: Changelog, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    journal.create_topic()
    journal.begin_to_write()
    journal.write([RowChange("storms", "s1", STORM), RowChange("storms", "s2")])
    produce(kafka.bootstrap, topic, [(b"storms/s3", b"{}"), (b"unknown/x", b"{}"), (b"\xff", b"x")])
    found = read(journal)
    assert [(one.table, one.key, one.row) for one in found] == [
        ("storms", "s1", STORM), ("storms", "s2", None),
    ]  # fmt: skip
    assert caplog.text.count("skipped record") == 3
    journal.write([RowChange("storms", "s1")])
    wait_for(lambda: any(one.key == "s1" for one in journal.read_new()), "what comes after is read on", 20)


def test_who_takes_over_fences_the_one_before(kafka: Kafka, journal: Changelog, topic: str) -> None:
    journal.create_topic()
    journal.begin_to_write()
    journal.write([RowChange("storms", "before", STORM)])
    other = Changelog({"bootstrap.servers": kafka.bootstrap}, topic)
    other.begin_to_write()
    other.write([RowChange("storms", "after", STORM)])
    with pytest.raises(ReplicationError):
        journal.write([RowChange("storms", "late", STORM)])
    assert {one.key for one in read(other)} == {"before", "after"}
    other.close()


def test_of_a_topic_with_several_partitions_only_one_is_the_lock(kafka: Kafka, topic: str) -> None:
    create(kafka, topic, partitions=4)
    settings = {"bootstrap.servers": kafka.bootstrap}
    locks = [KafkaLock(settings, topic, f"lock-{topic}", 6, lambda: None) for _ in range(2)]
    try:
        wait_for(lambda: sum(one.is_held() for one in locks) == 1 and not any(one.error for one in locks), "one", 30)
        holder = next(one for one in locks if one.is_held())
        holder.step_back()
        wait_for(lambda: any(one.is_held() for one in locks if one is not holder), "the other has it", 30)
        assert not holder.is_held()
    finally:
        for one in locks:
            one.close()

"""The changelog on a real Kafka: the topic is created or corrected, and a new writer fences the one before."""

import json
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.kit.incidents import incident
from tests.kit.kafka import produce
from tests.kit.warrens import wait_for
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import admin
from warren.errors import ReplicationError
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.database import ADDED_COLUMNS
from warren.incidents.store.rows import RowChange, to_row

STORM = {
    "id": "s1", "listener": "hook", "cluster": "c", "channel": "#c", "opened_ms": 1, "grown_ms": 2,
    "told": '[1,2,3,""]', "total": 4, "untold": 5,
}  # fmt: skip


@pytest.fixture
def topic() -> str:
    return f"changelog-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def changelog(kafka: Kafka, topic: str) -> Iterator[Changelog]:
    changelog = Changelog(Connection((kafka.bootstrap,)), topic)
    yield changelog
    changelog.close()


def wait_for_policy(kafka: Kafka, topic: str, policy: str) -> None:
    """Wait for a cleanup policy: a broker answers before it has applied what the controller has changed."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(kafka.bootstrap)

    def has_policy() -> bool:
        configs = client.describe_configs([resource])[resource].result(20)
        return bool(configs["cleanup.policy"].value == policy)

    wait_for(lambda: topic in client.list_topics(timeout=20).topics, "the broker knows the topic", 20)
    wait_for(has_policy, f"the policy is {policy}", 20)


def test_the_topic_is_created_with_one_partition_and_compaction(kafka: Kafka, changelog: Changelog, topic: str) -> None:
    changelog.create_topic()
    changelog.create_topic()
    wait_for_policy(kafka, topic, "compact")
    topic_metadata = admin(kafka.bootstrap).list_topics(topic, 20).topics[topic]
    assert len(topic_metadata.partitions) == 1


def test_a_topic_that_somebody_else_created_is_compacted_from_then_on(
    kafka: Kafka, changelog: Changelog, topic: str
) -> None:
    client = admin(kafka.bootstrap)
    client.create_topics([NewTopic(topic, 3, 1)])[topic].result(20)
    wait_for_policy(kafka, topic, "delete")
    changelog.create_topic()
    wait_for_policy(kafka, topic, "compact")


def test_a_row_of_an_earlier_version_gets_the_columns_that_it_lacks(
    kafka: Kafka, changelog: Changelog, topic: str
) -> None:
    whole = to_row(incident("i1", "g"))
    earlier = {name: value for name, value in whole.items() if name not in ADDED_COLUMNS["incidents"]}
    changelog.create_topic()
    produce(kafka.bootstrap, topic, [(b"incidents/i1", json.dumps(earlier).encode())])
    [change] = changelog.read_all()
    assert change.row == {**earlier, "lost_messages": 0}


def test_changes_are_read_back_and_foreign_records_are_skipped(
    kafka: Kafka, changelog: Changelog, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    changelog.create_topic()
    changelog.begin_to_write()
    changelog.write([RowChange("storms", "s1", STORM), RowChange("storms", "s2")])
    produce(kafka.bootstrap, topic, [(b"unknown/x", b"{}"), (b"\xff", b"x")])
    changes = changelog.read_all()
    assert [(change.table, change.key, change.row) for change in changes] == [
        ("storms", "s1", STORM), ("storms", "s2", None),
    ]  # fmt: skip
    assert caplog.text.count("record that no Warren has written") == 1, "one sample per reason"
    assert sum(changelog.rejects.values()) == 2
    changelog.write([RowChange("storms", "s1")])
    wait_for(lambda: any(change.key == "s1" for change in changelog.read_new()), "later changes are read too", 20)


def test_a_new_writer_fences_the_one_before(kafka: Kafka, changelog: Changelog, topic: str) -> None:
    changelog.create_topic()
    changelog.begin_to_write()
    changelog.write([RowChange("storms", "before", {**STORM, "id": "before"})])
    other = Changelog(Connection((kafka.bootstrap,)), topic)
    other.begin_to_write()
    other.write([RowChange("storms", "after", {**STORM, "id": "after"})])
    with pytest.raises(ReplicationError):
        changelog.write([RowChange("storms", "late", STORM)])
    assert {change.key for change in other.read_all()} == {"before", "after"}
    other.close()

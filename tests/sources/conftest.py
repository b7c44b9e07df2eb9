"""A real cluster with TLS, every mechanism and ACLs, and connections to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.kit.rights import Right
from tests.kit.secured import LISTENERS, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.warrens import to_toml
from warren.config import load
from warren.config.kafka import Connection

RIGHTS = (Right("Describe", "topic"), Right("Read", "topic", "__consumer_offsets"), Right("Describe", "group"))

ConnectionTo = Callable[[str], Connection]


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("secured")) as kafka:
        for user in USERS.values():
            kafka.grant(user, RIGHTS)
        admin = kafka.admin()
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "payments", "log_level": 0})
        consumer.commit(offsets=[TopicPartition("orders", 0, 42)], asynchronous=False)
        consumer.close()
        yield kafka


@pytest.fixture
def connection_to(secured: SecuredKafka, tmp_path: Path) -> ConnectionTo:
    sections = secured_sections(secured, {listener.lower(): listener for listener in LISTENERS})
    (tmp_path / "burrow.toml").write_text(to_toml(sections))
    config = load(tmp_path)
    return lambda listener: config.connection_of(config.consumers[listener.lower()])

"""The notifier lock on a real Kafka, with clients in its consumer group that are not Warrens."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.kit.servers import new_api, server_config
from tests.kit.warrens import wait_for
from warren.config import Config, Notifier
from warren.config.kafka import Cluster, Connection
from warren.config.notifiers import Incidents, NotifierLock
from warren.demo.broker import Kafka
from warren.demo.workload.topics import admin
from warren.incidents.store.reader import read_leadership
from warren.notify import lock_members
from warren.notify.leadership import Leadership
from warren.notify.locks import KafkaLock
from warren.snapshot.store import Store
from warren.web.http import Request
from warren.web.metrics import metrics

HOSTILE_ID = "!\n\x1b[2J" + "x" * 200


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_members, "CHECK_S", 0.5)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    topic = f"lock-{uuid.uuid4().hex[:8]}"
    client = admin(kafka.bootstrap)
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    return topic


@contextmanager
def stranger(kafka: Kafka, topic: str, strategy: str = "cooperative-sticky") -> Iterator[Callable[[], bool]]:
    """A consumer in the group of the lock that is not a Warren; gives whether it has the lock."""
    settings = {
        "group.id": topic,
        "client.id": HOSTILE_ID,
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": 6000,
    }
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **settings})
    assigned: list[TopicPartition] = []
    consumer.subscribe([topic], on_assign=lambda _, partitions: assigned.extend(partitions))

    def has_lock() -> bool:
        consumer.poll(0.1)
        return bool(assigned)

    yield has_lock
    consumer.close()


def kafka_lock(kafka: Kafka, topic: str) -> KafkaLock:
    return KafkaLock(Connection((kafka.bootstrap,)), topic, topic, 6, lambda: None)


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_client_that_holds_the_lock_and_is_no_warren_is_named(
    kafka: Kafka, topic: str, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    with stranger(kafka, topic, strategy) as has_lock:
        wait_for(has_lock, "the stranger has the lock", 30)
        with closing(kafka_lock(kafka, topic)) as lock:
            wait_for(lambda: has_lock() and "not a Warren" in lock.error, "the Warren says who has the lock", 40)
            assert not lock.is_held()
            assert lock.strangers == 1
            assert r"client id '!\n\x1b[2Jxxx" in lock.error
            assert "on '/127.0.0.1'" in lock.error
            assert len(lock.error) < 300
    assert r"that are not Warrens (1): client id '!\n\x1b[2Jxxx" in caplog.text
    assert "\x1b" not in caplog.text


def test_a_leader_keeps_the_lock_and_names_a_stranger_that_joins(
    kafka: Kafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(kafka_lock(kafka, topic)) as lock:
        wait_for(lock.is_held, "it has the lock", 30)
        with stranger(kafka, topic) as has_lock:
            wait_for(lambda: not has_lock() and lock.strangers == 1, "the stranger is noticed", 40)
            assert lock.is_held()
            assert lock.error == ""
        wait_for(lambda: lock.strangers == 0, "the stranger is gone", 30)
    assert caplog.text.count("that are not Warrens") == 1


def test_other_warrens_are_no_strangers(kafka: Kafka, topic: str) -> None:
    with ExitStack() as locks:
        both = [locks.enter_context(closing(kafka_lock(kafka, topic))) for _ in range(2)]
        client = admin(kafka.bootstrap)

        def have_joined() -> bool:
            return len(client.describe_consumer_groups([topic])[topic].result(20).members) == 2

        wait_for(have_joined, "both are members", 30)
        time.sleep(2 * lock_members.CHECK_S + 1.0)
        assert [lock.strangers for lock in both] == [0, 0]


def test_the_state_and_the_metrics_show_a_stranger(tmp_path: Path, kafka: Kafka, topic: str) -> None:
    lock_topic, client = f"{topic}-lock", admin(kafka.bootstrap)
    config = Config(
        clusters={"one": Cluster("one", (kafka.bootstrap,))},
        consumers={},
        notifiers={"x": Notifier("x", "null")},
        notifier_lock=NotifierLock("kafka", group=lock_topic, session_timeout=6),
        incidents=Incidents("local", topic=topic),
    )
    client.create_topics([NewTopic(lock_topic, 1, 1)])[lock_topic].result(20)
    snapshots = Store(tmp_path)
    snapshots.create()
    with stranger(kafka, lock_topic) as has_lock:
        wait_for(has_lock, "the stranger has the lock", 30)
        with closing(Leadership(config, snapshots)):
            wait_for(lambda: has_lock() and read_leadership(tmp_path).state == "away", "it does not notify", 40)
            assert "a client that is not a Warren holds the lock" in read_leadership(tmp_path).why
            served = server_config(tmp_path, notifiers=config.notifiers, notifier_lock=config.notifier_lock)
            answer = metrics(new_api(served), Request("/metrics", {}))
            assert b"\nwarren_notifier_lock_strangers 1" in b"".join(bytes(part) for part in answer.body)

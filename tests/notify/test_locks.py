"""The locks: beside Burrow's own, over sessions that expire, and released at once."""

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from tests.kit.warrens import wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.config.kafka import Connection
from warren.config.notifiers import ZooKeeper
from warren.demo.broker import Kafka
from warren.demo.workload.topics import admin
from warren.notify import locks
from warren.notify.locks import KafkaLock, ZooKeeperLock


@pytest.fixture
def client(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.address)
    client.start()
    yield client
    client.stop()
    client.close()


def settings(zookeeper: ZooKeeperServer) -> ZooKeeper:
    return ZooKeeper((zookeeper.address,), 2, f"/burrow/{uuid.uuid4().hex[:6]}")


def test_it_waits_for_a_burrow_that_holds_the_lock(zookeeper: ZooKeeperServer, client: KazooClient) -> None:
    config = settings(zookeeper)
    path = f"{config.root_path}/notifier"
    # The node name of Burrow's client.
    burrow = client.create(f"{path}/_c_0123456789abcdef-lock-", ephemeral=True, sequence=True, makepath=True)
    lock = ZooKeeperLock(config)
    try:
        wait_for(lambda: len(client.get_children(path)) == 2, "it waits in the queue", 20)
        time.sleep(0.5)
        assert not lock.is_held()
        assert lock.error == ""
        client.delete(burrow)
        wait_for(lock.is_held, "it holds the lock", 20)
    finally:
        lock.close()


def test_the_lock_ends_with_its_session_and_is_taken_again(zookeeper: ZooKeeperServer, client: KazooClient) -> None:
    config = settings(zookeeper)
    changes: list[bool] = []
    lock = ZooKeeperLock(config, on_change=lambda: changes.append(True))
    try:
        wait_for(lock.is_held, "it has it", 20)
        [ours] = client.get_children(f"{config.root_path}/notifier")
        # A second client with the same session id and password ends the session.
        rival = KazooClient(zookeeper.address, client_id=lock._client.client_id)
        rival.start()
        rival.stop()
        rival.close()
        wait_for(lambda: ours not in client.get_children(f"{config.root_path}/notifier"), "it is gone", 20)
        wait_for(lambda: lock.is_held() and client.get_children(f"{config.root_path}/notifier"), "it has it again", 20)
        assert changes
    finally:
        lock.close()


def test_a_waiting_lock_that_loses_its_session_does_not_wait_for_itself(
    zookeeper: ZooKeeperServer, client: KazooClient
) -> None:
    config = settings(zookeeper)
    path = f"{config.root_path}/notifier"
    first = ZooKeeperLock(config)
    wait_for(first.is_held, "the first has it", 20)
    second = ZooKeeperLock(config)
    try:
        wait_for(lambda: len(client.get_children(path)) == 2, "the second waits in the queue", 20)
        waiting = set(client.get_children(path))
        rival = KazooClient(zookeeper.address, client_id=second._client.client_id)
        rival.start()
        rival.stop()
        rival.close()
        wait_for(lambda: len(set(client.get_children(path)) - waiting) == 1, "it waits in the queue again", 20)
        first.close()
        wait_for(second.is_held, "it holds the lock", 20)
        assert len(client.get_children(path)) == 1
    finally:
        first.close()
        second.close()


def test_closing_releases_the_lock_at_once(zookeeper: ZooKeeperServer, client: KazooClient) -> None:
    config = replace(settings(zookeeper), timeout=10)
    first, second = ZooKeeperLock(config), ZooKeeperLock(config)
    try:
        wait_for(lambda: first.is_held() or second.is_held(), "one has it", 20)
        holder, waiter = (first, second) if first.is_held() else (second, first)
        assert not waiter.is_held()
        holder.close()
        wait_for(waiter.is_held, "the other has it, long before a session would end", config.timeout / 2)
    finally:
        first.close()
        second.close()


def test_a_waiting_lock_can_be_closed(zookeeper: ZooKeeperServer) -> None:
    config = settings(zookeeper)
    first, second = ZooKeeperLock(config), ZooKeeperLock(config)
    wait_for(lambda: first.is_held() or second.is_held(), "one has it", 20)
    first.close()
    second.close()
    assert not first.is_held()
    assert not second.is_held()


def test_without_a_server_it_reports_an_error_after_a_while_and_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FIRST_ANSWER_S", 2.0)
    lock = ZooKeeperLock(ZooKeeper(("127.0.0.1:1",), 2))
    try:
        assert lock.is_starting
        wait_for(lambda: not lock.is_starting, "it has waited long enough", 20)
        assert not lock.is_held()
        assert lock.error == "ZooKeeper at 127.0.0.1:1 cannot be reached"
    finally:
        lock.close()


def new_topic(kafka: Kafka, partitions: int) -> str:
    topic = f"lock-{uuid.uuid4().hex[:8]}"
    client = admin(kafka.bootstrap)
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)
    return topic


def kafka_lock(kafka: Kafka, topic: str) -> KafkaLock:
    return KafkaLock(Connection((kafka.bootstrap,)), topic, topic, 6, lambda: None)


def test_a_leader_keeps_the_lock_when_others_join(kafka: Kafka) -> None:
    topic, client = new_topic(kafka, partitions=1), admin(kafka.bootstrap)
    with ExitStack() as locks:
        first = locks.enter_context(closing(kafka_lock(kafka, topic)))
        wait_for(first.is_held, "the first has it", 30)
        # Kafka's other strategies give the partition to the member with the lowest id, which is random.
        others = [locks.enter_context(closing(kafka_lock(kafka, topic))) for _ in range(4)]
        held: list[bool] = []

        def have_joined() -> bool:
            held.append(first.is_held())
            [group] = client.describe_consumer_groups([topic]).values()
            description = group.result(20)
            return len(description.members) == 5 and description.state == ConsumerGroupState.STABLE

        wait_for(have_joined, "the others are members", 60)
        assert all(held)
        assert not any(other.is_held() for other in others)
        first.close()
        wait_for(lambda: sum(other.is_held() for other in others) == 1, "one of the others has it", 30)


def test_a_topic_with_several_partitions_has_one_lock(kafka: Kafka) -> None:
    topic = new_topic(kafka, partitions=4)
    locks = [kafka_lock(kafka, topic) for _ in range(2)]
    try:
        wait_for(
            lambda: sum(lock.is_held() for lock in locks) == 1 and not any(lock.error for lock in locks), "one", 30
        )
        holder = next(lock for lock in locks if lock.is_held())
        holder.close()
        wait_for(lambda: any(lock.is_held() for lock in locks if lock is not holder), "the other one holds it", 30)
        assert not holder.is_held()
    finally:
        for lock in locks:
            lock.close()

"""The lock itself, in a real ZooKeeper: beside Burrow's own, over sessions that end, and given up at once."""

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kazoo.client import KazooClient

from tests.kit.warrens import wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.config import ZooKeeper
from warren.notify.locks import ZooKeeperLock


@pytest.fixture
def client(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.address)
    client.start()
    yield client
    client.stop()
    client.close()


def settings(zookeeper: ZooKeeperServer) -> ZooKeeper:
    return ZooKeeper((zookeeper.address,), 2, f"/burrow/{uuid.uuid4().hex[:6]}")


def test_a_burrow_that_notifies_is_waited_for(zookeeper: ZooKeeperServer, client: KazooClient) -> None:
    where = settings(zookeeper)
    path = f"{where.root_path}/notifier"
    # As Burrow's client names what it makes.
    burrow = client.create(f"{path}/_c_0123456789abcdef-lock-", ephemeral=True, sequence=True, makepath=True)
    lock = ZooKeeperLock(where)
    try:
        wait_for(lambda: len(client.get_children(path)) == 2, "it stands in line", 20)
        time.sleep(0.5)
        assert not lock.is_held()
        assert lock.error == ""
        client.delete(burrow)
        wait_for(lock.is_held, "it is its turn", 20)
    finally:
        lock.close()


def test_a_session_that_ends_takes_the_lock_with_it_and_another_is_asked_for(
    zookeeper: ZooKeeperServer, client: KazooClient
) -> None:
    where = settings(zookeeper)
    moved: list[bool] = []
    lock = ZooKeeperLock(where, on_change=lambda: moved.append(True))
    try:
        wait_for(lock.is_held, "it has it", 20)
        [ours] = client.get_children(f"{where.root_path}/notifier")
        # Somebody with the same session's name and secret ends it.
        rival = KazooClient(zookeeper.address, client_id=lock._client.client_id)
        rival.start()
        rival.stop()
        rival.close()
        wait_for(lambda: ours not in client.get_children(f"{where.root_path}/notifier"), "it is gone", 20)
        wait_for(lambda: lock.is_held() and client.get_children(f"{where.root_path}/notifier"), "it has it again", 20)
        assert moved
    finally:
        lock.close()


def test_who_loses_its_session_while_it_waits_does_not_wait_for_itself(
    zookeeper: ZooKeeperServer, client: KazooClient
) -> None:
    where = settings(zookeeper)
    path = f"{where.root_path}/notifier"
    first = ZooKeeperLock(where)
    wait_for(first.is_held, "the first has it", 20)
    second = ZooKeeperLock(where)
    try:
        wait_for(lambda: len(client.get_children(path)) == 2, "the second stands in line", 20)
        waiting = set(client.get_children(path))
        rival = KazooClient(zookeeper.address, client_id=second._client.client_id)
        rival.start()
        rival.stop()
        rival.close()
        wait_for(lambda: len(set(client.get_children(path)) - waiting) == 1, "it stands in line anew", 20)
        first.close()
        wait_for(second.is_held, "it is its turn", 20)
        assert len(client.get_children(path)) == 1
    finally:
        first.close()
        second.close()


def test_who_steps_back_lets_another_have_it(zookeeper: ZooKeeperServer) -> None:
    where = settings(zookeeper)
    first = ZooKeeperLock(where)
    wait_for(first.is_held, "the first has it", 20)
    second = ZooKeeperLock(where)
    try:
        first.step_back()
        wait_for(second.is_held, "the other has it", 10)
        assert not first.is_held()
    finally:
        first.close()
        second.close()


def test_it_is_given_up_at_once(zookeeper: ZooKeeperServer, client: KazooClient) -> None:
    where = replace(settings(zookeeper), timeout=10)
    first, second = ZooKeeperLock(where), ZooKeeperLock(where)
    try:
        wait_for(lambda: first.is_held() or second.is_held(), "one has it", 20)
        holder, waiter = (first, second) if first.is_held() else (second, first)
        assert not waiter.is_held()
        holder.close()
        wait_for(waiter.is_held, "the other has it, long before a session would end", where.timeout / 2)
    finally:
        first.close()
        second.close()


def test_one_that_waits_can_be_closed(zookeeper: ZooKeeperServer) -> None:
    where = settings(zookeeper)
    first, second = ZooKeeperLock(where), ZooKeeperLock(where)
    wait_for(lambda: first.is_held() or second.is_held(), "one has it", 20)
    first.close()
    second.close()
    assert not first.is_held()
    assert not second.is_held()


def test_without_a_server_it_says_so_and_can_be_closed() -> None:
    lock = ZooKeeperLock(ZooKeeper(("127.0.0.1:1",), 2))
    try:
        assert not lock.is_held()
        assert lock.error == "ZooKeeper at 127.0.0.1:1 cannot be reached"
    finally:
        lock.close()

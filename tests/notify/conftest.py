"""Fixtures of the notify tests."""

from collections.abc import Iterator

import pytest

from tests.kit.zookeeper import ZooKeeperServer


@pytest.fixture(scope="package")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """A real ZooKeeper; tests share it, so each uses a root of its own."""
    with ZooKeeperServer() as server:
        yield server

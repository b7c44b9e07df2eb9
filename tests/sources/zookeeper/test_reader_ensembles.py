"""A reader on ensembles that lose servers, or speak TLS."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from tests.kit.certificates import Authority
from tests.kit.warrens import wait_for
from tests.kit.znodes import OldConsumers, old_consumers
from tests.kit.zookeeper import ZooKeeperServer, ensemble_of_three, free_port
from tests.kit.zookeeper_readers import reading, target_of
from warren.config.security import Tls
from warren.sources.zookeeper.readers import NO_ANSWER, ZooKeeperReaders


def test_an_ensemble_that_loses_one_server_goes_on_and_one_that_loses_two_is_away() -> None:
    with ensemble_of_three() as servers, old_consumers(",".join(server.address for server in servers)) as znodes:
        znodes.commit("billing", "orders", 0, 1)
        target = replace(target_of(servers[0], znodes), servers=tuple(server.address for server in servers))
        with reading(target) as taker:
            taker.until(lambda: taker.changes == [("billing", "orders", 0, 1)], "it is listed")
            servers[0].kill()
            wait_for(lambda: is_committed(znodes, 2), "two of three accept commits")
            taker.until(lambda: ("billing", "orders", 0, 2) in taker.changes, "a change with two of three")
            servers[1].kill()
            taker.until(lambda: taker.sample.error, "one of three is no ensemble")
            servers[1].start()
            wait_for(lambda: is_committed(znodes, 3), "two of three accept commits again")
            taker.until(lambda: ("billing", "orders", 0, 3) in taker.changes, "a change with two of three again")
            taker.until(lambda: taker.sample.error is None, "it can be read")


def is_committed(znodes: OldConsumers, offset: int) -> bool:
    try:
        znodes.commit("billing", "orders", 0, offset)
    except (KazooException, KazooTimeoutError):
        return False
    return True


@pytest.mark.parametrize("is_trusted", [True, False])
def test_tls_with_a_certificate_of_the_client(tmp_path: Path, is_trusted: bool) -> None:
    authority, port = Authority(tmp_path / "ca"), free_port()
    certfile, keyfile = authority.issue(name="warren").write(tmp_path, "warren")
    settings = {
        "secureClientPort": port,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": authority.server.write_keystore(tmp_path / "server.pem"),
        "ssl.trustStore.location": authority.file,
    }
    with ZooKeeperServer(settings) as server, old_consumers(server.address) as znodes:
        znodes.commit("billing", "orders", 0, 1)
        cafile = authority.file if is_trusted else Authority(tmp_path / "other").file
        tls = Tls(name="zk", certfile=certfile, keyfile=keyfile, cafile=cafile)
        secured = replace(target_of(server, znodes), servers=(f"127.0.0.1:{port}",), tls=tls)
        # In a process: the client leaves the sockets of handshakes that failed to the garbage collector.
        with ZooKeeperReaders([secured]) as readers:
            if is_trusted:
                listed = wait_for(lambda: s.listing if (s := readers.take()["zk"]).is_listed else None, "it is read")
                assert listed["offset"].to_pylist() == [1]
            else:
                wait_for(lambda: readers.take()["zk"].error not in (None, NO_ANSWER), "it is tried")
                time.sleep(3.0)
                refused = readers.take()["zk"]
                assert "cannot be reached" in (refused.error or "")
                assert not refused.is_listed

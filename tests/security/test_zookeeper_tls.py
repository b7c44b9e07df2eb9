"""A real ZooKeeper with TLS whose certificate is of another host: whoever poses as the ensemble gets no session."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.certificates import Authority
from tests.kit.zookeeper import ZooKeeperServer, free_port

# In a process: the client leaves the sockets of handshakes that failed to the garbage collector.
LOCK = """
import sys, time
from pathlib import Path
from warren.config.notifiers import ZooKeeper
from warren.config.security import Tls
from warren.notify.locks import ZooKeeperLock
address, ca, noverify = sys.argv[1:]
lock = ZooKeeperLock(ZooKeeper((address,), 2), Tls(cafile=Path(ca), noverify=noverify == "True"))
until = time.monotonic() + (20.0 if noverify == "True" else 3.0)
while time.monotonic() < until and not lock.is_held():
    time.sleep(0.05)
print(lock.is_held(), lock.error)
lock.close()
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def test_a_zookeeper_with_the_certificate_of_another_host_is_not_used(tmp_path: Path, authority: Authority) -> None:
    port = free_port()
    settings = {
        "secureClientPort": port,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": authority.issue("another.example").write_keystore(tmp_path / "server.pem"),
        "ssl.trustStore.location": authority.file,
        "ssl.clientAuth": "none",
    }
    address = f"127.0.0.1:{port}"
    with ZooKeeperServer(settings):

        def outcome(noverify: bool) -> str:
            arguments = [address, str(authority.file), str(noverify)]
            run = subprocess.run([sys.executable, "-c", LOCK, *arguments], capture_output=True, text=True, timeout=60)
            return run.stdout.strip()

        assert outcome(noverify=False) == f"False ZooKeeper at {address} cannot be reached"
        assert outcome(noverify=True) == "True", "the server is well: only its name is wrong"

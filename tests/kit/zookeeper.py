"""A real ZooKeeper on this machine that can be killed and brought back."""

import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Self

from tests.kit.warrens import wait_for
from warren.demo.child_process import ChildProcess
from warren.java import Jars, fetch_jars, java_home

ZOOKEEPER = Jars(
    title="ZooKeeper 3.8.4",
    name="zookeeper",
    size="12 MB",
    dependencies=(
        "org.apache.zookeeper:zookeeper:3.8.4",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
    ),
    excludes=("junit", "org.hamcrest"),
)


class ZooKeeperServer:
    """One server on a free port of 127.0.0.1, with data that outlives its process."""

    def __init__(self) -> None:
        self._directory = Path()
        self._jvm: ChildProcess | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="warren-zookeeper-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self._directory / "zoo.cfg").write_text(
            f"dataDir={self._directory / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\nminSessionTimeout=1000\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\n"
        )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def start(self) -> None:
        """Start it, on its port and its data, and wait until it serves."""
        jars = ":".join(map(str, fetch_jars(ZOOKEEPER)))
        command = [
            str(java_home() / "bin" / "java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", jars,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self._directory / "zoo.cfg"),
        ]  # fmt: skip
        self._jvm = ChildProcess(command, self._directory / "zookeeper.log")
        wait_for(self._is_well, "ZooKeeper answers", 60.0)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._jvm is not None:
            self._jvm.kill()
        self._jvm = None

    def _is_well(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                connection.sendall(b"ruok")
                return connection.recv(10) == b"imok"
        except OSError:
            time.sleep(0.05)
            return False

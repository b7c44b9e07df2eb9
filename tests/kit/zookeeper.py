"""A real ZooKeeper on this machine that can be killed and brought back."""

import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
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

    def __init__(self, settings: Mapping[str, object] | None = None, my_id: int | None = None) -> None:
        self._settings = settings or {}
        self._my_id = my_id
        self._directory = Path()
        self._jvm: ChildProcess | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="warren-zookeeper-"))
        self.port = free_port()
        settings = {
            "dataDir": self._directory / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": 500,
            "minSessionTimeout": 1000,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            **self._settings,
        }
        (self._directory / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if self._my_id is not None:
            (self._directory / "data").mkdir()
            (self._directory / "data" / "myid").write_text(str(self._my_id))
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

    def ask(self, word: str) -> str:
        """The answer to one of ZooKeeper's four letter words."""
        with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
            connection.sendall(word.encode())
            return connection.makefile(errors="replace").read()

    def _is_well(self) -> bool:
        try:
            return self.ask("ruok") == "imok"
        except OSError:
            time.sleep(0.05)
            return False


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def ensemble_of_three() -> Iterator[list[ZooKeeperServer]]:
    """Three servers that are one ensemble."""
    ports = {number: (free_port(), free_port()) for number in (1, 2, 3)}
    peers = {f"server.{number}": f"127.0.0.1:{peer}:{election}" for number, (peer, election) in ports.items()}
    settings = {**peers, "initLimit": 20, "syncLimit": 10}
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(ZooKeeperServer(settings, number)) for number in ports]

"""A real Kafka on this machine: a broker that can be killed and started again."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from warren.demo.child_process import ChildProcess, last_lines
from warren.errors import DemoError
from warren.java import (
    KAFKA_BROKER,
    class_archive,
    class_archive_options,
    fetch_jars,
    java_home,
    store_class_archive,
)

# Below the ephemeral ports, so that no connection takes the port of a broker that is down.
_PORTS = range(20_000, 32_000)
_READY_TIMEOUT_S = 90.0


def free_ports(count: int = 2) -> list[int]:
    """So many free ports of 127.0.0.1."""
    free: set[int] = set()
    while len(free) < count:
        port = random.SystemRandom().choice(_PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            free.add(port)
    return list(free)


@dataclass(eq=False)
class Kafka:
    """A Kafka cluster of one broker on free ports of 127.0.0.1.

    The data is in `dir`, or in a temporary directory that is removed at the end. `config` overrides settings of the
    broker, `java_options` are added to its JVM. A fast start limits the JIT compiler: give `fast_start=False` where
    throughput matters.
    """

    dir: Path | None = None
    _: KW_ONLY
    memory: str = "512m"
    fast_start: bool = True
    config: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()
    node_id: int = 0
    # As base64 this is a UUID. It must not start with a "-", which the format tool takes for an option.
    cluster_id: str = field(default_factory=lambda: f"{uuid.uuid4().hex[:21]}A")
    ports: Sequence[int] = field(default_factory=free_ports)
    """The ports for clients and for controllers."""
    _directory: Path = field(init=False, default=Path())
    _process: ChildProcess | None = field(init=False, default=None)

    @property
    def bootstrap(self) -> str:
        """The address of the broker, for clients."""
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def log(self) -> Path:
        """The log file of the broker."""
        return self._directory / "broker.log"

    @property
    def pid(self) -> int:
        """The process id of the broker, which must be running."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self._directory = Path(self.dir or tempfile.mkdtemp(prefix="warren-kafka-")).absolute()
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            self._start_on_free_ports()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker, again with its ports and data after a kill, and wait until it is ready."""
        if self._process is None:
            self._properties.write_text(self._to_properties())
            if not (self._data / "meta.properties").exists():
                self._format()
            self._process = self._launch()
            self._await_ready(self._process)

    def kill(self) -> None:
        """End the broker with SIGKILL; Kafka's log is safe against it."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def stop(self) -> None:
        """End the broker, and remove the data if its directory is temporary."""
        if self._process is not None and (self.dir is not None or not _class_archive().exists()):
            self._process.terminate()
            self._process = None
            if self._new_archive.exists():
                store_class_archive(self._new_archive, _class_archive())
        self.kill()
        if self.dir is None and self._directory != Path():
            shutil.rmtree(self._directory, ignore_errors=True)

    def _start_on_free_ports(self) -> None:
        """Start the broker; if another program takes one of its ports first, try again with other ports."""
        for attempts_left in (2, 1, 0):
            try:
                self.start()
            except DemoError:
                self.kill()
                if "Address already in use" not in last_lines(self.log) or not attempts_left:
                    raise
                self.ports = free_ports()
            else:
                return

    @property
    def _new_archive(self) -> Path:
        return _class_archive().with_suffix(f".{self.cluster_id}")

    @property
    def _properties(self) -> Path:
        return self._directory / "broker.properties"

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _to_properties(self) -> str:
        port, controller_port = self.ports
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{self.node_id}@127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._data),
            "offsets.topic.num.partitions": "8",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # The leaders of a killed broker move, and it may come back, after 3 s instead of 9.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            # The default of 128 MB is half of a small heap.
            "log.cleaner.dedupe.buffer.size": str(16 << 20),
            **self.config,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _java(self, *options: str) -> list[str]:
        classpath = os.pathsep.join(str(jar) for jar in fetch_jars(KAFKA_BROKER))
        fast = ["-XX:TieredStopAtLevel=1"] if self.fast_start else []
        fast += class_archive_options(_class_archive())
        return [str(java_home() / "bin" / "java"), "-XX:+UseSerialGC", *fast, *options, "-cp", classpath]

    def _format(self) -> None:
        command = [*self._java("-Xmx128m"), "kafka.tools.StorageTool", "format"]
        command += ["--cluster-id", self.cluster_id, "--config", str(self._properties)]
        with self.log.open("w") as log:
            run = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False)
        if run.returncode:
            raise DemoError(f"Kafka's data directory could not be formatted:\n{last_lines(self.log)}")

    def _launch(self) -> ChildProcess:
        options = [f"-Xmx{self.memory}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *self.java_options]
        if not _class_archive().exists():
            _class_archive().parent.mkdir(parents=True, exist_ok=True)
            options.append(f"-XX:ArchiveClassesAtExit={self._new_archive}")
        command = [*self._java(*options), "kafka.Kafka", str(self._properties)]
        return ChildProcess(command, self.log, leftovers=self._directory if self.dir is None else None)

    def _await_ready(self, process: ChildProcess) -> None:
        """Wait until the broker itself answers for this cluster and counts itself as alive."""
        backoff = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, **backoff})
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if process.exit_code is not None:
                raise DemoError(f"Kafka ended during its start:\n{last_lines(self.log)}")
            try:
                cluster = admin.list_topics(timeout=1)
            except KafkaException:
                continue
            if cluster.cluster_id == self.cluster_id and self.node_id in cluster.brokers:
                return
            time.sleep(0.05)
        raise DemoError(f"Kafka was not ready within {_READY_TIMEOUT_S:.0f} s:\n{last_lines(self.log)}")


def _class_archive() -> Path:
    """The class-data archive with which brokers start in a third of the time.

    The first broker that is stopped gracefully writes it.
    """
    return class_archive("kafka", str(fetch_jars(KAFKA_BROKER)[0].parent))

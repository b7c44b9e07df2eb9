"""A real Kafka on this machine: one or three brokers that can be killed and started again."""

import atexit
import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from warren.demo.child_process import ChildProcess, last_lines
from warren.errors import DemoError
from warren.java import KAFKA_BROKER, cache_dir, digest, fetch_jars, java_home

# Below the ephemeral ports, so that no connection takes the port of a broker that is down.
_PORTS = range(20_000, 32_000)
_READY_TIMEOUT_S = 90.0


@dataclass(eq=False)
class Kafka:
    """A Kafka cluster of `brokers` nodes on free ports of 127.0.0.1; broker `i` has the node id `i`.

    The data is in `dir`, or in a temporary directory that is removed at the end. `config` overrides settings of the
    brokers. A fast start limits the JIT compiler: give `fast_start=False` where throughput matters.
    """

    brokers: int = 1
    dir: Path | None = None
    _: KW_ONLY
    offsets_partitions: int = 8
    memory: str = ""
    fast_start: bool = True
    config: Mapping[str, str] = field(default_factory=dict)
    # As base64 this is a UUID. It must not start with a "-", which the format tool takes for an option.
    cluster_id: str = field(init=False, default_factory=lambda: f"{uuid.uuid4().hex[:21]}A")
    _directory: Path = field(init=False, default=Path())
    _ports: list[tuple[int, int]] = field(init=False, default_factory=list)  # per broker: for clients, for controllers
    _running: dict[int, ChildProcess] = field(init=False, default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for clients."""
        return ",".join(self.address(i) for i in range(self.brokers))

    def address(self, i: int) -> str:
        """The address of broker `i`."""
        return f"127.0.0.1:{self._ports[i][0]}"

    def log(self, i: int) -> Path:
        """The log file of broker `i`."""
        return self._directory / f"broker-{i}.log"

    def process_id(self, i: int) -> int:
        """The process id of broker `i`, which must be running."""
        return self._running[i].pid

    def __enter__(self) -> Self:
        self._directory = Path(self.dir or tempfile.mkdtemp(prefix="warren-kafka-")).absolute()
        self._directory.mkdir(parents=True, exist_ok=True)
        self.cluster_id = self._formatted_cluster_id() or self.cluster_id
        atexit.register(self.stop)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, i: int) -> None:
        """Start broker `i` again, with its ports and data, and wait until it is ready."""
        if i not in self._running:
            self._launch(i)
            self._await_ready(i, with_brokers={i})

    def kill(self, i: int) -> None:
        """End broker `i` with SIGKILL."""
        if process := self._running.pop(i, None):
            process.kill()

    def stop(self) -> None:
        """End all brokers, and remove the data if its directory is temporary."""
        atexit.unregister(self.stop)
        # The last of three brokers would wait for a quorum that is gone; Kafka's log is safe against a kill.
        is_graceful = self.brokers == 1 and (self.dir is not None or not _class_archive().exists())
        for process in self._running.values():
            if is_graceful:
                process.terminate()
                with contextlib.suppress(FileNotFoundError):
                    self._new_archive.replace(_class_archive())
            else:
                process.kill()
        self._running.clear()
        if self.dir is None and self._directory != Path():
            shutil.rmtree(self._directory, ignore_errors=True)

    def _start_all(self) -> None:
        """Start the cluster; if another program takes one of its ports first, try again with other ports."""
        for attempts_left in (2, 1, 0):
            self._ports = free_port_pairs(self.brokers)
            for i in range(self.brokers):
                self._properties(i).write_text(self._to_properties(i))
            self._format()
            try:
                for i in range(self.brokers):
                    self._launch(i)
                for i in range(self.brokers):
                    self._await_ready(i, with_brokers=set(range(self.brokers)))
            except DemoError:
                is_port_taken = any("Address already in use" in last_lines(self.log(i)) for i in range(self.brokers))
                for i in list(self._running):
                    self.kill(i)
                if not is_port_taken or not attempts_left:
                    raise
            else:
                return

    @property
    def _new_archive(self) -> Path:
        return _class_archive().with_suffix(f".{self.cluster_id}")

    def _properties(self, i: int) -> Path:
        return self._directory / f"broker-{i}.properties"

    def _to_properties(self, i: int) -> str:
        port, controller_port = self._ports[i]
        voters = ",".join(f"{node}@127.0.0.1:{ports[1]}" for node, ports in enumerate(self._ports))
        replicas, in_sync = str(self.brokers), str(2 if self.brokers >= 3 else 1)
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(i),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._directory / f"broker-{i}"),
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "offsets.topic.num.partitions": str(self.offsets_partitions),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
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
        if _class_archive().exists():
            # With a stale archive the JVM loads the classes from the jars.
            fast += [f"-XX:SharedArchiveFile={_class_archive()}", "-Xshare:auto", "-Xlog:disable"]
        return [str(java_home() / "bin" / "java"), "-XX:+UseSerialGC", *fast, *options, "-cp", classpath]

    def _format(self) -> None:
        command = [*self._java("-Xmx128m"), "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        formats = []
        for i in range(self.brokers):
            with self.log(i).open("w") as log:
                arguments = ["--cluster-id", self.cluster_id, "--config", str(self._properties(i))]
                formats.append(
                    subprocess.Popen([*command, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
                )
        exits = [process.wait() for process in formats]
        if any(exits):
            tails = "\n".join(last_lines(self.log(i)) for i in range(self.brokers))
            raise DemoError(f"Kafka's data directory could not be formatted:\n{tails}")

    def _formatted_cluster_id(self) -> str | None:
        properties = self._directory / "broker-0" / "meta.properties"
        lines = properties.read_text().splitlines() if properties.exists() else []
        return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), None)

    def _launch(self, i: int) -> None:
        default_memory = "512m" if self.brokers == 1 else "256m"
        options = [f"-Xmx{self.memory or default_memory}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        if self.brokers == 1 and not _class_archive().exists():
            _class_archive().parent.mkdir(parents=True, exist_ok=True)
            options.append(f"-XX:ArchiveClassesAtExit={self._new_archive}")
        command = [*self._java(*options), "kafka.Kafka", str(self._properties(i))]
        leftovers = self._directory if self.dir is None else None
        self._running[i] = ChildProcess(command, self.log(i), leftovers=leftovers)

    def _await_ready(self, i: int, with_brokers: set[int]) -> None:
        """Wait until broker `i` itself answers for this cluster and knows that these brokers are alive."""
        backoff = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
        admin = AdminClient({"bootstrap.servers": self.address(i), "log_level": 0, **backoff})
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._running[i].exit_code is not None:
                raise DemoError(f"Kafka broker {i} ended during its start:\n{last_lines(self.log(i))}")
            try:
                cluster = admin.list_topics(timeout=1)
            except KafkaException:
                continue
            if cluster.cluster_id == self.cluster_id and with_brokers <= cluster.brokers.keys():
                return
            time.sleep(0.05)
        raise DemoError(f"Kafka broker {i} was not ready within {_READY_TIMEOUT_S:.0f} s:\n{last_lines(self.log(i))}")


def _class_archive() -> Path:
    """The class-data archive with which brokers start in a third of the time.

    The first single broker that is stopped gracefully writes it. It is specific to one Java and one set of jars.
    """
    release = java_home() / "release"
    key = f"{java_home()} {release.read_text() if release.exists() else ''} {fetch_jars(KAFKA_BROKER)[0].parent}"
    return cache_dir() / "java" / f"kafka-{digest(key)}.jsa"


def free_port_pairs(pairs: int) -> list[tuple[int, int]]:
    """So many pairs of free ports of 127.0.0.1."""
    free: set[int] = set()
    while len(free) < 2 * pairs:
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        free.add(port)
    ports = sorted(free)
    return list(zip(ports[::2], ports[1::2], strict=True))

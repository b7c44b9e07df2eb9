"""Brokers of earlier releases of Kafka, back to 0.9, on the Java of today."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from kazoo.client import KazooClient

from tests.kit.warrens import wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.demo.broker import Kafka
from warren.demo.child_process import ChildProcess
from warren.java import Jars, fetch_jars, java_home

_LOGGING = """log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%p %m (%c)%n
"""


def _jars(version: str, scala: str, *others: str) -> Jars:
    return Jars(
        title=f"the Kafka {version} broker",
        name=f"kafka-{version}",
        size="50 MB",
        dependencies=(f"org.apache.kafka:kafka_{scala}:{version}", *others),
        excludes=("junit", "org.hamcrest"),
    )


# Java 17 lacks a package that Java 8 had, and old brokers take its version number for an error.
_JAXB = "javax.xml.bind:jaxb-api:2.3.1"
_BROKERS: Mapping[str, Jars] = {
    "0.9.0": _jars("0.9.0.1", "2.11", _JAXB),
    "0.10.0": _jars("0.10.0.1", "2.11", _JAXB),
    "0.10.1": _jars("0.10.1.1", "2.11", _JAXB),
    "0.10.2": _jars("0.10.2.2", "2.12", _JAXB),
    "0.11.0": _jars("0.11.0.3", "2.12", _JAXB),
    "1.1": _jars("1.1.1", "2.12", "org.slf4j:slf4j-log4j12:1.7.25"),
    "2.8": _jars("2.8.2", "2.13", "org.slf4j:slf4j-log4j12:1.7.36"),
    "3.9": _jars("3.9.1", "2.13", "org.slf4j:slf4j-simple:1.7.36"),
}
_FOR_JAVA_8 = ("0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0")
_WITH_ZOOKEEPER = (*_FOR_JAVA_8, "1.1", "2.8")
_WITHOUT_CLUSTER_ID = ("0.9.0", "0.10.0")
VERSIONS = tuple(_BROKERS)


@dataclass(eq=False)
class OldKafka(Kafka):
    """A cluster of one broker of an earlier release; before 3.9 with a ZooKeeper of its own."""

    version: str = "2.8"
    chroot: str = ""
    """The znode below which the broker keeps all of its own."""
    _parts: contextlib.ExitStack = field(init=False, default_factory=contextlib.ExitStack)
    _zookeeper: ZooKeeperServer | None = field(init=False, default=None)

    @property
    def zookeeper(self) -> str:
        """The address of its ZooKeeper."""
        assert self._zookeeper is not None
        return self._zookeeper.address

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as parts:
            if self.version in _WITH_ZOOKEEPER:
                self._zookeeper = parts.enter_context(ZooKeeperServer())
                self._name_cluster()
            super().__enter__()
            self._parts = parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._parts.close()

    def old_consumer(self, group: str, topic: str) -> ChildProcess:
        """A consumer of the broker's own release that commits to ZooKeeper, from the beginning of the topic."""
        settings = {"group.id": group, "auto.commit.interval.ms": "1000", "auto.offset.reset": "smallest"}
        command = [*self._java("-Xmx128m"), "kafka.tools.ConsoleConsumer", "--topic", topic]
        command += ["--zookeeper", f"{self.zookeeper}{self.chroot}"]
        for name, value in settings.items():
            command += ["--consumer-property", f"{name}={value}"]
        return ChildProcess(command, self._directory / f"{group}.log")

    def log_bytes(self, topic: str) -> int:
        """The size of a topic on disk, which compaction reduces; no client is needed to learn it."""
        return sum(path.stat().st_size for path in self._data.glob(f"{topic}-*/*.log"))

    def _name_cluster(self) -> None:
        client = KazooClient(self.zookeeper)
        client.start(30)
        name = json.dumps({"version": "1", "id": self.cluster_id}).encode()
        client.create(f"{self.chroot}/cluster/id", name, makepath=True)
        client.stop()
        client.close()

    def _to_properties(self) -> str:
        if self._zookeeper is None:
            return super()._to_properties()
        own = f"PLAINTEXT://{self.bootstrap}"
        settings = {
            "broker.id": str(self.node_id),
            "zookeeper.connect": f"{self.zookeeper}{self.chroot}",
            "listeners": own,
            "advertised.listeners": own,
            "log.dirs": str(self._data),
            "offsets.topic.num.partitions": "8",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "delete.topic.enable": "true",
            "log.cleaner.dedupe.buffer.size": str(16 << 20),
            **self.config,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _java(self, *options: str) -> list[str]:
        logging = self._directory / "log4j.properties"
        logging.write_text(_LOGGING)
        own = [f"-Dlog4j.configuration=file:{logging}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        if self.version in _FOR_JAVA_8:
            own.append("-Djava.specification.version=1.8")
        java = [str(java_home() / "bin" / "java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [*java, *own, *options, "-cp", os.pathsep.join(map(str, fetch_jars(_BROKERS[self.version])))]

    def _format(self) -> None:
        if self._zookeeper is None:
            super()._format()

    def _launch(self) -> ChildProcess:
        command = [*self._java(f"-Xmx{self.memory}", *self.java_options), "kafka.Kafka", str(self._properties)]
        return ChildProcess(command, self.log, leftovers=self._directory if self.dir is None else None)

    def _await_ready(self, process: ChildProcess) -> None:
        if self.version not in _WITHOUT_CLUSTER_ID:
            super()._await_ready(process)
            return
        # No client of today tells such a broker from another: ask ZooKeeper, which knows when it is there.
        assert self._zookeeper is not None
        client = KazooClient(self._zookeeper.address)
        client.start(30)
        try:
            wait_for(lambda: client.exists(f"/brokers/ids/{self.node_id}"), f"Kafka {self.version} is ready", 90)
        finally:
            client.stop()
            client.close()

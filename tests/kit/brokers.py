"""A Kafka cluster of several brokers."""

import contextlib
import json
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient

from tests.kit.warrens import wait_for
from warren.demo.broker import Kafka, free_ports


class KafkaCluster:
    """Brokers that are one Kafka cluster; broker `i` has the node id `i`.

    `listeners` are listeners beside the open one, with their protocols; `config` are settings of every broker.
    """

    def __init__(
        self,
        brokers: int,
        listeners: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self._parts = contextlib.ExitStack()
        home = Path(self._parts.enter_context(tempfile.TemporaryDirectory(prefix="warren-kafka-")))
        self._home = home
        protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {}), "CONTROLLER": "PLAINTEXT"}
        free = iter(free_ports(len(protocols) * brokers))
        self._ports = {name: list(islice(free, brokers)) for name in protocols}
        cluster_id = f"{uuid.uuid4().hex[:21]}A"
        replicas, in_sync = str(min(brokers, 3)), str(min(brokers, 2))
        common = {
            "controller.quorum.voters": ",".join(f"{i}@{at}" for i, at in enumerate(self._addresses("CONTROLLER"))),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            **(config or {}),
        }
        self._brokers = [
            Kafka(
                home / str(i),
                memory="256m",
                config={**common, **self._listeners(i)},
                java_options=java_options,
                node_id=i,
                cluster_id=cluster_id,
                ports=(self._ports["PLAINTEXT"][i], self._ports["CONTROLLER"][i]),
            )
            for i in range(brokers)
        ]

    def _addresses(self, listener: str) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self._ports[listener]]

    def _listeners(self, i: int) -> dict[str, str]:
        named = {name: f"{name}://{self._addresses(name)[i]}" for name in self._ports}
        advertised = [address for name, address in named.items() if name != "CONTROLLER"]
        return {"listeners": ",".join(named.values()), "advertised.listeners": ",".join(advertised)}

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for clients."""
        return self.bootstrap_of("PLAINTEXT")

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of a listener on all brokers."""
        return ",".join(self._addresses(listener))

    def address(self, i: int) -> str:
        """The address of broker `i`."""
        return self._addresses("PLAINTEXT")[i]

    @property
    def brokers(self) -> int:
        """How many brokers there are."""
        return len(self._brokers)

    @property
    def logs(self) -> str:
        """All that the brokers have logged."""
        return "".join(broker.log.read_text(errors="replace") for broker in self._brokers if broker.log.exists())

    @property
    def controller(self) -> int:
        """The broker that is the active controller, by what the brokers have stored of the last election."""
        files = self._home.glob("*/data/__cluster_metadata-0/quorum-state")
        newest = max((json.loads(file.read_text()) for file in files), key=lambda state: int(state["leaderEpoch"]))
        return int(newest["leaderId"])

    def __enter__(self) -> Self:
        with self._parts, ThreadPoolExecutor(self.brokers) as pool:
            for broker in self._brokers:
                # Without a graceful stop: the last broker would wait for a quorum that is gone.
                self._parts.callback(broker.kill)
            list(pool.map(Kafka.__enter__, self._brokers))
            wait_for(lambda: all(map(self._knows_all, self._brokers)), "each broker knows the others", 60)
            self._parts = self._parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def start(self, i: int) -> None:
        """Start broker `i` again, with its ports and data, and wait until it is ready."""
        self._brokers[i].start()

    def kill(self, i: int) -> None:
        """End broker `i` with SIGKILL."""
        self._brokers[i].kill()

    def _knows_all(self, broker: Kafka) -> bool:
        cluster = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}).list_topics(timeout=10)
        return len(cluster.brokers) == self.brokers


class KafkaTrio(KafkaCluster):
    """Three brokers that are one Kafka cluster."""

    def __init__(self) -> None:
        super().__init__(3)

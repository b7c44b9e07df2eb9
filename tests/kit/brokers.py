"""A Kafka cluster of three brokers."""

import contextlib
import json
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient

from tests.kit.warrens import wait_for
from warren.demo.broker import Kafka, free_ports

BROKERS = 3


class KafkaTrio:
    """Three brokers that are one Kafka cluster; broker `i` has the node id `i`."""

    def __init__(self) -> None:
        self._parts = contextlib.ExitStack()
        home = Path(self._parts.enter_context(tempfile.TemporaryDirectory(prefix="warren-kafka-")))
        self._home = home
        ports = free_ports(2 * BROKERS)
        client_ports, controller_ports = ports[:BROKERS], ports[BROKERS:]
        cluster_id = f"{uuid.uuid4().hex[:21]}A"
        config = {
            "controller.quorum.voters": ",".join(f"{i}@127.0.0.1:{port}" for i, port in enumerate(controller_ports)),
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
        }
        self._brokers = [
            Kafka(home / str(i), memory="256m", config=config, node_id=i, cluster_id=cluster_id, ports=pair)
            for i, pair in enumerate(zip(client_ports, controller_ports, strict=True))
        ]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for clients."""
        return ",".join(broker.bootstrap for broker in self._brokers)

    def address(self, i: int) -> str:
        """The address of broker `i`."""
        return self._brokers[i].bootstrap

    @property
    def controller(self) -> int:
        """The broker that is the active controller, by what the brokers have stored of the last election."""
        files = self._home.glob("*/data/__cluster_metadata-0/quorum-state")
        newest = max((json.loads(file.read_text()) for file in files), key=lambda state: int(state["leaderEpoch"]))
        return int(newest["leaderId"])

    def __enter__(self) -> Self:
        with self._parts, ThreadPoolExecutor(BROKERS) as pool:
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

    @staticmethod
    def _knows_all(broker: Kafka) -> bool:
        cluster = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}).list_topics(timeout=10)
        return len(cluster.brokers) == BROKERS

"""Offsets in ZooKeeper: what following many znodes costs the ensemble and this machine, and how soon a change is seen.

    python -m benchmarks.zookeeper [--znodes 20000] [--seconds 20] [--rate 1000] [--without-spark]

The last row reads all znodes once through a data source of PySpark, as every cycle would have to.
"""

import argparse
import itertools
import multiprocessing
import threading
import time
from collections.abc import Iterator

import numpy as np
from kazoo.client import KazooClient
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benchmarks.conditions import cpu_s, peak_mib, show
from tests.kit.zookeeper import ZooKeeperServer
from warren.clock import read_clock
from warren.sources.zookeeper.layouts import ConsumersLayout
from warren.sources.zookeeper.readers import ZooKeeperReaders
from warren.sources.zookeeper.samples import Ack, ReadTarget, ZooKeeperSample

GROUP_WIDTH = 100
IN_FLIGHT = 200
TASKS = 2


def main() -> None:
    """Measure the first list, then silence, then groups that commit every minute, every 10 s and every 2 s."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--znodes", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--without-spark", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with ZooKeeperServer({"maxClientCnxns": 0}) as server:
        client = KazooClient(server.address)
        client.start()
        paths = create(client, options.znodes)
        target = ReadTarget("zk", "c", (server.address,), ConsumersLayout("/consumers"), max_rate=options.rate)
        with ZooKeeperReaders([target]) as readers:
            rows.append(Measured(server, readers).first_list())
            for every_s in (None, 60, 10, 2):
                rows.append(Measured(server, readers).churn(client, paths, every_s, options.seconds))
                print(rows[-1], flush=True)
        client.stop()
        if not options.without_spark:
            rows.append(read_by_spark(server))
    show("zookeeper", rows)


def create(client: KazooClient, znodes: int) -> list[str]:
    """Groups of a hundred partitions each."""
    paths = []
    for group in range(znodes // GROUP_WIDTH):
        topic = f"/consumers/group-{group:04d}/offsets/orders"
        client.ensure_path(topic)
        waiting = [client.create_async(f"{topic}/{partition}", b"0") for partition in range(GROUP_WIDTH)]
        for result in waiting:
            result.get()
        paths += [f"{topic}/{partition}" for partition in range(GROUP_WIDTH)]
    return paths


class Measured:
    """The reader over some time: requests as the server counts them, processor time, memory, delays."""

    def __init__(self, server: ZooKeeperServer, readers: ZooKeeperReaders) -> None:
        self._server, self._readers = server, readers
        self._began = time.monotonic()
        process = next(child for child in multiprocessing.active_children() if "ZooKeeper" in child.name)
        self._pid = process.pid or 0
        self._cpu_s = cpu_s(self._pid)
        self._requests = self._take().requests
        self._delays: list[float] = []

    def _take(self) -> ZooKeeperSample:
        sample = self._readers.take(10.0)["zk"]
        if sample.is_listed:
            self._readers.published({"zk": Ack(sample.instance, sample.version)})
        return sample

    def first_list(self) -> dict[str, object]:
        """Until every znode has been read."""
        while not (sample := self._take()).is_listed:
            time.sleep(0.1)
        return self._row("first list", sample)

    def churn(self, client: KazooClient, paths: list[str], every_s: int | None, seconds: float) -> dict[str, object]:
        """While every znode changes once in so many seconds."""
        stopping = threading.Event()
        writer = threading.Thread(target=write, args=(client, paths, every_s, stopping))
        writer.start()
        deadline = time.monotonic() + seconds
        changes = 0
        while time.monotonic() < deadline:
            time.sleep(1.0)
            sample = self._take()
            observed = np.asarray(sample.changes["observed_ms"]) + read_clock().offset_ms
            self._delays += (observed - np.asarray(sample.changes["time_ms"])).tolist()
            changes += sample.changes.num_rows
        row = self._row(f"a commit every {every_s} s" if every_s else "silence", self._take())
        stopping.set()
        writer.join()
        time.sleep(2.0)
        self._take()
        return {**row, "changes/s": round(changes / seconds)}

    def _row(self, name: str, sample: ZooKeeperSample) -> dict[str, object]:
        took_s = time.monotonic() - self._began
        delays = np.array(self._delays or [0.0])
        return {
            "case": name,
            "znodes": sample.znodes,
            "seconds": round(took_s, 1),
            "requests/s": round((sample.requests - self._requests) / took_s),
            "changes/s": 0,
            "cpu": f"{(cpu_s(self._pid) - self._cpu_s) / took_s:.0%}",
            "MiB": peak_mib(self._pid),
            "seen after ms, median": round(float(np.median(delays))),
            "99 %": round(float(np.quantile(delays, 0.99))),
            "pending": sample.pending,
        }


def write(client: KazooClient, paths: list[str], every_s: int | None, stopping: threading.Event) -> None:
    """Commit to all znodes in turn, at a steady rate."""
    if every_s is None:
        return
    began, per_s = time.monotonic(), len(paths) / every_s
    for number, path in enumerate(itertools.cycle(paths)):
        while number > (time.monotonic() - began) * per_s:
            if stopping.wait(0.01):
                return
        if stopping.is_set():
            return
        client.set_async(path, str(number).encode())


class ZnodesSource(DataSource):
    """All znodes, read anew by each query: a task has a session of its own and keeps no watch."""

    @classmethod
    def name(cls) -> str:
        """Its format."""
        return "znodes"

    def schema(self) -> str:
        """What a cycle needs."""
        return "path string, value binary, zxid long, mtime long"

    def reader(self, schema: object) -> "ZnodesReader":
        """The reader of the tasks."""
        return ZnodesReader(self.options["address"])


class ZnodesReader(DataSourceReader):
    """Lists the groups of a task and gets every znode, as fast as the server answers."""

    def __init__(self, address: str) -> None:
        self._address = address

    def partitions(self) -> list[InputPartition]:
        """A few tasks."""
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, bytes, int, int]]:
        """One task."""
        client = KazooClient(self._address)
        client.start()
        for group in sorted(client.get_children("/consumers"))[partition.value :: TASKS]:
            topics = f"/consumers/{group}/offsets"
            for topic in client.get_children(topics):
                paths = [f"{topics}/{topic}/{name}" for name in client.get_children(f"{topics}/{topic}")]
                for path, result in [(path, client.get_async(path)) for path in paths]:
                    data, stat = result.get()
                    yield path, data, stat.mzxid, stat.mtime
        client.stop()
        client.close()


def read_by_spark(server: ZooKeeperServer) -> dict[str, object]:
    """One query on all znodes, after one that warms up."""
    from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
    from warren.spark.session import start_session

    spark = start_session(f"local[{TASKS}]", fetch_jars(SPARK_CONNECTOR), java_home(), driver_memory="1g")
    spark.dataSource.register(ZnodesSource)
    rows = spark.read.format("znodes").option("address", server.address).load()
    rows.count()
    began, packets = time.monotonic(), received(server)
    znodes = rows.count()
    took_s = time.monotonic() - began
    asked = received(server) - packets
    spark.stop()
    return {
        "case": "one query of a data source", "znodes": znodes, "seconds": round(took_s, 1),
        "requests/s": round(asked / took_s), "changes/s": 0, "cpu": "", "MiB": "",
        "seen after ms, median": "", "99 %": "", "pending": asked,
    }  # fmt: skip


def received(server: ZooKeeperServer) -> int:
    """How many packets the server has received."""
    return int(server.ask("srvr").partition("Received: ")[2].split()[0])


if __name__ == "__main__":
    main()

"""The HTTP API under load, while a new snapshot arrives every few seconds.

    python -m benchmarks.serve [--partitions 100000] [--seconds 10] [--connections 8] [--every 5]

Snapshots are recorded first and then published again and again under new numbers, as a pipeline would. The client is
a process of its own on the same machine. "On demand": the server's cache of answers is off, so each is made anew.
"""

import argparse
import json
import multiprocessing
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec.structs import replace

from benchmarks.conditions import peak_mib, show
from benchmarks.load import PARTITIONS_PER_GROUP, group_name, topic_name
from benchmarks.snapshots import INTERVALS, record
from warren.config import Cluster, Config, Consumer, HttpServer, Pipeline
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store
from warren.web import asgi, server


def main() -> None:
    """Each kind of request in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--every", type=float, default=5.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recorded = list(record(Path(folder), options.partitions, INTERVALS + FULL - 1))
        replay = Replay(Store(Path(folder)), recorded, options.every)
        replay.start()
        show("serve", measure(Path(folder), replay, options))


FULL = 3
"""How many of the recorded snapshots have full windows."""


class Replay(threading.Thread):
    """Publishes recorded snapshots as new ones."""

    def __init__(self, store: Store, recorded: list[Manifest], every_s: float) -> None:
        super().__init__(daemon=True)
        self._store, self._recorded, self.every_s = store, recorded, every_s
        self._published = threading.Event()

    def wait_for_next(self) -> None:
        """Wait until the next one is published."""
        self._published.clear()
        self._published.wait()

    def run(self) -> None:
        """One after another, for ever."""
        # Only the last ones: their windows are full.
        number = self._recorded[-1].sequence
        for manifest in cycle(self._recorded[-FULL:]):
            time.sleep(self.every_s)
            number += 1
            self._store.publish(replace(manifest, sequence=number, now_ms=time.time_ns() // 1_000_000))
            self._published.set()


def measure(folder: Path, replay: Replay, options: argparse.Namespace) -> list[dict[str, object]]:
    """A row for each kind of request."""
    groups = options.partitions // PARTITIONS_PER_GROUP
    consumers = [f"/v3/kafka/local/consumer/{group_name(group)}" for group in range(groups)]
    topics = [f"/v3/kafka/local/topic/{topic_name(group)}/consumers" for group in range(groups)]
    kinds = {
        "lag, on demand": ([f"{path}/lag" for path in consumers], False),
        "lag, from cache": ([f"{path}/lag" for path in consumers], True),
        "status, on demand": ([f"{path}/status" for path in consumers], False),
        "status, from cache": ([f"{path}/status" for path in consumers], True),
        "topic/consumers, on demand": (topics, False),
    }
    rows: list[dict[str, object]] = []
    for cached in (False, True):
        with Served(folder, is_cached=cached) as served:
            for name, (paths, is_cached) in kinds.items():
                if is_cached is cached:
                    _ask(served.port, paths, 2.0, options.connections)
                    rows.append(
                        {"what": name, **_ask(served.port, paths, options.seconds, options.connections), "samples": "-"}
                    )
                    print(rows[-1], flush=True)
            if not cached:
                rows.append({"what": "/metrics, first scrape", **_scrapes(served, replay)})
                print(rows[-1], flush=True)
            print(f"memory of the server: {peak_mib(served.pid)} MiB")
    return rows


def _ask(port: int, paths: list[str], seconds: float, connections: int) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.http_load", str(port), str(seconds), str(connections)]
    limit_s = seconds + 60
    done = subprocess.run(command, input=json.dumps(paths), capture_output=True, text=True, check=True, timeout=limit_s)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _scrapes(served: "Served", replay: Replay) -> dict[str, object]:
    """Once after each new snapshot, when it has been indexed."""
    times = []
    size = 0
    buffer = memoryview(bytearray(1 << 30))
    for _ in range(7):
        replay.wait_for_next()
        time.sleep(replay.every_s / 2)
        began = time.perf_counter()
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: load\r\nConnection: close\r\n\r\n")
            size = 0
            while count := connection.recv_into(buffer[size:], 1 << 20):
                size += count
        times.append((time.perf_counter() - began) * 1000)
    samples = bytes(buffer[:size]).count(b"\n")
    times.sort()
    return {
        "rate": "-",
        "p50": round(statistics.median(times), 1),
        "p99": "-",
        "slowest": round(times[-1], 1),
        "failed": 0,
        "bytes_each": size,
        "samples": samples,
    }


class Served:
    """A server on the recorded snapshots."""

    def __init__(self, folder: Path, *, is_cached: bool) -> None:
        config = Config(
            {"local": Cluster("local", ("127.0.0.1:9092",))},
            {"local": Consumer("local", "local", ("127.0.0.1:9092",))},
            http_servers={"default": HttpServer("127.0.0.1:0", name="default")},
            pipeline=Pipeline(data_dir=folder),
        )
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(config, theirs, is_cached), daemon=True)
        self._process.start()
        self.port = int(mine.recv()[0].rsplit(":", 1)[1])
        self.pid = int(self._process.pid or 0)

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


def _serve(config: Config, connection: Connection, is_cached: bool) -> None:
    if not is_cached:
        asgi.MAX_CACHE_BYTES = 0
    server.serve_alone(config, connection.send)


if __name__ == "__main__":
    main()

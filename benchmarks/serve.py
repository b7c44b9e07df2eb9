"""The HTTP API under load, while a new snapshot arrives every few seconds.

    python -m benchmarks.serve [--partitions 100000] [--per-group 50] [--seconds 5] [--connections 8] [--every 5]
        [--rounds 3] [--only WORDS] [--snapshots DIRECTORY] [--beside SRC]

Snapshots are recorded first and then published again and again under new numbers, as a pipeline would. The client is
a process of its own on the same machine. "On demand": the server's cache of answers is off, so each is made anew.
With `--beside`, the server of another version's source directory answers the same requests in turn. Each number is the
best of several rounds, except that the slowest answers and switches are those of all rounds.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from msgspec.structs import replace

from benchmarks.conditions import show
from benchmarks.load import PARTITIONS_PER_GROUP, group_name, topic_name
from benchmarks.served import ROOT, Served
from benchmarks.snapshots import INTERVALS, record
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store

FULL = 3
"""How many of the recorded snapshots have full windows."""
Row = dict[str, object]


def main() -> None:
    """Each kind of request in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--per-group", type=int, default=PARTITIONS_PER_GROUP)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="kinds of requests whose names contain this")
    parser.add_argument("--snapshots", type=Path, help="where recorded snapshots are kept for the next run")
    parser.add_argument("--beside", type=Path, help="the source directory of another version")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = options.snapshots or Path(folder)
        replay = Replay(Store(directory), _recorded(directory, options), options.every)
        replay.start()
        show("serve", measure(directory, replay, options))


def _recorded(directory: Path, options: argparse.Namespace) -> list[Manifest]:
    store = Store(directory)
    if not store.sequences():
        list(record(directory, options.partitions, INTERVALS + FULL - 1, per_group=options.per_group))
    # Only the last ones that were recorded: their windows are full.
    return [store.manifest(sequence) for sequence in range(INTERVALS, INTERVALS + FULL)]


class Replay(threading.Thread):
    """Publishes recorded snapshots as new ones."""

    def __init__(self, store: Store, recorded: list[Manifest], every_s: float) -> None:
        super().__init__(daemon=True)
        self._store, self._recorded, self.every_s = store, recorded, every_s
        self._published = threading.Event()
        self.newest = max(store.sequences())
        self.published_s: dict[int, float] = {}

    def wait_for_next(self) -> None:
        """Wait until the next one is published."""
        self._published.clear()
        self._published.wait()

    def run(self) -> None:
        """One after another, for ever."""
        for manifest in cycle(self._recorded):
            time.sleep(self.every_s)
            number = self.newest + 1
            now_s = time.time()
            self._store.publish(replace(manifest, sequence=number, now_ms=int(now_s * 1000)))
            self.published_s[number], self.newest = now_s, number
            self._published.set()


def measure(directory: Path, replay: Replay, options: argparse.Namespace) -> list[Row]:
    """A row for each kind of request and each server."""
    groups = options.partitions // options.per_group
    consumers = [f"/v3/kafka/local/consumer/{group_name(group)}" for group in range(groups)]
    topics = [f"/v3/kafka/local/topic/{topic_name(group)}" for group in range(0, groups, 4)]
    windows = [
        f"{path}/explain?topic={topic_name(group)}&partition={group % options.per_group}"
        for group, path in enumerate(consumers)
    ]
    many = {
        "consumer": consumers,
        "explain, one partition": windows,
        "topic": topics,
        "lag": [f"{path}/lag" for path in consumers],
        "status": [f"{path}/status" for path in consumers],
        "topic/consumers": [f"{path}/consumers" for path in topics],
        "list of groups": ["/v3/kafka/local/consumer"],
    }
    single = {
        "lag of all groups": "/v3/kafka/local/lag",
        "lag of all groups, partitions=all": "/v3/kafka/local/lag?partitions=all",
        "/metrics": "/metrics",
        "/metrics?level=group": "/metrics?level=group",
        "/v3/groups": "/v3/groups",
    }
    rows: list[Row] = []
    sources = [ROOT / "src", *([options.beside] if options.beside else [])]
    for is_cached in (False, True):
        with ExitStack() as stack:
            servers = [stack.enter_context(Served(source, directory, is_cached=is_cached)) for source in sources]
            kinds: dict[str, Callable[[Served], Row]] = {
                f"{name}, {'from cache' if is_cached else 'on demand'}": lambda served, paths=paths: _ask(  # type: ignore[misc]
                    served.port, paths, options
                )
                for name, paths in many.items()
            }
            if not is_cached:
                kinds |= {name: lambda served, path=path: _read(served, path, replay) for name, path in single.items()}  # type: ignore[misc]
            for name, ask in kinds.items():
                if options.only in name:
                    rows += _in_turn(name, ask, servers, replay, options.rounds)
    return rows


def _in_turn(
    name: str, ask: Callable[[Served], Row], servers: Sequence[Served], replay: Replay, rounds: int
) -> list[Row]:
    found: dict[Served, list[Row]] = {served: [] for served in servers}
    for _ in range(rounds):
        for served in servers:
            with served.running(replay.newest):
                cpu_s, began_s = served.cpu_s, time.time()
                row = ask(served)
                answers = int(str(row.pop("answers")))
                row["cpu_us"] = round((served.cpu_s - cpu_s) / max(answers, 1) * 1e6)
                row["switch_ms"] = _slowest_switch(served, replay, began_s)
                found[served].append(row)
    rows: list[Row] = []
    for number, (served, measured) in enumerate(found.items()):
        best = {key: _pick(key, [float(str(row[key])) for row in measured]) for key in measured[0]}
        memory = {"resident_mib": served.resident_mib, "peak_mib": served.peak_mib}
        rows.append({"what": name, "server": "beside" if number else "this", **best, **memory})
        print(rows[-1], flush=True)
    return rows


def _pick(key: str, values: list[float]) -> float:
    return max(values) if key in ("rate", "slowest", "failed", "health_slowest", "switch_ms") else min(values)


def _slowest_switch(served: Served, replay: Replay, began_s: float) -> int:
    """How long after its publication a snapshot was indexed, the slowest of those since a time."""
    delays = [
        at_s - replay.published_s[number]
        for number, at_s in served.indexed_s.items()
        if replay.published_s.get(number, 0) > began_s
    ]
    return round(max(delays, default=0) * 1000)


def _ask(port: int, paths: list[str], options: argparse.Namespace) -> Row:
    """Random ones of the paths, as fast as possible; the first second is not counted."""
    answers, found = 0, Row()
    for seconds in (1.0, options.seconds):
        command = [sys.executable, "-m", "benchmarks.http_load", str(port), str(seconds), str(options.connections)]
        done = subprocess.run(
            command, input=json.dumps(paths), capture_output=True, text=True, check=True, timeout=seconds + 60
        )
        found = json.loads(done.stdout)
        answers += int(str(found["answers"]))
    return {**found, "answers": answers}


def _read(served: Served, path: str, replay: Replay) -> Row:
    """One long answer after a new snapshot has been indexed, to its last byte."""
    replay.wait_for_next()
    while max(served.indexed_s, default=0) < replay.newest:
        time.sleep(0.01)
    size, began = 0, time.perf_counter()
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(b"GET %b HTTP/1.1\r\nHost: load\r\nConnection: close\r\n\r\n" % path.encode())
        first = connection.recv(1 << 16)
        first_ms = (time.perf_counter() - began) * 1000
        size = len(first)
        while count := connection.recv_into(buffer):
            size += count
    took_ms = (time.perf_counter() - began) * 1000
    return {
        "answers": 1,
        "rate": round(1000 / took_ms, 2),
        "p50": round(took_ms, 1),
        "p99": round(first_ms, 1),
        "slowest": round(took_ms, 1),
        "failed": int(b" 200 " not in first),
        "bytes_each": size,
        "health_p99": 0,
        "health_slowest": 0,
    }


if __name__ == "__main__":
    main()

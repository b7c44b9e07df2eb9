"""How long after a znode has changed a snapshot with the new offset and its verdict is published, by a whole Warren.

    python -m benchmarks.znode_to_verdict [--znodes 2000] [--seconds 60] [--triggers 10 1]

Every znode changes once in 30 s, so each change is one commit. The delay is from the znode's mtime to the time of the
manifest; both are of the clock of this machine.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from kazoo.client import KazooClient

from benchmarks.conditions import show
from benchmarks.zookeeper import GROUP_WIDTH, create, write
from tests.kit.warrens import WarrenRun, sections_for, wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.snapshot.reader import Snapshot

COMMIT_EVERY_S = 30
Partition = tuple[str, int]


def main() -> None:
    """Measure one Warren per trigger, on the same broker and ZooKeeper."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--znodes", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--triggers", type=float, nargs="+", default=[10.0, 1.0])
    options = parser.parse_args()
    with Kafka() as kafka, ZooKeeperServer({"maxClientCnxns": 0}) as server:
        create_topics(kafka.bootstrap, {"orders": GROUP_WIDTH})
        client = KazooClient(server.address)
        client.start()
        paths = create(client, options.znodes)
        rows = []
        for trigger_s in options.triggers:
            sections = sections_for({"local": kafka.bootstrap}, trigger=trigger_s, offset_refresh=10)
            sections["consumer.zk"] = {"class-name": "kafka_zk", "cluster": "local", "servers": [server.address]}
            with tempfile.TemporaryDirectory() as home, WarrenRun(Path(home), sections) as run:
                rows.append(measure(run, client, paths, trigger_s, options.seconds))
        client.stop()
    show("znode_to_verdict", rows)


def measure(
    run: WarrenRun, client: KazooClient, paths: list[str], trigger_s: float, seconds: float
) -> dict[str, object]:
    """The delays of all changes in so many seconds, after every znode is known and cycles have warmed up."""
    run.wait_for(lambda s: len(committed(s)) == len(paths), "all znodes are known")
    run.wait_for_cycles(5)
    stopping = threading.Event()
    writer = threading.Thread(target=write, args=(client, paths, COMMIT_EVERY_S, stopping))
    writer.start()
    time.sleep(trigger_s)
    last, delays, cycles_ms = run.wait_for(lambda s: s, "a snapshot"), list[int](), list[int]()
    known, deadline = committed(last), time.monotonic() + seconds
    while time.monotonic() < deadline:
        last = next_snapshot(run, last)
        manifest = run.data / "manifests" / f"{last.manifest.sequence:020d}.json"
        published_ms = manifest.stat().st_mtime_ns // 1_000_000
        now = committed(last)
        delays += [published_ms - at_ms for key, (offset, at_ms) in now.items() if known[key][0] != offset]
        cycles_ms.append(sum(last.manifest.cycle_ms.values()))
        known = now
    stopping.set()
    writer.join()
    return {
        "trigger s": trigger_s, "znodes": len(paths), "changes/s": round(len(delays) / seconds), "changes": len(delays),
        "cycle ms, median": round(float(np.median(cycles_ms))),
        "published after ms, median": round(float(np.median(delays))), "99 %": round(float(np.quantile(delays, 0.99))),
        "most": max(delays),
    }  # fmt: skip


def next_snapshot(run: WarrenRun, last: Snapshot) -> Snapshot:
    """The first snapshot after one."""
    return wait_for(
        lambda: s if (s := run.snapshot()) and s.manifest.sequence > last.manifest.sequence else None, "a snapshot"
    )


def committed(snapshot: Snapshot) -> dict[Partition, tuple[int, int]]:
    """The offset of every partition, and when it was committed."""
    rows = snapshot.partitions(["group", "partition", "committed_offset", "end_ms"]).to_pylist()
    return {(row["group"], row["partition"]): (row["committed_offset"], row["end_ms"]) for row in rows}


if __name__ == "__main__":
    main()

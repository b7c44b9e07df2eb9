"""A small cluster: how soon after its start a Warren has verdicts, and what it costs when nothing happens.

    python -m benchmarks.start [--starts 3] [--idle 60] [--against SRC]

17 groups commit every few seconds; the trigger is 10 s. A start is cold (an empty data directory), and then again on
the same data. The time is from the start of the process to the first new snapshot with verdicts of all groups.
`--against` names the `src` directory of another work tree, whose starts alternate with ours.
"""

import argparse
import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.clusters import in_background
from benchmarks.conditions import cpu_s, show
from benchmarks.load import PARTITIONS_PER_GROUP, commits, make_topic, produce, topic_name
from tests.kit.warrens import Sections, WarrenRun, sections_for, wait_for
from warren.demo.broker import Kafka
from warren.errors import SnapshotError

GROUPS, OFFSETS_PARTITIONS, EVERY_S, TRIGGER_S = 17, 50, 5.0, 10.0
TOPIC = "offsets-of-a-small-cluster"


def main() -> None:
    """Starts of each tree in turn, then an idle minute of each; a row per tree, and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--against", type=Path, default=None)
    options = parser.parse_args()
    trees: dict[str, Mapping[str, str]] = {"this": {}}
    if options.against:
        trees["other"] = {"PYTHONPATH": str(options.against.resolve())}
    with tempfile.TemporaryDirectory() as folder, Kafka(fast_start=False) as kafka:
        make_topic(kafka.bootstrap, TOPIC, OFFSETS_PARTITIONS)
        for topic in sorted({topic_name(group) for group in range(GROUPS)}):
            make_topic(kafka.bootstrap, topic, PARTITIONS_PER_GROUP)
        with in_background(partial(commit_all_the_time, kafka.bootstrap)):
            rows = measure(Path(folder), kafka.bootstrap, trees, options.starts, options.idle)
    if options.against:
        ours, others = rows
        ratio = {key: round(ours[key] / others[key], 2) for key in ours if isinstance(ours[key], float)}  # type: ignore[operator]
        rows.append({**dict.fromkeys(ours, ""), "tree": "ratio", **ratio})
    show("start", rows)


def measure(
    folder: Path, bootstrap: str, trees: Mapping[str, Mapping[str, str]], starts: int, idle_s: float
) -> list[dict[str, object]]:
    """A row per tree."""
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(starts):
        for tree, environment in trees.items():
            home = folder / f"{tree}-{number}"
            for kind in ("cold", "again"):
                with started(home, bootstrap, environment) as (run, took_s):
                    used_s = sum(map(cpu_s, run.processes()))
                times.setdefault((tree, kind), []).append((took_s, used_s))
                print(tree, kind, f"{took_s:.1f} s, {used_s:.1f} s of CPU time", flush=True)
    rows = []
    for tree, environment in trees.items():
        row: dict[str, object] = {"tree": tree}
        for kind in ("cold", "again"):
            seconds, cpu = ([each[index] for each in times[tree, kind]] for index in range(2))
            row |= {f"{kind}_s": round(statistics.median(seconds), 1), f"{kind}_best_s": round(min(seconds), 1)}
            row[f"{kind}_cpu_s"] = round(statistics.median(cpu), 1)
        with started(folder / f"{tree}-idle", bootstrap, environment) as (run, _):
            rows.append(row | idle(run, idle_s))
        print(rows[-1], flush=True)
    return rows


@contextlib.contextmanager
def started(home: Path, bootstrap: str, environment: Mapping[str, str]) -> Iterator[tuple[WarrenRun, float]]:
    """A run, and how long it took to publish verdicts of all groups."""
    run = WarrenRun(home, _sections(bootstrap), environment)
    began, began_ms = time.monotonic(), time.time_ns() // 1_000_000
    with run:
        wait_for(lambda: _judged_ms(run) > began_ms, "verdicts", 600.0)
        yield run, time.monotonic() - began


def idle(run: WarrenRun, seconds: float) -> dict[str, object]:
    """The share of a core and the memory of all processes, once the start is over."""
    time.sleep(30.0)
    processes = run.processes()
    used, began = sum(map(cpu_s, processes)), time.monotonic()
    time.sleep(seconds)
    share = (sum(map(cpu_s, processes)) - used) / (time.monotonic() - began)
    memory = {process: resident_mib(process) for process in processes}
    return {
        "idle_core_share": round(share, 3),
        "resident_mib": float(round(sum(memory.values()))),
        "processes": float(len(memory)),
    }


def resident_mib(process_id: int) -> float:
    """The memory of a process, with its share of what it has in common with others."""
    lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def commit_all_the_time(bootstrap: str, stop: threading.Event) -> None:
    """Every group commits every few seconds."""
    turn = 0
    while not stop.is_set():
        now_ms = time.time_ns() // 1_000_000
        produce(bootstrap, TOPIC, commits(range(GROUPS), range(turn, turn + 1), 500, OFFSETS_PARTITIONS, now_ms, 1))
        turn += 1
        stop.wait(EVERY_S)


def _judged_ms(run: WarrenRun) -> int:
    """When the newest snapshot with verdicts of all groups was judged; 0 if there is none."""
    with contextlib.suppress(SnapshotError):
        newest = run.store.newest()
        groups = sum(sum(cluster.groups_by_status.values()) for cluster in newest.clusters.values())
        return newest.now_ms if groups >= GROUPS else 0
    return 0


def _sections(bootstrap: str) -> Sections:
    sections = sections_for({"small": bootstrap}, trigger=TRIGGER_S, offset_refresh=10)
    sections["consumer.small"]["offsets-topic"] = TOPIC
    sections["pipeline"] = {"trigger": TRIGGER_S}
    return sections


if __name__ == "__main__":
    main()

"""A small Warren that watches groups whose verdicts are known, for tests in which a part of it fails."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.kit.reference import Reference, assert_windows_equal, read_topic
from tests.kit.warrens import Recorder, Sections, Seen, WarrenRun, sections_for
from warren.demo.workload.committing_groups import Stalled
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.snapshot.store import KINDS

TRIGGER_S = 2.0
CLUSTER = "local"
FATES = {"healthy": "OK", "stalled": "STALL"}
PYTHON_WORKER, CHILD = "pyspark.worker", "multiprocessing.spawn"
_RATE = 50.0
_BEHIND = 200
_COMMIT_EVERY_S = 0.5


def report(measured: str) -> None:
    """Print what a test has measured; pytest shows it with -s, or when the test fails."""
    sys.stdout.write(f"\n{measured}\n")


@dataclass
class Watched:
    """A Warren under a small load, and what it has published."""

    bootstrap: str
    name: str
    run: WarrenRun
    record: Recorder

    @property
    def fates(self) -> dict[str, str]:
        """The groups, each with its only right verdict."""
        return {f"{self.name}-{kind}": status for kind, status in FATES.items()}

    def is_right(self, seen: Seen) -> bool:
        """Whether a snapshot judges the cluster, and every group as it should be."""
        is_known = seen.manifest.clusters[CLUSTER].unknown_since_ms is None
        return is_known and all(seen.verdicts(CLUSTER, group) == {status} for group, status in self.fates.items())

    def wait_right(self, since_s: float | None = None, within_s: float = 180.0) -> float:
        """Wait for a right snapshot of a cycle that began later; how many seconds later it was published."""
        since_s = time.time() if since_s is None else since_s

        def first_right(_: object) -> Seen | None:
            return next(filter(self.is_right, self.record.since(since_s)), None)

        return self.run.wait_for(first_right, "a right snapshot", within_s).published_s - since_s

    def assert_never_wrong(self, since_s: float) -> None:
        """Every verdict that was published since then is right, or the last one of a cluster that is unknown."""
        published = self.record.since(since_s)
        assert published
        for seen in published:
            for group, status in self.fates.items():
                assert seen.verdicts(CLUSTER, group) == {status}, seen.why(CLUSTER, group)

    def unknown_s(self, since_s: float) -> float:
        """For how long since then, up to the next right snapshot, the newest one did not judge the cluster."""
        unknown = [s for s in self.record.since(since_s) if s.manifest.clusters[CLUSTER].unknown_since_ms is not None]
        if not unknown:
            return 0.0
        later = [s for s in self.record.since(unknown[-1].published_s) if self.is_right(s)]
        return later[0].published_s - unknown[0].published_s

    def shown(self, since_s: float) -> str:
        """What a user saw of a fault, in words."""
        times = [since_s, *(seen.published_s for seen in self.record.since(since_s))]
        gap_s = max(later - earlier for earlier, later in pairwise(times))
        return f"unknown for {self.unknown_s(since_s):.1f} s, no new snapshot for at most {gap_s:.1f} s"

    def pids(self, mark: str, thread: str = "") -> list[int]:
        """The processes with a text on their command line that have a thread whose name begins like this."""
        found = []
        for pid in self.run.processes():
            # Processes come and go while we look.
            with contextlib.suppress(OSError):
                folder = Path(f"/proc/{pid}")
                names = [path.read_text() for path in folder.glob("task/*/comm")]
                if mark.encode() in (folder / "cmdline").read_bytes() and any(n.startswith(thread) for n in names):
                    found.append(pid)
        return found

    def workers(self) -> list[int]:
        """The Python workers of Spark, with the process that starts them."""
        return self.pids(PYTHON_WORKER)

    def sampler(self) -> int:
        """The process of the sampler, the only child with threads of librdkafka."""
        (pid,) = self.pids(CHILD, "rdk:")
        return pid

    def assert_nothing_lost(self) -> None:
        """Every snapshot has the windows of the commits that it says it has read."""
        records = read_topic(self.bootstrap, "__consumer_offsets")
        own = [record for record in records if record.key and self.name.encode() in record.key]
        assert_windows_equal(self.record.seen, CLUSTER, Reference(own))

    def unnamed_files(self) -> set[str]:
        """The files of snapshots that no manifest names; while it runs, those of the cycle under way are among them."""
        store = self.run.store
        named = {file.path for sequence in store.sequences() for file in store.manifest(sequence).files()}
        drafts = {path.name for path in (self.run.data / "manifests").glob("*.draft")}
        return {f"{kind}/{path.name}" for kind in KINDS for path in (self.run.data / kind).iterdir()} - named | drafts


@contextlib.contextmanager
def load(bootstrap: str, name: str) -> Iterator[None]:
    """A topic that is produced to, and the groups of all fates; topic and groups have the name in theirs."""
    create_topics(bootstrap, {name: 2})
    fill_topic(bootstrap, name, 2 * _BEHIND)
    at = bootstrap, name
    workers: list[WorkloadThread] = [
        Producer(*at, _RATE),
        Healthy(*at, f"{name}-healthy", commit_every_s=_COMMIT_EVERY_S),
        Stalled(*at, f"{name}-stalled", behind=_BEHIND, commit_every_s=_COMMIT_EVERY_S),
    ]
    with contextlib.ExitStack() as parts:
        parts.callback(stop_all, workers, 60.0)
        for worker in workers:
            worker.start()
        yield


def small_sections(bootstrap: str, name: str) -> Sections:
    """The sections of a Warren that watches only the groups of a load."""
    sections = sections_for({CLUSTER: bootstrap}, trigger=TRIGGER_S)
    sections[f"consumer.{CLUSTER}"]["group-allowlist"] = f"^{name}-"
    return sections


@contextlib.contextmanager
def watched(bootstrap: str, name: str, home: Path, environment: dict[str, str] | None = None) -> Iterator[Watched]:
    """A Warren whose verdicts are right; it is stopped as an operator does."""
    run = WarrenRun(home, small_sections(bootstrap, name), environment)
    with load(bootstrap, name), Recorder(run.data) as record, run:
        stage = Watched(bootstrap, name, run, record)
        stage.wait_right()
        yield stage


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing during the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

"""Cycles that fail: what is damaged is passed over, one cluster never stops the others, and nothing is left behind."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.engines import InProcess, TestRead
from tests.kit.plans import NOW, Commit, commits_table
from tests.kit.warrens import wait_for
from warren.clock import ClockReading
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.errors import ClusterError
from warren.kafka.samples import COMMITTED, ClusterSample, PartitionEnds, Topic, to_table
from warren.pipeline import failing_clusters, flow, head_samples, patience
from warren.pipeline.bucket_result import BucketResult
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import ClusterRead, FlowFailed
from warren.pipeline.failing_clusters import FailingClusters
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import ADDRESSED, TableKind
from warren.pipeline.shuffle import address_tables
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.schemas import PARTITIONS
from warren.snapshot.store import KINDS, Store

CLUSTERS = ("a", "b", "c")
SEED = to_table(COMMITTED, [("silent", "t", 0, 7)])
DONE = threading.Event()
DONE.set()


class Clusters(InProcess):
    """Cycles of three clusters, each with a group that commits in every cycle; some of them cannot be read."""

    def __init__(self, root: Path, *, start_latest: bool = False) -> None:
        self.root = root
        self.seeds = dict.fromkeys(CLUSTERS, SEED)
        self.listing: dict[str, threading.Event] = {}
        self.now_ms = NOW
        self.cycles_run = 0
        self.unreadable: set[str] = set()
        self.deadly: set[str] = set()
        self.slow: set[str] = set()
        self.unavailable: set[str] = set()
        self.late: set[str] = set()
        self.started: dict[str, TestRead] = {}
        self.reads: list[str] = []
        self.store = Store(root)
        self.cycles = Cycles(
            Config(
                {name: Cluster(name, (f"{name}:1",)) for name in CLUSTERS},
                {name: Consumer(name, name, (f"{name}:1",), start_latest=start_latest) for name in CLUSTERS},
                pipeline=Pipeline(buckets=2),
            ),
            self,
            self.store,
            self._sample,
            self._list_committed,
            clock=lambda: ClockReading(self.now_ms, self.now_ms),
        )

    def _list_committed(self, cluster: str) -> pa.Table:
        self.listing.get(cluster, DONE).wait(30)
        return self.seeds[cluster]

    def _sample(self) -> dict[str, ClusterSample]:
        at, end = (self.now_ms, self.now_ms), self.cycles_run
        ends, ids = {"__consumer_offsets": {0: PartitionEnds(0, end, end)}}, {"__consumer_offsets": "id"}
        topics, heads, starts = (Topic("t", "t", 1),), np.array([100], np.int64), np.array([0], np.int64)
        samples = {name: ClusterSample(name, None, at, ends, ids, at, topics, heads, starts) for name in CLUSTERS}
        return {
            **samples,
            **{name: ClusterSample(name, error="no answer") for name in self.unavailable},
            **{name: ClusterSample(name, is_late=True) for name in self.late},
        }

    def read(self, reads: Sequence[TopicRead], plan: CyclePlan) -> dict[str, ClusterRead]:
        self.reads += [read.cluster for read in reads if read.ranges]
        if self.deadly & {read.cluster for read in reads if read.ranges}:
            raise FlowFailed("the JVM of Spark has died", has_lost_reads=True)
        return {read.cluster: self._read(read, plan) for read in reads if read.ranges}

    def _read(self, read: TopicRead, plan: CyclePlan) -> TestRead:
        names = [cluster.name for cluster in plan.clusters]
        commits = [
            Commit("g", "t", 0, 5, NOW + 1000 * offset, offset, cluster=names.index(read.cluster))
            for offset in range(read.ranges[0].start, read.ranges[0].end)
        ]
        tables = {TableKind.COMMITS: commits_table(commits)}
        started = TestRead(pa.Table.from_batches(address_tables(tables, plan), schema=ADDRESSED))
        started.error = f"no leader on {read.cluster}" if read.cluster in self.unreadable else None
        started.is_done = read.cluster not in self.slow
        self.started[read.cluster] = started
        return started

    def judge(self, reads: Sequence[ClusterRead], tables: pa.Table, plan: CyclePlan) -> list[BucketResult]:
        try:
            return super().judge(reads, tables, plan)
        except Exception as error:
            raise FlowFailed(str(error)) from error

    def cycle(self) -> Manifest:
        """One cycle that finds one more commit in each cluster."""
        self.now_ms += 1000
        self.cycles_run += 1
        self.reads.clear()
        return self.cycles.run_once()

    def commits(self) -> dict[str, int]:
        """How many commits the group of each cluster has in its window."""
        rows = newest_snapshot(self.root).partitions().to_pylist()
        return {row["cluster"]: len(row["orders"]) for row in rows if row["group"] == "g"}

    def groups(self) -> set[tuple[str, str]]:
        return {(row["cluster"], row["group"]) for row in newest_snapshot(self.root).groups().to_pylist()}

    def files(self) -> set[str]:
        return {f"{kind}/{path.name}" for kind in KINDS for path in (self.root / kind).iterdir()}


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    made = Clusters(tmp_path)
    monkeypatch.setattr(made.cycles, "_failing", FailingClusters(lambda: made.now_ms / 1000))
    for _ in range(3):
        made.cycle()
    return made


def test_a_cluster_that_cannot_be_read_is_left_out_of_the_same_cycle(clusters: Clusters) -> None:
    clusters.unreadable.add("b")
    manifest = clusters.cycle()
    assert clusters.commits() == {"a": 4, "b": 3, "c": 4}
    assert manifest.clusters["b"].error == "its offsets topic could not be read: no leader on b"
    assert manifest.clusters["b"].unknown_since_ms == clusters.now_ms
    assert manifest.unknown_clusters() == ["b"]
    assert clusters.reads == ["a", "b", "c"], "each once"


def test_a_cluster_that_failed_costs_the_others_no_second_read(clusters: Clusters) -> None:
    clusters.unreadable.add("b")
    clusters.cycle()
    seen = []
    for _ in range(120):
        clusters.cycle()
        assert [name for name in clusters.reads if name != "b"] == ["a", "c"]
        seen.append("b" in clusters.reads)
    assert 3 <= sum(seen) <= 12, "it is tried again, more and more seldom"
    assert clusters.commits()["a"] == 10


def test_a_cluster_that_can_be_read_again_is_back_with_all_its_commits(clusters: Clusters) -> None:
    clusters.unreadable.add("b")
    for _ in range(3):
        clusters.cycle()
    clusters.unreadable.clear()
    for _ in range(10):
        clusters.cycle()
    assert clusters.cycles.manifest.unknown_clusters() == []
    assert len(set(clusters.commits().values())) == 1
    assert clusters.reads == ["a", "b", "c"], "all at once, as before"


def test_a_cluster_that_is_still_being_read_is_late_and_holds_up_no_other(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LEAST_GRACE_S", 0.05)
    before = clusters.cycles.manifest.clusters["b"]
    clusters.slow.add("b")
    for _ in range(3):
        manifest = clusters.cycle()
        assert clusters.cycles.has_late_clusters
        assert (manifest.unknown_clusters(), manifest.clusters["b"].error) == ([], None), "it is as it was"
        assert manifest.clusters["b"].sources == before.sources
        assert "b" not in clusters.reads or clusters.commits()["a"] == 4, "read once"
    assert clusters.commits() == {"a": 6, "b": 3, "c": 6}
    clusters.slow.clear()
    clusters.started["b"].is_done = True
    manifest = clusters.cycle()
    assert clusters.commits() == {"a": 7, "b": 4, "c": 7}, "what was read for the first of them"
    assert manifest.clusters["b"].looked_at_ms == before.looked_at_ms + 1000
    clusters.cycle()
    assert clusters.commits() == dict.fromkeys(CLUSTERS, 8), "nothing is lost"
    assert all(read.is_released for read in clusters.started.values())


def test_a_cluster_that_is_late_for_too_long_is_unknown(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LEAST_GRACE_S", 0.05)
    clusters.slow.add("b")
    clusters.cycle()
    clusters.now_ms += 70_000
    manifest = clusters.cycle()
    assert manifest.unknown_clusters() == ["b"]
    assert manifest.clusters["b"].error == "it is slow: what is known of it is 72 s old"


def test_a_late_cluster_that_stops_to_answer_is_read_again_when_it_is_back(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LEAST_GRACE_S", 0.05)
    clusters.slow.add("b")
    clusters.cycle()
    clusters.unavailable.add("b")
    manifest = clusters.cycle()
    assert manifest.clusters["b"].error == "no answer"
    assert clusters.started["b"].is_released
    clusters.slow.clear()
    clusters.unavailable.clear()
    clusters.cycle()
    assert clusters.commits() == dict.fromkeys(CLUSTERS, 6)


def test_a_cluster_whose_sample_is_late_keeps_its_verdicts(clusters: Clusters) -> None:
    clusters.late.add("b")
    manifest = clusters.cycle()
    assert (manifest.unknown_clusters(), clusters.commits()) == ([], {"a": 4, "b": 3, "c": 4})
    clusters.late.clear()
    clusters.cycle()
    assert clusters.commits() == dict.fromkeys(CLUSTERS, 5)


def test_a_cluster_that_kills_spark_is_found_and_left_out(clusters: Clusters) -> None:
    clusters.deadly.add("b")
    manifest = clusters.cycle()
    assert clusters.commits() == {"a": 4, "b": 3, "c": 4}
    assert manifest.clusters["b"].error == "the JVM of Spark has died"
    assert clusters.reads == ["a", "b", "c", "a", "b", "c", "a", "b", "a", "c"], "twice, one by one, and without it"


@pytest.mark.parametrize("raised", [IndexError, pa.ArrowInvalid, OSError])
def test_a_cluster_that_cannot_be_judged_is_named_and_left_out(
    clusters: Clusters,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    raised: Callable[[str], Exception],
) -> None:
    def poisoned(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
        is_judged = [cluster.is_judged for cluster in inputs.plan.clusters]
        if is_judged[CLUSTERS.index("c")] and (bucket.rows.cluster == CLUSTERS.index("c")).any():
            raise raised("index 7 is out of bounds")
        return bucket

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(flow, "BUCKET_STEPS", (poisoned, *flow.BUCKET_STEPS))
        manifest = clusters.cycle()
        assert clusters.commits() == {"a": 4, "b": 4, "c": 3}
        error = f"it cannot be judged: {type(raised('')).__name__}: index 7 is out of bounds"
        assert {name: state.error for name, state in manifest.clusters.items()} == {"a": None, "b": None, "c": error}
        assert caplog.messages == [f"c is unknown: {error}"]
        assert clusters.reads == ["a", "b", "c"], "nothing is read twice"
        clusters.cycle()
        assert clusters.commits() == {"a": 5, "b": 5, "c": 3}
    for _ in range(10):
        clusters.cycle()
    assert clusters.cycles.manifest.unknown_clusters() == []
    assert len(set(clusters.commits().values())) == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    """Change one bit of the data of a page; what is in the headers of pages has no checksum."""
    columns = pq.ParquetFile(path).metadata.row_group(0)
    chunk = columns.column(PARTITIONS.names.index("committed_offset"))
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("which", "harm"), [("partitions", Path.unlink), ("partitions", cut), ("partitions", flip), ("groups", cut)]
)
def test_a_bucket_that_is_damaged_while_it_runs_sends_it_back_to_the_snapshot_before(
    clusters: Clusters, which: str, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damaged = clusters.cycles.manifest
    file = getattr(damaged.buckets[0], which)
    harm(clusters.store.path(file))
    with caplog.at_level(logging.ERROR):
        manifest = clusters.cycle()
        assert clusters.commits() == dict.fromkeys(CLUSTERS, 4), "nothing is lost"
        clusters.cycle()
    assert manifest.unknown_clusters() == []
    assert [f"manifest {damaged.sequence}" in message for message in caplog.messages] == [True], "said once"
    assert clusters.commits() == dict.fromkeys(CLUSTERS, 5)
    assert manifest.epoch == damaged.epoch + 1


@pytest.mark.parametrize("which", ["heads", "layout"])
def test_head_files_that_are_damaged_while_it_runs_are_left_out(
    clusters: Clusters, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = clusters.cycles.manifest
    path = clusters.store.path(getattr(before.heads[0], which))
    # To cut a file that is mapped kills the process, which is a Python worker of Spark and not this one.
    head_samples._mapped.clear()
    path.unlink()
    path.write_bytes(b"")
    with caplog.at_level(logging.ERROR):
        manifest = clusters.cycle()
        clusters.cycle()
    assert clusters.commits() == dict.fromkeys(CLUSTERS, 5), "no window is lost"
    assert manifest.unknown_clusters() == []
    assert before.heads[0] not in manifest.heads
    # One layout serves all samples.
    assert len(caplog.messages) == (1 if which == "heads" else len(before.heads))
    assert clusters.store.newest_whole()[1] == []


def test_a_cycle_that_fails_leaves_no_files(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    before, manifest = clusters.files(), clusters.cycles.manifest

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(Store, "publish", full)
            with pytest.raises(OSError, match="No space left"):
                clusters.cycle()
        assert clusters.files() == before
        assert clusters.cycles.manifest == manifest
    clusters.cycle()
    assert clusters.commits() == dict.fromkeys(CLUSTERS, 7), "what was not published is read again"


def test_waits_grow_and_end_with_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    failing = FailingClusters(lambda: now)
    sample = {"a": ClusterSample("a")}
    waits = []
    for _ in range(6):
        failing.add({"a": "no luck"})
        assert failing.leave_out(sample)["a"].error == "no luck"
        began = now
        while failing.leave_out(sample)["a"].error:
            now += 0.5
        waits.append(now - began)
    assert waits[0] <= 5.0
    assert max(waits) <= failing_clusters.RETRIES.longest_s
    assert waits[-1] > 4 * waits[0]
    failing.forgive(["a", "b"])
    assert failing.leave_out(sample)["a"].error is None


def test_seeds_are_listed_beside_the_cycle_of_the_other_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LEAST_GRACE_S", 0.5)
    clusters = Clusters(tmp_path, start_latest=True)
    clusters.listing["b"] = threading.Event()
    for commits in (1, 2):
        manifest = clusters.cycle()
        assert manifest.unknown_clusters() == ["b"]
        assert not manifest.is_ready
        assert {name for name, state in manifest.clusters.items() if state.seeded} == {"a", "c"}
        assert clusters.groups() == {("a", "silent"), ("c", "silent")} | {(n, "g") for n in "ac" if commits > 1}
    clusters.listing["b"].set()
    wait_for(lambda: clusters.cycle().clusters["b"].seeded, "the seeds of b")
    clusters.cycle()
    assert ("b", "silent") in clusters.groups()
    assert clusters.cycles.manifest.unknown_clusters() == []
    # Read from the sample from before the list on: nothing falls between the two.
    assert clusters.commits()["b"] == clusters.commits()["a"]


def test_seeds_that_cannot_be_listed_do_not_keep_a_cluster_from_being_judged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clusters = Clusters(tmp_path, start_latest=True)

    def refuse(_: float) -> bool:
        raise ClusterError("no right")

    clusters.listing["b"] = threading.Event()
    clusters.listing["b"].wait = refuse  # type: ignore[assignment,method-assign]
    for _ in range(3):
        clusters.cycle()
    assert clusters.cycles.manifest.unknown_clusters() == []
    assert not clusters.cycles.manifest.clusters["b"].seeded
    message = "b: committed offsets could not be listed, next try in 60 s: no right"
    assert [message in each for each in caplog.messages].count(True) == 1

"""Cycles that fail: what is damaged is passed over, one cluster never stops the others, and nothing is left behind."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.plans import NOW, Commit, commits_table, judge_in_process
from warren.clock import ClockReading
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.kafka.samples import ClusterSample, PartitionEnds, Topic
from warren.pipeline import failing_clusters, flow, head_history
from warren.pipeline.bucket_result import BucketResult
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import FlowFailed, KeepWaiting
from warren.pipeline.failing_clusters import FailingClusters
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import ADDRESSED, TableKind
from warren.pipeline.shuffle import address_tables
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.store import KINDS, Store

CLUSTERS = ("a", "b", "c")


class Clusters:
    """Cycles of three clusters, each with a group that commits in every cycle; some of them cannot be read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_ms = NOW
        self.cycles_run = 0
        self.unreadable: set[str] = set()
        self.reads: list[str] = []
        self.store = Store(root)
        self.cycles = Cycles(
            Config(
                {name: Cluster(name, (f"{name}:1",)) for name in CLUSTERS},
                {name: Consumer(name, name, (f"{name}:1",)) for name in CLUSTERS},
                pipeline=Pipeline(buckets=2),
            ),
            self,
            self.store,
            self._sample,
            lambda _: pa.table({}),
            clock=lambda: ClockReading(self.now_ms, self.now_ms),
        )

    def _sample(self) -> dict[str, ClusterSample]:
        at, end = (self.now_ms, self.now_ms), self.cycles_run
        ends, ids = {"__consumer_offsets": {0: PartitionEnds(0, end, end)}}, {"__consumer_offsets": "id"}
        topics, heads, starts = (Topic("t", "t", 1),), np.array([100], np.int64), np.array([0], np.int64)
        return {name: ClusterSample(name, None, at, ends, ids, at, topics, heads, starts) for name in CLUSTERS}

    def _tables(self, reads: Sequence[TopicRead], plan: CyclePlan) -> pa.Table:
        self.reads += [read.cluster for read in reads]
        if failing := self.unreadable & {read.cluster for read in reads}:
            raise FlowFailed(f"no leader on {', '.join(sorted(failing))}")
        names = [cluster.name for cluster in plan.clusters]
        commits = [
            Commit("g", "t", 0, 5, NOW + 1000 * offset, offset, cluster=names.index(read.cluster))
            for read in reads
            for offset in range(read.ranges[0].start, read.ranges[0].end)
        ]
        tables = {TableKind.COMMITS: commits_table(commits)}
        return pa.Table.from_batches(address_tables(tables, plan), schema=ADDRESSED)

    def run(
        self, reads: Sequence[TopicRead], tables: pa.Table, plan: CyclePlan, keep_waiting: KeepWaiting
    ) -> list[BucketResult]:
        tables = pa.concat_tables([tables, self._tables([read for read in reads if read.ranges], plan)])
        try:
            return judge_in_process(plan, tables.to_batches())
        except Exception as error:
            raise FlowFailed(str(error)) from error

    def read(self, cluster: str, reads: Sequence[TopicRead], plan: CyclePlan, keep_waiting: KeepWaiting) -> pa.Table:
        return self._tables([read for read in reads if read.cluster == cluster and read.ranges], plan)

    def cycle(self) -> Manifest:
        """One cycle that finds one more commit in each cluster."""
        self.now_ms += 1000
        self.cycles_run += 1
        self.reads.clear()
        return self.cycles.run_once()

    def commits(self) -> dict[str, int]:
        """How many commits the group of each cluster has in its window."""
        return {row["cluster"]: len(row["orders"]) for row in newest_snapshot(self.root).partitions().to_pylist()}

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
    assert clusters.reads == ["a", "b", "c", "a", "b", "c"], "all at once, then one by one"


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


def test_a_cluster_that_cannot_be_judged_is_named_and_left_out(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def poisoned(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
        is_judged = [cluster.is_judged for cluster in inputs.plan.clusters]
        if is_judged[CLUSTERS.index("c")] and (bucket.rows.cluster == CLUSTERS.index("c")).any():
            raise IndexError("index 7 is out of bounds")
        return bucket

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(flow, "BUCKET_STEPS", (poisoned, *flow.BUCKET_STEPS))
        manifest = clusters.cycle()
        assert clusters.commits() == {"a": 4, "b": 4, "c": 3}
        error = "it cannot be judged: IndexError: index 7 is out of bounds"
        assert {name: state.error for name, state in manifest.clusters.items()} == {"a": None, "b": None, "c": error}
        assert caplog.messages == [f"c is left out: {error}"]
        clusters.cycle()
        assert clusters.commits() == {"a": 5, "b": 5, "c": 3}
    for _ in range(10):
        clusters.cycle()
    assert clusters.cycles.manifest.unknown_clusters() == []
    assert len(set(clusters.commits().values())) == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
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
    head_history._mapped.clear()
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
    assert not failing

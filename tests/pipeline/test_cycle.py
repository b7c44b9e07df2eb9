"""When a cycle takes up what it is asked for, and when it has done with it; tasks run in-process, without Spark."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import structs

from tests.kit.engines import InProcess, TestRead
from tests.kit.plans import NOW, Commit, commits_table
from warren.clock import ClockReading
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.config.pipeline import Storage
from warren.domain.clock_skew import MAX_COMMIT_DELAY_MS
from warren.errors import Fenced
from warren.kafka.samples import TOPIC_GRACE_MS, ClusterSample, PartitionEnds, SampleQuestions, Topic
from warren.pipeline import cycle
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import ClusterRead
from warren.pipeline.group_checks import GroupChecks
from warren.pipeline.held_partitions import HeldPartitions
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import ADDRESSED, TableKind
from warren.pipeline.shuffle import address_tables
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.requests import RequestKind, RequestQueue
from warren.snapshot.store import Store

NOT_SEEN = "c: the lag of some topics is unknown: Warren is not allowed to see the topic t: grant Describe on it"
LATE = NOW + 1 + MAX_COMMIT_DELAY_MS


class Stage(InProcess):
    """Cycles of one cluster, whose commits, clock and look are set by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.box = RequestQueue(root)
        self.now_ms = NOW
        self.levels: list[str] = []
        self.error: str | None = None
        self.topics: tuple[Topic, ...] = (Topic("t", "t", 1),)
        self.hidden_topics: tuple[str, ...] = ()
        self.group_checks: GroupChecks | None = None
        self.held_partitions: HeldPartitions | None = None
        self.held_records = 0
        self.seeds = pa.table({})
        self.end = 0
        self._commits: list[Commit] = []
        self.config = Config(
            {"c": Cluster("c", ("a:1",))}, {"c": Consumer("c", "c", ("a:1",))}, pipeline=Pipeline(buckets=2)
        )
        self.start()

    def start(self) -> None:
        """A new process on the same directory."""
        self.questions: dict[str, SampleQuestions] = {}
        self.cycles = Cycles(
            self.config, self, Store(self.root), self._look, lambda _: self.seeds, self.questions.update,
            clock=lambda: ClockReading(self.now_ms, self.now_ms, "boot"), on_level=self._on_level,
            group_checks=self.group_checks, held_partitions=self.held_partitions,
        )  # fmt: skip

    def _on_level(self, level: str) -> None:
        if level == "loud":
            raise KeyError(level)
        self.levels.append(level)

    def _look(self) -> dict[str, ClusterSample]:
        if self.error:
            return {"c": ClusterSample("c", error=self.error)}
        ends = {"__consumer_offsets": {0: PartitionEnds(0, self.end, self.end + self.held_records)}}
        missing = self.questions.pop("c", SampleQuestions()).missing_topics
        hidden = [name for name in missing if name in self.hidden_topics]
        absent = [name for name in missing if name not in [*hidden, *(topic.name for topic in self.topics)]]
        heads, log_starts = np.full(len(self.topics), 100), np.zeros(len(self.topics), np.int64)
        return {"c": ClusterSample("c", None, (self.now_ms, self.now_ms), ends, {"__consumer_offsets": "id"},
                                   (self.now_ms, self.now_ms), self.topics, heads, log_starts,
                                   topics_at_ms=self.now_ms, hidden_topics=tuple(hidden),
                                   absent_topics=tuple(absent))}  # fmt: skip

    def read(self, reads: Sequence[TopicRead], plan: CyclePlan) -> dict[str, ClusterRead]:
        commits = commits_table(self._commits if any(read.ranges for read in reads) else [])
        batches = address_tables({TableKind.COMMITS: commits}, plan)
        return {"c": TestRead(pa.Table.from_batches(batches, schema=ADDRESSED))}

    def cycle(self, now_ms: int, *commits: tuple[str, int]) -> Manifest:
        """One cycle that finds the commits (group, time) at the end of the offsets topic."""
        self.now_ms = now_ms
        self._commits = [Commit(group, "t", 0, 5, at_ms, self.end + n) for n, (group, at_ms) in enumerate(commits)]
        self.end += len(commits)
        return self.cycles.run_once()

    def delete(self, asked_at_ms: int, group: str = "g", cluster: str = "c") -> str:
        return self.box.ask(RequestKind.DELETE, asked_at_ms, cluster=cluster, group=group).id

    def windows(self) -> dict[str, list[int]]:
        """The groups and the times of their commits, as a reader sees them."""
        rows = newest_snapshot(self.root).partitions().to_pylist()
        return {row["group"]: [time_ms - NOW for time_ms in row["times_ms"]] for row in rows}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def in_force(manifest: Manifest) -> list[str]:
    return [request.id for request in manifest.requests]


def test_a_deletion_is_in_force_until_all_that_was_committed_before_it_has_been_read(stage: Stage) -> None:
    stage.cycle(NOW - 1, ("g", NOW - 1), ("h", NOW - 1))
    asked = stage.delete(NOW)
    assert in_force(stage.cycle(NOW + 5)) == [asked]
    assert (stage.windows(), stage.box.pending()) == ({"h": [-1]}, [])
    assert in_force(stage.cycle(LATE, ("g", NOW))) == [asked], "it was on its way"
    assert stage.windows() == {"h": [-1]}
    assert in_force(stage.cycle(LATE + 1, ("g", LATE))) == []
    assert stage.windows() == {"g": [LATE - NOW], "h": [-1]}


def test_a_deletion_outlives_restarts_while_its_cluster_is_away(stage: Stage) -> None:
    stage.cycle(NOW - 1, ("g", NOW - 1))
    asked = stage.delete(NOW)
    stage.error = "no route to host"
    assert in_force(stage.cycle(NOW + 1)) == [asked]
    assert stage.windows() == {}, "gone at once"
    for n in range(3):
        stage.start()
        assert in_force(stage.cycles.manifest) == [asked]
        assert in_force(stage.cycle(LATE + n)) == [asked]
    stage.error = None
    assert in_force(stage.cycle(LATE + 10, ("g", NOW))) == [asked]
    assert stage.windows() == {}
    stage.start()
    assert in_force(stage.cycle(LATE + 20, ("g", LATE + 15))) == []
    assert stage.windows() == {"g": [LATE + 15 - NOW]}


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_topic_that_one_list_lacks_keeps_its_windows(stage: Stage, is_restarted: bool) -> None:
    topics = stage.topics
    stage.cycle(NOW, ("g", NOW))
    if is_restarted:
        stage.start()
    for at_ms in (NOW + 10_000, NOW + 60_000):
        stage.topics = ()
        stage.cycle(at_ms)
        assert stage.windows() == {"g": [0]}
        stage.topics = topics
        stage.cycle(at_ms + 10_000)
        assert stage.windows() == {"g": [0]}, "the same topic is back"
    stage.topics = ()
    stage.cycle(NOW + 100_000)
    stage.cycle(NOW + 100_000 + TOPIC_GRACE_MS)
    assert stage.windows() == {}, "two lists agree"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_topic_that_warren_may_not_see_keeps_its_windows_and_the_cluster_says_so(
    stage: Stage, caplog: pytest.LogCaptureFixture, is_restarted: bool
) -> None:
    topics = stage.topics = (*stage.topics, Topic("u", "u", 1))
    stage.cycle(NOW, ("g", NOW))
    stage.topics, stage.hidden_topics = (topics[1],), ("t",)
    for n in range(1, 5):
        if is_restarted and n > 2:
            stage.start()
        found = stage.cycle(NOW + n * 10_000, ("g", NOW + n * 10_000)).clusters["c"]
        assert (found.is_judged, found.error, len(stage.windows()["g"])) == (True, None, n + 1)
        assert found.hidden_topics == (0 if n == 1 or (is_restarted and n > 2) else 1), "asked after a sample lacked it"
    assert NOT_SEEN in caplog.text
    stage.topics, stage.hidden_topics = topics, ()
    found = stage.cycle(NOW + 60_000).clusters["c"]
    assert (found.hidden_topics, found.missing_right) == (0, None)
    assert list(stage.windows()) == ["g"]
    stage.topics = (topics[1],)
    stage.cycle(NOW + 70_000)
    stage.cycle(NOW + 80_000)
    assert stage.windows() == {}, "one that can be seen and is deleted is gone"


def test_a_topic_of_another_id_takes_the_windows_at_once_also_after_it_was_missing(stage: Stage) -> None:
    stage.cycle(NOW, ("g", NOW))
    stage.topics = ()
    stage.cycle(NOW + 10_000)
    stage.topics = (Topic("t", "another", 1),)
    stage.cycle(NOW + 11_000)
    assert stage.windows() == {}


def failing(_: Store, __: Manifest) -> None:
    raise OSError("no space left on device")


def test_the_file_goes_only_after_the_manifest_that_knows_of_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.cycle(NOW - 1, ("g", NOW - 1))
    asked = stage.delete(NOW)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "publish", failing)
        with pytest.raises(OSError, match="no space"):
            stage.cycle(NOW + 1)
    assert [request.id for request in stage.box.pending()] == [asked]
    assert (stage.windows(), in_force(stage.cycles.manifest)) == ({"g": [-1]}, [])

    seen = []
    publish: Callable[[Store, Manifest], None] = Store.publish

    def watched(store: Store, manifest: Manifest) -> None:
        publish(store, manifest)
        seen.append([request.id for request in stage.box.pending()])

    with monkeypatch.context() as patch:
        patch.setattr(Store, "publish", watched)
        stage.cycle(NOW + 2)
    assert seen == [[asked]]
    assert (stage.windows(), stage.box.pending()) == ({}, [])


def test_a_request_whose_file_outlived_its_taker_is_not_taken_up_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = stage.delete(NOW)
    with monkeypatch.context() as patch:
        patch.setattr(RequestQueue, "remove", lambda *_: None)
        assert in_force(stage.cycle(LATE)) == [asked]
    stage.start()
    assert in_force(stage.cycle(LATE + 1, ("g", LATE))) == [], "it is over, and its file does not call it back"
    assert (stage.windows(), stage.box.pending()) == ({"g": [LATE - NOW]}, [])


def test_a_file_that_cannot_be_removed_takes_nothing_new(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestQueue, "remove", lambda *_: None)
    stage.delete(NOW)
    for n in range(4):
        stage.cycle(LATE + n, ("g", LATE + n))
    assert stage.windows() == {"g": [LATE + n - NOW for n in range(4)]}


def test_a_cluster_that_is_not_configured_has_nothing_to_delete(stage: Stage) -> None:
    stage.delete(NOW, cluster="elsewhere")
    assert in_force(stage.cycle(NOW + 1, ("g", NOW))) == []
    assert (stage.windows(), stage.box.pending()) == ({"g": [0]}, [])


def test_a_deletion_from_a_clock_that_is_ahead_takes_nothing_that_is_still_to_come(stage: Stage) -> None:
    stage.delete(NOW + 3_600_000)
    stage.cycle(NOW, ("g", NOW - 1))
    assert stage.windows() == {}
    stage.cycle(NOW + 2, ("g", NOW + 1))
    assert stage.windows() == {"g": [1]}


def test_deleting_again_and_again_while_a_cluster_is_away_leaves_one_deletion(stage: Stage) -> None:
    stage.error = "no route to host"
    asked = [stage.delete(NOW + n) for n in range(3)]
    other = stage.delete(NOW, group="h")
    assert set(in_force(stage.cycle(NOW + 5))) == {asked[-1], other}, "a later one replaces those that wait"
    asked.append(stage.delete(NOW + 5))
    assert set(in_force(stage.cycle(NOW + 6))) == {*asked[-2:], other}, "each is known once"
    assert set(in_force(stage.cycle(NOW + 7))) == {asked[-1], other}


def test_a_level_is_set_at_once_and_only_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for number, level in enumerate(("debug", "loud", "warn")):
            stage.box.ask(RequestKind.LOGLEVEL, NOW + number, level=level)
            assert in_force(stage.cycle(NOW + number)) == []
    assert (stage.levels, stage.box.pending()) == (["debug", "warn"], [])
    assert "'loud'" in caplog.text
    stage.cycle(NOW + 6)
    assert stage.levels == ["debug", "warn"]


def test_what_is_read_in_parts_is_read_before_a_deletion_is_over(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stage.delete(NOW)

    def half(readings: list[Any], _: int) -> list[Any]:
        cut = []
        for reading in readings:
            positions = {
                p: structs.replace(at, next_offset=at.next_offset - 1) for p, at in reading.after.positions.items()
            }
            cut.append(replace(reading, after=structs.replace(reading.after, positions=positions)))
        return cut

    with monkeypatch.context() as patch:
        patch.setattr(cycle, "admit", half)
        assert in_force(stage.cycle(LATE, ("h", NOW), ("g", LATE))) == [asked]
        assert in_force(stage.cycle(LATE + 1, ("h", NOW))) == [asked], "some is left"
    assert stage.windows()["g"] == [LATE - NOW]
    assert in_force(stage.cycle(LATE + 2)) == []


def test_the_later_writer_takes_over_though_the_earlier_one_is_faster_a_few_times(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cycle(NOW, ("g", NOW))
    first = stage.cycles
    publish, races = Store.publish, 3

    def race(store: Store, manifest: Manifest) -> None:
        nonlocal races
        if manifest.epoch > first.manifest.epoch and races:
            races -= 1
            first.run_once()
        publish(store, manifest)

    monkeypatch.setattr(Store, "publish", race)
    stage.start()
    assert stage.cycles.manifest.epoch == first.manifest.epoch + 1
    assert races == 0
    with pytest.raises(Fenced):
        first.run_once()


def test_another_configuration_keeps_the_windows_and_applies_to_the_next_cycle(stage: Stage) -> None:
    before = stage.cycle(NOW, ("g", NOW), ("h", NOW))
    reload = stage.box.ask(RequestKind.RELOAD, NOW)
    consumers = {"c": replace(stage.config.consumers["c"], group_denylist="h")}
    clusters = {**stage.config.clusters, "d": Cluster("d", ("b:1",), offset_refresh=3)}
    stage.cycles.configure(
        replace(stage.config, clusters=clusters, consumers=consumers, storage=Storage(intervals=7)), stage
    )
    after = stage.cycle(NOW + 1, ("g", NOW + 1))
    assert (after.epoch, after.predecessor) == (before.epoch, before.sequence)
    assert stage.windows() == {"g": [0, 1]}
    assert (after.intervals, after.trigger_ms, stage.cycles.trigger_s) == (7, 3000, 3)
    assert after.clusters.keys() == {"c", "d"}
    assert after.clusters["c"].is_judged
    assert [request.id for request in stage.box.pending()] == [reload.id], "for the loop between two cycles"
    stage.cycles.configure(replace(stage.config, clusters={"d": clusters["d"]}, consumers={}), stage)
    assert stage.cycle(NOW + 2).clusters.keys() == {"d"}
    assert stage.windows() == {}

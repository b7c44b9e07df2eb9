"""The history of groups: a point a trigger, merged and thinned as it ages, the same for readers at every step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as dataclass_replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.kit.plans import Commit, Rehearsal, cluster_state, plan
from warren.domain.buckets import bucket_of
from warren.domain.offsets_logs import OffsetsLog
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.history.files import HISTORY, FileSpan, HistoryFile, HistoryTable, file_name, history_files, history_folder
from warren.history.read import cluster_history, group_history
from warren.history.write import HistoryWriter
from warren.pipeline.plan import PlannedCluster
from warren.snapshot.follower import SnapshotFollower

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
START = 1_794_700_800_000
"""Midnight."""
TURNS = {605: Status.WARN, 615: Status.OK, 1199: Status.STOP}
"""When a status changes, in seconds since midnight: twice within a minute, and at the end of ten."""
assert START % DAY == 0


class Past:
    """A data directory whose groups `a` and `b` are judged at any time, in two clusters."""

    def __init__(self, root: Path, keep_days: int = 30, step_s: float = 10.0) -> None:
        clusters = tuple(PlannedCluster(name, is_judged=True) for name in ("one", "two"))
        self.root = root
        self.keep_days = keep_days
        self.step_s = step_s
        self.cycles = Rehearsal(root, plan(root, clusters=clusters, slots=(0, 1, 2)))
        self.order = 0
        self.restart()

    def restart(self) -> None:
        self.writer = HistoryWriter(self.root, self.keep_days, self.step_s)

    def judge(self, at_ms: int, head: int) -> bool:
        """A cycle in which everyone commits 100, and its snapshot in the history."""
        self.order += 1
        self.cycles.sample(at_ms, {name: {"t": [head]} for name in ("one", "two")})
        self.cycles.cycle(
            at_ms, [Commit(group, "t", 0, 100, at_ms - 10, self.order, c) for group in "ab" for c in (0, 1)]
        )
        return self.writer.record(self.cycles.manifest())

    def remember(self, seconds: Iterable[int], turns: Mapping[int, Status]) -> None:
        """Points of the group `a` of cluster `one`, at these seconds since midnight and where its status turns."""
        bucket = int(bucket_of("one", pa.array(["a"]), 3)[0])
        status = Status.OK
        for second in sorted({*seconds, *turns}):
            status = turns.get(second, status)
            at_ms = START + second * SECOND
            path = history_folder(self.root, HistoryTable.GROUPS) / file_name(FileSpan.MOMENT, bucket, 3, at_ms, at_ms)
            pq.write_table(history([("a", at_ms, status)], cluster="one"), path)

    def points(self, group: str = "a", since_ms: int = 0) -> list[tuple[int, int]]:
        """Time and lag of one group."""
        rows = group_history(self.root, "one", group, since_ms).to_pylist()
        assert all((row["cluster"], row["group"]) == ("one", group) for row in rows)
        return [(row["time_ms"], row["totallag"]) for row in rows]

    def times(self) -> list[int]:
        """Seconds since midnight of one group's points."""
        return [(at_ms - START) // SECOND for at_ms, _ in self.points()]

    def spans(self) -> set[FileSpan]:
        return {file.span for file in history_files(self.root, HistoryTable.GROUPS)}


def history(rows: Iterable[tuple[str, int, int]], cluster: str = "c") -> pa.Table:
    """Points of groups at times with statuses; the lag of each is its index."""
    return pa.Table.from_pylist(
        [
            {
                "time_ms": at, "cluster": cluster, "group": group, "status": status, "worst_status": status,
                "since_ms": 0, "totallag": index, "maxlag": 0,
            }
            for index, (group, at, status) in enumerate(rows)
        ],
        schema=HISTORY,
    )  # fmt: skip


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


def test_each_point_has_the_time_lag_and_thinning_keeps_it(past: Past) -> None:
    for n in range(70):
        past.judge(START + n * MINUTE // 6, 100 + n)
    rows = group_history(past.root, "one", "a", 0).to_pylist()
    # The first sample has nothing unread; the message that came with the second has been waiting since about then.
    assert [row["seconds_behind"] for row in rows] == [0.0, *(5.0 + 10 * n for n in range(69))]
    past.writer.tidy(START + DAY)
    kept = {row["time_ms"]: row["seconds_behind"] for row in group_history(past.root, "one", "a", 0).to_pylist()}
    assert len(kept) < 20
    assert kept.items() <= {row["time_ms"]: row["seconds_behind"] for row in rows}.items()


def test_a_time_lag_that_is_unknown_or_from_before_it_was_measured_is_null(past: Past) -> None:
    past.cycles.sample(START, {"one": {"t": [UNKNOWN]}, "two": {"t": [100]}})
    past.cycles.cycle(START, [Commit("a", "t", 0, 100, START - 10, 1)])
    past.writer.record(past.cycles.manifest())
    [file] = history_files(past.root, HistoryTable.GROUPS)
    rows = pq.read_table(file.path)
    assert rows["seconds_behind"].to_pylist() == [None]
    earlier = START - MINUTE
    name = file_name(FileSpan.MOMENT, file.bucket, file.buckets, earlier, earlier)
    old = rows.drop_columns("seconds_behind").set_column(0, "time_ms", pa.array([earlier]))
    pq.write_table(old, file.path.with_name(name))
    found = group_history(past.root, "one", "a", 0)
    assert (found["time_ms"].to_pylist(), found["seconds_behind"].to_pylist()) == ([earlier, START], [None, None])
    past.writer.tidy(START + DAY)
    assert group_history(past.root, "one", "a", 0)["seconds_behind"].to_pylist()[:1] == [None]


def test_a_point_a_trigger(past: Past) -> None:
    assert group_history(past.root, "one", "a", 0).schema == HISTORY
    assert past.points() == []
    assert past.judge(START, 100)
    assert past.judge(START + 10 * SECOND, 110)
    assert past.points() == past.points("b") == [(START, 0), (START + 10 * SECOND, 10)]
    assert past.points(since_ms=START + 1) == [(START + 10 * SECOND, 10)]
    assert past.points("nobody") == []


@pytest.mark.parametrize(
    ("step_s", "seconds", "written"),
    [
        (10.0, [0, 3, 6, 9, 12, 15, 18, 21], [0, 12, 21]),
        (10.0, [0, 30, 60], [0, 30, 60]),
        (1.0, [0, 1, 2], [0, 1, 2]),
        (2.5, [0, 1, 2, 3, 4, 5], [0, 3, 5]),
    ],
)
def test_of_the_snapshots_of_a_step_the_first_is_written(
    tmp_path: Path, step_s: float, seconds: Sequence[int], written: list[int]
) -> None:
    past = Past(tmp_path, step_s=step_s)
    assert [second for second in seconds if past.judge(START + second * SECOND, 100)] == written
    assert past.times() == written


def test_clusters_have_a_history_too(past: Past) -> None:
    away = cluster_state(unknown_since_ms=START, totallag=7, worst_status="ERR", groups_by_status={"OK": 2, "ERR": 1})
    past.judge(START, 100)
    manifest = past.cycles.manifest(now_ms=START + MINUTE, clusters={"one": away, "two": cluster_state()})
    assert past.writer.record(manifest)
    first, second = cluster_history(past.root, "one", 0).to_pylist()
    assert (first["time_ms"], first["is_known"], first["totallag"]) == (START, True, 0)
    assert second == {
        "time_ms": START + MINUTE, "cluster": "one", "worst_status": int(Status.ERR), "is_known": False,
        "totallag": 7, "groups_ok": 2, "groups_warn": 0, "groups_err": 1,
    }  # fmt: skip
    past.writer.tidy(START + 2 * DAY)
    assert cluster_history(past.root, "one", 0).to_pylist() == [first, second]
    assert {file.span for file in history_files(past.root, HistoryTable.CLUSTERS)} == {FileSpan.DAY}
    assert cluster_history(past.root, "three", 0).num_rows == 0


def test_a_group_that_is_unknown_is_marked_and_the_change_is_kept(past: Past) -> None:
    past.judge(START, 100)
    one, two = past.cycles.plan.clusters
    log = OffsetsLog(0, 0, START, START - 90_000, unknown_since_ms=START - 90_000)
    past.cycles.cycle(START + 10 * SECOND, clusters=(dataclass_replace(one, logs=(log,)), two))
    past.writer.record(past.cycles.manifest())

    def points(cluster: str) -> list[tuple[int, bool]]:
        rows = group_history(past.root, cluster, "a", 0).to_pylist()
        return [((row["time_ms"] - START) // SECOND, row["is_known"]) for row in rows]

    assert (points("one"), points("two")) == ([(0, True), (10, False)], [(0, True), (10, True)])
    past.writer.tidy(START + 2 * DAY)
    assert (points("one"), points("two")) == ([(0, True), (10, False)], [(0, True)])


def test_a_restart_goes_on_where_it_was(past: Past) -> None:
    past.judge(START, 100)
    past.restart()
    assert not past.judge(START + 9 * SECOND, 105)
    assert past.judge(START + 10 * SECOND, 110)
    assert len(past.points()) == 2


def test_a_restart_after_a_merge_goes_on_too(past: Past) -> None:
    past.judge(START, 100)
    past.judge(START + 10 * MINUTE, 100)
    past.writer.tidy(START + 10 * MINUTE)
    past.restart()
    assert not past.judge(START + 10 * MINUTE + 9 * SECOND, 100)
    assert past.judge(START + 10 * MINUTE + 10 * SECOND, 100)


def test_ten_minutes_that_are_over_become_one_file_a_bucket_with_every_point(past: Past) -> None:
    expected = [(START + n * 25 * SECOND, n) for n in range(25)]
    for at_ms, lag in expected:
        past.judge(at_ms, 100 + lag)
    past.writer.tidy(START + 10 * MINUTE - 1)
    assert past.spans() == {FileSpan.MOMENT}
    past.writer.tidy(START + 10 * MINUTE)
    assert past.points() == expected
    files = history_files(past.root, HistoryTable.GROUPS)
    parts = [file for file in files if file.span is FileSpan.PART]
    assert {(file.from_ms, file.to_ms) for file in parts} == {(START, START + 10 * MINUTE - 1)}
    assert len(parts) == len({file.bucket for file in files})
    assert {file.from_ms for file in files if file.span is FileSpan.MOMENT} == {START + 10 * MINUTE}


def test_an_hour_that_is_over_keeps_a_point_a_minute_and_every_change(past: Past) -> None:
    past.remember(range(0, 1260, 10), TURNS)
    past.writer.tidy(START + HOUR - 1)
    assert past.spans() == {FileSpan.PART}
    assert past.times() == sorted({*range(0, 1260, 10), *TURNS})
    past.writer.tidy(START + HOUR)
    assert past.spans() == {FileSpan.HOUR}
    assert past.times() == sorted({*range(0, 1260, 60), *TURNS})


@pytest.mark.parametrize("tidied_at", [(10 * MINUTE, 20 * MINUTE, HOUR, DAY), (DAY,)], ids=["as it ages", "at once"])
def test_a_day_that_is_over_keeps_a_point_in_ten_minutes_and_every_change(past: Past, tidied_at: Sequence[int]) -> None:
    past.remember(range(0, 2 * 3600, 50), TURNS)
    for after_ms in tidied_at:
        past.writer.tidy(START + after_ms)
    assert past.spans() == {FileSpan.DAY}
    assert past.times() == sorted({*range(0, 2 * 3600, 600), *TURNS})


def test_a_point_that_comes_late_joins_the_file_of_its_time(past: Past) -> None:
    past.remember(range(0, 600, 60), TURNS)
    past.writer.tidy(START + HOUR)
    past.remember([1800], {1805: Status.WARN})
    past.writer.tidy(START + HOUR)
    assert past.spans() == {FileSpan.HOUR}
    assert past.times() == sorted({*range(0, 600, 60), *TURNS, 1800, 1805})


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    past = Past(tmp_path, keep_days=2)
    for day in range(5):
        past.judge(START + day * DAY, 100)
    past.writer.tidy(START + 4 * DAY)
    assert [at_ms for at_ms, _ in past.points()] == [START + day * DAY for day in (2, 3, 4)]


@pytest.mark.parametrize(
    ("source", "before_ms", "over_ms", "merged"),
    [
        (FileSpan.MOMENT, 0, 10 * MINUTE, FileSpan.PART),
        (FileSpan.PART, 10 * MINUTE, HOUR, FileSpan.HOUR),
        (FileSpan.HOUR, HOUR, DAY, FileSpan.DAY),
    ],
)
def test_a_crash_between_the_longer_file_and_the_removal_of_its_sources(
    past: Past, source: FileSpan, before_ms: int, over_ms: int, merged: FileSpan
) -> None:
    past.remember(range(0, 600, 10), {95: Status.WARN, 205: Status.OK})
    past.writer.tidy(START + before_ms)
    assert past.spans() == {source}
    before = past.points()
    sources = {file.path: file.path.read_bytes() for file in history_files(past.root, HistoryTable.GROUPS)}
    past.writer.tidy(START + over_ms)
    after = past.points()
    for path, data in sources.items():
        path.write_bytes(data)
    assert past.points() == before, "no moment twice, and none missed"
    past.restart()
    past.writer.tidy(START + over_ms)
    assert past.points() == after
    assert past.spans() == {merged}


def test_a_file_that_is_merged_while_it_is_read_is_not_missed(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (0, 1):
        past.judge(START + n * MINUTE, 100 + n)
    listed = history_files(past.root, HistoryTable.GROUPS)
    past.writer.tidy(START + HOUR)
    answers = iter([listed])

    def look(data_dir: Path, table: HistoryTable) -> list[HistoryFile]:
        return next(answers, None) or history_files(data_dir, table)

    monkeypatch.setattr("warren.history.read.history_files", look)
    assert past.points() == [(START, 0), (START + MINUTE, 1)]


def test_a_clock_that_was_ahead_does_not_end_the_history(past: Past) -> None:
    past.judge(START + 9 * DAY, 100)
    past.restart()
    assert past.judge(START, 100)
    assert past.judge(START + MINUTE, 101)
    assert [at_ms for at_ms, _ in past.points()] == [START, START + MINUTE, START + 9 * DAY]


def test_drafts_and_strangers_are_left_out(past: Past) -> None:
    past.judge(START, 100)
    folder = history_folder(past.root, HistoryTable.GROUPS)
    (folder / f"{file_name(FileSpan.HOUR, 0, 3, START, START)}.x.draft").write_bytes(b"half")
    (folder / "notes.txt").write_text("mine")
    assert past.points() == [(START, 0)]
    past.restart()
    assert not list(folder.glob("*.draft"))
    assert (folder / "notes.txt").exists()


def test_the_follower_writes_beside_the_cycle_and_survives_what_it_cannot_read(past: Past) -> None:
    store = past.cycles.store
    follower = SnapshotFollower("history", store, lambda snapshot: past.writer.follow(snapshot.manifest))
    past.order += 1
    past.cycles.sample(START, {name: {"t": [100]} for name in ("one", "two")})
    past.cycles.cycle(START, [Commit("a", "t", 0, 100, START - 10, 1, 0)])
    good = past.cycles.manifest()
    removed = replace(past.cycles.manifest(now_ms=START + MINUTE), sequence=good.sequence + 1)
    store.publish(good)
    assert follower.poll()
    assert past.points() == [(START, 0)]
    for bucket in removed.buckets:
        store.path(bucket.groups).unlink()
    store.publish(removed)
    assert not follower.poll()
    assert past.points() == [(START, 0)]

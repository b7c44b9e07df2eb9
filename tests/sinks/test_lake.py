"""The history of groups: a point a minute, merged and thinned as it ages, the same for readers at every step."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tests.kit.plans import Commit, Rehearsal, cluster_state, plan
from tests.kit.warrens import wait_for
from warren.domain.rules import Status
from warren.pipeline.plan import PlannedCluster
from warren.sinks.lake import LakeFollower, LakeWriter, thinned
from warren.snapshot.lake import (
    HISTORY,
    LakeFile,
    Span,
    Table,
    cluster_history,
    file_name,
    group_history,
    lake_files,
    lake_folder,
)

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = 1_794_700_800_000
"""Midnight."""
assert START % DAY == 0


class Past:
    """A data directory whose groups `a` and `b` are judged at any time, in two clusters."""

    def __init__(self, root: Path, keep_days: int = 30) -> None:
        clusters = tuple(PlannedCluster(name, is_judged=True) for name in ("one", "two"))
        self.root = root
        self.keep_days = keep_days
        self.cycles = Rehearsal(root, plan(root, clusters=clusters, slots=(0, 1, 2)))
        self.writer = LakeWriter(root, keep_days)
        self.order = 0

    def restart(self) -> None:
        self.writer = LakeWriter(self.root, self.keep_days)

    def judge(self, at_ms: int, head: int) -> bool:
        """A cycle in which everyone commits 100, and its snapshot in the history."""
        self.order += 1
        self.cycles.look(at_ms, {name: {"t": [head]} for name in ("one", "two")})
        self.cycles.cycle(
            at_ms, [Commit(group, "t", 0, 100, at_ms - 10, self.order, c) for group in "ab" for c in (0, 1)]
        )
        return self.writer.record(self.cycles.manifest())

    def points(self, group: str = "a", since_ms: int = 0) -> list[tuple[int, int]]:
        """Time and lag of one group."""
        rows = group_history(self.root, "one", group, since_ms).to_pylist()
        assert all((row["cluster"], row["group"]) == ("one", group) for row in rows)
        return [(row["time_ms"], row["totallag"]) for row in rows]

    def spans(self) -> set[Span]:
        return {file.span for file in lake_files(self.root, Table.GROUPS)}


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


def test_a_point_a_minute(past: Past) -> None:
    assert group_history(past.root, "one", "a", 0).schema == HISTORY
    assert past.points() == []
    assert past.judge(START, 100)
    assert not past.judge(START + 10_000, 105)
    assert past.judge(START + MINUTE, 110)
    assert past.points() == past.points("b") == [(START, 0), (START + MINUTE, 10)]
    assert past.points(since_ms=START + 1) == [(START + MINUTE, 10)]
    assert past.points("nobody") == []


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
    assert {file.span for file in lake_files(past.root, Table.CLUSTERS)} == {Span.DAY}
    assert cluster_history(past.root, "three", 0).num_rows == 0


def test_a_restart_goes_on_where_it_was(past: Past) -> None:
    past.judge(START, 100)
    past.restart()
    assert not past.judge(START + 30_000, 105)
    assert past.judge(START + MINUTE, 110)
    assert len(past.points()) == 2


def test_an_hour_that_is_over_becomes_one_file_a_bucket(past: Past) -> None:
    expected = [(START + n * MINUTE, n) for n in range(0, 75, 5)]
    for at_ms, lag in expected:
        past.judge(at_ms, 100 + lag)
    before = len(lake_files(past.root, Table.GROUPS))
    past.writer.tidy(START + 75 * MINUTE)
    assert past.points() == expected
    assert past.spans() == {Span.HOUR, Span.MINUTE}
    assert len(lake_files(past.root, Table.GROUPS)) < before


def test_a_day_that_is_over_keeps_a_point_in_ten_minutes_and_every_change(past: Past) -> None:
    for n in range(0, 60, 2):
        past.judge(START + n * MINUTE, 100 + (n if n > 31 else 0))
    changed = [row for row in group_history(past.root, "one", "a", 0).to_pylist() if row["status"] != Status.OK]
    past.judge(START + DAY, 100)
    past.writer.tidy(START + DAY)
    assert past.spans() == {Span.DAY, Span.MINUTE}
    kept = group_history(past.root, "one", "a", 0).to_pylist()
    times = [row["time_ms"] for row in kept]
    assert {START + n * MINUTE for n in range(0, 60, 10)} <= set(times)
    assert len(times) < 12
    if changed:
        assert changed[0]["time_ms"] in times, "the moment at which its status changed"


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    past = Past(tmp_path, keep_days=2)
    for day in range(5):
        past.judge(START + day * DAY, 100)
    past.writer.tidy(START + 4 * DAY)
    assert [at_ms for at_ms, _ in past.points()] == [START + day * DAY for day in (2, 3, 4)]


def test_a_crash_between_the_long_file_and_the_removal_of_its_parts_shows_nothing_twice(past: Past) -> None:
    for n in (0, 1):
        past.judge(START + n * MINUTE, 100 + n)
    parts = {file.path: file.path.read_bytes() for file in lake_files(past.root, Table.GROUPS)}
    past.writer.tidy(START + HOUR)
    merged = past.points()
    for path, data in parts.items():
        path.write_bytes(data)
    assert past.points() == merged == [(START, 0), (START + MINUTE, 1)]
    past.restart()
    past.writer.tidy(START + HOUR)
    assert past.points() == merged
    assert past.spans() == {Span.HOUR}


def test_a_file_that_is_merged_while_it_is_read_is_not_missed(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (0, 1):
        past.judge(START + n * MINUTE, 100 + n)
    listed = lake_files(past.root, Table.GROUPS)
    past.writer.tidy(START + HOUR)
    answers = iter([listed])

    def look(data_dir: Path, table: Table) -> list[LakeFile]:
        return next(answers, None) or lake_files(data_dir, table)

    monkeypatch.setattr("warren.snapshot.lake.lake_files", look)
    assert past.points() == [(START, 0), (START + MINUTE, 1)]


def test_a_clock_that_was_ahead_does_not_end_the_history(past: Past) -> None:
    past.judge(START + 9 * DAY, 100)
    past.restart()
    assert past.judge(START, 100)
    assert past.judge(START + MINUTE, 101)
    assert [at_ms for at_ms, _ in past.points()] == [START, START + MINUTE, START + 9 * DAY]


def test_drafts_and_strangers_are_left_out(past: Past) -> None:
    past.judge(START, 100)
    folder = lake_folder(past.root, Table.GROUPS)
    (folder / f"{file_name(Span.HOUR, 0, 3, START, START)}.x.draft").write_bytes(b"half")
    (folder / "notes.txt").write_text("mine")
    assert past.points() == [(START, 0)]
    past.restart()
    assert not list(folder.glob("*.draft"))
    assert (folder / "notes.txt").exists()


@pytest.mark.parametrize(
    ("step_ms", "rows", "kept"),
    [
        (0, [("a", 1, 1), ("a", 1, 1), ("a", 2, 1), ("b", 2, 1)], [0, 2, 3]),
        (10, [("a", 1, 1), ("a", 2, 1), ("a", 11, 1), ("b", 12, 1)], [0, 2, 3]),
        (10, [("a", 1, 1), ("a", 2, 2), ("a", 3, 2), ("a", 4, 1)], [0, 1, 3]),
        (10, [("a", 1, 1)], [0]),
    ],
)
def test_thinning(step_ms: int, rows: Sequence[tuple[str, int, int]], kept: list[int]) -> None:
    table = pa.Table.from_pylist(
        [
            {
                "time_ms": at, "cluster": "c", "group": group, "status": status, "worst_status": status,
                "since_ms": 0, "totallag": place, "maxlag": 0,
            }
            for place, (group, at, status) in enumerate(rows)
        ],
        schema=HISTORY,
    )  # fmt: skip
    assert thinned(table, step_ms)["totallag"].to_pylist() == kept


def test_the_follower_writes_beside_the_cycle_and_survives_what_it_cannot_read(past: Past) -> None:
    follower = LakeFollower(past.writer)
    past.order += 1
    past.cycles.look(START, {name: {"t": [100]} for name in ("one", "two")})
    past.cycles.cycle(START, [Commit("a", "t", 0, 100, START - 10, 1, 0)])
    good = past.cycles.manifest()
    removed = past.cycles.manifest(now_ms=START + MINUTE)
    follower.follow(good)
    wait_for(past.points, "the first point", 20.0)
    for bucket in removed.buckets:
        past.cycles.store.path(bucket.groups).unlink()
    follower.follow(removed)
    follower.close()
    assert past.points() == [(START, 0)]

"""The lake as Parquet files: every row of every snapshot once, whatever happens in between, and files that stay few."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from msgspec import to_builtins
from pyspark.sql import SparkSession

from tests.kit.lakes import MINUTE, Lake, interrupted_job, minutes, when
from tests.kit.plans import cluster_state
from tests.kit.sink_workers import deliver_next, sample
from tests.security.names import NAMES
from warren.delivery.sink_status import read_status, sink_folder
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.sinks.lake import parquet
from warren.sinks.lake import worker as lake_worker
from warren.sinks.lake.parquet import Files, ParquetTables
from warren.sinks.lake.tables import LakeTable
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.schemas import RATES, Row
from warren.snapshot.time_lag import to_time_lag

DAY = 86_400_000
TIME_LAG = (
    "seconds_behind", "seconds_behind_method", "catch_up_seconds", "catch_up_seconds_at_most", "is_falling_behind",
    "retention_left_seconds", "lost_messages", *RATES, "oldest_unread_age_seconds",
)  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path, lake_spark: SparkSession) -> Lake:
    return Lake(tmp_path, lake_spark)


def test_every_column_is_what_the_snapshot_says(lake: Lake) -> None:
    lake.town.turn([(0, name, "orders", 0, 1000) for name in NAMES.values()])
    first, second = minutes(lake, 2)
    lake.sample(first)
    assert not deliver_next(lake.worker), "it is not time yet"
    lake.sample(second)
    snapshot = newest_snapshot(lake.town.data)
    assert deliver_next(lake.worker)

    rows = {(r["time"], r["cluster"], r["group"]): r for r in lake.rows(LakeTable.GROUPS)}
    groups = snapshot.groups().to_pylist()
    assert {key[0] for key in rows} == {when(first), when(second)}
    assert len(rows) == len(lake.rows(LakeTable.GROUPS)) == 2 * len(groups)
    for group in groups:
        row = rows[when(second), group["cluster"], group["group"]]
        assert row["status"] == Status(group["status"]).name
        assert row["worst_status"] == Status(group["worst_status"]).name
        assert row["since"] == when(group["since_ms"])
        assert (row["total_lag"], row["max_lag"]) == (group["totallag"], max(group["maxlag"], 0))
        assert (row["partitions"], row["stall_partitions"]) == (group["partitions"], group["count_stall"])
        assert row["newest_commit"] == when(group["newest_commit_ms"])
        assert row["date"] == when(second).date().isoformat()
        assert row["tags"] == [("usage", "x")]
        assert {name: row[name] for name in TIME_LAG} == time_lag(group)

    parts = {
        (r["time"], r["cluster"], r["group"], r["topic"], r["partition"]): r for r in lake.rows(LakeTable.PARTITIONS)
    }
    held = snapshot.partitions().to_pylist()
    assert len(parts) == 2 * len(held)
    for part in held:
        row = parts[when(second), part["cluster"], part["group"], part["topic"], part["partition"]]
        assert row["status"] == Status(part["status"]).name
        assert row["reason"] == Reason(part["reason"]).name.lower()
        for column, name in (("lag", "current_lag"), ("offset", "committed_offset"), ("head", "head")):
            assert row[column] == (None if part[name] == UNKNOWN else part[name])
        assert row["committed_at"] == when(part["end_ms"])
        assert row["owner"] == (part["owner"] or None)
        assert {name: row[name] for name in TIME_LAG} == time_lag(part)

    for table, names in (
        (LakeTable.GROUPS, ("group", "time")),
        (LakeTable.PARTITIONS, ("group", "topic", "partition", "time")),
    ):
        for file in lake.files(table):
            keys = [tuple(row[name] for name in names) for row in pq.read_table(file).to_pylist()]
            assert keys == sorted(keys), f"{file} is sorted"
            path = str(file.relative_to(lake.path / table))
            assert re.fullmatch(r"date=[0-9-]+/cluster=(one|two)/[a-z0-9.-]+", path), "names are not in paths"

    heads = {(r["cluster"], r["topic"], r["partition"]): r["head"] for r in lake.rows(LakeTable.TOPICS)}
    assert heads["one", "orders", 2] == 1090
    assert ("one", "audit", 1) not in heads, "a head that is not known is no row"
    status = read_status(lake.town.data, "l")
    assert status is not None
    assert (status.waiting, status.delivered_ms, status.trouble) == (0, second, "")


def time_lag(row: Row) -> dict[str, object]:
    """Lag in time as the lake has it."""
    shown = to_builtins(to_time_lag(row))
    method, catch_up = row["behind_method"], row["catch_up_low_s"]
    own = {
        "seconds_behind_method": None if method == UNKNOWN else shown["seconds_behind_method"],
        "is_falling_behind": None if catch_up == UNKNOWN else shown["is_falling_behind"],
    }
    return {name: pytest.approx(value, abs=0.001) if isinstance(value, float) else value
            for name, value in ({**shown, **shown["rates"], **own}).items() if name in TIME_LAG}  # fmt: skip


def test_a_table_gets_columns_that_it_lacks_and_merging_keeps_them(
    tmp_path: Path, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path, lake_spark, write_interval=60.0, detail="group")
    first, second = minutes(lake, 2)
    lake.sample(first)
    assert deliver_next(lake.worker)
    for file in lake.files(LakeTable.GROUPS):
        # As a Warren before lag in time wrote it.
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(list(TIME_LAG)), file)
        file.with_name(f".{file.name}.crc").unlink()
    lake.sample(second)
    assert deliver_next(lake.worker)

    def behind() -> dict[int, bool]:
        rows = ParquetTables(lake_spark, str(lake.path), "", tmp_path).read(LakeTable.GROUPS)
        assert rows is not None
        known = rows.selectExpr("unix_millis(time) AS at", "cluster", "group", "seconds_behind IS NOT NULL AS is_known")
        read = known.collect()
        assert len(read) == len(set(read))
        return {row["at"]: row["is_known"] for row in read if row["group"] == "stalled"}

    before = behind()
    assert before == {first: False, second: True}
    monkeypatch.setattr(parquet, "MERGE_FROM", 2)
    monkeypatch.setattr(lake_worker, "TIDY_EVERY_MS", 0)
    lake.sample(second + MINUTE)
    assert deliver_next(lake.worker)
    assert {path.name[0] for path in lake.files(LakeTable.GROUPS)} == {"m"}
    assert behind() == {**before, second + MINUTE: True}


@pytest.mark.parametrize("instant", ["groups appended", "written", "recorded"])
def test_a_job_that_is_cut_short_is_finished_and_nothing_is_there_twice(
    instant: str, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = minutes(lake, 2)
    for at_ms in at:
        lake.sample(at_ms)
    with interrupted_job(instant, monkeypatch):
        deliver_next(lake.worker)
    lake.restart()
    while deliver_next(lake.worker):
        pass
    assert is_whole(lake, 2)
    assert not list((sink_folder(lake.town.data, "l") / "spool").iterdir())


def is_whole(lake: Lake, intervals: int, *tables: LakeTable) -> bool:
    for table in tables or (LakeTable.GROUPS, LakeTable.PARTITIONS, LakeTable.TOPICS):
        names = ("time", "cluster", "group", "topic", "partition")
        rows = [tuple(row.get(name) for name in names) for row in lake.rows(table)]
        assert len(rows) == len(set(rows)), f"{table} has some rows twice"
        assert len({row[0] for row in rows}) == intervals, f"{table} lacks some"
    return True


class Broken:
    """Breaks off at the n-th time that a file is moved or removed."""

    def __init__(self, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = at
        for name in ("move", "delete"):
            monkeypatch.setattr(Files, name, self._wrapped(getattr(Files, name)))

    def _wrapped(self, call: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            call(*arguments)

        return run


@pytest.mark.parametrize(
    "at", [4, 10, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 2, 3, 5, 6, 7, 8, 9, 11, 12))]
)
def test_moving_and_merging_may_end_at_any_file(
    at: int, tmp_path: Path, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MERGE_FROM", 2)
    monkeypatch.setattr(lake_worker, "TIDY_EVERY_MS", 0)
    lake = Lake(tmp_path, lake_spark, write_interval=60.0, detail="topic")
    first, second = minutes(lake, 2)
    lake.sample(first)
    assert deliver_next(lake.worker)
    lake.sample(second)
    with monkeypatch.context() as patched:
        Broken(at, patched)
        try:
            deliver_next(lake.worker)
        except KeyboardInterrupt:
            lake.restart()
    while deliver_next(lake.worker):
        pass
    lake.sample(second + MINUTE)
    deliver_next(lake.worker)
    assert is_whole(lake, 3, LakeTable.GROUPS, LakeTable.TOPICS)


def test_files_of_a_day_become_few_and_old_days_go(
    tmp_path: Path, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MERGE_FROM", 3)
    monkeypatch.setattr(lake_worker, "TIDY_EVERY_MS", 0)
    lake = Lake(tmp_path, lake_spark, write_interval=60.0, keep_days=2, detail="group")
    noon = lake.town.now_ms // DAY * DAY + DAY // 2
    names = []
    for at_ms in minutes(lake, 4, noon):
        lake.sample(at_ms)
        assert deliver_next(lake.worker)
        names.append([path.name.partition("-")[0] for path in lake.files(LakeTable.GROUPS)])
    assert names[1:] == [["b"] * 4, ["m", "m"], ["b", "m", "b", "m"]]
    lake.sample(noon + DAY)
    assert deliver_next(lake.worker)
    kinds = {(path.parent.parent.name[-2:], path.name[0]) for path in lake.files(LakeTable.GROUPS)}
    days = [when(noon + number * DAY).date().isoformat()[-2:] for number in range(2)]
    assert kinds == {(days[0], "d"), (days[1], "b")}
    times = [r["time"] for r in lake.rows(LakeTable.GROUPS) if r["group"] == "slow"]
    assert len(times) == len(set(times)) == 5
    lake.sample(noon + 3 * DAY)
    assert deliver_next(lake.worker)
    assert {path.parent.parent.name for path in lake.files(LakeTable.GROUPS)} == {
        f"date={when(noon + number * DAY).date().isoformat()}" for number in (1, 3)
    }


def test_filters_detail_and_clusters_that_are_away(tmp_path: Path, lake_spark: SparkSession) -> None:
    settings: dict[str, Any] = {
        "groups_include": ("h*", "st*", "sl*"),
        "groups_exclude": ("sl?w",),
        "topics_exclude": ("aud*",),
    }
    lake = Lake(tmp_path, lake_spark, write_interval=120.0, **settings)
    first, second = minutes(lake, 2)
    lake.sample(first)
    lake.sample(second, clusters={"one": cluster_state(unknown_since_ms=1), "two": cluster_state()})
    assert deliver_next(lake.worker)
    groups = {(r["time"], r["cluster"], r["group"]) for r in lake.rows(LakeTable.GROUPS)}
    assert groups == {
        (when(first), "one", "healthy"),
        (when(first), "one", "stalled"),
        (when(first), "two", "healthy"),
        (when(second), "two", "healthy"),
    }
    assert {r["topic"] for r in lake.rows(LakeTable.TOPICS)} == {"orders", "unread"}
    assert not {r["topic"] for r in lake.rows(LakeTable.PARTITIONS)} - {"orders"}


def test_a_group_that_is_unknown_has_no_rows(lake: Lake) -> None:
    first, second = minutes(lake, 2)
    lake.sample(first)
    lake.town.hold_back("stalled", since_ms=first - 90_000)
    lake.town.publish()
    sample(lake.worker, second)
    lake.clock_ms = second
    assert deliver_next(lake.worker)
    for table in (LakeTable.GROUPS, LakeTable.PARTITIONS):
        rows = {(row["time"], row["group"]) for row in lake.rows(table) if row["cluster"] == "one"}
        assert rows >= {(when(first), "stalled"), (when(first), "healthy"), (when(second), "healthy")}
        assert (when(second), "stalled") not in rows


def test_a_spool_that_fills_up_is_written_early(tmp_path: Path, lake_spark: SparkSession) -> None:
    lake = Lake(tmp_path, lake_spark, detail="group", write_interval=86_400.0)
    first, second, third = minutes(lake, 3)
    lake.sample(first)
    size = read_size(lake)
    lake.worker.deliveries[0].spool._max_bytes = round(3.5 * size)
    assert not deliver_next(lake.worker)
    lake.sample(second)
    assert deliver_next(lake.worker)
    assert {r["time"] for r in lake.rows(LakeTable.GROUPS)} == {when(first), when(second)}
    status = read_status(lake.town.data, "l")
    assert status is not None
    assert status.dropped == 0
    lake.sample(second)
    assert not deliver_next(lake.worker), "a clock that was set back comes by the same moment again"
    assert read_size(lake) == 0
    lake.sample(third)
    assert read_size(lake) > 0


def read_size(lake: Lake) -> int:
    status = read_status(lake.town.data, "l")
    assert status is not None
    return status.waiting_bytes


def test_what_waits_survives_its_snapshots(lake: Lake) -> None:
    first, second = minutes(lake, 2)
    lake.sample(first)
    manifest = newest_snapshot(lake.town.data).manifest
    lake.sample(second)
    store = lake.town.cycles.store
    store.remove([manifest.sequence])
    for file in manifest.files():
        store.path(file).unlink(missing_ok=True)
    assert deliver_next(lake.worker)
    assert {r["time"] for r in lake.rows(LakeTable.GROUPS)} == {when(first), when(second)}


def test_a_move_that_was_cut_short_between_copy_and_removal_is_finished(
    tmp_path: Path, lake_spark: SparkSession
) -> None:
    files = Files(lake_spark, str(tmp_path))
    for name in ("a", "b/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("the same")
    files.move(f"{tmp_path}/a", f"{tmp_path}/b/a")
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "b/a").read_text() == "the same"


def test_a_lake_that_cannot_be_written_is_tried_again_and_says_why(lake: Lake) -> None:
    at = minutes(lake, 2)
    for at_ms in at:
        lake.sample(at_ms)
    lake.path.write_text("a file where the lake should be")
    with pytest.raises(Exception, match=r"(?i)not a directory|exists|mkdirs|parent path"):
        deliver_next(lake.worker)
    lake.path.unlink()
    assert deliver_next(lake.worker)
    assert is_whole(lake, 2)

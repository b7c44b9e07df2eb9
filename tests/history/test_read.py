"""Reading the lake: all clusters over time, the moments there are, and all groups at some of them."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warren.history.files import (
    CLUSTER_HISTORY,
    HISTORY,
    FileSpan,
    HistoryFile,
    HistoryTable,
    file_name,
    history_files,
    history_folder,
)
from warren.history.read import cluster_history, groups_at, moments_since
from warren.history.write import HistoryWriter

MINUTE = 60_000
START = 1_794_700_800_000
"""Midnight."""
BUCKETS = 2
Merge = Callable[[Path, int], None]


def write(root: Path, minutes: Iterable[int], tables: Iterable[HistoryTable] = HistoryTable) -> None:
    """Points of clusters one and two, and of the groups a and b of each, whose lag is the minute."""
    for table in tables:
        history_folder(root, table).mkdir(parents=True, exist_ok=True)
    for minute in minutes:
        at_ms = START + minute * MINUTE
        row = {"time_ms": at_ms, "totallag": minute, "worst_status": 1}
        groups = {**row, "status": 1, "since_ms": at_ms, "maxlag": minute}
        counts = {"is_known": True, "groups_ok": 2, "groups_warn": 0, "groups_err": 0}
        for bucket, group in enumerate("ab") if HistoryTable.GROUPS in tables else ():
            rows = pa.Table.from_pylist([{**groups, "cluster": c, "group": group} for c in ("one", "two")], HISTORY)
            name = file_name(FileSpan.MOMENT, bucket, BUCKETS, at_ms, at_ms)
            pq.write_table(rows, history_folder(root, HistoryTable.GROUPS) / name)
        if HistoryTable.CLUSTERS in tables:
            rows = pa.Table.from_pylist([{**row, **counts, "cluster": c} for c in ("one", "two")], CLUSTER_HISTORY)
            name = file_name(FileSpan.MOMENT, 0, 1, at_ms, at_ms)
            pq.write_table(rows, history_folder(root, HistoryTable.CLUSTERS) / name)


def merge(root: Path, minute: int) -> None:
    """Longer files for what is over at a minute."""
    HistoryWriter(root, 30, 10.0).tidy(START + minute * MINUTE)


def half_merge(root: Path, minute: int) -> None:
    """The same, with a crash before what was merged is removed."""
    sources = {file.path: file.path.read_bytes() for table in HistoryTable for file in history_files(root, table)}
    merge(root, minute)
    for path, data in sources.items():
        path.write_bytes(data)


MERGES: list[Merge] = [lambda _root, _minute: None, merge, half_merge]
merges = pytest.mark.parametrize("merged", MERGES, ids=["moments", "merged", "both"])


def minutes_of(root: Path, since: int) -> list[int]:
    return [(at_ms - START) // MINUTE for at_ms in moments_since(root, START + since * MINUTE).tolist()]


def times(*minutes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return START + np.array(minutes, np.int64) * MINUTE


def test_a_lake_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert cluster_history(tmp_path, None, 0).schema == CLUSTER_HISTORY
    assert cluster_history(tmp_path, None, 0).num_rows == 0
    assert moments_since(tmp_path, 0).tolist() == []
    assert groups_at(tmp_path, times(0)).schema == groups_at(tmp_path, times()).schema == HISTORY


@merges
def test_all_clusters_one_after_the_other_each_moment_once(tmp_path: Path, merged: Merge) -> None:
    write(tmp_path, [0, 3, 9, 11])
    merged(tmp_path, 11)
    rows = cluster_history(tmp_path, None, START + 3 * MINUTE).to_pylist()
    found = [(row["cluster"], (row["time_ms"] - START) // MINUTE, row["totallag"]) for row in rows]
    assert found == [(cluster, minute, minute) for cluster in ("one", "two") for minute in (3, 9, 11)]
    assert cluster_history(tmp_path, None, START + 12 * MINUTE).num_rows == 0


@merges
def test_moments_since_one_that_is_included(tmp_path: Path, merged: Merge) -> None:
    write(tmp_path, [0, 3, 9, 11])
    merged(tmp_path, 11)
    assert minutes_of(tmp_path, 0) == [0, 3, 9, 11]
    assert minutes_of(tmp_path, 3) == [3, 9, 11]
    assert minutes_of(tmp_path, 4) == [9, 11]
    assert minutes_of(tmp_path, 12) == []


def test_a_moment_without_its_clusters_is_still_being_written(tmp_path: Path) -> None:
    write(tmp_path, [0])
    write(tmp_path, [1], [HistoryTable.GROUPS])
    assert minutes_of(tmp_path, 0) == [0]
    write(tmp_path, [1], [HistoryTable.CLUSTERS])
    assert minutes_of(tmp_path, 0) == [0, 1]


@merges
def test_all_groups_at_some_moments(tmp_path: Path, merged: Merge) -> None:
    write(tmp_path, [0, 3, 9, 11, 12])
    merged(tmp_path, 11)
    table = groups_at(tmp_path, times(3, 11))
    assert table.schema == HISTORY
    found = [(row["cluster"], row["group"], row["totallag"]) for row in table.to_pylist()]
    assert set(found) == {
        (cluster, group, minute) for cluster in ("one", "two") for group in "ab" for minute in (3, 11)
    }
    # What was merged but not removed is there twice: whoever asks puts each row in its place.
    assert len(found) == (12 if merged is half_merge else 8)
    assert groups_at(tmp_path, times(4)).num_rows == groups_at(tmp_path, times()).num_rows == 0


def test_files_of_other_times_are_not_opened(tmp_path: Path) -> None:
    write(tmp_path, [0, 3, 9])
    for file in history_files(tmp_path, HistoryTable.GROUPS):
        if file.from_ms != START + 3 * MINUTE:
            file.path.write_bytes(b"broken")
    assert groups_at(tmp_path, times(3)).num_rows == 4
    with pytest.raises(pa.ArrowException):
        groups_at(tmp_path, times(0, 3))


def test_files_that_are_merged_while_they_are_read_are_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [0, 3])
    listed = {table: iter([history_files(tmp_path, table)]) for table in HistoryTable}
    merge(tmp_path, 60)

    def look(data_dir: Path, table: HistoryTable) -> list[HistoryFile]:
        return next(listed[table], None) or history_files(data_dir, table)

    monkeypatch.setattr("warren.history.read.history_files", look)
    assert minutes_of(tmp_path, 0) == [0, 3]
    assert groups_at(tmp_path, times(0, 3)).num_rows == 8

"""Where the history is: in `history`, also if an older Warren has left it in `lake`."""

from pathlib import Path

import pytest

from warren.history.files import FileSpan, HistoryTable, file_name, history_files, history_folder, rename_former_folder


def add_file(folder: Path, table: HistoryTable, at_ms: int, content: str = "") -> None:
    (folder / table).mkdir(parents=True, exist_ok=True)
    (folder / table / file_name(FileSpan.MOMENT, 0, 1, at_ms, at_ms)).write_text(content)


def times(data_dir: Path, table: HistoryTable) -> list[int]:
    return [file.from_ms for file in history_files(data_dir, table)]


def test_the_folder_of_an_older_warren_is_renamed_once(tmp_path: Path) -> None:
    for table in HistoryTable:
        add_file(tmp_path / "lake", table, 1)
        add_file(tmp_path / "lake", table, 2)
    (tmp_path / "lake" / "groups" / "half.parquet.draft").write_text("")
    for _ in range(2):
        rename_former_folder(tmp_path)
        assert [times(tmp_path, table) for table in HistoryTable] == [[1, 2], [1, 2]]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["history"]


@pytest.mark.parametrize("name", ["history", "data"])
def test_nothing_happens_where_there_is_nothing_to_rename(tmp_path: Path, name: str) -> None:
    rename_former_folder(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_both_folders_become_one_after_an_older_warren_has_run_again(tmp_path: Path) -> None:
    add_file(tmp_path / "history", HistoryTable.GROUPS, 1, "new")
    add_file(tmp_path / "history", HistoryTable.GROUPS, 2, "new")
    add_file(tmp_path / "lake", HistoryTable.GROUPS, 3, "old")
    add_file(tmp_path / "lake", HistoryTable.CLUSTERS, 3, "old")
    rename_former_folder(tmp_path)
    assert times(tmp_path, HistoryTable.GROUPS) == [1, 2, 3]
    assert times(tmp_path, HistoryTable.CLUSTERS) == [3]


def test_a_lake_that_somebody_else_writes_there_stays(tmp_path: Path) -> None:
    add_file(tmp_path / "lake", HistoryTable.GROUPS, 1)
    foreign = [
        tmp_path / "lake" / "groups" / "date=2026-01-01" / "part-0.parquet",
        tmp_path / "lake" / "partitions" / "part-0.parquet",
    ]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    rename_former_folder(tmp_path)
    assert times(tmp_path, HistoryTable.GROUPS) == [1]
    assert all(path.exists() for path in foreign)
    assert [path.name for path in history_folder(tmp_path, HistoryTable.GROUPS).iterdir()] == [
        file_name(FileSpan.MOMENT, 0, 1, 1, 1)
    ]

"""The files of the history: their tables, their folder and their names."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warren.domain.arrays import Bools
from warren.durable import replace_file, sync

HISTORY = pa.schema(
    [
        ("time_ms", pa.int64()),
        ("cluster", pa.string()),
        ("group", pa.string()),
        ("status", pa.int8()),
        ("worst_status", pa.int8()),
        ("since_ms", pa.int64()),
        ("totallag", pa.int64()),
        ("maxlag", pa.int64()),
        ("is_known", pa.bool_()),
        ("seconds_behind", pa.float32()),
    ]
)
"""One row per group and time, sorted by cluster, group, time; `since_ms` is when its status began.

`is_known` and `seconds_behind` are null in files from before these columns existed; an unknown `seconds_behind` is null
too.
"""

CLUSTER_HISTORY = pa.schema(
    [
        ("time_ms", pa.int64()),
        ("cluster", pa.string()),
        ("worst_status", pa.int8()),
        ("is_known", pa.bool_()),
        ("totallag", pa.int64()),
        ("groups_ok", pa.int64()),
        ("groups_warn", pa.int64()),
        ("groups_err", pa.int64()),
    ]
)
"""One row per cluster and time, sorted by cluster, time."""


class HistoryTable(StrEnum):
    """What there is a history of; each table has a folder of its own."""

    GROUPS = "groups"
    CLUSTERS = "clusters"

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return HISTORY if self is HistoryTable.GROUPS else CLUSTER_HISTORY


class FileSpan(StrEnum):
    """How much time a file covers: one point in time, ten minutes, an hour or a day."""

    MOMENT = "moment"
    PART = "part"
    HOUR = "hour"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """One file of the history: the rows of one bucket from one time to another, both included."""

    path: Path
    span: FileSpan
    bucket: int
    buckets: int
    from_ms: int
    to_ms: int


_FILE_NAME = re.compile(rf"({'|'.join(FileSpan)})-(\d+)-of-(\d+)-(\d+)-(\d+)\.parquet")


def history_folder(data_dir: Path, table: HistoryTable) -> Path:
    """The folder of a table."""
    return data_dir / "history" / table


def file_name(span: FileSpan, bucket: int, buckets: int, from_ms: int, to_ms: int) -> str:
    """The name of a file, which says what it holds."""
    return f"{span}-{bucket:04d}-of-{buckets:04d}-{from_ms:013d}-{to_ms:013d}.parquet"


def history_files(data_dir: Path, table: HistoryTable) -> list[HistoryFile]:
    """All files of a table, oldest first; other files in its folder are left alone."""
    try:
        paths = list(history_folder(data_dir, table).iterdir())
    except FileNotFoundError:
        return []
    files = []
    for path in paths:
        if name := _FILE_NAME.fullmatch(path.name):
            span, bucket, buckets, from_ms, to_ms = name.groups()
            files.append(HistoryFile(path, FileSpan(span), int(bucket), int(buckets), int(from_ms), int(to_ms)))
    return sorted(files, key=lambda file: (file.from_ms, file.path.name))


def write_file(path: Path, rows: pa.Table) -> None:
    """Write a file of the history, whole and durable when this returns."""
    out = pa.BufferOutputStream()
    pq.write_table(rows, out, row_group_size=16_384, compression="zstd")
    replace_file(path, memoryview(out.getvalue()))


def is_change(column: pa.ChunkedArray) -> Bools:
    """Where a column differs from the row above; the first row does."""
    values = column.combine_chunks()
    return np.concatenate([[True], np.asarray(pc.not_equal(values[1:], values[:-1]))]).astype(np.bool_)


def rename_former_folder(data_dir: Path) -> None:
    """Move a history that an older Warren has left in `lake` to where it belongs."""
    former, folder = data_dir / "lake", data_dir / "history"
    former_tables = [former / table for table in HistoryTable]
    if not any(table.is_dir() for table in former_tables):
        return
    paths = [path for table in former_tables if table.is_dir() for path in table.iterdir()]
    is_all_history = all(_FILE_NAME.fullmatch(path.name) or path.suffix == ".draft" for path in paths)
    if is_all_history and set(former.iterdir()) <= set(former_tables) and not folder.exists():
        former.rename(folder)
    else:
        # Something else is in one of them too; a file keeps its name, which says all about it.
        for path in paths:
            if _FILE_NAME.fullmatch(path.name) and path.is_file():
                (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
                path.rename(folder / path.parent.name / path.name)
    sync(data_dir)

"""History as others read it: Parquet files of groups and clusters over time, each named by what it holds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from warren.domain.buckets import bucket_of

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
    ]
)
"""One row a group and moment, sorted by cluster, group, time; `since_ms` says when its status began."""

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
"""One row a cluster and moment, sorted by cluster, time."""


class Table(StrEnum):
    """What there is a history of; each has a folder of its own."""

    GROUPS = "groups"
    CLUSTERS = "clusters"

    @property
    def schema(self) -> pa.Schema:
        """The columns of its files."""
        return HISTORY if self is Table.GROUPS else CLUSTER_HISTORY


class FileSpan(StrEnum):
    """How much time a file covers: one point, ten minutes, an hour or a day."""

    MOMENT = "moment"
    PART = "part"
    HOUR = "hour"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """One file of the history: what belongs to one bucket, from one moment to another, both included."""

    path: Path
    span: FileSpan
    bucket: int
    buckets: int
    from_ms: int
    to_ms: int


_FILE = re.compile(rf"({'|'.join(FileSpan)})-(\d+)-of-(\d+)-(\d+)-(\d+)\.parquet")


def history_folder(data_dir: Path, table: Table) -> Path:
    """Where a history lies."""
    return data_dir / "lake" / table


def file_name(span: FileSpan, bucket: int, buckets: int, from_ms: int, to_ms: int) -> str:
    """The name of a file by what it holds."""
    return f"{span}-{bucket:04d}-of-{buckets:04d}-{from_ms:013d}-{to_ms:013d}.parquet"


def history_files(data_dir: Path, table: Table) -> list[HistoryFile]:
    """All files of a history, oldest first; others in the folder are nobody's business."""
    try:
        paths = list(history_folder(data_dir, table).iterdir())
    except FileNotFoundError:
        return []
    found = []
    for path in paths:
        if named := _FILE.fullmatch(path.name):
            span, bucket, buckets, from_ms, to_ms = named.groups()
            found.append(HistoryFile(path, FileSpan(span), int(bucket), int(buckets), int(from_ms), int(to_ms)))
    return sorted(found, key=lambda file: (file.from_ms, file.path.name))


def group_history(data_dir: Path, cluster: str, group: str, since_ms: int) -> pa.Table:
    """A group's history since a moment, oldest first, each moment once."""
    name = pa.array([group])
    homes: dict[int, int] = {}

    def is_home(file: HistoryFile) -> bool:
        return file.bucket == homes.setdefault(file.buckets, int(bucket_of(cluster, name, file.buckets)[0]))

    wanted = (pc.field("cluster") == cluster) & (pc.field("group") == group)
    return without_doubles(_read(data_dir, Table.GROUPS, is_home, wanted, since_ms))


def cluster_history(data_dir: Path, cluster: str, since_ms: int) -> pa.Table:
    """A cluster's history since a moment, oldest first, each moment once."""
    return without_doubles(_read(data_dir, Table.CLUSTERS, lambda _: True, pc.field("cluster") == cluster, since_ms))


def clusters_history(data_dir: Path, since_ms: int) -> pa.Table:
    """The history of all clusters since a moment, one after the other, each moment once."""
    return without_doubles(_read(data_dir, Table.CLUSTERS, lambda _: True, None, since_ms))


def moments_since(data_dir: Path, since_ms: int) -> NDArray[np.int64]:
    """When points were written since a moment, oldest first; one that is still being written is left out."""
    # The clusters of a moment are written last.
    time_ms = _read(data_dir, Table.CLUSTERS, lambda _: True, None, since_ms)["time_ms"]
    return np.unique(time_ms.to_numpy())


def groups_at(data_dir: Path, times_ms: NDArray[np.int64]) -> pa.Table:
    """All groups at some moments, in any order, some perhaps twice."""
    if times_ms.size == 0:
        return HISTORY.empty_table()
    is_wanted = pc.field("time_ms").isin(pa.array(times_ms))
    is_near = _between(int(times_ms[0]), int(times_ms[-1]))
    return _read(data_dir, Table.GROUPS, is_near, is_wanted, int(times_ms[0]))


def _read(
    data_dir: Path, table: Table, is_meant: Callable[[HistoryFile], bool], wanted: pc.Expression | None, since_ms: int
) -> pa.Table:
    is_late = pc.field("time_ms") >= since_ms
    filters = is_late if wanted is None else wanted & is_late
    read: dict[Path, pa.Table] = {}
    while True:
        files = [f.path for f in history_files(data_dir, table) if f.to_ms >= since_ms and is_meant(f)]
        try:
            for path in files:
                if path not in read:
                    read[path] = pq.read_table(path, schema=table.schema, filters=filters, memory_map=True)
        except FileNotFoundError:
            # It has just become part of a longer one: look again. What was read stays read, so this comes to an end.
            continue
        return pa.concat_tables([table.schema.empty_table(), *read.values()])


def _between(from_ms: int, to_ms: int) -> Callable[[HistoryFile], bool]:
    return lambda file: file.from_ms <= to_ms and file.to_ms >= from_ms


def without_doubles(rows: pa.Table) -> pa.Table:
    """Rows of a group, or of clusters, sorted by time, each moment once.

    A file and the longer one made of it may both be there.
    """
    if rows.num_rows < 2:
        return rows
    rows = rows.sort_by([("cluster", "ascending"), ("time_ms", "ascending")])
    is_new = np.ones(rows.num_rows, dtype=np.bool_)
    is_new[1:] = False
    for key in ("cluster", "time_ms"):
        values = rows[key].combine_chunks()
        is_new[1:] |= np.asarray(pc.not_equal(values[1:], values[:-1]))
    return rows.filter(pa.array(is_new))

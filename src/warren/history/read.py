"""Reads the history: of a group, of clusters, or of all groups at some times."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warren.domain.arrays import Ints
from warren.domain.buckets import bucket_of
from warren.history.files import HISTORY, HistoryFile, HistoryTable, history_files, is_change


def group_history(data_dir: Path, cluster: str, group: str, since_ms: int) -> pa.Table:
    """The history of a group since a given time, oldest first, without duplicates."""
    name = pa.array([group])
    bucket_by_count: dict[int, int] = {}

    def may_hold_group(file: HistoryFile) -> bool:
        return file.bucket == bucket_by_count.setdefault(file.buckets, int(bucket_of(cluster, name, file.buckets)[0]))

    is_group = (pc.field("cluster") == cluster) & (pc.field("group") == group)
    return without_duplicates(_read(data_dir, HistoryTable.GROUPS, since_ms, is_group, may_hold_group))


def cluster_history(data_dir: Path, cluster: str | None, since_ms: int) -> pa.Table:
    """The history of a cluster since a given time, or of all, cluster by cluster, oldest first, without duplicates."""
    is_cluster = None if cluster is None else pc.field("cluster") == cluster
    return without_duplicates(_read(data_dir, HistoryTable.CLUSTERS, since_ms, is_cluster))


def moments_since(data_dir: Path, since_ms: int) -> Ints:
    """The times of all points since a given time, oldest first, without one that is still being written."""
    # The clusters of a point are written last.
    return np.unique(_read(data_dir, HistoryTable.CLUSTERS, since_ms)["time_ms"].to_numpy())


def groups_at(data_dir: Path, times_ms: Ints) -> pa.Table:
    """All groups at some times, in any order, possibly with duplicates."""
    if times_ms.size == 0:
        return HISTORY.empty_table()
    is_wanted = pc.field("time_ms").isin(pa.array(times_ms))
    return _read(data_dir, HistoryTable.GROUPS, int(times_ms[0]), is_wanted, lambda file: file.from_ms <= times_ms[-1])


def _read(
    data_dir: Path,
    table: HistoryTable,
    since_ms: int,
    condition: pc.Expression | None = None,
    may_match: Callable[[HistoryFile], object] = lambda _: True,
) -> pa.Table:
    is_since = pc.field("time_ms") >= since_ms
    filters = is_since if condition is None else condition & is_since
    read: dict[Path, pa.Table] = {}
    while True:
        files = [file.path for file in history_files(data_dir, table) if file.to_ms >= since_ms and may_match(file)]
        try:
            for path in files:
                if path not in read:
                    read[path] = pq.read_table(path, schema=table.schema, filters=filters, memory_map=True)
        except FileNotFoundError:
            # It was just merged into a longer one: list the files again. What was read stays read, so this ends.
            continue
        return pa.concat_tables([table.schema.empty_table(), *read.values()])


def without_duplicates(rows: pa.Table) -> pa.Table:
    """Rows of one group, or of clusters, sorted by time, each time once.

    A file and the longer one that it was merged into may both be there.
    """
    if rows.num_rows < 2:
        return rows
    rows = rows.sort_by([("cluster", "ascending"), ("time_ms", "ascending")])
    return rows.filter(pa.array(is_change(rows["cluster"]) | is_change(rows["time_ms"])))

"""Writes the history: one point of every group and cluster per step, from the newest snapshot, and thins it with age.

It needs no state of its own: the names of the files say what has been written. With age, points are merged into longer
files and become sparser, and the oldest go. A file appears whole or not at all. Files that were merged are removed
after the longer one is there, so a crash in between leaves some points twice; readers drop the duplicates, and the next
run removes them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from warren.domain.status import Status
from warren.history.files import (
    CLUSTER_HISTORY,
    HISTORY,
    FileSpan,
    HistoryFile,
    HistoryTable,
    file_name,
    history_files,
    history_folder,
    is_change,
    write_file,
)
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import is_judged, with_unknown_since
from warren.snapshot.store import Store
from warren.snapshot.time_lag import known_values

MERGED_FROM = {FileSpan.PART: FileSpan.MOMENT, FileSpan.HOUR: FileSpan.PART, FileSpan.DAY: FileSpan.HOUR}
"""Which span each span is merged from, in the order of merging."""
LENGTH_MS = {FileSpan.PART: 600_000, FileSpan.HOUR: 3_600_000, FileSpan.DAY: 86_400_000}
STEP_MS = {FileSpan.PART: 1, FileSpan.HOUR: 60_000, FileSpan.DAY: 600_000}
"""The least time between two points of a span; changes are always kept."""


class HistoryWriter:
    """Writes the history of one data directory."""

    def __init__(self, data_dir: Path, keep_days: int, step_s: float) -> None:
        self._data_dir = data_dir
        self._store = Store(data_dir)
        self.configure(keep_days, step_s)
        # The clusters of a point are written last.
        self._last_ms = max((file.to_ms for file in history_files(data_dir, HistoryTable.CLUSTERS)), default=0)

    def configure(self, keep_days: int, step_s: float) -> None:
        """Write a point per step from now on, and keep it for so many days; with 0 days write nothing."""
        self._keep_days = keep_days
        self._step_ms = round(step_s * 1000)
        if not keep_days:
            return
        data_dir = self._data_dir
        for table in HistoryTable:
            history_folder(data_dir, table).mkdir(parents=True, exist_ok=True)
            for draft in history_folder(data_dir, table).glob("*.draft"):
                draft.unlink(missing_ok=True)

    def follow(self, manifest: Manifest) -> None:
        """Write a point if one is due, and thin what is older."""
        if self._keep_days and self.record(manifest):
            self.tidy(manifest.now_ms)

    def record(self, manifest: Manifest) -> bool:
        """Write a point unless the last one is of the same step; returns whether it did."""
        # Of the same step, not of a later one: a clock that was ahead once must not end the history.
        if manifest.now_ms // self._step_ms == self._last_ms // self._step_ms:
            return False
        buckets = len(manifest.buckets)
        for index, bucket in enumerate(manifest.buckets):
            groups = self._store.read_parquet(bucket.groups)
            if groups.num_rows:
                self._write(HistoryTable.GROUPS, index, buckets, to_points(groups, manifest), manifest.now_ms)
        self._write(HistoryTable.CLUSTERS, 0, 1, to_cluster_points(manifest), manifest.now_ms)
        self._last_ms = manifest.now_ms
        return True

    def tidy(self, now_ms: int) -> None:
        """Thin what is older."""
        thin_history(self._data_dir, self._keep_days, now_ms)

    def _write(self, table: HistoryTable, bucket: int, buckets: int, rows: pa.Table, now_ms: int) -> None:
        name = file_name(FileSpan.MOMENT, bucket, buckets, now_ms, now_ms)
        write_file(history_folder(self._data_dir, table) / name, rows)


def to_points(groups: pa.Table, manifest: Manifest) -> pa.Table:
    """Groups of a snapshot as one point of their history; one that is unknown has its last verdict."""
    time_ms = pa.array(np.full(groups.num_rows, manifest.now_ms, dtype=np.int64))
    is_known = pa.array(is_judged(with_unknown_since(groups, manifest)))
    table = groups.append_column("time_ms", time_ms).append_column("is_known", is_known)
    seconds = pa.array(known_values(table["seconds_behind"].to_numpy()), from_pandas=True)
    table = table.drop_columns("seconds_behind").append_column("seconds_behind", seconds)
    table = table.select(HISTORY.names).cast(HISTORY)
    return table.sort_by([("cluster", "ascending"), ("group", "ascending")])


def to_cluster_points(manifest: Manifest) -> pa.Table:
    """The clusters of a snapshot as one point of their history."""
    rows = [
        {
            "time_ms": manifest.now_ms,
            "cluster": name,
            "worst_status": int(Status[state.worst_status]),
            "is_known": state.is_judged,
            "totallag": state.totallag,
            **{f"groups_{word.lower()}": state.groups_by_status.get(word, 0) for word in ("OK", "WARN", "ERR")},
        }
        for name, state in sorted(manifest.clusters.items())
    ]
    return pa.Table.from_pylist(rows, schema=CLUSTER_HISTORY)


def thin_history(data_dir: Path, keep_days: int, now_ms: int) -> None:
    """Merge the files of every span of time that is over, and remove those that are too old."""
    for table in HistoryTable:
        for span, source in MERGED_FROM.items():
            files = history_files(data_dir, table)
            for (bucket, buckets, start_ms), parts in _complete(files, source, LENGTH_MS[span], now_ms).items():
                name = file_name(span, bucket, buckets, start_ms, start_ms + LENGTH_MS[span] - 1)
                _merge(table, history_folder(data_dir, table) / name, [file.path for file in parts], STEP_MS[span])
        for file in history_files(data_dir, table):
            if file.to_ms < now_ms - keep_days * LENGTH_MS[FileSpan.DAY]:
                file.path.unlink(missing_ok=True)


def thinned(table: pa.Table, step_ms: int) -> pa.Table:
    """Of sorted rows the first one in each step, per group or cluster, and each change of status or of `is_known`."""
    if table.num_rows < 2:
        return table
    step = pa.chunked_array([pa.array(table["time_ms"].to_numpy() // step_ms)])
    names = ("cluster", "group", "worst_status", "is_known")
    columns = [table[name] for name in names if name in table.schema.names]
    return table.filter(pa.array(np.logical_or.reduce([is_change(column) for column in (step, *columns)])))


def _merge(table: HistoryTable, target: Path, sources: Sequence[Path], step_ms: int) -> None:
    # A target that exists was merged before a crash, or before late points of its time.
    paths = [path for path in (*sources, target) if path.exists()]
    # Each is thinned by itself first, so that only what stays needs memory.
    tables = [thinned(pq.read_table(path, schema=table.schema), step_ms) for path in paths]
    order = [(key, "ascending") for key in ("cluster", "group", "time_ms") if key in table.schema.names]
    write_file(target, thinned(pa.concat_tables(tables).sort_by(order), step_ms))
    for path in sources:
        path.unlink(missing_ok=True)


def _complete(
    files: Iterable[HistoryFile], span: FileSpan, length_ms: int, now_ms: int
) -> dict[tuple[int, int, int], list[HistoryFile]]:
    """The files of one span by bucket and by the start of the longer span they belong to, if that is over."""
    complete: dict[tuple[int, int, int], list[HistoryFile]] = {}
    for file in files:
        start_ms = file.from_ms // length_ms * length_ms
        if file.span is span and start_ms + length_ms <= now_ms:
            complete.setdefault((file.bucket, file.buckets, start_ms), []).append(file)
    return complete

"""Writes the history of groups and clusters: a point a trigger, merged and thinned with age, bounded.

It follows the snapshots beside the cycle and needs no state of its own: what has been written is in the names of the
files. A file appears whole or not at all. Files that were merged are removed after the longer one is there, so a crash
in between leaves some moments twice, which readers see through and the next pass tidies.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.durable import replace_file
from warren.history.read import (
    CLUSTER_HISTORY,
    HISTORY,
    FileSpan,
    HistoryFile,
    Table,
    file_name,
    history_files,
    history_folder,
)
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store

MERGED_FROM = {FileSpan.PART: FileSpan.MOMENT, FileSpan.HOUR: FileSpan.PART, FileSpan.DAY: FileSpan.HOUR}
"""What each span is made of, in the order in which they are made."""
LENGTH_MS = {FileSpan.PART: 600_000, FileSpan.HOUR: 3_600_000, FileSpan.DAY: 86_400_000}
STEP_MS = {FileSpan.PART: 1, FileSpan.HOUR: 60_000, FileSpan.DAY: 600_000}
"""How far apart points are in a span that is over; changes of status stay."""


class HistoryWriter:
    """Writes one data directory's history."""

    def __init__(self, data_dir: Path, keep_days: int, step_s: float) -> None:
        self._data_dir = data_dir
        self._store = Store(data_dir)
        self._keep_days = keep_days
        self._step_ms = round(step_s * 1000)
        for table in Table:
            history_folder(data_dir, table).mkdir(parents=True, exist_ok=True)
            for draft in history_folder(data_dir, table).glob("*.draft"):
                draft.unlink(missing_ok=True)
        # The clusters are written last.
        self._last_ms = max((file.to_ms for file in history_files(data_dir, Table.CLUSTERS)), default=0)

    def follow(self, manifest: Manifest) -> None:
        """Write a point if one is due, and tidy up what is over."""
        if self.record(manifest):
            self.tidy(manifest.now_ms)

    def record(self, manifest: Manifest) -> bool:
        """Write a point of everyone if the last one is of another step; says whether it did."""
        # Another one, not a later one: a clock that was ahead once must not end the history.
        if manifest.now_ms // self._step_ms == self._last_ms // self._step_ms:
            return False
        count = len(manifest.buckets)
        for number, bucket in enumerate(manifest.buckets):
            groups = self._store.read_parquet(bucket.groups)
            if groups.num_rows:
                name = file_name(FileSpan.MOMENT, number, count, manifest.now_ms, manifest.now_ms)
                self._write(Table.GROUPS, name, to_points(groups, manifest.now_ms))
        name = file_name(FileSpan.MOMENT, 0, 1, manifest.now_ms, manifest.now_ms)
        self._write(Table.CLUSTERS, name, clusters_of(manifest))
        self._last_ms = manifest.now_ms
        return True

    def tidy(self, now_ms: int) -> None:
        """Merge what belongs to a longer span that is over, and remove what is too old."""
        for table in Table:
            for span, source in MERGED_FROM.items():
                files = history_files(self._data_dir, table)
                for (bucket, buckets, start_ms), own in _over(files, source, LENGTH_MS[span], now_ms).items():
                    name = file_name(span, bucket, buckets, start_ms, start_ms + LENGTH_MS[span] - 1)
                    self._merge(table, name, [file.path for file in own], STEP_MS[span])
            for file in history_files(self._data_dir, table):
                if file.to_ms < now_ms - self._keep_days * LENGTH_MS[FileSpan.DAY]:
                    file.path.unlink(missing_ok=True)

    def _merge(self, table: Table, name: str, sources: Sequence[Path], step_ms: int) -> None:
        # One that is there already was made before a crash, or before late points of its time.
        before = history_folder(self._data_dir, table) / name
        paths = [path for path in (*sources, before) if path.exists()]
        # Thinned one by one before they are together, so that memory is needed for what stays only.
        tables = [thinned(pq.read_table(path, schema=table.schema), step_ms) for path in paths]
        order = [(key, "ascending") for key in ("cluster", "group", "time_ms") if key in table.schema.names]
        self._write(table, name, thinned(pa.concat_tables(tables).sort_by(order), step_ms))
        for path in sources:
            path.unlink(missing_ok=True)

    def _write(self, table: Table, name: str, rows: pa.Table) -> None:
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, row_group_size=16_384, compression="zstd")
        replace_file(history_folder(self._data_dir, table) / name, memoryview(content.getvalue()))


def to_points(groups: pa.Table, now_ms: int) -> pa.Table:
    """A snapshot's groups as a moment of their history."""
    time_ms = pa.array(np.full(groups.num_rows, now_ms, dtype=np.int64))
    table = groups.append_column("time_ms", time_ms).select(HISTORY.names).cast(HISTORY)
    return table.sort_by([("cluster", "ascending"), ("group", "ascending")])


def clusters_of(manifest: Manifest) -> pa.Table:
    """A snapshot's clusters as a moment of their history."""
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


def thinned(table: pa.Table, step_ms: int) -> pa.Table:
    """Sorted rows, of each group or cluster the first in each step and each change of status."""
    if table.num_rows < 2:
        return table
    time_ms = table["time_ms"].to_numpy()
    is_kept = _differs(table["cluster"]) | _differs(table["worst_status"])
    if "group" in table.schema.names:
        is_kept |= _differs(table["group"])
    is_kept[1:] |= time_ms[1:] // step_ms != time_ms[:-1] // step_ms
    return table.filter(pa.array(is_kept))


def _differs(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where a column is not what it was in the row above."""
    values = column.combine_chunks()
    below = np.asarray(pc.not_equal(values[1:], values[:-1]))
    return np.concatenate([[True], below]).astype(np.bool_)


def _over(
    files: Iterable[HistoryFile], span: FileSpan, length_ms: int, now_ms: int
) -> dict[tuple[int, int, int], list[HistoryFile]]:
    """Files of one span by their bucket and the start of the longer one they belong to, if that is over."""
    found: dict[tuple[int, int, int], list[HistoryFile]] = {}
    for file in files:
        start_ms = file.from_ms // length_ms * length_ms
        if file.span is span and start_ms + length_ms <= now_ms:
            found.setdefault((file.bucket, file.buckets, start_ms), []).append(file)
    return found

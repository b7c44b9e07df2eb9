"""Writes the history: one point of every group and cluster per step, from the newest snapshot.

It needs no state of its own: the names of the files say what has been written.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from warren.domain.status import Status
from warren.history.files import (
    CLUSTER_HISTORY,
    HISTORY,
    FileSpan,
    HistoryTable,
    file_name,
    history_files,
    history_folder,
    write_file,
)
from warren.history.thin import thin_history
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store


class HistoryWriter:
    """Writes the history of one data directory."""

    def __init__(self, data_dir: Path, keep_days: int, step_s: float) -> None:
        self._data_dir = data_dir
        self._store = Store(data_dir)
        self._keep_days = keep_days
        self._step_ms = round(step_s * 1000)
        for table in HistoryTable:
            history_folder(data_dir, table).mkdir(parents=True, exist_ok=True)
            for draft in history_folder(data_dir, table).glob("*.draft"):
                draft.unlink(missing_ok=True)
        # The clusters of a point are written last.
        self._last_ms = max((file.to_ms for file in history_files(data_dir, HistoryTable.CLUSTERS)), default=0)

    def follow(self, manifest: Manifest) -> None:
        """Write a point if one is due, and thin what is older."""
        if self.record(manifest):
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
                self._write(HistoryTable.GROUPS, index, buckets, to_points(groups, manifest.now_ms), manifest.now_ms)
        self._write(HistoryTable.CLUSTERS, 0, 1, to_cluster_points(manifest), manifest.now_ms)
        self._last_ms = manifest.now_ms
        return True

    def tidy(self, now_ms: int) -> None:
        """Thin what is older."""
        thin_history(self._data_dir, self._keep_days, now_ms)

    def _write(self, table: HistoryTable, bucket: int, buckets: int, rows: pa.Table, now_ms: int) -> None:
        name = file_name(FileSpan.MOMENT, bucket, buckets, now_ms, now_ms)
        write_file(history_folder(self._data_dir, table) / name, rows)


def to_points(groups: pa.Table, now_ms: int) -> pa.Table:
    """The groups of a snapshot as one point of their history."""
    time_ms = pa.array(np.full(groups.num_rows, now_ms, dtype=np.int64))
    table = groups.append_column("time_ms", time_ms).select(HISTORY.names).cast(HISTORY)
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

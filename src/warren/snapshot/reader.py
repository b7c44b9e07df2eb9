"""Reads snapshots: groups, partitions and heads of one, as tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warren.domain.arrays import Bools, Ints, to_ints
from warren.domain.buckets import bucket_of
from warren.domain.reasons import Facts, explain
from warren.domain.rules import Reason
from warren.domain.windows import UNKNOWN
from warren.snapshot.manifest import File, HeadSample, Manifest
from warren.snapshot.schemas import GROUPS, HEADS, LAYOUT, PARTITIONS, Row
from warren.snapshot.store import Store, with_new_columns


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One immutable snapshot. If one of its files is gone, it was removed as too old: ask the reader again."""

    store: Store
    manifest: Manifest

    @property
    def is_judged(self) -> bool:
        """Whether it holds verdicts; the first manifest of a new data directory only claims it."""
        return bool(self.manifest.buckets)

    def groups(self) -> pa.Table:
        """All groups of all clusters, with the index of their bucket, and since when each is unknown."""
        tables = [GROUPS.empty_table(), *(self.store.read_parquet(bucket.groups) for bucket in self.manifest.buckets)]
        bucket = np.repeat(np.arange(-1, len(tables) - 1, dtype=np.int32), [table.num_rows for table in tables])
        groups = pa.concat_tables(map(_plain, tables)).append_column("bucket", pa.array(bucket))
        return with_unknown_since(groups, self.manifest)

    def partitions(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All partitions of all groups, or only some of their columns, which saves reading the windows.

        Names are dictionary-encoded, with one dictionary per column.
        """
        names = list(columns) if columns else None
        tables = [self.store.read_parquet(bucket.partitions, names) for bucket in self.manifest.buckets]
        if not tables:
            return PARTITIONS.empty_table().select(names or PARTITIONS.names)
        return pa.concat_tables(tables).unify_dictionaries()

    def partitions_of_bucket(self, bucket: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of the partitions of one bucket."""
        return self.store.read_parquet(self.manifest.buckets[bucket].partitions, list(columns))

    def partition_rows(self, groups: pa.Table, column: str) -> Ints:
        """Rows of `partitions`, from a column of groups that counts within the file of their bucket."""
        starts = np.cumsum([0, *(bucket.partition_rows for bucket in self.manifest.buckets)])
        rows: Ints = starts[np.asarray(groups["bucket"])] + np.asarray(groups[column])
        return rows

    def group(self, cluster: str, group: str) -> tuple[Row, pa.Table] | None:
        """One group and its partitions, windows included; None when there is no such group."""
        if not self.manifest.buckets:
            return None
        index = int(bucket_of(cluster, pa.array([group]), len(self.manifest.buckets))[0])
        bucket = self.manifest.buckets[index]
        groups = _plain(self.store.read_parquet(bucket.groups))
        matches = groups.filter(pc.and_(pc.equal(groups["cluster"], cluster), pc.equal(groups["group"], group)))
        if matches.num_rows == 0:
            return None
        row = with_unknown_since(matches, self.manifest).to_pylist()[0]
        first = row["first_row"]
        return row, _plain(self._rows(bucket.partitions, range(first, first + row["partitions"])))

    def _rows(self, file: File, rows: Sequence[int]) -> pa.Table:
        """Some rows of a Parquet file; reads only the row groups that have them, each once."""
        source = pq.ParquetFile(self.store.path(file), memory_map=True)
        sizes = [source.metadata.row_group(i).num_rows for i in range(source.num_row_groups)]
        edges = np.concatenate([[0], np.cumsum(sizes)])
        row = np.asarray(rows, dtype=np.int64)
        row_group = np.searchsorted(edges, row, side="right") - 1
        needed, index = np.unique(row_group, return_inverse=True)
        first = np.concatenate([[0], np.cumsum([sizes[i] for i in needed])])[:-1]
        rows_of_file = source.read_row_groups(needed.tolist()).take(pa.array(first[index] + row - edges[row_group]))
        return with_new_columns(file, rows_of_file)

    def row_groups(self, bucket: int) -> Ints:
        """Where each row group of a bucket's partitions begins, and how many rows there are."""
        metadata = pq.read_metadata(self.store.path(self.manifest.buckets[bucket].partitions), memory_map=True)
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def read_row_group(self, bucket: int, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of one row group of a bucket's partitions."""
        file = self.manifest.buckets[bucket].partitions
        source = pq.ParquetFile(self.store.path(file), memory_map=True, page_checksum_verification=True)
        known = [name for name in columns if name in source.schema_arrow.names]
        return with_new_columns(file, source.read_row_group(number, known, use_threads=False), list(columns))

    def topics(self) -> pa.Table:
        """Every topic of every cluster, with the rows of its partitions in `heads`."""
        if not self.manifest.heads:
            return LAYOUT.empty_table()
        return self.store.read_arrow(self.manifest.heads[-1].layout)

    def heads(self) -> pa.Table:
        """The newest heads and log starts, in the order of `topics`."""
        if not self.manifest.heads:
            return HEADS.empty_table()
        return self.store.read_arrow(self.manifest.heads[-1].heads)

    def heads_of(self, sample: HeadSample, cluster: str, topic: str) -> Ints | None:
        """The heads of a topic in an older sample; None if the topic was not there, or another one was."""
        older = _topic_row(self.store.read_arrow(sample.layout), cluster, topic)
        newest = _topic_row(self.topics(), cluster, topic)
        if older is None or newest is None or older["topic_id"] != newest["topic_id"]:
            return None
        heads = self.store.read_arrow(sample.heads)["head"].slice(older["first_row"], older["partitions"])
        return np.asarray(heads)

    def facts(self, partition: Row) -> Facts:
        """The numbers behind a partition's verdict."""
        current, floor = partition["current_lag"], partition["trend_floor"]
        return Facts(
            offsets=partition["offsets"],
            times_ms=partition["times_ms"],
            lags=[None if lag == UNKNOWN else lag for lag in partition["lags"]],
            current_lag=None if current == UNKNOWN else current,
            now_ms=self.manifest.now_ms,
            intervals=self.manifest.intervals,
            minimum_complete=self.manifest.minimum_complete,
            allowed_lag=self.manifest.allowed_lag,
            trend_floor=None if floor == UNKNOWN else round(floor),
            head_age_ms=self._head_age_ms(partition),
        )

    def _head_age_ms(self, partition: Row) -> int | None:
        """How old the head of a partition is, if its cluster was sampled since without it."""
        state, samples = self.manifest.clusters.get(partition["cluster"]), self.manifest.heads
        if state is None or not state.is_judged or not samples or partition["head_ms"] == UNKNOWN:
            return None
        is_old = partition["head_ms"] < samples[-1].taken_at_ms
        return self.manifest.now_ms - partition["head_ms"] if is_old else None

    def reason(self, partition: Row) -> str:
        """A partition's reason in words."""
        return explain(Reason(partition["reason"]), self.facts(partition))

    def worst(self, groups: Sequence[Row]) -> list[Row]:
        """The most severe partition of each of some groups, windows included: the one whose reason lists show."""
        worst: list[Row] = [{} for _ in groups]
        by_bucket: dict[int, list[int]] = {}
        for index, group in enumerate(groups):
            by_bucket.setdefault(group["bucket"], []).append(index)
        for bucket, indices in by_bucket.items():
            worst_rows = [groups[index]["worst_row"] for index in indices]
            rows = _plain(self._rows(self.manifest.buckets[bucket].partitions, worst_rows)).to_pylist()
            for index, row in zip(indices, rows, strict=True):
                worst[index] = row
        return worst


def newest_snapshot(data_dir: Path) -> Snapshot:
    """The newest snapshot of a data directory; NoSnapshot before the first one."""
    store = Store(data_dir)
    return Snapshot(store, store.newest())


def _topic_row(layout: pa.Table, cluster: str, topic: str) -> Row | None:
    rows = layout.filter(pc.and_(pc.equal(layout["cluster"], cluster), pc.equal(layout["topic"], topic))).to_pylist()
    return rows[0] if rows else None


def with_unknown_since(groups: pa.Table, manifest: Manifest) -> pa.Table:
    """Groups with the time since which each is unknown: that of its cluster if there is one, else its own."""
    since = {name: at for name, state in manifest.clusters.items() if (at := state.unknown_since_ms) is not None}
    if not since:
        return groups
    cluster = pc.index_in(groups["cluster"].cast(pa.string()), pa.array(since, pa.string()))
    of_cluster = pc.take(pa.array(since.values(), pa.int64()), cluster)
    index = groups.schema.get_field_index("unknown_since_ms")
    return groups.set_column(index, "unknown_since_ms", pc.coalesce(of_cluster, groups["unknown_since_ms"]))


def is_judged(groups: pa.Table) -> Bools:
    """Whether the verdict of each group is of this snapshot, not of the time before it became unknown."""
    return np.equal(to_ints(groups["unknown_since_ms"]), UNKNOWN)


def group_keys(cluster: pa.Array | pa.ChunkedArray, group: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A key per group that is unique over all clusters."""
    return pc.binary_join_element_wise(cluster, group, "\0")


def _plain(table: pa.Table) -> pa.Table:
    """The table with its dictionary-encoded names as plain strings, which can be compared and joined."""
    for index, name in enumerate(table.schema.names):
        if pa.types.is_dictionary(table.schema.field(index).type):
            table = table.set_column(index, name, table[name].cast(pa.string()))
    return table

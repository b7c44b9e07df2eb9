"""What a cycle takes of the offsets in ZooKeeper: the position after it, and tables for the buckets; no I/O.

The position of a consumer section is a transaction of the ensemble: all that was written up to it has been taken. What
a reader gives a second time is older than the position, or than the newest slot of its window, and does not count.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from msgspec import structs

from warren.domain.arrays import to_ints
from warren.domain.clock_skew import ClockSkew
from warren.domain.offsets_logs import OffsetsLog, zookeeper_log_id
from warren.pipeline.offset_ranges import available, unavailable
from warren.pipeline.schemas import COMMITS, LISTED_PARTITIONS, OWNERS, REJECTS, TableKind
from warren.snapshot.manifest import Position, ZooKeeperSource
from warren.sources.zookeeper import samples
from warren.sources.zookeeper.samples import Ack, ZooKeeperSample

_NO_POSITION = Position(0, 0, 0)


@dataclass(frozen=True, slots=True)
class SectionRead:
    """What a cycle takes of one consumer section; `known` is its position before, if it is the same log."""

    cluster: str
    section: str
    known: Position | None
    after: ZooKeeperSource
    read_to_ms: int
    is_another_log: bool = False
    commits: pa.Table = field(default_factory=samples.CHANGES.empty_table)
    rejects: pa.Table = field(default_factory=samples.REJECTS.empty_table)
    owners: pa.Table | None = None
    listing: pa.Table | None = None
    ack: Ack | None = None

    @property
    def log(self) -> int:
        """The number of its log."""
        return zookeeper_log_id(self.section)

    def to_log(self, now_ms: int) -> OffsetsLog:
        """The section as the tasks see it."""
        position = self.after.position
        skew = ClockSkew(*((self.known and self.known.skew) or (0, 0)))
        return OffsetsLog(
            id=self.log,
            read_from_ms=self.known.seen_until_ms if self.known else 0,
            read_to_ms=self.read_to_ms,
            seen_until_ms=position.seen_until_ms,
            skew_ms=skew.ms,
            skew_error_ms=skew.error_ms,
            unknown_since_ms=self.after.unknown_since(now_ms),
            away_from_ms=position.away_from_ms,
            away_to_ms=position.away_to_ms,
            is_another_log=self.is_another_log,
        )

    def tables(self, cluster: int) -> dict[TableKind, pa.Table]:
        """What goes to the buckets, for a cluster of that index."""
        tables = {
            TableKind.COMMITS: self._to_table(self.commits, cluster, COMMITS),
            TableKind.REJECTS: self._to_table(_count_rejects(self.rejects), cluster, REJECTS),
        }
        if self.owners is not None:
            tables[TableKind.OWNERS] = self._to_table(self.owners, cluster, OWNERS)
        if self.listing is not None:
            tables[TableKind.LISTED_PARTITIONS] = self._to_table(self.listing, cluster, LISTED_PARTITIONS)
        return tables

    def _to_table(self, table: pa.Table, cluster: int, schema: pa.Schema) -> pa.Table:
        table = table.append_column("cluster", pa.array(np.full(table.num_rows, cluster, dtype=np.int32)))
        table = table.append_column("log", pa.array(np.full(table.num_rows, self.log, dtype=np.int32)))
        return table.select(schema.names).cast(schema)


def plan_section_read(
    cluster: str,
    before: ZooKeeperSource | None,
    sample: ZooKeeperSample,
    cutoff_ms: int,
    offset_ms: int,
    now_ms: int,
    *,
    is_from_start: bool = False,
) -> SectionRead:
    """Take what a reader had observed before the heads were sampled; the rest waits for the next cycle.

    `cutoff_ms` is of the wall clock, `offset_ms` makes steady times such. `is_from_start` takes what was taken already,
    for groups that are wanted only now.
    """
    is_another_log = before is not None and bool(sample.tree_id) and before.tree_id not in ("", sample.tree_id)
    position = before.position if before and not is_another_log else _NO_POSITION
    if sample.error is not None or not sample.is_listed:
        position = unavailable(position, position.seen_until_ms or now_ms)
    else:
        position = available(position, now_ms)
    after = ZooKeeperSource(
        sample.tree_id or (before.tree_id if before else ""),
        position,
        sample.error,
        sample.znodes,
        sample.pending,
        sample.requests,
    )
    known = position if position.seen_until_ms and not is_from_start else None
    read = SectionRead(cluster, sample.section, known, after, cutoff_ms, is_another_log=is_another_log)
    return _with_changes(read, sample, cutoff_ms, offset_ms) if sample.is_listed else read


def _with_changes(read: SectionRead, sample: ZooKeeperSample, cutoff_ms: int, offset_ms: int) -> SectionRead:
    is_left = to_ints(sample.changes["observed_ms"]) + offset_ms > cutoff_ms
    left = sample.changes.filter(pa.array(is_left))
    version = int(to_ints(left["version"]).min()) - 1 if left.num_rows else sample.version
    position, seen_zxid = read.after.position, sample.seen.zxid
    if left.num_rows:
        seen_zxid = min(seen_zxid, int(to_ints(left["zxid"]).min()) - 1)
    taken_zxid = position.next_offset - 1 if read.known else -1
    next_offset = max(seen_zxid + 1, position.next_offset)
    seen_ms = max(min(sample.seen.ms + offset_ms, cutoff_ms), position.seen_until_ms)
    position = structs.replace(
        position, next_offset=next_offset, stable_end=next_offset, end=next_offset, seen_until_ms=seen_ms
    )
    given = [sample.changes] if sample.listing is None else [sample.listing, sample.changes]
    changes, rejects = pa.concat_tables(given), sample.rejects
    is_new = (to_ints(changes["zxid"]) > taken_zxid) | (to_ints(changes["is_tombstone"]) > 0)
    is_new &= to_ints(changes["version"]) <= version
    reject_zxid = to_ints(rejects["zxid"])
    is_counted = (to_ints(rejects["version"]) <= version) & ((reject_zxid < 0) | (reject_zxid > taken_zxid))
    return replace(
        read,
        after=structs.replace(read.after, position=position),
        commits=_to_commits(changes.filter(pa.array(is_new))),
        rejects=rejects.filter(pa.array(is_counted)),
        owners=_with_groups(sample) if sample.owner_groups else None,
        listing=sample.listing,
        ack=Ack(sample.instance, version),
    )


def _to_commits(changes: pa.Table) -> pa.Table:
    columns = {name: changes[name] for name in ("partition", "offset", "time_ms")}
    columns |= {name: changes[name].combine_chunks().dictionary_encode() for name in ("group", "topic")}
    return pa.table({**columns, "order": changes["zxid"], "is_tombstone": changes["is_tombstone"].cast(pa.bool_())})


def _with_groups(sample: ZooKeeperSample) -> pa.Table:
    """Owners, and a row for each group of which they are given, so that one without members loses those it had."""
    groups = pa.table({"group": pa.array(sample.owner_groups, pa.string())})
    return pa.concat_tables([groups, sample.owners], promote_options="default")


def _count_rejects(rejects: pa.Table) -> pa.Table:
    counted = rejects.group_by("reason").aggregate([("sample", "min"), ("sample", "count")])
    return counted.rename_columns({"sample_min": "sample", "sample_count": "count"})

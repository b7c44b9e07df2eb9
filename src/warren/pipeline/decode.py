"""From raw records to decoded commits, a task at a time: decode, keep what the windows can need, address to buckets.

Keys are compared as bytes and decoded once each, however often they occur; rows never become Python objects.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.compaction import keep_needed
from warren.domain.matching import is_wanted
from warren.domain.windows import keep_newest
from warren.kafka.records.commits import RecordKind, decode_commits, decode_group_names, decode_keys
from warren.kafka.records.groups import decode_groups
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import COMMITS, OWNERS, REJECTS, Piece
from warren.pipeline.shuffle import flags, numbers, piece, pieces_of, whole
from warren.spark.worker import prepare_worker

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Batches = Iterable[pa.RecordBatch]

COMPACT_AT = 1_000_000
"""Commits a task gathers before it compacts them again."""

NEW_PROTOCOL_GROUPS = (3, 17)
"""Key versions whose record says that a group lives on under a new protocol: KIP-848 and Streams groups."""

_NUMBERED = pa.schema(
    [
        ("source", pa.int32()),
        ("key", pa.dictionary(pa.int32(), pa.binary())),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("order", pa.int64()),
        ("is_tombstone", pa.bool_()),
    ]
)


def to_pieces(plan: CyclePlan) -> Callable[[Batches], Batches]:
    """The map side of a cycle: raw records in, Arrow tables addressed to buckets out."""

    def run(batches: Batches) -> Batches:
        prepare_worker()
        task = _Task(plan)
        for batch in batches:
            task.take(batch)
        yield from task.pieces()

    return run


@dataclass(slots=True)
class _Column:
    """A batch's keys: the distinct ones, decoded, and each row's place among them."""

    distinct: pa.BinaryArray
    place: Ints
    kind: NDArray[np.int8]
    reject: NDArray[np.int8]


class _Task:
    """What one task gathers from its batches: commits as numbers, group metadata as it came, rejects as counts."""

    def __init__(self, plan: CyclePlan) -> None:
        self._plan = plan
        self._commits: list[pa.Table] = []
        self._rows = 0
        self._metadata: list[pa.Table] = []
        self._rejects: list[pa.Table] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Decode one batch and keep what may be needed."""
        raw = pa.Table.from_batches([batch])
        keys = _decode_keys(raw)
        kind = keys.kind[keys.place]
        is_metadata = (kind == RecordKind.GROUP) | (kind == RecordKind.OTHER)
        bad = np.flatnonzero(kind == RecordKind.REJECT)
        self._reject(raw, bad, keys.reject[keys.place[bad]])
        if is_metadata.any():
            self._metadata.append(raw.filter(pa.array(is_metadata)))
        self._take_commits(raw, keys, np.flatnonzero(kind == RecordKind.COMMIT))

    def _take_commits(self, raw: pa.Table, keys: _Column, rows: Ints) -> None:
        values = decode_commits(whole(raw["value"]).take(pa.array(rows)))
        is_bad = values.reject != Reject.NONE
        self._reject(raw, rows[is_bad], values.reject[is_bad])
        good = rows[~is_bad]
        table = pa.table(
            {
                "source": numbers(raw["source"])[good].astype(np.int32),
                "key": pa.DictionaryArray.from_arrays(pa.array(keys.place[good].astype(np.int32)), keys.distinct),
                "offset": values.offset[~is_bad],
                "time_ms": values.time_ms[~is_bad],
                "order": numbers(raw["offset"])[good],
                "is_tombstone": values.is_tombstone[~is_bad],
            },
            schema=_NUMBERED,
        )
        self._commits.append(self._needed(table))
        self._rows += self._commits[-1].num_rows
        if self._rows > COMPACT_AT:
            self._commits = [self._needed(_joined(self._commits))]
            # What is left now will be left again: count only half of it towards the next time.
            self._rows = self._commits[0].num_rows // 2

    def _needed(self, table: pa.Table) -> pa.Table:
        if table.num_rows == 0:
            return table
        column = whole(table["key"])
        code = numbers(table["source"]) * len(column.dictionary) + numbers(column.indices)
        kept = keep_needed(
            code,
            numbers(table["order"]),
            numbers(table["time_ms"]),
            flags(table["is_tombstone"]),
            self._plan.intervals,
            self._plan.min_distance_ms,
        )
        return table if kept.all() else table.filter(pa.array(kept))

    def _reject(self, raw: pa.Table, rows: Ints, why: NDArray[np.int8]) -> None:
        if rows.size == 0:
            return
        cluster = self._clusters(numbers(raw["source"])[rows])
        columns: dict[str, list[object]] = {name: [] for name in REJECTS.names}
        kinds, first, counts = np.unique(cluster.astype(np.int64) * 1000 + why, return_index=True, return_counts=True)
        for kind, at, count in zip(kinds, rows[first], counts, strict=True):
            record = {name: raw[name][int(at)].as_py() for name in ("partition", "offset", "key", "value")}
            columns["cluster"].append(int(kind) // 1000)
            columns["reason"].append(REJECT_DESCRIPTIONS[Reject(int(kind) % 1000)])
            columns["count"].append(int(count))
            columns["sample"].append(
                f"partition {record['partition']} offset {record['offset']} "
                f"key {(record['key'] or b'')[:64].hex()} value {(record['value'] or b'')[:64].hex()}"
            )
        self._rejects.append(pa.table(columns, schema=REJECTS))

    def _clusters(self, source: Ints) -> NDArray[np.int32]:
        return np.array([s.cluster for s in self._plan.sources], dtype=np.int32)[source]

    def pieces(self) -> Batches:
        """All that was gathered, cut by bucket."""
        commits = [self._named_commits()]
        if self._metadata:
            raw = pa.concat_tables(self._metadata)
            owners, gone = self._owners(raw)
            commits.append(gone)
            yield from pieces_of(owners, Piece.OWNERS, self._plan)
        yield from pieces_of(_joined(commits), Piece.COMMITS, self._plan)
        for rejects in self._rejects:
            yield piece(0, Piece.REJECTS, rejects, self._plan)

    def _named_commits(self) -> pa.Table:
        if not self._commits:
            return COMMITS.empty_table()
        table = self._needed(_joined(self._commits))
        column = whole(table["key"])
        keys = decode_keys(column.dictionary)
        place, source = numbers(column.indices), numbers(table["source"])
        wanted = np.flatnonzero(self._is_wanted(keys.group, place, source))
        place = place[wanted]
        rows = pa.array(wanted)
        return pa.table(
            {
                "cluster": self._clusters(source[wanted]),
                "group": _dictionary(keys.group, place),
                "topic": _dictionary(keys.topic, place),
                "partition": keys.partition[place],
                **{name: table[name].take(rows) for name in ("offset", "time_ms", "order", "is_tombstone")},
            },
            schema=COMMITS,
        )

    def _is_wanted(self, group: pa.StringArray, place: Ints, source: Ints) -> Bools:
        """Whether the row's group is wanted from the row's source."""
        wanted = np.zeros(place.size, dtype=np.bool_)
        for number in np.unique(source):
            rows = source == number
            filters = self._plan.sources[int(number)].filters
            wanted[rows] = is_wanted(group, filters, self._plan.storage_filter)[place[rows]]
        return wanted

    def _owners(self, raw: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Owners from the newest metadata of each group, and the tombstones of groups that are gone."""
        keys = whole(raw["key"]).dictionary_encode()
        place, source, order = numbers(keys.indices), numbers(raw["source"]), numbers(raw["offset"])
        decoded = decode_keys(keys.dictionary)
        names = decode_group_names(keys.dictionary)
        is_wanted = self._is_wanted(names, place, source)
        is_newest = keep_newest(source * len(keys.dictionary) + place, order, 1)

        rows = np.flatnonzero(is_wanted & is_newest & (decoded.kind[place] == RecordKind.GROUP))
        values = decode_groups(whole(raw["value"]).take(pa.array(rows)))
        self._reject(raw, rows[values.reject > 0], values.reject[values.reject > 0])
        group = names.take(pa.array(place[rows]))
        cluster = self._clusters(source[rows])

        # A group that moves to a new protocol leaves a tombstone of its old kind, and its commits stay good.
        is_new_protocol = np.isin(decoded.version[place], NEW_PROTOCOL_GROUPS) & ~np.asarray(raw["value"].is_null())
        named = names.dictionary_encode(null_encoding="encode")
        of_group = source * len(named.dictionary) + numbers(named.indices)[place]
        lived_at = np.full(int(of_group.max(initial=0)) + 1, -1, dtype=np.int64)
        np.maximum.at(lived_at, of_group[is_new_protocol], order[is_new_protocol])
        is_gone = values.is_tombstone & (lived_at[of_group[rows]] < order[rows])
        count = int(is_gone.sum())
        gone = pa.table(
            {
                "cluster": cluster[is_gone],
                "group": group.filter(pa.array(is_gone)).dictionary_encode(),
                "topic": pa.nulls(count, pa.string()).dictionary_encode(),
                "partition": np.full(count, -1, dtype=np.int32),
                "offset": np.zeros(count, dtype=np.int64),
                "time_ms": np.zeros(count, dtype=np.int64),
                "order": order[rows[is_gone]],
                "is_tombstone": np.ones(count, dtype=np.bool_),
            },
            schema=COMMITS,
        )
        is_read = (values.reject == Reject.NONE) | (values.reject == Reject.BAD_MEMBER)
        changed = np.flatnonzero((~values.is_tombstone & is_read) | is_gone)
        record = numbers(values.members["record"])
        return _owner_rows(cluster, group, changed, values.members, record), gone


def _owner_rows(
    cluster: NDArray[np.int32], group: pa.StringArray, changed: Ints, members: pa.Table, record: Ints
) -> pa.Table:
    """A mark for each group whose owners changed, and a row for each partition they own."""
    marks = pa.table(
        {
            "cluster": cluster[changed],
            "group": group.take(pa.array(changed)),
            "topic": pa.nulls(changed.size, pa.string()),
            "partition": np.full(changed.size, -1, dtype=np.int32),
            "owner": pa.nulls(changed.size, pa.string()),
            "client_id": pa.nulls(changed.size, pa.string()),
        },
        schema=OWNERS,
    )
    is_current = np.isin(record, changed)
    at = record[is_current]
    owned = members.filter(pa.array(is_current))
    assigned = pa.table(
        {
            "cluster": cluster[at],
            "group": group.take(pa.array(at)),
            **{name: owned[name] for name in ("topic", "partition", "owner", "client_id")},
        },
        schema=OWNERS,
    )
    return pa.concat_tables([marks, assigned])


def _decode_keys(raw: pa.Table) -> _Column:
    encoded = whole(raw["key"]).dictionary_encode(null_encoding="encode")
    keys = decode_keys(encoded.dictionary)
    return _Column(encoded.dictionary, numbers(encoded.indices), keys.kind, keys.reject)


def keep_wanted(table: pa.Table, plan: CyclePlan) -> pa.Table:
    """The rows whose group is wanted by the storage section and by any consumer section of its cluster."""
    groups = whole(table["group"]).dictionary_encode()
    place, cluster = numbers(groups.indices), numbers(table["cluster"])
    wanted = np.zeros(table.num_rows, dtype=np.bool_)
    for source in plan.sources:
        rows = cluster == source.cluster
        wanted[rows] |= is_wanted(groups.dictionary, source.filters, plan.storage_filter)[place[rows]]
    return table.filter(pa.array(wanted))


def _dictionary(distinct: pa.StringArray, at: Ints) -> pa.DictionaryArray:
    encoded = distinct.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(at)).cast(pa.int32()), encoded.dictionary)


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

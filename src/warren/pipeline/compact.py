"""From raw records to decoded commits, a task at a time: keep each key's newest records, then decode what is left.

Keys are compared as bytes and decoded once each, however often they occur; rows never become Python objects.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.buckets import bucket_of
from warren.domain.filters import accepts
from warren.domain.group_records import decode_groups
from warren.domain.records import Keys, Kind, decode_commits, decode_keys
from warren.domain.rejects import REJECT_WORDS, Reject
from warren.domain.windows import keep_newest
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import COMMITS, OWNERS, REJECTS, Piece

Ints = NDArray[np.int64]
Batches = Iterator[pa.RecordBatch]

COMPACT_AT = 1_000_000
"""Rows a task gathers before it compacts them again."""

_PIECES = pa.schema([("slot", pa.int32()), ("bucket", pa.int32()), ("what", pa.int32()), ("piece", pa.binary())])


def to_pieces(plan: CyclePlan) -> Callable[[Batches], Batches]:
    """The map side of a cycle: raw records in, Arrow tables addressed to buckets out."""

    def run(batches: Batches) -> Batches:
        raw = _keep_newest_records(batches, plan)
        if raw.num_rows:
            yield from _pieces(_decode(raw, plan), plan)

    return run


def _keep_newest_records(batches: Batches, plan: CyclePlan) -> pa.Table:
    """All that later steps can need: with merging every commit, else the newest `intervals` records of each key."""
    kept: list[pa.Table] = []
    rows = 0
    for batch in batches:
        kept.append(_compacted(pa.Table.from_batches([batch]), plan))
        rows += kept[-1].num_rows
        if rows > COMPACT_AT:
            kept = [_compacted(pa.concat_tables(kept), plan)]
            rows = kept[0].num_rows // 2
    return _compacted(pa.concat_tables(kept), plan) if len(kept) > 1 else (kept or [_EMPTY])[0]


_EMPTY = pa.table(
    {
        "source": pa.array([], pa.int32()),
        "partition": pa.array([], pa.int32()),
        "offset": pa.array([], pa.int64()),
        "key": pa.array([], pa.binary()),
        "value": pa.array([], pa.binary()),
    }
)


def _compacted(raw: pa.Table, plan: CyclePlan) -> pa.Table:
    if plan.min_distance_ms > 0 or raw.num_rows == 0:
        # Which commits merge depends on the window before them, so none may be left out here.
        return raw
    code = _key_codes(raw)[0]
    return raw.filter(pa.array(keep_newest(code, _numbers(raw["offset"]), plan.intervals)))


def _key_codes(raw: pa.Table) -> tuple[Ints, pa.Array, Ints]:
    """A number for each row's (source, key), the distinct keys, and each row's place among them."""
    encoded = raw["key"].combine_chunks().dictionary_encode(null_encoding="encode")
    place = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return _numbers(raw["source"]).astype(np.int64) * max(len(encoded.dictionary), 1) + place, encoded.dictionary, place


@dataclass(slots=True)
class _Decoded:
    commits: pa.Table
    owners: pa.Table
    rejects: pa.Table


def _decode(raw: pa.Table, plan: CyclePlan) -> _Decoded:
    """Decode each distinct key once, drop what is not wanted, then read the values of what is left."""
    _, distinct, place = _key_codes(raw)
    keys = decode_keys(distinct)
    source = _numbers(raw["source"])
    kind = keys.kind[place]
    cluster = np.array([s.cluster for s in plan.sources], dtype=np.int32)[source]

    is_wanted = _is_wanted(keys.group, place, source, plan)
    commit_rows = np.flatnonzero((kind == Kind.COMMIT) & is_wanted)
    group_rows = np.flatnonzero((kind == Kind.GROUP) & is_wanted)
    bad_rows = np.flatnonzero(kind == Kind.REJECT)

    commits, commit_reject = _commits(raw, commit_rows, cluster, keys, place)
    owners, gone_groups, group_reject = _owners(raw, group_rows, cluster, keys, place)
    rejects = [
        (bad_rows, keys.reject[place[bad_rows]]),
        (commit_rows[commit_reject > 0], commit_reject[commit_reject > 0]),
        (group_rows[group_reject > 0], group_reject[group_reject > 0]),
    ]
    return _Decoded(pa.concat_tables([commits, gone_groups]).unify_dictionaries(), owners, _rejects(raw, rejects, cluster))


def _is_wanted(group: pa.StringArray, place: Ints, source: Ints, plan: CyclePlan) -> NDArray[np.bool_]:
    """Whether the storage section and any consumer section of the source accept the row's group."""
    storage = plan.storage_filter
    stored = accepts(group, storage.allowlist, storage.denylist)
    wanted = np.zeros(place.size, dtype=np.bool_)
    for number in np.unique(source):
        accepted = np.zeros(len(group), dtype=np.bool_)
        for wish in plan.sources[int(number)].filters:
            accepted |= accepts(group, wish.allowlist, wish.denylist)
        rows = source == number
        wanted[rows] = (accepted & stored)[place[rows]]
    return wanted


def _commits(
    raw: pa.Table, rows: Ints, cluster: NDArray[np.int32], keys: Keys, place: Ints
) -> tuple[pa.Table, NDArray[np.int8]]:
    values = decode_commits(raw["value"].take(pa.array(rows)).combine_chunks())
    good = values.reject == Reject.NONE
    at = place[rows[good]]
    table = pa.table(
        {
            "cluster": cluster[rows[good]],
            "group": _dictionary(keys.group, at),
            "topic": _dictionary(keys.topic, at),
            "partition": keys.partition[at],
            "offset": values.offset[good],
            "time_ms": values.time_ms[good],
            "order": _numbers(raw["offset"])[rows[good]],
            "is_tombstone": values.is_tombstone[good],
        },
        schema=COMMITS,
    )
    return table, values.reject


def _owners(
    raw: pa.Table, rows: Ints, cluster: NDArray[np.int32], keys: Keys, place: Ints
) -> tuple[pa.Table, pa.Table, NDArray[np.int8]]:
    """Owners from the newest metadata of each group, and the tombstones of groups that are gone."""
    order = _numbers(raw["offset"])[rows]
    newest = keep_newest(_numbers(raw["source"])[rows].astype(np.int64) * (place.max(initial=0) + 1) + place[rows], order, 1)
    values = decode_groups(raw["value"].take(pa.array(rows)).combine_chunks())
    reject = values.reject
    groups = keys.group.take(pa.array(place[rows]))

    is_gone = values.is_tombstone
    gone = pa.table(
        {
            "cluster": cluster[rows[is_gone]],
            "group": groups.filter(pa.array(is_gone)).dictionary_encode(),
            "topic": pa.nulls(int(is_gone.sum()), pa.string()).dictionary_encode(),
            "partition": np.full(int(is_gone.sum()), -1, dtype=np.int32),
            "offset": np.zeros(int(is_gone.sum()), dtype=np.int64),
            "time_ms": np.zeros(int(is_gone.sum()), dtype=np.int64),
            "order": order[is_gone],
            "is_tombstone": np.ones(int(is_gone.sum()), dtype=np.bool_),
        },
        schema=COMMITS,
    )
    changed = np.flatnonzero(newest & ~is_gone & (reject == Reject.NONE))
    marks = pa.table(
        {
            "cluster": cluster[rows[changed]],
            "group": groups.take(pa.array(changed)),
            "topic": pa.nulls(changed.size, pa.string()),
            "partition": np.full(changed.size, -1, dtype=np.int32),
            "owner": pa.nulls(changed.size, pa.string()),
            "client_id": pa.nulls(changed.size, pa.string()),
        },
        schema=OWNERS,
    )
    record = _numbers(values.members["record"])
    current = np.isin(record, changed)
    members = values.members.filter(pa.array(current))
    at = record[current]
    assigned = pa.table(
        {
            "cluster": cluster[rows[at]],
            "group": groups.take(pa.array(at)),
            "topic": members["topic"],
            "partition": members["partition"],
            "owner": members["owner"],
            "client_id": members["client_id"],
        },
        schema=OWNERS,
    )
    return pa.concat_tables([marks, assigned]), gone, reject


def _rejects(
    raw: pa.Table, found: list[tuple[Ints, NDArray[np.int8]]], cluster: NDArray[np.int32]
) -> pa.Table:
    rows = np.concatenate([r for r, _ in found]).astype(np.int64)
    reason = np.concatenate([w for _, w in found]).astype(np.int64)
    columns: dict[str, list[object]] = {name: [] for name in REJECTS.names}
    kinds, first, counts = np.unique(cluster[rows] * 1000 + reason, return_index=True, return_counts=True)
    for kind, at, count in zip(kinds, rows[first], counts, strict=True):
        record = {name: raw[name][int(at)].as_py() for name in ("partition", "offset", "key", "value")}
        columns["cluster"].append(int(kind) // 1000)
        columns["reason"].append(REJECT_WORDS[Reject(int(kind) % 1000)])
        columns["count"].append(int(count))
        columns["sample"].append(
            f"partition {record['partition']} offset {record['offset']} "
            f"key {(record['key'] or b'')[:64].hex()} value {(record['value'] or b'')[:64].hex()}"
        )
    return pa.table(columns, schema=REJECTS)


def _pieces(decoded: _Decoded, plan: CyclePlan) -> Batches:
    for what, table in ((Piece.COMMITS, decoded.commits), (Piece.OWNERS, decoded.owners)):
        yield from pieces_of(table, what, plan)
    if decoded.rejects.num_rows:
        yield _piece(0, Piece.REJECTS, decoded.rejects, plan)


def pieces_of(table: pa.Table, what: Piece, plan: CyclePlan) -> Batches:
    """A table cut by bucket, each part on its way as one piece."""
    for bucket, part in _by_bucket(table, plan):
        yield _piece(bucket, what, part, plan)


def _by_bucket(table: pa.Table, plan: CyclePlan) -> Iterator[tuple[int, pa.Table]]:
    if table.num_rows == 0:
        return
    encoded = table["group"].combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    code = _numbers(encoded.indices)
    cluster = _numbers(table["cluster"])
    bucket = np.zeros(table.num_rows, dtype=np.int64)
    for number in np.unique(cluster):
        rows = cluster == number
        bucket[rows] = bucket_of(plan.clusters[int(number)].name, encoded.dictionary, plan.buckets)[code[rows]]
    order = np.argsort(bucket.astype(np.int16), kind="stable")
    sorted_table = table.take(pa.array(order))
    edges = np.searchsorted(bucket[order], np.arange(plan.buckets + 1))
    for number in range(plan.buckets):
        if edges[number] < edges[number + 1]:
            part = sorted_table.slice(edges[number], edges[number + 1] - edges[number])
            yield number, _with_own_dictionaries(part)


def _with_own_dictionaries(part: pa.Table) -> pa.Table:
    """A part that carries only the names it uses."""
    for at, column in enumerate(part.columns):
        if pa.types.is_dictionary(column.type):
            whole = column.combine_chunks()
            code = whole.indices.to_numpy(zero_copy_only=False)
            used, codes = np.unique(code[~np.isnan(code)].astype(np.int64) if code.dtype.kind == "f" else code, return_inverse=True)
            indices = np.zeros(len(whole), dtype=np.int32)
            valid = np.asarray(whole.is_valid())
            indices[valid] = codes
            index_array = pa.array(indices, mask=~valid)
            own = pa.DictionaryArray.from_arrays(index_array, whole.dictionary.take(pa.array(used, pa.int64())))
            part = part.set_column(at, part.schema.field(at), own)
    return part


def _piece(bucket: int, what: Piece, table: pa.Table, plan: CyclePlan) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return pa.RecordBatch.from_arrays(
        [
            pa.array([plan.slots[bucket]], pa.int32()),
            pa.array([bucket], pa.int32()),
            pa.array([int(what)], pa.int32()),
            pa.array([sink.getvalue().to_pybytes()], pa.binary()),
        ],
        schema=_PIECES,
    )


def _dictionary(distinct: pa.StringArray, at: Ints) -> pa.DictionaryArray:
    encoded = distinct.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.take(pa.array(at)).cast(pa.int32()), encoded.dictionary
    )


def _numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pc.fill_null(whole, -1).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

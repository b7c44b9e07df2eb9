"""Map steps that decode the raw records of a task and compact its commits.

Keys are compared as bytes and decoded once each, however often they occur; rows never become Python objects.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Codes, Ints, SmallInts, to_array, to_bools, to_codes, to_ints
from warren.domain.compaction import keep_needed
from warren.domain.windows import keep_newest
from warren.kafka.records.commits import RecordKind, decode_commits, decode_keys
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import REJECTS

COMPACT_AT = 1_000_000
"""How many commits a task gathers before it compacts them again."""
COMPACT_METADATA_AT = 2**26
"""How many bytes of group metadata a task gathers before it compacts them again."""

KEYED_COMMITS = pa.schema(
    [
        ("source", pa.int32()),
        ("key", pa.dictionary(pa.int32(), pa.binary())),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("order", pa.int64()),
        ("log", pa.int32()),
        ("is_tombstone", pa.bool_()),
    ]
)
"""Commits with their raw keys; `source` is an index into the plan's sources."""


@dataclass(frozen=True, slots=True)
class DecodedRecords:
    """Commits with raw keys, raw records of group metadata, and rejects."""

    commits: pa.Table
    metadata: tuple[pa.Table, ...] = ()
    rejects: tuple[pa.Table, ...] = ()


def decode_records(batch: pa.RecordBatch, plan: CyclePlan) -> DecodedRecords:
    """Tell the kinds of records apart, and decode the values of commits."""
    raw = pa.Table.from_batches([batch])
    keys = to_array(raw["key"]).dictionary_encode(null_encoding="encode")
    decoded, index = decode_keys(keys.dictionary), to_ints(keys.indices)
    kind = decoded.kind[index]
    is_metadata = (kind == RecordKind.GROUP) | (kind == RecordKind.OTHER)
    bad = np.flatnonzero(kind == RecordKind.REJECT)

    rows = np.flatnonzero(kind == RecordKind.COMMIT)
    values = decode_commits(to_array(raw["value"]).take(pa.array(rows)))
    is_good = values.reject == Reject.NONE
    good = rows[is_good]
    # No commit has a null key, and dictionaries with nulls cannot be unified.
    distinct_keys = keys.dictionary.fill_null(b"")
    commits = pa.table(
        {
            "source": to_ints(raw["source"])[good].astype(np.int32),
            "key": pa.DictionaryArray.from_arrays(pa.array(index[good].astype(np.int32)), distinct_keys),
            "offset": values.offset[is_good],
            "time_ms": values.time_ms[is_good],
            "order": to_ints(raw["offset"])[good],
            "log": record_logs(raw, plan)[good],
            "is_tombstone": values.is_tombstone[is_good],
        },
        schema=KEYED_COMMITS,
    )
    rejects = (
        *count_rejects(raw, bad, decoded.reject[index[bad]], plan),
        *count_rejects(raw, rows[~is_good], values.reject[~is_good], plan),
    )
    return DecodedRecords(commits, (raw.filter(pa.array(is_metadata)),) if is_metadata.any() else (), rejects)


def compact_records(batches: Iterable[DecodedRecords], plan: CyclePlan) -> DecodedRecords:
    """The records of all batches of a task: commits that a window can still need, and the newest metadata."""
    gathered: list[pa.Table] = []
    metadata: list[pa.Table] = []
    rejects: list[pa.Table] = []
    rows, metadata_bytes = 0, 0
    for batch in batches:
        gathered.append(_keep_needed(batch.commits, plan))
        metadata += batch.metadata
        metadata_bytes += sum(table.nbytes for table in batch.metadata)
        rejects += batch.rejects
        rows += gathered[-1].num_rows
        if rows > COMPACT_AT:
            gathered = [_keep_needed(concat(gathered), plan)]
            # What is left now will be left again: count only half of it towards the next time.
            rows = gathered[0].num_rows // 2
        if metadata_bytes > COMPACT_METADATA_AT:
            metadata = [_keep_newest(metadata)]
            metadata_bytes = metadata[0].nbytes // 2
    commits = concat(gathered) if gathered else KEYED_COMMITS.empty_table()
    return DecodedRecords(_keep_needed(commits, plan), tuple(metadata), tuple(rejects))


def _keep_newest(metadata: list[pa.Table]) -> pa.Table:
    """The newest value and the newest tombstone of each key in each offsets partition."""
    raw = pa.concat_tables(metadata)
    keys = to_array(raw["key"]).dictionary_encode()
    source, partition, order = (to_ints(raw[name]) for name in ("source", "partition", "offset"))
    log = source * (int(partition.max(initial=0)) + 1) + partition
    code = (log * len(keys.dictionary) + to_ints(keys.indices)) * 2 + to_bools(raw["value"].is_null())
    return raw.filter(pa.array(keep_newest(code, order, 1)))


def record_logs(raw: pa.Table, plan: CyclePlan) -> Codes:
    """The number of the offsets partition of each record within its cluster."""
    return plan.source_logs[to_ints(raw["source"])] + to_codes(raw["partition"])


def _keep_needed(commits: pa.Table, plan: CyclePlan) -> pa.Table:
    if commits.num_rows == 0:
        return commits
    keys = to_array(commits["key"])
    code = to_ints(commits["source"]) * len(keys.dictionary) + to_ints(keys.indices)
    is_needed = keep_needed(
        _with_logs(code, to_codes(commits["log"])),
        to_ints(commits["order"]),
        to_ints(commits["time_ms"]),
        to_bools(commits["is_tombstone"]),
        plan.intervals,
        plan.min_distance_ms,
    )
    return commits if is_needed.all() else commits.filter(pa.array(is_needed))


def _with_logs(code: Ints, log: Codes) -> Ints:
    """Codes of (key, log) from codes of keys; the same codes if, as usual, each key has been written to one log."""
    log_of_key = np.zeros(int(code.max()) + 1, dtype=np.int32)
    log_of_key[code] = log
    return code if (log_of_key[code] == log).all() else codes_by_log(code, log)


def codes_by_log(code: Ints, log: Codes) -> Ints:
    """Codes of (code, log): the orders of different logs cannot be compared."""
    return np.asarray(np.unique(code * (int(log.max(initial=0)) + 1) + log, return_inverse=True)[1])


def count_rejects(raw: pa.Table, rows: Ints, reasons: SmallInts, plan: CyclePlan) -> list[pa.Table]:
    """Rejected records counted by cluster and reason, with one sample each; no table when there are none."""
    if rows.size == 0:
        return []
    cluster = plan.source_clusters[to_ints(raw["source"])[rows]].astype(np.int64)
    kinds, first, counts = np.unique(cluster * 1000 + reasons, return_index=True, return_counts=True)
    rejects = []
    for kind, row, count in zip(kinds.tolist(), rows[first].tolist(), counts.tolist(), strict=True):
        partition, offset, key, value = (raw[name][row].as_py() for name in ("partition", "offset", "key", "value"))
        key_hex, value_hex = (key or b"")[:64].hex(), (value or b"")[:64].hex()
        sample = f"partition {partition} offset {offset} key {key_hex} value {value_hex}"
        reason = REJECT_DESCRIPTIONS[Reject(kind % 1000)]
        rejects.append({"cluster": kind // 1000, "reason": reason, "count": count, "sample": sample})
    return [pa.Table.from_pylist(rejects, schema=REJECTS)]


def concat(tables: list[pa.Table]) -> pa.Table:
    """Tables with dictionaries as one table in one chunk."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

"""The map step that keeps the groups the configuration wants, names their commits, and decodes who owns what."""

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Codes, Ints, to_array, to_ints
from warren.domain.matching import is_wanted
from warren.domain.offsets_logs import NO_LOG
from warren.domain.windows import keep_newest
from warren.kafka.records.commits import RecordKind, decode_group_names, decode_keys
from warren.kafka.records.groups import GroupValues, decode_groups
from warren.kafka.records.rejects import Reject
from warren.pipeline.decode import DecodedRecords, codes_by_log, concat, count_rejects, record_logs
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import COMMITS, OWNERS, REJECTS, TableKind

NEW_PROTOCOL_GROUPS = (3, 17)
"""Key versions of groups of the new protocols: KIP-848 and Streams groups."""

MAX_BYTES = 2**30
"""How long an array of values may become when chunks are joined."""

_AS_READ = ("offset", "time_ms", "order", "log", "is_tombstone")

Tables = dict[TableKind, pa.Table]


def keep_wanted(records: DecodedRecords, plan: CyclePlan) -> Tables:
    """Commits, owners and rejects of a task; commits and owners only of wanted groups."""
    rejects = pa.concat_tables([REJECTS.empty_table(), *records.rejects])
    tables = {TableKind.COMMITS: _to_named_commits(records.commits, plan), TableKind.REJECTS: rejects}
    if records.metadata:
        for kind, table in _to_owners(pa.concat_tables(records.metadata), plan).items():
            tables[kind] = concat([tables[kind], table]) if kind in tables else table
    return tables


def _to_named_commits(commits: pa.Table, plan: CyclePlan) -> pa.Table:
    keys = to_array(commits["key"])
    names = decode_keys(keys.dictionary)
    index, source = to_ints(keys.indices), to_ints(commits["source"])
    wanted = np.flatnonzero(plan.is_wanted(names.group, index, source))
    index = index[wanted]
    return pa.table(
        {
            "cluster": plan.source_clusters[source[wanted]],
            "group": _to_dictionary(names.group, index),
            "topic": _to_dictionary(names.topic, index),
            "partition": names.partition[index],
            **{name: commits[name].take(pa.array(wanted)) for name in _AS_READ},
        },
        schema=COMMITS,
    )


def _to_dictionary(names: pa.StringArray, index: Ints) -> pa.DictionaryArray:
    encoded = names.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(index)).cast(pa.int32()), encoded.dictionary)


def _to_owners(raw: pa.Table, plan: CyclePlan) -> Tables:
    """The owners of groups that changed, tombstones of groups that are gone, and rejects, by the newest metadata.

    A tombstone of a new-protocol group takes only its owners. It is written when the group is deleted, with tombstones
    of all its offsets, but also when a classic member joins it, and then its commits still count.
    """
    keys = to_array(raw["key"]).dictionary_encode()
    index, source, order = to_ints(keys.indices), to_ints(raw["source"]), to_ints(raw["offset"])
    log = record_logs(raw, plan)
    decoded, names = decode_keys(keys.dictionary), decode_group_names(keys.dictionary)
    is_newest = keep_newest(codes_by_log(source * len(keys.dictionary) + index, log), order, 1)
    is_group = decoded.kind[index] == RecordKind.GROUP
    is_wanted_newest = plan.is_wanted(names, index, source) & is_newest
    is_decoded = is_wanted_newest & is_group
    rows = np.flatnonzero(is_decoded)
    values = _decode_in_parts(raw["value"].filter(pa.array(is_decoded)))
    group, cluster = names.take(pa.array(index[rows])), plan.source_clusters[source[rows]]

    # A group that moves to a new protocol leaves a tombstone of its old kind, and its commits still count.
    is_null, is_new_kind = np.asarray(raw["value"].is_null()), np.isin(decoded.version[index], NEW_PROTOCOL_GROUPS)
    is_new_protocol = is_new_kind & ~is_null
    distinct = names.dictionary_encode(null_encoding="encode")
    group_key = codes_by_log(source * len(distinct.dictionary) + to_ints(distinct.indices)[index], log)
    lives_since = np.full(int(group_key.max(initial=0)) + 1, -1, dtype=np.int64)
    np.maximum.at(lives_since, group_key[is_new_protocol], order[is_new_protocol])
    is_gone = values.is_tombstone & (lives_since[group_key[rows]] < order[rows])

    is_readable = (values.reject == Reject.NONE) | (values.reject == Reject.BAD_MEMBER)
    changed = np.flatnonzero((~values.is_tombstone & is_readable) | is_gone)
    is_rejected = values.reject > 0
    rejects = count_rejects(raw, rows[is_rejected], values.reject[is_rejected], plan)
    left = np.flatnonzero(is_wanted_newest & is_new_kind & is_null)
    no_owners = _owner_rows(
        plan.source_clusters[source[left]], names.take(pa.array(index[left])), np.arange(left.size), values.members[:0]
    )
    return {
        TableKind.OWNERS: pa.concat_tables([_owner_rows(cluster, group, changed, values.members), no_owners]),
        TableKind.COMMITS: _group_tombstones(
            cluster[is_gone], group.filter(pa.array(is_gone)), order[rows[is_gone]], log[rows[is_gone]]
        ),
        TableKind.REJECTS: pa.concat_tables([REJECTS.empty_table(), *rejects]),
    }


def _decode_in_parts(values: pa.ChunkedArray) -> GroupValues:
    """Decode values as one array, or, if that would be too long for its 32-bit offsets, chunk by chunk."""
    if values.num_chunks < 2 or values.nbytes < MAX_BYTES:
        return decode_groups(to_array(values))
    parts, members, first = [], [], 0
    for chunk in values.chunks:
        parts.append(decode_groups(chunk))
        record = pa.array(to_ints(parts[-1].members["record"]) + first)
        members.append(parts[-1].members.set_column(0, "record", record))
        first += len(chunk)
    return GroupValues(
        np.concatenate([part.reject for part in parts]),
        np.concatenate([part.is_tombstone for part in parts]),
        pa.concat_tables(members),
    )


def _group_tombstones(cluster: Codes, group: pa.StringArray, order: Ints, log: Codes) -> pa.Table:
    columns = {
        "cluster": cluster,
        "group": group.dictionary_encode(),
        "topic": pa.nulls(len(group), pa.string()).dictionary_encode(),
        "partition": np.full(len(group), -1, dtype=np.int32),
        "offset": np.zeros(len(group), dtype=np.int64),
        "time_ms": np.zeros(len(group), dtype=np.int64),
        "order": order,
        "log": log,
        "is_tombstone": np.ones(len(group), dtype=np.bool_),
    }
    return pa.table(columns, schema=COMMITS)


def _owner_rows(cluster: Codes, group: pa.StringArray, changed: Ints, members: pa.Table) -> pa.Table:
    """One row without a topic for each group whose owners changed, and one row for each partition they own."""
    record = to_ints(members["record"])
    owned = members.filter(pa.array(np.isin(record, changed)))
    marks = pa.table({"record": changed, "partition": np.full(changed.size, -1, dtype=np.int32)})
    rows = pa.concat_tables([marks, owned], promote_options="default")
    record = to_ints(rows["record"])
    rows = rows.append_column("cluster", pa.array(cluster[record]))
    rows = rows.append_column("log", pa.array(np.full(record.size, NO_LOG, dtype=np.int32)))
    return rows.append_column("group", group.take(pa.array(record))).select(OWNERS.names).cast(OWNERS)


def keep_wanted_groups(table: pa.Table, plan: CyclePlan) -> pa.Table:
    """The rows whose group is wanted by the storage section and by any consumer section of its cluster."""
    groups = to_array(table["group"]).dictionary_encode()
    index, cluster = to_ints(groups.indices), to_ints(table["cluster"])
    is_kept = np.zeros(table.num_rows, dtype=np.bool_)
    for number, planned in enumerate(plan.clusters):
        rows = cluster == number
        if rows.any():
            is_kept[rows] = is_wanted(groups.dictionary, planned.filters, plan.storage_filter)[index[rows]]
    return table.filter(pa.array(is_kept))

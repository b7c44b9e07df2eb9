"""Group metadata of the offsets topic: who owns which partition, and which groups are gone."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.windows import keep_newest
from warren.kafka.records.commits import RecordKind, decode_group_names, decode_keys
from warren.kafka.records.groups import decode_groups
from warren.kafka.records.rejects import Reject
from warren.pipeline.columns import to_array, to_ints
from warren.pipeline.decode import count_rejects
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import COMMITS, OWNERS

Ints = NDArray[np.int64]

NEW_PROTOCOL_GROUPS = (3, 17)
"""Key versions whose record says that a group lives on under a new protocol: KIP-848 and Streams groups."""


@dataclass(frozen=True, slots=True)
class DecodedMetadata:
    """Owners of groups that changed, tombstones of groups that are gone, and rejects."""

    owners: pa.Table
    tombstones: pa.Table
    rejects: list[pa.Table]


def to_owners(raw: pa.Table, plan: CyclePlan) -> DecodedMetadata:
    """Decode the newest metadata of each wanted group."""
    keys = to_array(raw["key"]).dictionary_encode()
    index, source, order = to_ints(keys.indices), to_ints(raw["source"]), to_ints(raw["offset"])
    decoded, names = decode_keys(keys.dictionary), decode_group_names(keys.dictionary)
    is_newest = keep_newest(source * len(keys.dictionary) + index, order, 1)
    is_group = decoded.kind[index] == RecordKind.GROUP
    rows = np.flatnonzero(plan.is_wanted(names, index, source) & is_newest & is_group)
    values = decode_groups(to_array(raw["value"]).take(pa.array(rows)))
    group, cluster = names.take(pa.array(index[rows])), plan.source_clusters[source[rows]]

    # A group that moves to a new protocol leaves a tombstone of its old kind, and its commits still count.
    is_new_protocol = np.isin(decoded.version[index], NEW_PROTOCOL_GROUPS) & ~np.asarray(raw["value"].is_null())
    distinct = names.dictionary_encode(null_encoding="encode")
    group_key = source * len(distinct.dictionary) + to_ints(distinct.indices)[index]
    lives_since = np.full(int(group_key.max(initial=0)) + 1, -1, dtype=np.int64)
    np.maximum.at(lives_since, group_key[is_new_protocol], order[is_new_protocol])
    is_gone = values.is_tombstone & (lives_since[group_key[rows]] < order[rows])

    is_readable = (values.reject == Reject.NONE) | (values.reject == Reject.BAD_MEMBER)
    changed = np.flatnonzero((~values.is_tombstone & is_readable) | is_gone)
    is_rejected = values.reject > 0
    return DecodedMetadata(
        _owner_rows(cluster, group, changed, values.members),
        _group_tombstones(cluster[is_gone], group.filter(pa.array(is_gone)), order[rows[is_gone]]),
        count_rejects(raw, rows[is_rejected], values.reject[is_rejected], plan),
    )


def _group_tombstones(cluster: NDArray[np.int32], group: pa.StringArray, order: Ints) -> pa.Table:
    columns = {
        "cluster": cluster,
        "group": group.dictionary_encode(),
        "topic": pa.nulls(len(group), pa.string()).dictionary_encode(),
        "partition": np.full(len(group), -1, dtype=np.int32),
        "offset": np.zeros(len(group), dtype=np.int64),
        "time_ms": np.zeros(len(group), dtype=np.int64),
        "order": order,
        "is_tombstone": np.ones(len(group), dtype=np.bool_),
    }
    return pa.table(columns, schema=COMMITS)


def _owner_rows(cluster: NDArray[np.int32], group: pa.StringArray, changed: Ints, members: pa.Table) -> pa.Table:
    """One row without a topic for each group whose owners changed, and one row for each partition they own."""
    nothing = pa.nulls(changed.size, pa.string())
    marks = {
        "cluster": cluster[changed],
        "group": group.take(pa.array(changed)),
        "topic": nothing,
        "partition": np.full(changed.size, -1, dtype=np.int32),
        "owner": nothing,
        "client_id": nothing,
    }
    record = to_ints(members["record"])
    is_current = np.isin(record, changed)
    owned = members.filter(pa.array(is_current))
    assigned = {
        "cluster": cluster[record[is_current]],
        "group": group.take(pa.array(record[is_current])),
        **{name: owned[name] for name in ("topic", "partition", "owner", "client_id")},
    }
    return pa.concat_tables([pa.table(marks, schema=OWNERS), pa.table(assigned, schema=OWNERS)])

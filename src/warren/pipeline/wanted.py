"""The map step that keeps the groups the configuration wants, and turns keys into names."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.matching import is_wanted
from warren.kafka.records.commits import decode_keys
from warren.pipeline.columns import to_array, to_ints
from warren.pipeline.decode import DecodedRecords, concat
from warren.pipeline.group_metadata import to_owners
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import COMMITS, REJECTS, TableKind

Ints = NDArray[np.int64]


def keep_wanted(records: DecodedRecords, plan: CyclePlan) -> dict[TableKind, pa.Table]:
    """Commits, owners and rejects of a task; commits and owners only of wanted groups."""
    commits = _to_named_commits(records.commits, plan)
    if not records.metadata:
        rejects = pa.concat_tables([REJECTS.empty_table(), *records.rejects])
        return {TableKind.COMMITS: commits, TableKind.REJECTS: rejects}
    metadata = to_owners(pa.concat_tables(records.metadata), plan)
    return {
        TableKind.OWNERS: metadata.owners,
        TableKind.COMMITS: concat([commits, metadata.tombstones]),
        TableKind.REJECTS: pa.concat_tables([REJECTS.empty_table(), *records.rejects, *metadata.rejects]),
    }


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
            **{name: commits[name].take(pa.array(wanted)) for name in ("offset", "time_ms", "order", "is_tombstone")},
        },
        schema=COMMITS,
    )


def _to_dictionary(names: pa.StringArray, index: Ints) -> pa.DictionaryArray:
    encoded = names.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(index)).cast(pa.int32()), encoded.dictionary)


def keep_wanted_groups(table: pa.Table, plan: CyclePlan) -> pa.Table:
    """The rows whose group is wanted by the storage section and by any consumer section of its cluster."""
    groups = to_array(table["group"]).dictionary_encode()
    index, cluster = to_ints(groups.indices), to_ints(table["cluster"])
    is_kept = np.zeros(table.num_rows, dtype=np.bool_)
    for source in plan.sources:
        rows = cluster == source.cluster
        is_kept[rows] |= is_wanted(groups.dictionary, source.filters, plan.storage_filter)[index[rows]]
    return table.filter(pa.array(is_kept))

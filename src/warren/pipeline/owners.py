"""Who owns a partition: what group metadata, or the brokers themselves, say replaces what was known of that group."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.pipeline.state import State


def with_owners(state: State, owners: pa.Table) -> State:
    """New owners of every group that is named; a partition that is owned but was never committed gets an empty row."""
    if owners.num_rows == 0:
        return state
    cluster = owners["cluster"].to_numpy().astype(np.int32)
    group = state.groups.codes(owners["group"].combine_chunks())
    topic = state.topics.codes(owners["topic"].combine_chunks())
    partition = pc.fill_null(owners["partition"], -1).to_numpy().astype(np.int32)
    owner = state.people.codes(pc.fill_null(owners["owner"].combine_chunks(), ""))
    client_id = state.people.codes(pc.fill_null(owners["client_id"].combine_chunks(), ""))

    rows = state.rows
    wide = len(state.groups.values) + 1
    named = np.unique(cluster.astype(np.int64) * wide + group)
    is_named = np.isin(rows.cluster.astype(np.int64) * wide + rows.group, named)
    rows.owner[is_named] = -1
    rows.client_id[is_named] = -1

    placed = state.place(cluster, group, topic, partition, topic >= 0)
    is_owned = placed >= 0
    state.rows.owner[placed[is_owned]] = owner[is_owned]
    state.rows.client_id[placed[is_owned]] = client_id[is_owned]
    return state

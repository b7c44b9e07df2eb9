"""The step that replaces the owners of partitions by what group metadata, or the brokers, say of their groups."""

import numpy as np
import pyarrow.compute as pc

from warren.pipeline.columns import to_array, to_codes
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket


def replace_owners(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Replace the owners of every named group; a partition that is owned but was never committed gets an empty row."""
    owners = inputs.owners
    if owners.num_rows == 0:
        return bucket
    cluster, partition = to_codes(owners["cluster"]), to_codes(owners["partition"])
    group = bucket.groups.codes(to_array(owners["group"]))
    topic = bucket.topics.codes(to_array(owners["topic"]))
    is_named = np.isin(bucket.group_keys(), np.unique(bucket.group_keys(cluster, group)))
    bucket.rows.owner[is_named] = -1
    bucket.rows.client_id[is_named] = -1

    located = bucket.locate(cluster, group, topic, partition, may_add=topic >= 0)
    is_owned = located >= 0
    for name in ("owner", "client_id"):
        codes = bucket.members.codes(pc.fill_null(to_array(owners[name]), ""))
        getattr(bucket.rows, name)[located[is_owned]] = codes[is_owned]
    return bucket

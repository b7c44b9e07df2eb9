"""Steps that take new commits, seeds and owners into the rows."""

import numpy as np
import pyarrow.compute as pc

from warren.domain.arrays import Bools, Ints, to_array, to_bools, to_codes, to_ints
from warren.domain.windows import UNKNOWN, Commits, append, drop_before
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket


def locate_commits(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Find the row of each commit; partitions that were never committed to before get one."""
    commits = inputs.commits
    if commits.num_rows:
        topic = bucket.topics.codes(to_array(commits["topic"]))
        bucket.commit_rows = bucket.locate(
            to_codes(commits["cluster"]),
            bucket.groups.codes(to_array(commits["group"])),
            topic,
            to_codes(commits["partition"]),
            may_add=(topic >= 0) & ~to_bools(commits["is_tombstone"]),
        )
    return bucket


def append_commits(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Append commits to the windows, each with its lag, and drop what tombstones have deleted."""
    plan, rows, commit_rows = inputs.plan, bucket.rows, bucket.commit_rows
    if commit_rows.size == 0 or len(rows) == 0:
        return bucket
    order, is_tombstone = to_ints(inputs.commits["order"]), to_bools(inputs.commits["is_tombstone"])
    barrier = _barriers(bucket, inputs, order, is_tombstone)
    if is_tombstone.any():
        rows.windows = drop_before(rows.windows, barrier)
        rows.committed_offset[barrier > 0] = UNKNOWN

    time_ms = to_ints(inputs.commits["time_ms"])
    counts = ~is_tombstone & (commit_rows >= 0) & (time_ms >= plan.now_ms - plan.expire_ms)
    counts &= order >= barrier[np.maximum(commit_rows, 0)]
    index = np.flatnonzero(counts)
    index = index[np.lexsort((order[index], commit_rows[index]))]
    row, offset, time_ms = commit_rows[index], to_ints(inputs.commits["offset"])[index], time_ms[index]

    lags = np.full((3, index.size), UNKNOWN, dtype=np.int64)
    if plan.heads and index.size:
        heads = inputs.row_heads(bucket)
        for number, cluster in enumerate(plan.clusters):
            own = np.flatnonzero(rows.cluster[row] == number)
            if own.size:
                lags[:, own] = heads.lags(row[own], cluster.name, offset[own], time_ms[own] - cluster.skew_ms)
    rows.windows = append(rows.windows, Commits(row, offset, time_ms, order[index], *lags), plan.min_distance_ms)
    has_commit = rows.windows.count > 0
    rows.committed_offset[has_commit] = rows.windows.offset[has_commit, -1]
    return bucket


def _barriers(bucket: WorkingBucket, inputs: BucketInputs, order: Ints, is_tombstone: Bools) -> Ints:
    """For each row the order below which commits no longer count: the newest tombstone of it or of its group."""
    barrier = np.zeros(len(bucket.rows), dtype=np.int64)
    of_partition = is_tombstone & (bucket.commit_rows >= 0)
    np.maximum.at(barrier, bucket.commit_rows[of_partition], order[of_partition] + 1)
    of_group = is_tombstone & (to_ints(inputs.commits["partition"]) < 0)
    if of_group.any():
        group = bucket.groups.find(to_array(inputs.commits["group"]))[of_group]
        keys = bucket.group_keys(to_codes(inputs.commits["cluster"])[of_group], group)
        row_keys = bucket.group_keys()
        group_barrier = np.zeros(int(max(keys.max(), row_keys.max())) + 1, dtype=np.int64)
        np.maximum.at(group_barrier, keys, order[of_group] + 1)
        barrier = np.maximum(barrier, group_barrier[row_keys])
    return barrier


def add_seeds(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Add partitions of groups that stay silent, with the offset that the brokers hold for them."""
    seeds = inputs.seeds
    if seeds.num_rows:
        located = bucket.locate(
            to_codes(seeds["cluster"]),
            bucket.groups.codes(to_array(seeds["group"])),
            bucket.topics.codes(to_array(seeds["topic"])),
            to_codes(seeds["partition"]),
            may_add=np.ones(seeds.num_rows, dtype=np.bool_),
        )
        is_silent = bucket.rows.windows.count[located] == 0
        bucket.rows.committed_offset[located[is_silent]] = to_ints(seeds["offset"])[is_silent]
    return bucket


def replace_owners(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Replace the owners of every named group; a partition that is owned but was never committed gets an empty row."""
    owners = inputs.owners
    if owners.num_rows == 0:
        return bucket
    cluster, partition = to_codes(owners["cluster"]), to_codes(owners["partition"])
    group = bucket.groups.codes(to_array(owners["group"]))
    topic = bucket.topics.codes(to_array(owners["topic"]))
    is_named = np.isin(bucket.group_keys(), bucket.group_keys(cluster, group))
    bucket.rows.owner[is_named] = -1
    bucket.rows.client_id[is_named] = -1

    located = bucket.locate(cluster, group, topic, partition, may_add=topic >= 0)
    is_owned = located >= 0
    for name in ("owner", "client_id"):
        codes = bucket.members.codes(pc.fill_null(to_array(owners[name]), ""))
        getattr(bucket.rows, name)[located[is_owned]] = codes[is_owned]
    return bucket

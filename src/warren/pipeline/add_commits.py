"""Steps that take new commits, seeds and owners into the rows."""

import numpy as np
import pyarrow.compute as pc

from warren.domain.arrays import Bools, Codes, Ints, to_array, to_bools, to_codes, to_ints
from warren.domain.offsets_logs import NO_LOG
from warren.domain.windows import NEVER, OLDEST_ORDER, UNKNOWN, Commits, append, drop_before
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket


def locate_commits(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Find the row and the time by our clock of each commit; partitions never committed to before get a row."""
    commits = inputs.commits
    if commits.num_rows:
        topic = bucket.topics.codes(to_array(commits["topic"]))
        cluster = to_codes(commits["cluster"])
        bucket.commit_rows = bucket.locate(
            cluster,
            bucket.groups.codes(to_array(commits["group"])),
            topic,
            to_codes(commits["partition"]),
            may_add=(topic >= 0) & ~to_bools(commits["is_tombstone"]),
        )
        time_ms, log = to_ints(commits["time_ms"]), to_codes(commits["log"])
        bucket.commit_times, bucket.commit_errors = np.zeros((2, time_ms.size), dtype=np.int64)
        for number in np.unique(cluster):
            own = np.flatnonzero(cluster == number)
            logs = inputs.plan.clusters[int(number)].offsets_logs()
            bucket.commit_times[own], bucket.commit_errors[own] = logs.commit_times(log[own], time_ms[own])
    return bucket


def follow_offsets_logs(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Record which log the commits of each row come from, that of the newest one, and disregard those from any other.

    A group moves to another log when the offsets topic gets more partitions, or when its consumers commit to Kafka
    instead of ZooKeeper. Orders then start over, and what remains of the group in the log before says nothing about it
    any more.
    """
    rows, commit_rows = bucket.rows, bucket.commit_rows
    if commit_rows.size == 0 or len(rows) == 0:
        return bucket
    log, is_located = to_codes(inputs.commits["log"]), commit_rows >= 0
    is_commit = is_located & ~to_bools(inputs.commits["is_tombstone"])
    first = np.flatnonzero(is_commit & (rows.offsets_log[commit_rows] == NO_LOG))
    rows.offsets_log[commit_rows[first]] = log[first]
    is_elsewhere = is_located & (rows.offsets_log[commit_rows] != log)
    if is_elsewhere.any():
        is_contested = np.zeros(len(rows), dtype=np.bool_)
        is_contested[commit_rows[is_elsewhere & is_commit]] = True
        contested = np.flatnonzero(is_commit & is_contested[commit_rows])
        # Of commits of the same time, one from the log that the row follows is the newest.
        contested = contested[np.lexsort((~is_elsewhere[contested], bucket.commit_times[contested]))]
        newest = np.full(len(rows), -1, dtype=np.int64)
        newest[commit_rows[contested]] = contested  # the newest is the last one
        last_ms = np.where(rows.windows.count > 0, rows.windows.time_ms[:, -1], NEVER)
        is_moved = (newest >= 0) & (rows.offsets_log != log[newest]) & (bucket.commit_times[newest] > last_ms)
        rows.offsets_log[is_moved] = log[newest[is_moved]]
        rows.windows.order[is_moved] = OLDEST_ORDER
        is_elsewhere = is_located & (rows.offsets_log[commit_rows] != log)
        bucket.commit_rows = np.where(is_elsewhere, -1, commit_rows)
    return bucket


def append_commits(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Append commits to the windows, each with its lag, and drop what tombstones have deleted."""
    plan, rows, commit_rows, time_ms = inputs.plan, bucket.rows, bucket.commit_rows, bucket.commit_times
    if commit_rows.size == 0 or len(rows) == 0:
        return bucket
    order, is_tombstone = to_ints(inputs.commits["order"]), to_bools(inputs.commits["is_tombstone"])
    barrier = _barriers(bucket, inputs, order, is_tombstone)
    if is_tombstone.any():
        rows.windows = drop_before(rows.windows, barrier)
        rows.committed_offset[barrier > 0] = UNKNOWN

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
                times = (time_ms[own], bucket.commit_errors[index[own]])
                lags[:, own] = heads.lags(row[own], cluster.name, offset[own], *times, cluster.max_gap_ms)
    rows.windows = append(rows.windows, Commits(row, offset, time_ms, order[index], *lags), plan.min_distance_ms)
    has_commit = rows.windows.count > 0
    rows.committed_offset[has_commit] = rows.windows.offset[has_commit, -1]
    return bucket


def _barriers(bucket: WorkingBucket, inputs: BucketInputs, order: Ints, is_tombstone: Bools) -> Ints:
    """For each row the order below which commits no longer count: the newest tombstone of it or of its group."""
    barrier = np.full(len(bucket.rows), OLDEST_ORDER, dtype=np.int64)
    of_partition = is_tombstone & (bucket.commit_rows >= 0)
    np.maximum.at(barrier, bucket.commit_rows[of_partition], order[of_partition] + 1)
    of_group = np.flatnonzero(is_tombstone & (to_ints(inputs.commits["partition"]) < 0))
    if of_group.size:
        of_group = of_group[np.argsort(order[of_group], kind="stable")]  # the newest is the last one
        group = bucket.groups.find(to_array(inputs.commits["group"]))[of_group]
        keys = bucket.group_keys(to_codes(inputs.commits["cluster"])[of_group], group)
        row_keys = bucket.group_keys()
        tombstone = np.full(int(max(keys.max(), row_keys.max())) + 1, -1, dtype=np.int64)
        tombstone[keys] = of_group
        row_tombstone = tombstone[row_keys]
        # A tombstone in an offsets partition that the group has left says nothing about its commits since.
        log, row_log = to_codes(inputs.commits["log"]), bucket.rows.offsets_log
        is_same_log = (row_log == NO_LOG) | (row_log == log[row_tombstone])
        is_hit = (row_tombstone >= 0) & is_same_log
        barrier[is_hit] = np.maximum(barrier[is_hit], order[row_tombstone[is_hit]] + 1)
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
    log = to_codes(owners["log"])
    for number in np.unique(log).tolist():
        is_own = log == number
        is_named = np.isin(bucket.group_keys(), bucket.group_keys(cluster, group)[is_own])
        is_named &= _is_meant(bucket.rows.offsets_log, number)
        bucket.rows.owner[is_named] = -1
        bucket.rows.client_id[is_named] = -1

    located = bucket.locate(cluster, group, topic, partition, may_add=topic >= 0)
    is_owned = (located >= 0) & _is_meant(bucket.rows.offsets_log[located], log)
    for name in ("owner", "client_id"):
        codes = bucket.members.codes(pc.fill_null(to_array(owners[name]), ""))
        getattr(bucket.rows, name)[located[is_owned]] = codes[is_owned]
    return bucket


def _is_meant(row_log: Codes, log: Codes | int) -> Bools:
    """Whether owners of a log are owners of rows; those that Kafka knows are, whatever the rows follow."""
    is_meant: Bools = (log == NO_LOG) | (row_log == NO_LOG) | (row_log == log)
    return is_meant

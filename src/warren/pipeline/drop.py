"""Steps that drop rows and slots: of clusters that start over, of deleted groups, of what has expired."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Bools, Ints, to_array, to_bools, to_codes
from warren.domain.matching import is_wanted
from warren.domain.offsets_logs import FIRST_ZOOKEEPER_LOG
from warren.domain.windows import NEVER, UNKNOWN, drop_until
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket

MAX_UNLISTED = 500
"""How many groups that are not listed one bucket names per cycle."""


def drop_restarted_clusters(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop the rows whose offsets topic, or znodes, are another log now, or belong to no consumer section any more."""
    is_kept = np.ones(len(bucket.rows), dtype=np.bool_)
    row_log = bucket.rows.offsets_log
    is_in_zookeeper = row_log >= FIRST_ZOOKEEPER_LOG
    for index, cluster in enumerate(inputs.plan.clusters):
        is_own = bucket.rows.cluster == index
        if cluster.is_restarted:
            is_kept &= ~is_own | is_in_zookeeper
        going_on = [log for log in cluster.zookeeper_logs if log not in cluster.restarted_zookeeper_logs]
        is_kept &= ~is_own | ~is_in_zookeeper | np.isin(row_log, going_on)
    bucket.keep(is_kept)
    return bucket


def drop_unlisted_partitions(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop partitions whose znodes were deleted unseen: a list of all znodes does not have them."""
    listed, rows = inputs.listed_partitions, bucket.rows
    is_kept = np.ones(len(rows), dtype=np.bool_)
    for index, cluster in enumerate(inputs.plan.clusters):
        if cluster.listed_logs:
            is_kept &= (rows.cluster != index) | ~np.isin(rows.offsets_log, cluster.listed_logs)
    if is_kept.all():
        return bucket
    located = bucket.locate(
        to_codes(listed["cluster"]),
        bucket.groups.find(to_array(listed["group"])),
        bucket.topics.find(to_array(listed["topic"])),
        to_codes(listed["partition"]),
        may_add=np.zeros(listed.num_rows, dtype=np.bool_),
    )
    is_kept[located[located >= 0]] = True
    bucket.keep(is_kept)
    return bucket


def drop_unwanted_groups(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop groups that new filters do not accept any more."""
    is_kept = np.ones(len(bucket.rows), dtype=np.bool_)
    for index, cluster in enumerate(inputs.plan.clusters):
        own = np.flatnonzero(bucket.rows.cluster == index) if cluster.has_new_filters else ()
        if len(own):
            wanted = is_wanted(bucket.groups.values, cluster.filters, inputs.plan.storage_filter)
            is_kept[own] = wanted[bucket.rows.group[own]]
    bucket.keep(is_kept)
    return bucket


def drop_deleted_commits(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop slots, and disregard new commits, that are older than the deletion of their group."""
    deleted = _find_deleted(bucket, inputs)
    if deleted is not None:
        until_ms = np.full(len(bucket.rows), NEVER, dtype=np.int64)
        until_ms[deleted.rows] = deleted.until_ms
        # Before new commits are appended: none of them must be merged into a slot that is dropped.
        bucket.rows.windows = drop_until(bucket.rows.windows, until_ms)
        is_old = bucket.commit_times <= until_ms[bucket.commit_rows]
        is_old &= ~to_bools(inputs.commits["is_tombstone"])
        bucket.commit_rows = np.where(is_old, -1, bucket.commit_rows)
    return bucket


def drop_deleted_partitions(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop deleted partitions that have not been committed to since, and record which deletions saw new commits."""
    deleted = _find_deleted(bucket, inputs)
    if deleted is not None:
        is_renewed = bucket.rows.windows.count[deleted.rows] > 0
        renewed = np.unique(np.concatenate([deleted.by_group[is_renewed], deleted.by_topic[is_renewed]]))
        bucket.renewed_deletions = tuple(inputs.plan.deletions[index].id for index in renewed[renewed >= 0].tolist())
        is_kept = np.ones(len(bucket.rows), dtype=np.bool_)
        is_kept[deleted.rows[~is_renewed]] = False
        bucket.keep(is_kept)
    return bucket


def drop_unlisted_groups(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop groups that their brokers no longer know, and name some of those that the brokers do not list.

    A group stays if it has committed, or was seen first, after the list was made.
    """
    plan, rows, listed = inputs.plan, bucket.rows, inputs.listed
    if all(cluster.listed_at_ms is None for cluster in plan.clusters) or len(rows) == 0:
        return bucket
    listed_at_ms = np.array([NEVER if c.listed_at_ms is None else c.listed_at_ms for c in plan.clusters])[rows.cluster]
    first_seen_ms = np.where(rows.since_ms == 0, plan.now_ms, rows.since_ms)
    seen_ms = np.where(rows.windows.count > 0, rows.windows.time_ms[:, -1], first_seen_ms)
    row_groups = bucket.group_keys()
    # Brokers know nothing of groups that commit to ZooKeeper.
    is_in_zookeeper = rows.offsets_log >= FIRST_ZOOKEEPER_LOG
    is_newer = np.isin(row_groups, row_groups[is_in_zookeeper | (seen_ms > listed_at_ms)])
    named = bucket.group_keys(to_codes(listed["cluster"]), bucket.groups.find(to_array(listed["group"])))
    unlisted = np.unique(row_groups[~is_newer & ~np.isin(row_groups, named)])[:MAX_UNLISTED]
    cluster, group = np.divmod(unlisted, len(bucket.groups) + 1)
    clusters = [plan.clusters[index].name for index in cluster.tolist()]
    bucket.unlisted_groups = tuple(zip(clusters, bucket.groups.values.take(pa.array(group)).to_pylist(), strict=True))
    bucket.keep(is_newer | ~np.isin(row_groups, named[to_bools(listed["is_deleted"])]))
    return bucket


def drop_expired(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop partitions that a tombstone emptied, whose topic was deleted, or that are silent for `expire-group`."""
    plan, rows = inputs.plan, bucket.rows
    has_commit, last_ms = rows.windows.count > 0, rows.windows.time_ms[:, -1]
    is_expired = has_commit & (last_ms < plan.now_ms - plan.expire_ms)
    is_expired |= ~has_commit & (rows.committed_offset == UNKNOWN) & (rows.owner <= 0)
    for index, cluster in enumerate(plan.clusters):
        for topic, deleted_at_ms in cluster.deleted_topics:
            is_deleted = (rows.cluster == index) & (rows.topic == bucket.topics.find(pa.array([topic]))[0])
            is_expired |= is_deleted & (last_ms <= deleted_at_ms)
            rows.head[is_deleted] = UNKNOWN
    bucket.keep(~is_expired)
    return bucket


@dataclass(frozen=True, slots=True)
class _DeletedRows:
    """The rows that deletions name, with the index of the deletion of their group and of their topic, or -1."""

    rows: Ints
    by_group: Ints
    by_topic: Ints
    until_ms: Ints
    """Up to when their commits are deleted."""


def _find_deleted(bucket: WorkingBucket, inputs: BucketInputs) -> _DeletedRows | None:
    """Rows of deleted groups, found without comparing the names of all others; None when there are none."""
    rows, deletions = bucket.rows, inputs.plan.deletions
    if not deletions or len(rows) == 0:
        return None
    index_of = {cluster.name: index for index, cluster in enumerate(inputs.plan.clusters)}
    cluster = np.array([index_of.get(deletion.cluster, -1) for deletion in deletions])
    group = bucket.groups.find(pa.array([deletion.group for deletion in deletions], pa.string()))
    topic = bucket.topics.find(pa.array([deletion.topic for deletion in deletions], pa.string()))
    is_whole_group = np.array([deletion.topic is None for deletion in deletions])
    is_known = (cluster >= 0) & (group >= 0)
    is_named = np.zeros(len(bucket.groups) + 1, dtype=np.bool_)
    is_named[group[is_known]] = True
    named = np.flatnonzero(is_named[rows.group])
    if len(named) == 0:
        return None
    asked_at_ms = np.array([deletion.asked_at_ms for deletion in deletions])

    topics = len(bucket.topics) + 1
    row_groups, keys = bucket.group_keys()[named], bucket.group_keys(cluster, group)
    by_group = _newest(row_groups, keys, asked_at_ms, is_known & is_whole_group)
    is_topic = is_known & ~is_whole_group & (topic >= 0)
    by_topic = _newest(row_groups * topics + rows.topic[named], keys * topics + topic, asked_at_ms, is_topic)
    # The last one, which the index -1 gives, is of no deletion.
    times_ms = np.append(asked_at_ms, NEVER)
    until_ms = np.maximum(times_ms[by_group], times_ms[by_topic])
    is_deleted = until_ms != NEVER
    return _DeletedRows(named[is_deleted], by_group[is_deleted], by_topic[is_deleted], until_ms[is_deleted])


def _newest(row_keys: Ints, keys: Ints, asked_at_ms: Ints, is_candidate: Bools) -> Ints:
    """For each row the index of the last deletion with its key, -1 without one."""
    candidates = np.flatnonzero(is_candidate)
    candidates = candidates[np.lexsort((asked_at_ms[candidates], keys[candidates]))]
    if len(candidates) == 0:
        return np.full(len(row_keys), -1, dtype=np.int64)
    position = np.searchsorted(keys[candidates], row_keys, side="right") - 1
    newest = candidates[np.maximum(position, 0)]
    return np.where((position >= 0) & (keys[newest] == row_keys), newest, -1)

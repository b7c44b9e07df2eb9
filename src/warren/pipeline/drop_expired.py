"""The step that drops partitions of which nothing is left to judge."""

import pyarrow as pa

from warren.domain.windows import UNKNOWN
from warren.pipeline.working_bucket import BucketInputs, Names, WorkingBucket


def drop_expired(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Drop partitions that a tombstone emptied, whose topic was deleted, or that are silent for `expire-group`."""
    plan, rows = inputs.plan, bucket.rows
    has_commit, last_ms = rows.windows.count > 0, rows.windows.time_ms[:, -1]
    is_expired = has_commit & (last_ms < plan.now_ms - plan.expire_ms)
    is_expired |= ~has_commit & (rows.committed_offset == UNKNOWN) & (rows.owner <= 0)
    for number, cluster in enumerate(plan.clusters):
        for topic, deleted_at_ms in cluster.deleted_topics:
            code = Names(bucket.topics.values).codes(pa.array([topic]))[0]
            is_deleted = (rows.cluster == number) & (rows.topic == code)
            is_expired |= is_deleted & (last_ms <= deleted_at_ms + cluster.skew_ms)
    bucket.keep(~is_expired)
    return bucket

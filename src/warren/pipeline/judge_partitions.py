"""The step that judges every partition of the clusters that can be judged."""

import numpy as np

from warren.domain.lag import current_lag
from warren.domain.offsets_outages import observed_until
from warren.domain.rules import Evidence, Reason, judge
from warren.domain.windows import UNKNOWN, take_rows
from warren.pipeline.unverified_tails import is_tail_verified, keep_last_verdicts
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket


def judge_partitions(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Set heads, current lag and verdict; partitions of clusters that cannot be judged keep what they had."""
    plan, rows = inputs.plan, bucket.rows
    is_judged = np.array([cluster.is_judged for cluster in plan.clusters], dtype=np.bool_)[rows.cluster]
    judged = np.flatnonzero(is_judged)
    windows = rows.windows if judged.size == len(rows) else take_rows(rows.windows, judged)
    observed_ms = np.zeros(len(rows), dtype=np.int64)
    recent_head = np.full(len(rows), UNKNOWN, dtype=np.int64)
    is_recent_complete = np.zeros(len(rows), dtype=np.bool_)
    heads = inputs.row_heads(bucket)
    for number, cluster in enumerate(plan.clusters):
        own = np.flatnonzero(rows.cluster == number)
        if own.size == 0 or not cluster.is_judged:
            continue
        rows.head[own], rows.log_start[own] = heads.newest(own), heads.newest(own, "log_start")
        recent_head[own], is_recent_complete[own] = heads.recent(own, cluster.name, plan.now_ms - cluster.recent_ms)
        # Commits are known up to when the ends were fixed, which can be long before now when brokers are slow.
        read_until_ms = plan.now_ms if cluster.read_until_ms is None else cluster.read_until_ms
        last_ms = rows.windows.time_ms[own, -1] - cluster.skew_ms
        until_ms = observed_until(read_until_ms, last_ms, bucket.groups.values, rows.group[own], cluster.outages)
        observed_ms[own] = until_ms + cluster.skew_ms
    rows.current_lag[judged] = current_lag(rows.committed_offset, rows.head)[judged]
    evidence = Evidence(
        rows.current_lag[judged],
        recent_head[judged],
        is_recent_complete[judged],
        rows.trend_floor[judged],
        is_tail_verified(bucket, plan)[judged],
        plan.elapsed_ms,
    )
    verdicts = judge(windows, evidence, observed_ms[judged], plan.limits)
    bucket.unverified_rows = judged[verdicts.reason == Reason.TAIL_IN_DOUBT]
    keep_last_verdicts(verdicts, rows.status[judged], rows.reason[judged])

    has_changed = (rows.status[judged] != verdicts.status) | (rows.reason[judged] == Reason.NOT_JUDGED)
    rows.since_ms[judged[has_changed]] = plan.now_ms
    rows.since_ms[rows.since_ms == 0] = plan.now_ms
    rows.status[judged], rows.reason[judged] = verdicts.status, verdicts.reason
    rows.complete[judged], rows.trend_floor[judged] = verdicts.complete, verdicts.trend_floor
    return bucket

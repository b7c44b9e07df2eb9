"""The step that judges every partition of the clusters that can be judged.

Transaction markers and aborted records take offsets that no consumer reads, so a group that has read everything may
lag a few offsets for ever. The rung `is_tail_unverified` (`domain/rules.py`) holds back a bad verdict for such a short
lag. This file has the rest: which tails are verified, what stands meanwhile, and which tails to verify next. Decision 7
tells the whole way.
"""

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Bools, Ints
from warren.domain.lag import SHORT_LAG, current_lag
from warren.domain.rules import Evidence, Reason, judge
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, take_rows
from warren.pipeline.plan import CyclePlan
from warren.pipeline.working_bucket import BucketInputs, Rows, WorkingBucket, search

MAX_REQUESTED = 100
"""How many tails one bucket requests per cycle."""

Tail = tuple[str, str, int]
"""The cluster, topic and partition of a tail to verify."""


def judge_partitions(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Set current lag and verdict; partitions that cannot be judged now keep what they had."""
    plan, rows = inputs.plan, bucket.rows
    is_judged = np.array([cluster.is_judged for cluster in plan.clusters], dtype=np.bool_)[rows.cluster]
    bucket.unknown_since_ms = np.full(len(rows), UNKNOWN, dtype=np.int64)
    observed_ms = np.zeros(len(rows), dtype=np.int64)
    recent_head = np.full(len(rows), UNKNOWN, dtype=np.int64)
    is_recent_complete, is_silent = np.zeros((2, len(rows)), dtype=np.bool_)
    heads = bucket.heads or inputs.row_heads(bucket)
    for index, cluster in enumerate(plan.clusters):
        own = bucket.rows_of(index)
        if own.size == 0 or not cluster.is_judged:
            continue
        logs, log = cluster.offsets_logs(), rows.offsets_log[own]
        bucket.unknown_since_ms[own] = logs.unknown_since(log)
        observed_ms[own] = logs.observed_until(log, rows.windows.time_ms[own, -1], plan.now_ms)
        recent_ms = plan.now_ms - cluster.recent_ms
        recent_head[own], is_complete = heads.recent(own, cluster.name, recent_ms)
        # A group that has committed once, lately, may be a new one: there is no telling how often it commits.
        is_new = (rows.windows.count[own] == 1) & (rows.windows.time_ms[own, -1] > recent_ms)
        is_recent_complete[own] = is_complete & ~is_new
        is_silent[own] = is_complete & _is_silent(rows, own, recent_head[own], recent_ms)
        if any(log.away_from_ms is not None for log in cluster.logs):
            # Clients need time to reconnect.
            is_silent[own] &= rows.reason[own] == Reason.SILENT
    is_judged &= bucket.unknown_since_ms == UNKNOWN
    judged = np.flatnonzero(is_judged)
    windows = rows.windows if judged.size == len(rows) else take_rows(rows.windows, judged)
    rows.current_lag[judged] = current_lag(rows.committed_offset, rows.head)[judged]
    evidence = Evidence(
        rows.current_lag[judged],
        recent_head[judged],
        is_recent_complete[judged],
        rows.trend_floor[judged],
        _is_tail_verified(bucket, plan)[judged],
        is_silent[judged],
        plan.elapsed_ms,
    )
    verdicts = judge(windows, evidence, observed_ms[judged], plan.limits)
    last_status, last_reason = rows.status[judged], rows.reason[judged]
    waits = verdicts.reason == Reason.TAIL_IN_DOUBT
    bucket.unverified_rows = judged[waits]
    # Where nothing can be told now, a last verdict that was bad stands; one that was OK is OK still.
    stands = (waits | (verdicts.reason == Reason.TOO_LITTLE_KNOWN)) & (last_status != Status.OK)
    stands &= (last_reason != Reason.SILENT) | (windows.count == 0)  # a group that commits is not silent any more
    verdicts.status[stands], verdicts.reason[stands] = last_status[stands], last_reason[stands]

    has_changed = (last_status != verdicts.status) | (last_reason == Reason.NOT_JUDGED)
    rows.since_ms[judged[has_changed]] = plan.now_ms
    rows.since_ms[rows.since_ms == 0] = plan.now_ms
    rows.status[judged], rows.reason[judged] = verdicts.status, verdicts.reason
    rows.complete[judged], rows.trend_floor[judged] = verdicts.complete, verdicts.trend_floor
    return bucket


def _is_silent(rows: Rows, own: Ints, recent_head: Ints, recent_ms: int) -> Bools:
    """Whether rows of which only the offset that brokers hold is known were behind in all of the recent past."""
    is_held = (rows.windows.count[own] == 0) & (rows.committed_offset[own] != UNKNOWN)
    # Such a row has been watched since its first verdict, and was OK until it was silent for long enough.
    is_watched = (rows.since_ms[own] <= recent_ms) | (rows.reason[own] == Reason.SILENT)
    is_watched &= rows.reason[own] != Reason.NOT_JUDGED
    is_silent: Bools = is_held & is_watched & (recent_head > rows.committed_offset[own])
    return is_silent


def _is_tail_verified(bucket: WorkingBucket, plan: CyclePlan) -> Bools:
    """Whether the sampler has read data above the committed offset of each row with a short lag."""
    rows = bucket.rows
    is_verified = np.zeros(len(rows), dtype=np.bool_)
    is_short = (rows.current_lag > 0) & (rows.current_lag <= SHORT_LAG)
    for index, cluster in enumerate(plan.clusters):
        own = bucket.rows_of(index) if cluster.verified_tails else np.zeros(0, dtype=np.int64)
        short = own[is_short[own]]
        if short.size:
            topics, partitions, ends = zip(*cluster.verified_tails, strict=True)
            codes = bucket.topics.find(pa.array(topics, pa.string())).astype(np.int64)
            tails = codes << 32 | np.array(partitions, dtype=np.int64)
            tail = search(tails, rows.topic[short].astype(np.int64) << 32 | rows.partition[short])
            is_verified[short] = (tail >= 0) & (np.array(ends)[tail] > rows.committed_offset[short])
    return is_verified


def tails_to_verify(bucket: WorkingBucket, plan: CyclePlan) -> tuple[Tail, ...]:
    """The tails of some of the waiting partitions; the others follow when these are verified."""
    rows, requested = bucket.rows, bucket.unverified_rows[:MAX_REQUESTED]
    clusters = [plan.clusters[index].name for index in rows.cluster[requested].tolist()]
    topics = bucket.topics.values.take(pa.array(rows.topic[requested])).to_pylist()
    return tuple(zip(clusters, topics, rows.partition[requested].tolist(), strict=True))

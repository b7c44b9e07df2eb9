"""The step that sets the newest heads and log starts of all partitions, and the rates that follow from them."""

import numpy as np

from warren.domain.arrays import Bools, Ints
from warren.domain.rates import SPANS_MS, updated_rate
from warren.domain.windows import UNKNOWN
from warren.pipeline.working_bucket import BucketInputs, Rows, WorkingBucket


def update_heads(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Set heads, log starts and rates of the clusters that have answered.

    A partition without a leader keeps its last head: nothing is produced to it either.
    """
    rows, heads = bucket.rows, inputs.row_heads(bucket)
    bucket.heads = heads
    is_judged = np.array([cluster.is_judged for cluster in inputs.plan.clusters], dtype=np.bool_)
    own = np.flatnonzero(is_judged[rows.cluster])
    if own.size == 0:
        return bucket
    head, head_ms = heads.newest(own)
    log_start, _ = heads.newest(own, "log_start")
    is_known = head != UNKNOWN
    _update_rates(rows, own[is_known], head[is_known], head_ms[is_known])
    rows.head[own[is_known]], rows.head_ms[own[is_known]] = head[is_known], head_ms[is_known]
    is_known = log_start != UNKNOWN
    rows.log_start[own[is_known]] = log_start[is_known]
    return bucket


def _update_rates(rows: Rows, own: Ints, head: Ints, head_ms: Ints) -> None:
    """Take the messages since the last head into the averages; where a head or an offset fell they start over."""
    produced = head - rows.head[own]
    consumed = rows.committed_offset[own] - rows.unread_offset[own]
    elapsed_ms = head_ms - rows.head_ms[own]
    is_new = (rows.rates_since_ms[own] == UNKNOWN) | (rows.head[own] == UNKNOWN)
    is_new |= (produced < 0) | _is_moved_back(rows, own, consumed)
    rows.rates_since_ms[own[is_new]] = head_ms[is_new]
    is_measured = ~is_new & (elapsed_ms > 0)
    own, elapsed_ms = own[is_measured], elapsed_ms[is_measured]
    age_ms = np.maximum(rows.head_ms[own] - rows.rates_since_ms[own], 0)
    for name, count in (("produced", produced[is_measured]), ("consumed", consumed[is_measured])):
        for ending, span_ms in SPANS_MS.items():
            rate = getattr(rows, f"{name}_{ending}")
            rate[own] = updated_rate(rate[own].astype(np.float64), count, elapsed_ms, age_ms, span_ms)


def _is_moved_back(rows: Rows, own: Ints, consumed: Ints) -> Bools:
    """Whether the group went back, or nothing is known of where it was."""
    is_unknown: Bools = (rows.unread_offset[own] == UNKNOWN) | (rows.committed_offset[own] == UNKNOWN)
    return is_unknown | (consumed < 0)

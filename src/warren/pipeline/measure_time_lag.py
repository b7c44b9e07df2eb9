"""The step that measures lag in time, and says how it goes on: when it is caught up, and when data is lost."""

import numpy as np

from warren.domain.arrays import Bools, Ints, SmallInts
from warren.domain.rates import MIN_AGE_MS, SPANS_MS, catch_up_seconds, lost_messages, retention_left_seconds
from warren.domain.time_lag import TimeLagMethod, UnreadSince, seconds_behind
from warren.domain.windows import UNKNOWN, mean_distance_ms
from warren.pipeline.head_history import RowHeads
from warren.pipeline.record_times import set_record_times
from warren.pipeline.working_bucket import BucketInputs, Rows, WorkingBucket


def measure_time_lag(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Set since when the first unread message of each judged partition has been there, and the forecasts.

    When the head passed an offset never changes: it is looked up once per committed offset.
    """
    rows, plan, heads = bucket.rows, inputs.plan, bucket.heads or inputs.row_heads(bucket)
    distance_ms = mean_distance_ms(rows.windows)
    is_same = rows.unread_offset == rows.committed_offset
    for index, cluster in enumerate(plan.clusters):
        own = bucket.rows_of(index) if cluster.is_judged else np.zeros(0, dtype=np.int64)
        own = own[bucket.unknown_since_ms[own] == UNKNOWN]
        if own.size == 0:
            continue
        _set_unread_since(rows, own, is_same[own], heads, cluster.name)
        set_record_times(bucket, own, cluster.record_times, plan.now_ms)
        since = UnreadSince(rows.unread_since_ms[own], rows.unread_error_ms[own], rows.behind_method[own])
        rows.seconds_behind[own] = seconds_behind(since, plan.now_ms)
        _set_forecasts(rows, own, heads, cluster.name, plan.elapsed_ms + distance_ms[own])
        rows.unread_offset[own] = rows.committed_offset[own]
    return bucket


def _set_unread_since(rows: Rows, own: Ints, is_same: Bools, heads: RowHeads, cluster: str) -> None:
    """Look up the offsets that are new, and those of which only a bound is known."""
    lag, method = rows.current_lag[own], rows.behind_method[own]
    _set(rows, own[lag == 0], UNKNOWN, UNKNOWN, TimeLagMethod.CAUGHT_UP)
    _set(rows, own[lag == UNKNOWN], UNKNOWN, UNKNOWN, TimeLagMethod.UNKNOWN)
    is_exact = (method != TimeLagMethod.UNKNOWN) & (method != TimeLagMethod.AT_LEAST)
    is_exact &= method != TimeLagMethod.CAUGHT_UP
    wanted = np.flatnonzero((lag > 0) & ~(is_same & is_exact))
    found = heads.unread_since(own[wanted], cluster, rows.committed_offset[own[wanted]])
    # A bound that was known before the history forgot it still holds.
    had_bound = is_same[wanted] & (method[wanted] == TimeLagMethod.AT_LEAST)
    before_ms = rows.unread_since_ms[own[wanted]]
    stands = had_bound & (found.method != TimeLagMethod.HEAD_HISTORY)
    stands &= (found.method == TimeLagMethod.UNKNOWN) | (before_ms < found.since_ms)
    changed = own[wanted[~stands]]
    _set(rows, changed, found.since_ms[~stands], found.error_ms[~stands], found.method[~stands])


def _set(rows: Rows, own: Ints, since_ms: Ints | int, error_ms: Ints | int, method: SmallInts | TimeLagMethod) -> None:
    rows.unread_since_ms[own], rows.unread_error_ms[own], rows.behind_method[own] = since_ms, error_ms, method


def _set_forecasts(rows: Rows, own: Ints, heads: RowHeads, cluster: str, distance_ms: Ints) -> None:
    """Set when each partition is caught up, and when it loses data, at present rates.

    What is produced between two commits and two samples, so long apart, is unread even if a group keeps up.
    """
    lag, committed, log_start = rows.current_lag[own], rows.committed_offset[own], rows.log_start[own]
    consumed = {ending: getattr(rows, f"consumed_{ending}")[own].astype(np.float64) for ending in SPANS_MS}
    gains = np.array([consumed[ending] - getattr(rows, f"produced_{ending}")[own] for ending in SPANS_MS])
    is_measured = (rows.rates_since_ms[own] != UNKNOWN) & (rows.head_ms[own] - rows.rates_since_ms[own] >= MIN_AGE_MS)
    distance = np.where((lag > 0) & (lag <= 2 * distance_ms / 1000 * np.maximum(rows.produced_1m[own], 0)), 0, lag)
    low_s, high_s = catch_up_seconds(distance, gains, is_measured | (distance == 0))
    rows.catch_up_low_s[own], rows.catch_up_high_s[own] = low_s, high_s
    gain = heads.log_start_rate(own, cluster) - np.where(is_measured, np.maximum(consumed["10m"], 0.0), 0.0)
    rows.retention_left_s[own] = retention_left_seconds(committed, log_start, lag, gain)
    rows.lost[own] = lost_messages(committed, log_start)

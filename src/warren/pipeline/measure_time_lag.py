"""The step that measures lag in time, and says how it goes on: when it is caught up, and when data is lost."""

import numpy as np

from warren.domain.arrays import Bools, Floats, Ints, SmallInts
from warren.domain.rates import (
    MIN_AGE_MS,
    SPANS_MS,
    catch_up_seconds,
    lost_messages,
    retention_left_by_age,
    retention_left_seconds,
    sooner_of,
)
from warren.domain.time_lag import TimeLagMethod, UnreadSince, age_seconds, seconds_behind
from warren.domain.windows import UNKNOWN, mean_distance_ms
from warren.pipeline.head_history import RowHeads
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.record_times import set_record_times
from warren.pipeline.topic_configs import RowConfigs, label_append_times, row_configs
from warren.pipeline.working_bucket import BucketInputs, Rows, WorkingBucket

KEEPS_UP_SHARE, KEEPS_UP_S = 1.5, 2.0
"""A group keeps up if its lag is at most what is produced in so much of the time between its commits, and so long."""

_KEPT = (TimeLagMethod.HEAD_HISTORY, TimeLagMethod.APPEND_TIME, TimeLagMethod.RECORD_TIME)
"""What is known by these methods is looked up once per offset."""


def measure_time_lag(bucket: WorkingBucket, inputs: BucketInputs) -> WorkingBucket:
    """Set since when the first unread message of each judged partition has been there, and the forecasts.

    When the head passed an offset never changes: it is looked up once per committed offset.
    """
    rows, plan, heads = bucket.rows, inputs.plan, bucket.heads or inputs.row_heads(bucket)
    is_judged = np.array([cluster.is_judged for cluster in plan.clusters], dtype=np.bool_)
    own = np.flatnonzero(is_judged[rows.cluster] & (bucket.unknown_since_ms == UNKNOWN))
    if own.size == 0:
        return bucket
    lag = rows.current_lag[own]
    _set(rows, own[lag == 0], UNKNOWN, UNKNOWN, TimeLagMethod.CAUGHT_UP)
    _set(rows, own[lag == UNKNOWN], UNKNOWN, UNKNOWN, TimeLagMethod.UNKNOWN)
    is_wanted = _is_looked_up(rows, own)
    start_rate = np.full(len(rows), np.nan)
    for index in np.unique(rows.cluster[own]).tolist():
        cluster, of_cluster = plan.clusters[index], own[rows.cluster[own] == index]
        _look_up(rows, of_cluster[is_wanted[of_cluster]], heads, cluster)
        set_record_times(bucket, of_cluster, cluster.record_times, plan.now_ms)
        start_rate[of_cluster] = heads.log_start_rate(of_cluster, cluster.name)
    configs = row_configs(bucket, plan)
    label_append_times(bucket, configs.is_append_time)
    since = UnreadSince(rows.unread_since_ms[own], rows.unread_error_ms[own], rows.behind_method[own])
    rows.seconds_behind[own] = seconds_behind(since, plan.now_ms)
    rows.oldest_unread_age_s[own] = age_seconds(rows.unread_record_ms[own], plan.now_ms)
    _set_forecasts(rows, own, start_rate[own], configs)
    rows.unread_offset[own] = rows.committed_offset[own]
    return bucket


def _is_looked_up(rows: Rows, own: Ints) -> Bools:
    """Which rows have an offset that is new, or of which only a bound is known."""
    is_wanted = np.zeros(len(rows), dtype=np.bool_)
    is_same = rows.unread_offset[own] == rows.committed_offset[own]
    is_exact = np.isin(rows.behind_method[own], _KEPT)
    is_wanted[own] = (rows.current_lag[own] > 0) & ~(is_same & is_exact)
    return is_wanted


def _look_up(rows: Rows, wanted: Ints, heads: RowHeads, cluster: PlannedCluster) -> None:
    """Look up when the head passed the committed offsets of some rows of a cluster."""
    found = heads.unread_since(wanted, cluster.name, rows.committed_offset[wanted])
    # A log may be a little older than the first list of topics that has it.
    is_new_log = (found.method == TimeLagMethod.AT_LEAST) & (found.error_ms != UNKNOWN)
    found.error_ms[is_new_log] += cluster.topic_refresh_ms
    # A bound that was known before the history forgot it still holds.
    is_same = rows.unread_offset[wanted] == rows.committed_offset[wanted]
    stands = is_same & (rows.behind_method[wanted] == TimeLagMethod.AT_LEAST)
    stands &= np.isin(found.method, (TimeLagMethod.UNKNOWN, TimeLagMethod.AT_LEAST))
    stands &= (found.method == TimeLagMethod.UNKNOWN) | (rows.unread_since_ms[wanted] <= found.since_ms)
    _set(rows, wanted[~stands], found.since_ms[~stands], found.error_ms[~stands], found.method[~stands])


def _set(rows: Rows, own: Ints, since_ms: Ints | int, error_ms: Ints | int, method: SmallInts | TimeLagMethod) -> None:
    rows.unread_since_ms[own], rows.unread_error_ms[own], rows.behind_method[own] = since_ms, error_ms, method


def _set_forecasts(rows: Rows, own: Ints, start_rate: Floats, configs: RowConfigs) -> None:
    """Set when each partition is caught up, and when it loses data, at present rates."""
    lag, committed, log_start = rows.current_lag[own], rows.committed_offset[own], rows.log_start[own]
    consumed = {ending: getattr(rows, f"consumed_{ending}")[own].astype(np.float64) for ending in SPANS_MS}
    gains = np.array([consumed[ending] - getattr(rows, f"produced_{ending}")[own] for ending in SPANS_MS])
    is_measured = (rows.rates_since_ms[own] != UNKNOWN) & (rows.head_ms[own] - rows.rates_since_ms[own] >= MIN_AGE_MS)
    # What is produced between two commits, and until it is read, is unread even if a group keeps up.
    ordinary_s = KEEPS_UP_SHARE * mean_distance_ms(rows.windows)[own] / 1000 + KEEPS_UP_S
    distance = np.where((lag > 0) & (lag <= ordinary_s * np.maximum(rows.produced_1m[own], 0)), 0, lag)
    low_s, high_s = catch_up_seconds(distance, gains, is_measured | (lag == 0))
    rows.catch_up_low_s[own], rows.catch_up_high_s[own] = low_s, high_s
    gain = start_rate - np.where(is_measured, np.maximum(consumed["10m"], 0.0), 0.0)
    by_log_start = retention_left_seconds(committed, log_start, lag, gain)
    # A bound from below on the age would be one from above on what is left of it, which is no warning.
    is_age_known = is_measured & np.isin(rows.behind_method[own], _KEPT)
    age_s = np.where(is_age_known, rows.seconds_behind[own], np.nan)
    # Brokers delete by the timestamps of records, which after a backfill are older than the time of waiting.
    record_age_s = rows.oldest_unread_age_s[own]
    age_s = np.where(is_measured & (record_age_s != UNKNOWN), record_age_s, age_s)
    slowest = np.maximum(np.minimum(*consumed.values()), 0.0)
    by_age = retention_left_by_age(configs.max_age_s[own], age_s, lag, slowest, high_s)
    rows.retention_left_s[own] = sooner_of(by_age, by_log_start, configs.is_limited_by_size[own])
    rows.lost[own] = lost_messages(committed, log_start)

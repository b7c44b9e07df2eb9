"""Time lag beyond the head history: times of records that the brokers were asked for, and which to ask for next."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Bools, Ints
from warren.domain.time_lag import TimeLagMethod, passing_time
from warren.kafka.samples import RecordTime
from warren.pipeline.plan import CyclePlan
from warren.pipeline.working_bucket import Rows, WorkingBucket

MAX_LOOKED_UP = 100
"""How many times of records one bucket asks for per cycle, those of the largest lags first."""
ROUGH_SHARE = 0.05
"""A time that may be off by more than this share of its age is looked up again."""

Unread = tuple[str, str, int, int]
"""The cluster, topic and partition of a first unread message, and its offset."""


def set_record_times(bucket: WorkingBucket, own: Ints, times: Sequence[RecordTime], now_ms: int) -> None:
    """Set the times of records where the head history does not reach back far enough.

    A record before the first unread one bounds its time as a head sample does. No time is later than what the head
    history proves.
    """
    rows = bucket.rows
    own = own[_is_rough(rows, now_ms)[own]]
    if not times or not own.size:
        return
    topics, *columns = zip(*times, strict=True)
    partition, offset, time_ms, error_ms = (np.array(column, dtype=np.int64) for column in columns)
    log = bucket.topics.find(pa.array(topics, pa.string())).astype(np.int64) << 32 | partition
    unread = _unread_offsets(rows, own)
    row_log = rows.topic[own].astype(np.int64) << 32 | rows.partition[own]
    last = _last_before(log, offset, row_log, unread)
    is_found = (last >= 0) & (time_ms[last] <= rows.unread_since_ms[own])
    own, last, unread = own[is_found], last[is_found], unread[is_found]
    since_ms, off_ms = passing_time(unread, time_ms[last], offset[last], rows.unread_since_ms[own], rows.head[own])
    is_same = offset[last] == unread
    rows.unread_since_ms[own] = np.where(is_same, time_ms[last], since_ms)
    rows.unread_error_ms[own] = np.where(is_same, error_ms[last], off_ms)
    # Messages before the log start are gone: the first one that is left only says how long they waited at least.
    is_whole = unread == rows.committed_offset[own]
    rows.behind_method[own] = np.where(is_whole, TimeLagMethod.RECORD_TIME, TimeLagMethod.AT_LEAST)


def times_to_look_up(bucket: WorkingBucket, plan: CyclePlan) -> tuple[Unread, ...]:
    """The first unread messages whose time is only a bound, or may be far off, those of the largest lags first."""
    rows = bucket.rows
    rough = np.flatnonzero(_is_rough(rows, plan.now_ms))
    rough = rough[np.argsort(-rows.current_lag[rough], kind="stable")[:MAX_LOOKED_UP]]
    clusters = [plan.clusters[index].name for index in rows.cluster[rough].tolist()]
    topics = bucket.topics.values.take(pa.array(rows.topic[rough])).to_pylist()
    offsets = _unread_offsets(rows, rough).tolist()
    return tuple(zip(clusters, topics, rows.partition[rough].tolist(), offsets, strict=True))


def _unread_offsets(rows: Rows, own: Ints) -> Ints:
    """The offset of the first message that is unread and still there."""
    return np.maximum(rows.committed_offset[own], rows.log_start[own])


def _is_rough(rows: Rows, now_ms: int) -> Bools:
    is_far_off = rows.unread_error_ms > ROUGH_SHARE * (now_ms - rows.unread_since_ms)
    is_record_time = np.isin(rows.behind_method, (TimeLagMethod.APPEND_TIME, TimeLagMethod.RECORD_TIME))
    is_rough: Bools = (rows.behind_method == TimeLagMethod.AT_LEAST) | (is_record_time & is_far_off)
    return is_rough


def _last_before(log: Ints, offset: Ints, row_log: Ints, row_offset: Ints) -> Ints:
    """For each row the index of the last offset of its own log that is not after the row's; -1 if there is none."""
    is_row = np.concatenate([np.zeros(log.size), np.ones(row_log.size)])
    order = np.lexsort((is_row, np.concatenate([offset, row_offset]), np.concatenate([log, row_log])))
    newest = np.maximum.accumulate(np.where(order < log.size, np.arange(order.size), -1))
    last = np.full(order.size, -1, dtype=np.int64)
    last[order] = np.where(newest >= 0, order[newest], -1)
    last = last[log.size :]
    return np.where((last >= 0) & (log[last] == row_log), last, -1)

"""Times of records that the brokers told, for the age of unread messages and for time lag beyond the head history."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Bools, Ints
from warren.domain.matching import matches_globs
from warren.domain.time_lag import TimeLagMethod, passing_time, timestamp_beyond
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import RecordTime
from warren.pipeline.plan import CyclePlan
from warren.pipeline.working_bucket import Names, Rows, WorkingBucket

MAX_LOOKED_UP = 100
"""How many times of records one bucket asks for per cycle, those of the largest lags first."""
ROUGH_SHARE = 0.05
"""A time that may be off by more than this share of its age is looked up again."""

_OF_RECORDS = (TimeLagMethod.APPEND_TIME, TimeLagMethod.RECORD_TIME)
"""By these methods the time lag is the age of the record."""

Unread = tuple[str, str, int, int, bool]
"""The cluster, topic and partition of a first unread message, its offset, and whether its record is to be read."""


def set_record_times(bucket: WorkingBucket, own: Ints, times: Sequence[RecordTime], now_ms: int) -> None:
    """Set the timestamps of first unread records, and by them the time lag that the head history does not tell."""
    rows = bucket.rows
    is_behind = rows.current_lag[own] > 0
    is_same = is_behind & (rows.unread_offset[own] == rows.committed_offset[own])
    rows.unread_record_ms[own[~is_same]] = UNKNOWN
    if times:
        known = _KnownRecords.of(times, bucket.topics)
        behind = own[is_behind & np.isin(rows.topic[own], known.log >> 32)]
        _set_timestamps(rows, behind[_lacks_timestamp(rows, behind)], known, now_ms)
        is_at_least = rows.behind_method[behind] == TimeLagMethod.AT_LEAST
        _set_unread_since(rows, behind[is_at_least | _is_far_off(rows, behind, now_ms)], known)
    is_of_record = np.isin(rows.behind_method[own], _OF_RECORDS) & (rows.unread_record_ms[own] == UNKNOWN)
    of_record = own[is_of_record]
    of_record = of_record[~_is_far_off(rows, of_record, now_ms)]
    rows.unread_record_ms[of_record] = rows.unread_since_ms[of_record]


def _set_timestamps(rows: Rows, behind: Ints, known: "_KnownRecords", now_ms: int) -> None:
    """Set the timestamps of first unread records that are known, or to which the last two before them lead."""
    unread = _unread_offsets(rows, behind)
    last = known.last_before(rows, behind, unread)
    behind, unread, last = behind[last >= 0], unread[last >= 0], last[last >= 0]
    first = known.last_before(rows, behind, known.offset[last] - 1)
    is_same = known.offset[last] == unread
    timestamp, off_ms = timestamp_beyond(
        unread, known.offset[first], known.time_ms[first], known.offset[last], known.time_ms[last]
    )
    timestamp = np.where(is_same, known.time_ms[last], timestamp)
    off_ms = np.where(is_same, known.error_ms[last], off_ms)
    is_good = (is_same | (first >= 0)) & (off_ms <= ROUGH_SHARE * np.maximum(now_ms - timestamp, 0))
    rows.unread_record_ms[behind[is_good]] = timestamp[is_good]


def _set_unread_since(rows: Rows, behind: Ints, known: "_KnownRecords") -> None:
    """Set the time lag of rows of which only a bound is known, or a time that may be far off.

    A record before the first unread one bounds its time as a head sample does. No time is later than what the head
    history proves, nor earlier than the log can be.
    """
    unread = _unread_offsets(rows, behind)
    last = known.last_before(rows, behind, unread)
    since_ms, error_ms, time_ms = rows.unread_since_ms[behind], rows.unread_error_ms[behind], known.time_ms[last]
    # A time that is known already is off by as much in both directions; a bound is the latest that it can be.
    is_rough_time = np.isin(rows.behind_method[behind], _OF_RECORDS)
    latest_ms = since_ms + np.where(is_rough_time, error_ms, 0)
    between_ms, off_ms = passing_time(unread, time_ms, known.offset[last], latest_ms, rows.head[behind])
    is_same = known.offset[last] == unread
    is_new_log = (rows.behind_method[behind] == TimeLagMethod.AT_LEAST) & (error_ms != UNKNOWN)
    is_found = (last >= 0) & (time_ms <= latest_ms) & ~(is_new_log & (time_ms < since_ms - error_ms))
    is_found &= is_same | ~is_rough_time | (off_ms < error_ms)
    behind, last, unread, time_ms = behind[is_found], last[is_found], unread[is_found], time_ms[is_found]
    between_ms, off_ms, is_same = between_ms[is_found], off_ms[is_found], is_same[is_found]
    method = np.where(is_same & known.is_append[last], TimeLagMethod.APPEND_TIME, TimeLagMethod.RECORD_TIME)
    # Messages before the log start are gone: the first one that is left only says how long they waited at least.
    is_whole = unread == rows.committed_offset[behind]
    off_ms = np.where(is_same, known.error_ms[last], off_ms)
    rows.unread_since_ms[behind] = np.where(is_same, time_ms, between_ms)
    rows.unread_error_ms[behind] = np.where(is_whole, off_ms, error_ms[is_found])
    rows.behind_method[behind] = np.where(is_whole, method, TimeLagMethod.AT_LEAST)


def times_to_look_up(bucket: WorkingBucket, plan: CyclePlan) -> tuple[Unread, ...]:
    """The first unread messages whose time is only a bound, or may be far off, those of the largest lags first.

    Then those whose record is to be read. The others have no need of it: their time lag is known.
    """
    rows = bucket.rows
    behind = np.flatnonzero(rows.current_lag > 0)
    is_read, lacks_timestamp = _is_to_be_read(bucket, plan), _lacks_timestamp(rows, behind)
    is_rough = (rows.behind_method[behind] == TimeLagMethod.AT_LEAST) & lacks_timestamp
    is_rough |= _is_far_off(rows, behind, plan.now_ms)
    is_wanted = is_rough | (is_read[behind] & lacks_timestamp)
    wanted, is_rough = behind[is_wanted], is_rough[is_wanted]
    wanted = wanted[np.lexsort((-rows.current_lag[wanted], ~is_rough))[:MAX_LOOKED_UP]]
    clusters = [plan.clusters[index].name for index in rows.cluster[wanted].tolist()]
    topics = bucket.topics.values.take(pa.array(rows.topic[wanted])).to_pylist()
    columns = (rows.partition[wanted], _unread_offsets(rows, wanted), is_read[wanted])
    return tuple(zip(clusters, topics, *(column.tolist() for column in columns), strict=True))


def _is_to_be_read(bucket: WorkingBucket, plan: CyclePlan) -> Bools:
    """Which rows are of topics whose records are to be read."""
    rows = bucket.rows
    is_read = np.zeros(len(rows), dtype=np.bool_)
    for index, cluster in enumerate(plan.clusters):
        if cluster.read_records:
            own = bucket.rows_of(index)
            is_read[own] = matches_globs(bucket.topics.values, cluster.read_records, ())[rows.topic[own]]
    return is_read


def _unread_offsets(rows: Rows, own: Ints) -> Ints:
    """The offset of the first message that is unread and still there."""
    return np.maximum(rows.committed_offset[own], rows.log_start[own])


def _lacks_timestamp(rows: Rows, own: Ints) -> Bools:
    """Which rows have no timestamp of their first unread record yet, or only of one that may be deleted by now."""
    is_lost = rows.log_start[own] > rows.committed_offset[own]
    lacks_timestamp: Bools = is_lost | (rows.unread_record_ms[own] == UNKNOWN)
    return lacks_timestamp


def _is_far_off(rows: Rows, own: Ints, now_ms: int) -> Bools:
    """Which rows have a time lag by records that may be far off."""
    is_far_off = rows.unread_error_ms[own] > ROUGH_SHARE * (now_ms - rows.unread_since_ms[own])
    return is_far_off & np.isin(rows.behind_method[own], _OF_RECORDS)


@dataclass(frozen=True, slots=True)
class _KnownRecords:
    """Records of one cluster whose times are known; `log` stands for a topic and a partition."""

    log: Ints
    offset: Ints
    time_ms: Ints
    error_ms: Ints
    is_append: Bools

    @classmethod
    def of(cls, times: Sequence[RecordTime], topics: Names) -> Self:
        """These records, with the codes of the topics of a bucket."""
        names, *columns, is_append = zip(*times, strict=True)
        partition, offset, time_ms, error_ms = (np.array(column, dtype=np.int64) for column in columns)
        log = topics.find(pa.array(names, pa.string())).astype(np.int64) << 32 | partition
        return cls(log, offset, time_ms, error_ms, np.array(is_append, dtype=np.bool_))

    def last_before(self, rows: Rows, own: Ints, offset: Ints) -> Ints:
        """The last of these records on the partition of each row that is not after an offset; -1 if there is none."""
        log = rows.topic[own].astype(np.int64) << 32 | rows.partition[own]
        is_row = np.concatenate([np.zeros(self.log.size), np.ones(log.size)])
        order = np.lexsort((is_row, np.concatenate([self.offset, offset]), np.concatenate([self.log, log])))
        newest = np.maximum.accumulate(np.where(order < self.log.size, np.arange(order.size), -1))
        last = np.full(order.size, -1, dtype=np.int64)
        last[order] = np.where(newest >= 0, order[newest], -1)
        last = last[self.log.size :]
        return np.where((last >= 0) & (self.log[last] == log), last, -1)

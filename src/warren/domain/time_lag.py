"""Lag in time: since when the first unread message of a partition has been there, and how exactly that is known."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from warren.domain.arrays import Floats, Ints, SmallInts
from warren.domain.windows import UNKNOWN


class TimeLagMethod(IntEnum):
    """How the time lag of a partition is known; the later ones cost more, or say less."""

    UNKNOWN = -1
    CAUGHT_UP = 0
    """Nothing is unread."""
    HEAD_HISTORY = 1
    """The head passed the committed offset between two samples."""
    APPEND_TIME = 2
    """The brokers know when they appended the record (LogAppendTime)."""
    RECORD_TIME = 3
    """The record says when it was made (CreateTime)."""
    AT_LEAST = 4
    """The head was beyond the committed offset in the oldest sample already."""


@dataclass(slots=True)
class UnreadSince:
    """Since when the first unread message of each partition has been there, and how far off that may be."""

    since_ms: Ints
    error_ms: Ints
    method: SmallInts


def unknown_since(n: int) -> UnreadSince:
    """Nothing is known of n partitions."""
    since_ms, error_ms = np.full((2, n), UNKNOWN, dtype=np.int64)
    return UnreadSince(since_ms, error_ms, np.full(n, TimeLagMethod.UNKNOWN, dtype=np.int8))


def passing_time(
    offset: Ints, before_ms: Ints, before_head: Ints, after_ms: Ints, after_head: Ints
) -> tuple[Ints, Ints]:
    """When the head passed each offset, read off the line between two samples, and how far off that may be at most.

    The head was at most the offset in the sample before, and beyond it in the sample after.
    """
    # The message at the offset is the one between head = offset and head = offset + 1.
    share = (offset + 0.5 - before_head) / np.maximum(after_head - before_head, 1)
    since_ms = before_ms + np.round(np.clip(share, 0.0, 1.0) * (after_ms - before_ms)).astype(np.int64)
    return since_ms, np.maximum(since_ms - before_ms, after_ms - since_ms)


def timestamp_beyond(offset: Ints, first: Ints, first_ms: Ints, last: Ints, last_ms: Ints) -> tuple[Ints, Ints]:
    """The timestamp of the record at each offset, on the line through two records before it, and how far off it may be.

    The line may end at the last of the two.
    """
    beyond_ms = np.round((offset - last) * ((last_ms - first_ms) / np.maximum(last - first, 1))).astype(np.int64)
    return last_ms + beyond_ms, np.abs(beyond_ms)


def age_seconds(timestamp_ms: Ints, now_ms: int) -> Floats:
    """How old records are by their own timestamps; UNKNOWN where these are."""
    return np.where(timestamp_ms == UNKNOWN, float(UNKNOWN), np.maximum(now_ms - timestamp_ms, 0) / 1000)


def seconds_behind(since: UnreadSince, now_ms: int) -> Floats:
    """How long the first unread message has been waiting; 0 when nothing is unread, UNKNOWN where nothing is known."""
    waiting = np.maximum(now_ms - since.since_ms, 0) / 1000
    waiting = np.where(since.method == TimeLagMethod.CAUGHT_UP, 0.0, waiting)
    return np.where(since.method == TimeLagMethod.UNKNOWN, float(UNKNOWN), waiting)

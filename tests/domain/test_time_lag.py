"""When a head passed an offset, and the time lag that follows."""

import numpy as np
import pytest

from warren.domain.time_lag import (
    TimeLagMethod,
    UnreadSince,
    age_seconds,
    passing_time,
    seconds_behind,
    timestamp_beyond,
)
from warren.domain.windows import UNKNOWN

T = 1_700_000_000_000


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("name", "offset", "before", "after", "since_ms", "error_ms"),
    [
        ("the only message between the samples", 10, (0, 10), (1000, 11), 500, 500),
        ("the first of ten", 10, (0, 10), (1000, 20), 50, 950),
        ("the last of ten", 19, (0, 10), (1000, 20), 950, 950),
        ("in the middle", 14, (0, 10), (1000, 19), 500, 500),
        ("samples at the same time", 10, (0, 10), (0, 20), 0, 0),
    ],
)
def test_passing_time(
    name: str, offset: int, before: tuple[int, int], after: tuple[int, int], since_ms: int, error_ms: int
) -> None:
    passed, error = passing_time(ints(offset), *map(ints, before), *map(ints, after))
    assert (passed.tolist(), error.tolist()) == ([since_ms], [error_ms]), name


@pytest.mark.parametrize(
    ("method", "since_ms", "seconds"),
    [
        (TimeLagMethod.CAUGHT_UP, UNKNOWN, 0.0),
        (TimeLagMethod.UNKNOWN, UNKNOWN, -1.0),
        (TimeLagMethod.HEAD_HISTORY, T - 41_500, 41.5),
        (TimeLagMethod.RECORD_TIME, T - 3_600_000, 3600.0),
        (TimeLagMethod.AT_LEAST, T - 86_400_000, 86_400.0),
        (TimeLagMethod.HEAD_HISTORY, T + 5_000, 0.0),
    ],
)
def test_seconds_behind(method: TimeLagMethod, since_ms: int, seconds: float) -> None:
    since = UnreadSince(ints(since_ms), ints(0), np.array([method], np.int8))
    assert seconds_behind(since, T).tolist() == [seconds]


@pytest.mark.parametrize(
    ("name", "offset", "first", "last", "timestamp", "error_ms"),
    [
        ("a second per record", 30, (10, 0), (20, 10_000), 20_000, 10_000),
        ("the last one itself", 20, (10, 0), (20, 10_000), 10_000, 0),
        ("timestamps that fall", 30, (10, 10_000), (20, 0), -10_000, 10_000),
        ("all at one time", 1_000, (10, 5_000), (20, 5_000), 5_000, 0),
        ("the first one twice", 30, (20, 0), (20, 0), 0, 0),
    ],
)
def test_timestamp_beyond(
    name: str, offset: int, first: tuple[int, int], last: tuple[int, int], timestamp: int, error_ms: int
) -> None:
    beyond, error = timestamp_beyond(ints(offset), *map(ints, first), *map(ints, last))
    assert (beyond.tolist(), error.tolist()) == ([timestamp], [error_ms]), name


def test_age_of_records() -> None:
    timestamps = ints(T - 5 * 86_400_000, T - 1, T, T + 60_000, UNKNOWN)
    assert age_seconds(timestamps, T).tolist() == [5 * 86_400.0, 0.001, 0.0, 0.0, -1.0]

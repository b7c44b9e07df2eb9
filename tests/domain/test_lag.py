"""Lag against sampled heads: exact where samples agree, within bounds where they do not, unknown without both."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.lag import current_lag, lag_bounds
from warren.domain.windows import UNKNOWN

Sample = tuple[int, int]  # when, head


def bounds(offset: int, time_ms: int, before: Sample, after: Sample) -> tuple[int, int, int]:
    columns = [np.array([number], np.int64) for number in (offset, time_ms, *before, *after)]
    lag, low, high = lag_bounds(*columns)
    return int(lag[0]), int(low[0]), int(high[0])


NOTHING = (UNKNOWN, UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("name", "offset", "time_ms", "before", "after", "expected"),
    [
        ("half way between two samples", 100, 1500, (1000, 200), (2000, 300), (150, 100, 200)),
        ("at the first sample", 100, 1000, (1000, 200), (2000, 300), (100, 100, 200)),
        ("at the second sample", 100, 2000, (1000, 200), (2000, 300), (200, 100, 200)),
        ("heads that agree leave no doubt", 100, 1500, (1000, 130), (2000, 130), (30, 30, 30)),
        ("committed beyond the first head: perhaps caught up", 250, 1500, (1000, 200), (2000, 300), (0, 0, 50)),
        ("committed at the second head: caught up", 300, 1500, (1000, 200), (2000, 300), (0, 0, 0)),
        ("never below 0", 900, 1500, (1000, 200), (2000, 300), (0, 0, 0)),
        ("both samples at the same moment", 100, 1000, (1000, 200), (1000, 200), (100, 100, 100)),
        ("a time before both samples takes the first", 100, 10, (1000, 200), (2000, 300), (100, 100, 200)),
        ("a time after both samples takes the second", 100, 9999, (1000, 200), (2000, 300), (200, 100, 200)),
        ("no sample before", 100, 1500, (1000, UNKNOWN), (2000, 300), NOTHING),
        ("no sample after", 100, 1500, (1000, 200), (2000, UNKNOWN), NOTHING),
        ("no sample at all", 100, 1500, (0, UNKNOWN), (0, UNKNOWN), NOTHING),
        ("a head that went down says nothing", 100, 1500, (1000, 300), (2000, 200), NOTHING),
        ("an empty topic", 0, 1500, (1000, 0), (2000, 0), (0, 0, 0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lag_by_example(
    name: str, offset: int, time_ms: int, before: Sample, after: Sample, expected: tuple[int, int, int]
) -> None:
    assert bounds(offset, time_ms, before, after) == expected, name


@given(
    st.integers(0, 2**62),
    st.integers(0, 2**42),
    st.tuples(st.integers(0, 2**42), st.integers(0, 2**62)),
    st.tuples(st.integers(0, 2**42), st.integers(0, 2**62)),
)
def test_the_lag_lies_between_its_bounds(offset: int, time_ms: int, before: Sample, after: Sample) -> None:
    lag, low, high = bounds(offset, time_ms, before, after)
    if after[1] < before[1]:
        assert (lag, low, high) == NOTHING
    else:
        assert 0 <= low <= lag <= high
        assert (low, high) == (max(before[1] - offset, 0), max(after[1] - offset, 0))


def test_current_lag() -> None:
    committed = np.array([5, 5, 9, UNKNOWN, 5, 0], np.int64)
    head = np.array([8, 5, 8, 8, UNKNOWN, 0], np.int64)
    assert current_lag(committed, head).tolist() == [3, 0, 0, UNKNOWN, UNKNOWN, 0]

"""Rates as weighted averages, and the forecasts that follow from them."""

import math

import numpy as np
import pytest

from warren.domain.rates import (
    NEVER_S,
    SPANS_MS,
    catch_up_seconds,
    lost_messages,
    retention_left_seconds,
    updated_rate,
)
from warren.domain.windows import UNKNOWN

MINUTE = 60_000


def after(counts: list[int], every_ms: int, span_ms: int) -> float:
    rate = np.array([float(UNKNOWN)])
    for turn, count in enumerate(counts):
        rate = updated_rate(rate, np.array([count]), np.array([every_ms]), np.array([turn * every_ms]), span_ms)
    return float(rate[0])


@pytest.mark.parametrize("span_ms", SPANS_MS.values())
@pytest.mark.parametrize("turns", [1, 2, 10, 1000])
def test_a_steady_rate_is_right_from_the_first_moment(turns: int, span_ms: int) -> None:
    assert after([500] * turns, 10_000, span_ms) == pytest.approx(50.0)


def test_an_average_over_a_minute_follows_within_minutes_and_one_over_ten_is_slower() -> None:
    counts = [1000] * 180 + [0] * 12
    assert after(counts, 10_000, MINUTE) == pytest.approx(100 * math.exp(-4), rel=0.01)
    assert after(counts, 10_000, 10 * MINUTE) == pytest.approx(100 * math.exp(-0.4), rel=0.05)


def test_how_often_an_average_is_updated_does_not_matter() -> None:
    often, rarely = after([10] * 600, 1_000, MINUTE), after([600] * 10, 60_000, MINUTE)
    assert often == pytest.approx(rarely) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("name", "lag", "gains", "low_s", "high_s"),
    [
        ("caught up", 0, (-5.0, -5.0), 0.0, 0.0),
        ("steady", 1200, (2.0, 2.0), 600.0, 600.0),
        ("a noisy rate gives a range", 1200, (4.0, 2.0), 300.0, 600.0),
        ("faster only since a minute", 1200, (4.0, -2.0), 300.0, NEVER_S),
        ("falls behind", 1200, (-1.0, -2.0), NEVER_S, NEVER_S),
        ("keeps its distance", 1200, (0.0, 0.0), NEVER_S, NEVER_S),
        ("a gain that is next to nothing", 1200, (1e-9, 1e-9), NEVER_S, NEVER_S),
        ("an unknown lag", UNKNOWN, (4.0, 4.0), -1.0, -1.0),
    ],
)
def test_catch_up_seconds(name: str, lag: int, gains: tuple[float, float], low_s: float, high_s: float) -> None:
    low, high = catch_up_seconds(np.array([lag]), np.array(gains).reshape(2, 1), np.array([True]))
    assert (low.tolist(), high.tolist()) == ([low_s], [high_s]), name


def test_rates_that_were_not_measured_for_long_enough_forecast_nothing() -> None:
    low, high = catch_up_seconds(np.array([5]), np.ones((2, 1)), np.array([False]))
    assert (low.tolist(), high.tolist()) == ([-1.0], [-1.0])


@pytest.mark.parametrize(
    ("name", "committed", "log_start", "lag", "gain", "left_s", "lost"),
    [
        ("nothing is unread", 100, 50, 0, 10.0, NEVER_S, 0),
        ("the log start comes closer", 100, 50, 5, 10.0, 5.0, 0),
        ("the group is faster", 100, 50, 5, -1.0, NEVER_S, 0),
        ("it does not move", 100, 50, 5, 0.0, NEVER_S, 0),
        ("it has passed the group", 100, 150, 50, 10.0, 0.0, 50),
        ("its movement is unknown", 100, 50, 5, math.nan, -1.0, 0),
        ("it is unknown itself", 100, UNKNOWN, 5, 1.0, -1.0, 0),
    ],
)
def test_retention(name: str, committed: int, log_start: int, lag: int, gain: float, left_s: float, lost: int) -> None:
    offsets = np.array([committed]), np.array([log_start])
    left = retention_left_seconds(*offsets, np.array([lag]), np.array([gain]))
    assert (left.tolist(), lost_messages(*offsets).tolist()) == ([left_s], [lost]), name

"""Rates as weighted averages, and the forecasts that follow from them."""

import math

import numpy as np
import pytest

from warren.domain.rates import (
    NEVER_S,
    SPANS_MS,
    catch_up_seconds,
    lost_messages,
    retention_left_by_age,
    retention_left_seconds,
    sooner_of,
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
        ("it has passed the group and stands", 100, 150, 50, 0.0, 0.0, 50),
        ("it has reached the group", 100, 100, 50, 10.0, 0.0, 0),
        ("nothing was ever deleted, nor read", 0, 0, 50, 0.0, NEVER_S, 0),
        ("its movement is unknown", 100, 50, 5, math.nan, -1.0, 0),
        ("it is unknown itself", 100, UNKNOWN, 5, 1.0, -1.0, 0),
    ],
)
def test_retention(name: str, committed: int, log_start: int, lag: int, gain: float, left_s: float, lost: int) -> None:
    offsets = np.array([committed]), np.array([log_start])
    left = retention_left_seconds(*offsets, np.array([lag]), np.array([gain]))
    assert (left.tolist(), lost_messages(*offsets).tolist()) == ([left_s], [lost]), name


@pytest.mark.parametrize(
    ("name", "max_age_s", "age_s", "lag", "consumed", "caught_up_s", "left_s"),
    [
        ("a stopped group", 3600.0, 600.0, 1200, 0.0, NEVER_S, 3000.0),
        ("it reads half as fast as was produced", 3600.0, 600.0, 1200, 1.0, NEVER_S, 6000.0),
        ("it reads as fast as was produced", 3600.0, 600.0, 1200, 2.0, NEVER_S, NEVER_S),
        ("it has caught up before", 3600.0, 600.0, 1200, 1.0, 1200.0, NEVER_S),
        ("it has caught up after", 3600.0, 600.0, 1200, 1.0, 6001.0, 6000.0),
        ("when it is caught up is unknown", 3600.0, 600.0, 1200, 0.0, -1.0, 3000.0),
        ("the message has just come", 3600.0, 0.0, 1, 5.0, NEVER_S, 3600.0),
        ("the message is older than that, and still there", 3600.0, 4000.0, 1200, 0.0, NEVER_S, 0.0),
        ("nothing is unread", 3600.0, math.nan, 0, 0.0, 0.0, NEVER_S),
        ("messages are kept for ever", NEVER_S, 600.0, 1200, 0.0, NEVER_S, NEVER_S),
        ("messages are kept for ever, of unknown age", NEVER_S, math.nan, 1200, 0.0, NEVER_S, NEVER_S),
        ("messages are kept for years", 1e9, 600.0, 1200, 0.0, NEVER_S, NEVER_S),
        ("an unknown age", 3600.0, math.nan, 1200, 0.0, NEVER_S, math.nan),
        ("an unknown limit", math.nan, 600.0, 1200, 0.0, NEVER_S, math.nan),
        ("an unknown lag", 3600.0, 600.0, UNKNOWN, 0.0, -1.0, math.nan),
    ],
)
def test_retention_by_age(
    name: str, max_age_s: float, age_s: float, lag: int, consumed: float, caught_up_s: float, left_s: float
) -> None:
    columns = [np.array([value]) for value in (max_age_s, age_s, lag, consumed, caught_up_s)]
    assert retention_left_by_age(*columns).tolist() == pytest.approx([left_s], nan_ok=True), name


@pytest.mark.parametrize(
    ("name", "by_age", "by_log_start", "is_limited_by_size", "left_s"),
    [
        ("the age is sooner", 60.0, 90.0, True, 60.0),
        ("the size is sooner", 90.0, 60.0, True, 60.0),
        ("only the age counts", 90.0, 60.0, False, 90.0),
        ("the log start has not been watched for long", 90.0, -1.0, True, 90.0),
        ("no configuration", math.nan, 60.0, True, 60.0),
        ("an unknown age", math.nan, 60.0, False, 60.0),
        ("kept for ever", NEVER_S, 60.0, False, NEVER_S),
        ("limited by size only", NEVER_S, 60.0, True, 60.0),
        ("limited by size only, and not reached", NEVER_S, NEVER_S, True, NEVER_S),
        ("limited by size only, and not watched for long", NEVER_S, -1.0, True, -1.0),
        ("nothing is known", math.nan, -1.0, True, -1.0),
    ],
)
def test_the_sooner_of_two_limits(
    name: str, by_age: float, by_log_start: float, is_limited_by_size: bool, left_s: float
) -> None:
    left = sooner_of(np.array([by_age]), np.array([by_log_start]), np.array([is_limited_by_size]))
    assert left.tolist() == [left_s], name

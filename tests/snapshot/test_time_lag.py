"""Time lag as readers of a snapshot show it."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warren.domain.time_lag import TimeLagMethod
from warren.snapshot.schemas import GROUPS
from warren.snapshot.time_lag import (
    MessageRates,
    describe_seconds_behind,
    describe_time_lag,
    known_or_none,
    known_values,
    to_time_lag,
    to_time_lags,
)

CAUGHT_UP = {"seconds_behind": 0.0, "behind_method": TimeLagMethod.CAUGHT_UP, "catch_up_low_s": 0.0,
             "oldest_unread_age_s": -1.0, "catch_up_high_s": 0.0, "retention_left_s": math.inf, "lost": 0,
             "produced_1m": 5.0, "produced_10m": 6.0, "consumed_1m": 5.0, "consumed_10m": -1.0}  # fmt: skip
BEHIND = {**CAUGHT_UP, "seconds_behind": 2460.0, "behind_method": TimeLagMethod.HEAD_HISTORY}
BACKFILL = {**BEHIND, "oldest_unread_age_s": 432_000.5}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (CAUGHT_UP, ""),
        ({**CAUGHT_UP, "behind_method": TimeLagMethod.UNKNOWN, "seconds_behind": -1.0}, ""),
        ({**BEHIND, "catch_up_low_s": 720.0, "catch_up_high_s": 730.0}, "41 min behind, catches up in about 12 min"),
        ({**BEHIND, "catch_up_low_s": 300.0, "catch_up_high_s": 720.0}, "41 min behind, catches up in 5 min to 12 min"),
        (
            {**BEHIND, "catch_up_low_s": 300.0, "catch_up_high_s": math.inf},
            "41 min behind, catches up in 5 min or later",
        ),
        ({**BEHIND, "catch_up_low_s": math.inf, "catch_up_high_s": math.inf}, "41 min behind, not catching up"),
        (
            {**BEHIND, "behind_method": TimeLagMethod.AT_LEAST, "catch_up_low_s": -1.0, "retention_left_s": 10_800.0},
            "at least 41 min behind, loses data in 3 h",
        ),
        (BEHIND, "41 min behind"),
        ({**CAUGHT_UP, "lost": 1234}, "1,234 messages lost"),
    ],
)
def test_time_lag_in_words(row: dict[str, Any], words: str) -> None:
    assert describe_time_lag(to_time_lag(row)) == words


def test_columns_equal_the_rows() -> None:
    rows = [
        {**dict.fromkeys(GROUPS.names, -1), **row} for row in (CAUGHT_UP, BACKFILL, {}, {"catch_up_low_s": math.inf})
    ]
    names = [name for name in GROUPS.names if name not in ("cluster", "group")]
    table = pa.table({name: pa.array([row[name] for row in rows], GROUPS.field(name).type) for name in names})
    lags = to_time_lags(table)
    assert [lags.at(row) for row in range(len(rows))] == [to_time_lag(row) for row in table.to_pylist()]
    assert lags.method_names(np.array([1, 2])) == ["head_history", "unknown"]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_columns_are_rounded_as_rows_are(kind: type[np.floating[Any]]) -> None:
    values = np.random.default_rng(5).integers(0, 10**9, 2_000) / (1024.0 if kind is np.float32 else 1000.0)
    values = values.astype(kind)
    assert known_values(values).tolist() == [known_or_none(value) for value in values.tolist()]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (BEHIND, "41 min"),
        ({**BEHIND, "behind_method": TimeLagMethod.AT_LEAST}, "at least 41 min"),
        (CAUGHT_UP, "0 s"),
        ({**CAUGHT_UP, "seconds_behind": -1.0, "behind_method": TimeLagMethod.UNKNOWN}, "?"),
    ],
)
def test_how_far_behind_in_words(row: dict[str, Any], words: str) -> None:
    assert describe_seconds_behind(to_time_lag(row)) == words


def test_unknown_and_never_are_not_numbers() -> None:
    lag = to_time_lag({**BEHIND, "catch_up_low_s": math.inf, "catch_up_high_s": math.inf})
    assert (lag.catch_up_seconds, lag.catch_up_seconds_at_most, lag.is_falling_behind) == (None, None, True)
    assert lag.retention_left_seconds is None
    assert lag.rates == MessageRates(5.0, 6.0, 5.0, None)


def test_the_age_of_the_first_unread_message_is_apart_from_its_waiting_time() -> None:
    lag = to_time_lag(BACKFILL)
    assert (lag.seconds_behind, lag.oldest_unread_age_seconds) == (2460.0, 432_000.5)
    assert to_time_lag(BEHIND).oldest_unread_age_seconds is None


def test_a_file_from_before_there_was_a_time_lag_has_none() -> None:
    lag = to_time_lag(dict.fromkeys(GROUPS.names, -1))
    assert (lag.seconds_behind, lag.seconds_behind_method, lag.lost_messages) == (None, "unknown", 0)

"""Rates of producing and consuming, as weighted averages over about a minute and ten, and what follows from them.

The averages are those of a Unix load average: what happened longer ago counts less.
"""

import numpy as np

from warren.domain.arrays import Bools, Floats, Ints
from warren.domain.windows import UNKNOWN

SPANS_MS = {"1m": 60_000, "10m": 600_000}
"""The spans of the averages, by the ending of their columns: messages are as old on average as in a plain average."""

MIN_AGE_MS = 30_000
"""For how long rates must have been measured until a forecast is made from them."""

NEVER_S = float("inf")
"""How long it takes to catch up, or to lose data, if that does not happen at present rates."""

MAX_FORECAST_S = 365 * 86_400.0
"""What takes longer does not happen: a rate that fades out is tiny, but not 0."""


def updated_rate(rate: Floats, count: Ints, elapsed_ms: Ints, age_ms: Ints, span_ms: int) -> Floats:
    """The average after `count` more messages in the time since it was last updated.

    `age_ms` is for how long it was measured before. An average of a short time weighs that time alone.
    """
    elapsed, decay_ms = np.maximum(elapsed_ms, 1), span_ms / 2
    share = np.expm1(-elapsed / decay_ms) / np.expm1(-(age_ms + elapsed) / decay_ms)
    before = np.maximum(rate, 0.0)
    return before + share * (count * 1000.0 / elapsed - before)


def catch_up_seconds(lag: Ints, gains: Floats, is_known: Bools) -> tuple[Floats, Floats]:
    """How long until the lag is 0, at least and at most; `gains` has, by span, consumed minus produced per second.

    Where the spans disagree the rate is noisy, and the answer is a range; without a gain it is NEVER_S.
    """
    fastest, slowest = gains.max(axis=0), gains.min(axis=0)
    soonest, latest = _seconds(lag, fastest), _seconds(lag, slowest)
    is_known = is_known & (lag != UNKNOWN)
    return np.where(is_known, soonest, float(UNKNOWN)), np.where(is_known, latest, float(UNKNOWN))


def retention_left_seconds(committed: Ints, log_start: Ints, lag: Ints, gain: Floats) -> Floats:
    """How long until the log start passes the committed offset, if it gains so many offsets on it per second.

    NEVER_S if it does not gain, or if nothing is unread.
    """
    is_known = (committed != UNKNOWN) & (log_start != UNKNOWN) & (lag != UNKNOWN) & ~np.isnan(gain)
    left = _seconds(np.maximum(committed - log_start, 0), gain)
    # A log start that stands where a group has not read anything yet deletes nothing.
    left = np.where((lag == 0) | ((committed == log_start) & (gain <= 0)), NEVER_S, left)
    return np.where(is_known, left, float(UNKNOWN))


def retention_left_by_age(max_age_s: Floats, age_s: Floats, lag: Ints, consumed: Floats, caught_up_s: Floats) -> Floats:
    """How long until the first unread message is older than the topic keeps its messages; NaN where that is unknown.

    The first message that is kept becomes younger by a second per second. The first unread one does by as much as it
    took to produce what is consumed in a second, if the unread messages were produced steadily. NEVER_S if that is as
    fast, if nothing will be unread by then, or if messages are kept for ever.
    """
    gain = 1.0 - consumed * age_s / np.maximum(lag, 1)
    left = _seconds(np.maximum(max_age_s - age_s, 0.0), gain)
    left = np.where(np.isnan(max_age_s) | np.isnan(age_s) | (lag == UNKNOWN), np.nan, left)
    is_read_before = (caught_up_s != UNKNOWN) & (caught_up_s <= left)
    return np.where((lag == 0) | is_read_before | (max_age_s == NEVER_S), NEVER_S, left)


def sooner_of(by_age: Floats, by_log_start: Floats, is_limited_by_size: Bools) -> Floats:
    """How long until unread messages are deleted, by their age, and by the log start if something else moves it too.

    The movement of the log start counts as well where the age tells nothing (NaN). Where that is unknown, an age that
    is never reached tells nothing either.
    """
    counts = is_limited_by_size | np.isnan(by_age)
    by_log_start = np.where(counts & (by_log_start != UNKNOWN), by_log_start, np.nan)
    by_age = np.where(counts & (by_age == NEVER_S), np.nan, by_age)
    left = np.fmin(by_age, by_log_start)
    return np.where(np.isnan(left), float(UNKNOWN), left)


def lost_messages(committed: Ints, log_start: Ints) -> Ints:
    """How many messages were deleted before they were read."""
    is_known = (committed != UNKNOWN) & (log_start != UNKNOWN)
    return np.where(is_known, np.maximum(log_start - committed, 0), 0)


def _seconds(distance: Ints | Floats, per_second: Floats) -> Floats:
    is_moving = per_second > 0
    seconds = distance / np.where(is_moving, per_second, 1.0)
    return np.where(distance == 0, 0.0, np.where(is_moving & (seconds <= MAX_FORECAST_S), seconds, NEVER_S))

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
    left = np.where(lag > 0, left, NEVER_S)
    return np.where(is_known, left, float(UNKNOWN))


def lost_messages(committed: Ints, log_start: Ints) -> Ints:
    """How many messages were deleted before they were read."""
    is_known = (committed != UNKNOWN) & (log_start != UNKNOWN)
    return np.where(is_known, np.maximum(log_start - committed, 0), 0)


def _seconds(distance: Ints, per_second: Floats) -> Floats:
    is_moving = per_second > 0
    seconds = distance / np.where(is_moving, per_second, 1.0)
    return np.where(distance == 0, 0.0, np.where(is_moving & (seconds <= MAX_FORECAST_S), seconds, NEVER_S))

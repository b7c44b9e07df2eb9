"""The lag of commits, within the bounds that sampled heads allow, and its trend, told from the noise of sampling."""

from dataclasses import dataclass

import numpy as np

from warren.domain.arrays import Bools, Floats, Ints
from warren.domain.windows import UNKNOWN, Windows

SHORT_LAG = 100
"""Up to this a lag may consist of transaction markers alone, which no consumer reads."""

NOISE_SHARE = 0.1
"""How much of a lag's uncertainty (high - low) a move must exceed to be a trend: interpolation is that good."""

TREND_MS = 600_000
"""How fast the start of a rise is forgotten: a lag that stays where it rose to is steady again."""


def lag_bounds(
    offset: Ints,
    time_ms: Ints,
    before_ms: Ints,
    before_head: Ints,
    after_ms: Ints,
    after_head: Ints,
    lowest_head: Ints | None = None,
) -> tuple[Ints, Ints, Ints]:
    """Lag, its low and its high bound from the heads sampled before and after each commit; UNKNOWN without both.

    The head only grows, so at the commit it lay between the two samples; the lag itself is read off the straight line.
    `lowest_head` is the head before the commit where that is known only within bounds.
    """
    lowest_head = before_head if lowest_head is None else lowest_head
    is_known = (before_head != UNKNOWN) & (lowest_head != UNKNOWN) & (after_head != UNKNOWN)
    # A head that went down (an unclean election, a topic created again) says nothing about the time between.
    is_known &= after_head >= np.maximum(before_head, lowest_head)
    span = np.maximum(after_ms - before_ms, 1)
    share = np.clip((time_ms - before_ms) / span, 0.0, 1.0)
    head = before_head + np.round(share * (after_head - before_head)).astype(np.int64)
    low = np.maximum(lowest_head - offset, 0)
    high = np.maximum(after_head - offset, 0)
    lag = np.clip(head - offset, low, high)
    return np.where(is_known, lag, UNKNOWN), np.where(is_known, low, UNKNOWN), np.where(is_known, high, UNKNOWN)


def current_lag(committed: Ints, head: Ints) -> Ints:
    """Newest head minus last committed offset, at least 0; UNKNOWN where either is."""
    is_known = (committed != UNKNOWN) & (head != UNKNOWN)
    return np.where(is_known, np.maximum(head - committed, 0), UNKNOWN)


@dataclass(slots=True)
class Trend:
    """How the lag moved, beyond what sampling alone can explain, and the lag at which the present rise started."""

    has_fallen: Bools
    has_risen: Bools
    floor: Floats


def lag_trend(windows: Windows, has_lag: Bools, floor: Floats, elapsed_ms: int) -> Trend:
    """Tell a rise and a fall of the lag from noise, looking back past the window to `floor`, where the rise started.

    As time passes, the start of a rise moves towards the oldest lag of the window.
    """
    lag = windows.lag
    noise = np.where(has_lag, windows.lag_high - windows.lag_low, 0).max(axis=1, initial=0)
    tolerance = np.ceil(noise * NOISE_SHARE).astype(np.int64)
    lowest, highest = np.iinfo(np.int64).min // 4, np.iinfo(np.int64).max
    known_or_lowest = np.where(has_lag, lag, lowest)
    peak_so_far = np.maximum.accumulate(known_or_lowest, axis=1)
    has_fallen: Bools = np.where(has_lag, peak_so_far - lag, 0).max(axis=1, initial=0) > tolerance

    rows = np.arange(lag.shape[0])
    first = lag[rows, has_lag.argmax(axis=1)]
    last = lag[rows, lag.shape[1] - 1 - has_lag[:, ::-1].argmax(axis=1)]
    is_after_peak = np.arange(lag.shape[1]) >= known_or_lowest.argmax(axis=1)[:, None]
    lowest_after_peak = np.where(has_lag & is_after_peak, lag, highest).min(axis=1, initial=highest)
    share = 1.0 - float(np.exp(-elapsed_ms / TREND_MS))
    floor = np.where((floor == UNKNOWN) | (first == UNKNOWN), floor, floor + share * (first - floor))
    since_before = np.where(floor == UNKNOWN, first, np.minimum(floor, first))
    new_floor = np.where(has_fallen, lowest_after_peak, since_before)
    new_floor = np.where(has_lag.any(axis=1), new_floor, UNKNOWN)
    has_risen: Bools = np.where(tolerance == 0, last >= new_floor, last - new_floor > tolerance)
    return Trend(has_fallen, has_risen, new_floor)

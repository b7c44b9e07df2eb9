"""Whether the lag of a partition rises or falls, told from the noise of sampled heads."""

from dataclasses import dataclass

import numpy as np

from warren.domain.arrays import Bools, Floats
from warren.domain.windows import UNKNOWN, Windows

NOISE_SHARE = 0.1
"""How much of a lag's uncertainty (high - low) a move must exceed to be a trend: interpolation is that good."""

TREND_MS = 600_000
"""How fast the start of a rise is forgotten: a lag that stays where it rose to is steady again."""


@dataclass(slots=True)
class Trend:
    """How the lag moved, beyond what sampling alone can explain, and the lag at which the present rise started."""

    has_fallen: Bools
    has_risen: Bools
    floor: Floats


def relax_floor(windows: Windows, has_lag: Bools, floor: Floats, elapsed_ms: int) -> Floats:
    """Move the start of a rise towards the window's oldest lag as time passes."""
    first = windows.lag[np.arange(floor.size), has_lag.argmax(axis=1)]
    share = 1.0 - float(np.exp(-elapsed_ms / TREND_MS))
    return np.where((floor == UNKNOWN) | (first == UNKNOWN), floor, floor + share * (first - floor))


def lag_trend(windows: Windows, has_lag: Bools, floor: Floats) -> Trend:
    """Tell a rise and a fall of the lag from noise, looking back past the window to where the rise started."""
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
    since_before = np.where(floor == UNKNOWN, first, np.minimum(floor, first))
    new_floor = np.where(has_fallen, lowest_after_peak, since_before)
    new_floor = np.where(has_lag.any(axis=1), new_floor, UNKNOWN)
    has_risen: Bools = np.where(tolerance == 0, last >= new_floor, last - new_floor > tolerance)
    return Trend(has_fallen, has_risen, new_floor)

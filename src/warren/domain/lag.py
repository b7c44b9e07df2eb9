"""The lag of a commit against the head at the time of that commit, within the bounds that sampled heads allow."""

import numpy as np

from warren.domain.arrays import Ints
from warren.domain.windows import UNKNOWN

SHORT_LAG = 100
"""Up to this a lag may consist of transaction markers alone, which no consumer reads."""


def lag_bounds(
    offset: Ints, time_ms: Ints, before_ms: Ints, before_head: Ints, after_ms: Ints, after_head: Ints
) -> tuple[Ints, Ints, Ints]:
    """Lag, its low and its high bound from the heads sampled before and after each commit; UNKNOWN without both.

    The head only grows, so at the commit it lay between the two samples; the lag itself is read off the straight line.
    """
    is_known = (before_head != UNKNOWN) & (after_head != UNKNOWN)
    # A head that went down (an unclean election, a topic created again) says nothing about the time between.
    is_known &= after_head >= before_head
    span = np.maximum(after_ms - before_ms, 1)
    share = np.clip((time_ms - before_ms) / span, 0.0, 1.0)
    head = before_head + np.round(share * (after_head - before_head)).astype(np.int64)
    low = np.maximum(before_head - offset, 0)
    high = np.maximum(after_head - offset, 0)
    lag = np.clip(head - offset, low, high)
    return (
        np.where(is_known, lag, UNKNOWN),
        np.where(is_known, low, UNKNOWN),
        np.where(is_known, high, UNKNOWN),
    )


def current_lag(committed: Ints, head: Ints) -> Ints:
    """Newest head minus last committed offset, at least 0; UNKNOWN where either is."""
    is_known = (committed != UNKNOWN) & (head != UNKNOWN)
    return np.where(is_known, np.maximum(head - committed, 0), UNKNOWN)

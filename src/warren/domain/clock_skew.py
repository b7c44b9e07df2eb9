"""The clock of a broker against ours, by the commits that it stamped.

A commit that appeared between two samples of an offsets partition's end was made between them, and its timestamp is of
the clock of the partition's leader. So every commit bounds how far that clock is ahead of ours. Some timestamps are
wrong: old clients sent their own, and a transaction shows its commits late. The skew is what most groups agree on.
"""

from dataclasses import dataclass

import numpy as np

from warren.domain.arrays import Ints

DRIFT_MS = 100
"""How much the bounds loosen with every sample, so that a clock that was corrected is believed again."""

TOLERANCE_MS = 500
"""How far a commit may lie outside the samples it appeared between without saying anything about the clock."""

MAX_COMMIT_DELAY_MS = 10_000
"""How long after it was made a commit may take until it can be read."""

_MAX_TIME_MS = 2**53


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """How far a broker's clock is ahead of ours, in ms: at least `low` and at most `high`."""

    low: int
    high: int

    @property
    def ms(self) -> int:
        """The correction: none unless the commits demand one."""
        return 0 if self.low <= 0 <= self.high else (self.low + self.high) // 2

    @property
    def error_ms(self) -> int:
        """How far off the correction may be."""
        return 0 if self.low <= 0 <= self.high else (self.high - self.low + 1) // 2

    def followed_by(self, observed: "ClockSkew") -> "ClockSkew":
        """The skew after another observation; one that contradicts this one replaces it."""
        low, high = max(self.low - DRIFT_MS, observed.low), min(self.high + DRIFT_MS, observed.high)
        return ClockSkew(low, high) if low <= high else observed


def observe_skew(times_ms: Ints, from_ms: int, to_ms: int) -> tuple[ClockSkew, int]:
    """The skew that most groups agree on, and how many groups contradict it.

    `times_ms` has the time of one commit of each group, made between two times of ours. Commits agree if the same skew
    puts them between those times; of skews that equally many agree on, the one nearest to 0 counts.
    """
    from_ms -= TOLERANCE_MS
    times = np.sort(np.clip(times_ms, 0, _MAX_TIME_MS))
    last = np.searchsorted(times, times + (to_ms - from_ms), side="right") - 1
    low, high = times[last] - to_ms, times - from_ms
    agreeing = last - np.arange(times.size) + 1
    best = np.lexsort((np.abs(low + high), -agreeing))[0]
    return ClockSkew(int(low[best]), int(high[best])), int(times.size - agreeing[best])


def to_our_clock(times_ms: Ints, skew_ms: Ints, error_ms: Ints, from_ms: Ints, to_ms: Ints) -> tuple[Ints, Ints]:
    """The times of commits by our clock, and how far off each may be.

    A time that contradicts the samples between which the commit appeared is moved to them, and may be off by any time.
    """
    times = np.clip(times_ms, 0, _MAX_TIME_MS) - skew_ms
    plausible = np.clip(times, from_ms - MAX_COMMIT_DELAY_MS, to_ms + TOLERANCE_MS)
    return plausible, np.where(times == plausible, error_ms, _MAX_TIME_MS)

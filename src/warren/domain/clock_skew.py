"""The brokers' clock against ours.

A commit that appeared between two samples of the offsets topic's end was made between them, and its timestamp is the
broker's: each sample bounds how far that clock is ahead of ours. A commit can be old (its transaction was long), never
from the future, so a clock that is ahead shows at once and one that is behind only by the newest commits.
"""

from dataclasses import dataclass

DRIFT_MS = 50
"""How much an older bound loosens with every sample, so that a clock that was corrected is believed again."""

_UNKNOWN = 2**62


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """How far the brokers' clock is ahead of ours, in ms: at least `low`, and at most `high` by the newest commits."""

    low: int = -_UNKNOWN
    high: int = -_UNKNOWN

    def updated(self, newest_ms: int, from_ms: int, to_ms: int) -> "ClockSkew":
        """The skew after a sample whose newest commit (its time is the broker's) was made between two times of ours."""
        low = max(self.low - DRIFT_MS, newest_ms - to_ms)
        high = max(self.high - DRIFT_MS, newest_ms - from_ms)
        return ClockSkew(low, high)

    @property
    def ms(self) -> int:
        """The smallest correction that explains the commits; 0 unless they contradict it."""
        if self.low > 0:
            return self.low
        return 0 if self.high == -_UNKNOWN else min(0, self.high)

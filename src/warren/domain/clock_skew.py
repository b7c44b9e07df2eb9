"""The brokers' clock against ours.

A commit that appeared between two of our looks at the end of the offsets topic was made between them, and its own time
is the broker's: each look bounds how far that clock is ahead of ours. A commit can be old (its transaction was long),
never from the future, so a clock that is ahead is seen at once and one that is behind only by the newest commits.
"""

from dataclasses import dataclass

DRIFT_MS = 50
"""How much an older bound loosens with every look, so that a clock that is set right is believed again."""

_UNKNOWN = 2**62


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """How far the brokers' clock is ahead of ours, in ms: at least `low`, and at most `high` by the newest commits."""

    low: int = -_UNKNOWN
    high: int = -_UNKNOWN

    def seen(self, newest_ms: int, looked_from_ms: int, looked_to_ms: int) -> "ClockSkew":
        """What is known after a look whose newest commit, by the broker's clock, was made between two of ours."""
        low = max(self.low - DRIFT_MS, newest_ms - looked_to_ms)
        high = max(self.high - DRIFT_MS, newest_ms - looked_from_ms)
        return ClockSkew(low, high)

    @property
    def ms(self) -> int:
        """The smallest correction that explains what was seen; 0 as long as nothing speaks against it."""
        if self.low > 0:
            return self.low
        return 0 if self.high == -_UNKNOWN else min(0, self.high)

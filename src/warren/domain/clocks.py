"""The brokers' clock against ours.

A commit that was read between two of our looks at the end of the offsets topic was made between them. Its own time is
the broker's, so each look narrows how far that clock can be ahead of ours.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skew:
    """How far the brokers' clock is ahead of ours, in ms: somewhere in [low, high] as far as commits have shown."""

    low: int = -(2**62)
    high: int = 2**62

    def narrowed(self, oldest_ms: int, newest_ms: int, looked_from_ms: int, looked_to_ms: int) -> "Skew":
        """What is known after commits with broker times oldest..newest, made between two looks on our clock."""
        low = max(self.low, newest_ms - looked_to_ms)
        high = min(self.high, oldest_ms - looked_from_ms)
        # Clocks drift and brokers differ: when the looks contradict each other the newest one is right.
        return Skew(low, high) if low <= high else Skew(newest_ms - looked_to_ms, oldest_ms - looked_from_ms)

    @property
    def ms(self) -> int:
        """The smallest correction that explains what was seen; 0 as long as nothing speaks against it."""
        return min(max(0, self.low), max(self.high, self.low)) if self.low > 0 else min(0, self.high)

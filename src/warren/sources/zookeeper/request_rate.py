"""How many requests may be sent, so that they stay below a rate."""

from collections.abc import Callable
from time import monotonic

_BURST_S = 0.1
"""How much of a second's requests may be sent at once."""


class RequestRate:
    """A token bucket: one token per request, refilled at the rate."""

    def __init__(self, per_second: float, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._size = max(per_second * _BURST_S, 1.0)
        self._tokens, self._refilled_at = 0.0, clock()
        self.total = 0
        """How many requests have been sent."""

    def is_allowed(self) -> bool:
        """Whether one more request may be sent now."""
        now = self._clock()
        self._tokens = min(self._tokens + (now - self._refilled_at) * self._per_second, self._size)
        self._refilled_at = now
        return self._tokens >= 1.0

    def count(self) -> None:
        """A request is sent."""
        self.total += 1
        self._tokens -= 1.0

    def wait_s(self) -> float:
        """How long until one more request may be sent."""
        return max((1.0 - self._tokens) / self._per_second, 0.001)

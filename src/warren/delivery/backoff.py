"""How long to wait before the next attempt: longer after each failure, up to a limit, with jitter."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff. It has no state, so that a caller can keep its count of failures on disk."""

    first_s: float
    longest_s: float

    def wait_s(self, failures: int, least_s: float = 0.0, jitter: Callable[[], float] = random.random) -> float:
        """The wait after that many earlier failures: between half and all of the doubled wait, but at least `least_s`.

        No wait is longer than `longest_s`, whatever a receiver asks for.
        """
        limit_s = min(self.first_s * 2.0 ** min(failures, 30), self.longest_s)
        return max(limit_s * (0.5 + 0.5 * jitter()), min(least_s, self.longest_s))

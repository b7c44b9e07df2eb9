"""How long the stages of a cycle take."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stopwatch:
    """How long each stage took, in milliseconds."""

    stages: dict[str, int] = field(default_factory=dict)
    _last: float = field(default_factory=time.monotonic)

    def lap(self, stage: str) -> None:
        """The stage ends now."""
        now = time.monotonic()
        self.stages[stage] = self.stages.get(stage, 0) + round((now - self._last) * 1000)
        self._last = now

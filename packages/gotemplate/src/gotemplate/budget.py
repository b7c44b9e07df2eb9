"""Limits of a rendering, so that no template can run away."""

from collections.abc import Sized
from dataclasses import dataclass

from gotemplate.errors import LimitReached
from gotemplate.foreign import joined
from gotemplate.values import Value

# A step costs some microseconds; a line about a partition takes about 30.
MAX_STEPS = 1_000_000
MAX_SIZE = 16 << 20
MAX_DEPTH = 10_000
_CHARACTERS_PER_STEP = 64
_ELEMENTS_PER_STEP = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """How many steps a rendering may take, how long it or any text in it may get, and how deep templates may call."""

    steps: int = MAX_STEPS
    size: int = MAX_SIZE
    depth: int = MAX_DEPTH


class Budget:
    """The steps and characters that are left during one rendering."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._steps = limits.steps
        self._size = limits.size
        self._parts: list[str] = []

    def spend(self, steps: int = 1) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise LimitReached(f"more than {self.limits.steps} steps")

    def spend_on(self, value: Value) -> None:
        """Spend steps on a value according to its size."""
        if isinstance(value.data, str):
            self.spend(1 + len(value.data) // _CHARACTERS_PER_STEP)
        elif isinstance(value.data, Sized):
            self.spend(1 + len(value.data) // _ELEMENTS_PER_STEP)

    def write(self, text: str) -> None:
        """Add to the output."""
        self._size -= len(text)
        if self._size < 0:
            raise LimitReached(f"more than {self.limits.size} characters of output")
        self._parts.append(text)

    def output(self) -> str:
        return joined(self._parts)

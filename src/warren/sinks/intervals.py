"""What a sink has not delivered yet, on disk: a directory an interval, each whole or not there; bounded."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warren.durable import sync

_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits, and since when."""

    intervals: int = 0
    size: int = 0
    oldest_ms: int | None = None


class Intervals:
    """The intervals that wait; one writes and one takes, in one process."""

    content = "*"
    """The files of an interval that are to be delivered."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most = most_bytes
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob("*.draft"):
            shutil.rmtree(draft, ignore_errors=True)

    def has(self, at_ms: int) -> bool:
        """Whether an interval waits."""
        return self.path(at_ms).exists()

    def add(self, at_ms: int, fill: Callable[[Path], None]) -> int:
        """Keep what `fill` puts into a directory, whose files it makes durable; gives how many older ones made room."""
        draft = self.path(at_ms).with_suffix(".draft")
        draft.mkdir()
        try:
            fill(draft)
            sync(draft)
            draft.rename(self.path(at_ms))
            sync(self._folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return self._make_room(at_ms)

    def waiting(self) -> list[int]:
        """When the intervals were that wait, oldest first."""
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdigit())

    def forget(self, at_ms: int) -> None:
        """An interval was delivered; it goes at once, so that a crash leaves no half of it."""
        gone = self._folder / f"{self.path(at_ms).name}.gone.draft"
        with contextlib.suppress(FileNotFoundError):
            self.path(at_ms).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    @property
    def is_filling_up(self) -> bool:
        """Whether so much waits that the oldest may soon have to go."""
        return self.backlog().size > self._most / 2

    def backlog(self) -> Backlog:
        """What waits."""
        sizes = {at_ms: size for at_ms in self.waiting() if (size := self._size(at_ms))}
        return Backlog(len(sizes), sum(sizes.values()), min(sizes, default=None))

    def path(self, at_ms: int) -> Path:
        """Where an interval lies."""
        return self._folder / f"{at_ms:0{_DIGITS}d}"

    def _make_room(self, newest_ms: int) -> int:
        sizes = {at_ms: self._size(at_ms) for at_ms in self.waiting()}
        dropped, total = 0, sum(sizes.values())
        for at_ms, size in sizes.items():
            if total <= self._most or at_ms == newest_ms:
                break
            self.forget(at_ms)
            total -= size
            dropped += 1
        return dropped

    def _size(self, at_ms: int) -> int:
        try:
            return sum(path.stat().st_size for path in self.path(at_ms).glob(self.content))
        except FileNotFoundError:
            return 0

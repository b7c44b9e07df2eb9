"""What a sink has not delivered yet, on disk: one directory per interval, bounded in size.

A directory appears as a whole, and disappears as a whole. One thread writes and one delivers, in one process.
"""

import contextlib
import gzip
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from warren.durable import replace_file, sync, write_new

_DIGITS = 15
_CURSOR, _NEWEST = "note", "newest"


class IntervalSpool:
    """The intervals that wait."""

    content = "*"
    """The files of an interval that are to be delivered."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob("*.draft"):
            shutil.rmtree(draft, ignore_errors=True)

    def has(self, at_ms: int) -> bool:
        """Whether an interval waits."""
        return self.path(at_ms).exists()

    def add(self, at_ms: int, write_files: Callable[[Path], None]) -> int:
        """Add the directory that `write_files` fills durably; returns how many older intervals were dropped for it."""
        draft = self.path(at_ms).with_suffix(".draft")
        draft.mkdir()
        try:
            write_files(draft)
            sync(draft)
            draft.rename(self.path(at_ms))
            sync(self._folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return self._drop_oldest(at_ms)

    def waiting(self) -> list[int]:
        """The times of the intervals that wait, oldest first."""
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdigit())

    def remove(self, at_ms: int) -> None:
        """Remove an interval, as a whole even if a crash interrupts it."""
        removed = self._folder / f"{self.path(at_ms).name}.gone.draft"
        with contextlib.suppress(FileNotFoundError):
            self.path(at_ms).rename(removed)
        shutil.rmtree(removed, ignore_errors=True)

    @property
    def is_filling_up(self) -> bool:
        """Whether so much waits that the oldest intervals may soon be dropped."""
        return sum(self.sizes().values()) > self._max_bytes / 2

    def sizes(self) -> dict[int, int]:
        """How much waits: the bytes of each interval that has something to deliver, oldest first."""
        return {at_ms: size for at_ms in self.waiting() if (size := self._size(at_ms))}

    def path(self, at_ms: int) -> Path:
        """The directory of an interval."""
        return self._folder / f"{at_ms:0{_DIGITS}d}"

    def _drop_oldest(self, newest_ms: int) -> int:
        sizes = self.sizes()
        dropped, total = 0, sum(sizes.values())
        for at_ms, size in sizes.items():
            if total <= self._max_bytes or at_ms == newest_ms:
                break
            self.remove(at_ms)
            total -= size
            dropped += 1
        return dropped

    def _size(self, at_ms: int) -> int:
        try:
            return sum(path.stat().st_size for path in self.path(at_ms).glob(self.content))
        except FileNotFoundError:
            return 0


@dataclass(frozen=True, slots=True)
class SpooledRequest:
    """One request that waits to be sent, compressed by gzip."""

    path: Path
    at_ms: int

    @property
    def position(self) -> int:
        """Its position among all requests that a sink ever sends."""
        return self.at_ms * 100_000 + int(self.path.stem)


class RequestSpool(IntervalSpool):
    """The requests that wait to be sent, in order: one file per request.

    A cursor that is put with the requests of an interval is stored together with them. It stays after they are
    delivered, until the next one is put.
    """

    content = "*.gz"

    def cursor(self) -> bytes | None:
        """The newest cursor."""
        cursors = sorted(self._folder.glob(f"*[0-9]/{_CURSOR}"))
        return cursors[-1].read_bytes() if cursors else None

    def put(self, at_ms: int, requests: Iterable[bytes | memoryview], cursor: bytes | None = None) -> int:
        """Store the requests of an interval durably; returns how many older intervals were dropped for them."""

        def write_files(folder: Path) -> None:
            for index, request in enumerate(requests):
                write_new(folder / f"{index:05d}.gz", gzip.compress(request, 1))
            if cursor is not None:
                write_new(folder / _CURSOR, cursor)

        # Positions must rise even when the clock is set back: receivers recognise repeated requests by them.
        at_ms = max(at_ms, self._newest_ms() + 1)
        dropped = self.add(at_ms, write_files)
        replace_file(self._folder / _NEWEST, str(at_ms).encode())
        for before_ms in self.waiting()[:-1] if cursor is not None else ():
            (self.path(before_ms) / _CURSOR).unlink(missing_ok=True)
            self._remove_if_empty(before_ms)
        return dropped

    def _newest_ms(self) -> int:
        newest_ms = 0
        with contextlib.suppress(FileNotFoundError, ValueError):
            newest_ms = int((self._folder / _NEWEST).read_text())
        return max([newest_ms, *self.waiting()])

    def next(self) -> SpooledRequest | None:
        """The oldest request."""
        for at_ms in self.waiting():
            for path in sorted(self.path(at_ms).glob(self.content)):
                return SpooledRequest(path, at_ms)
            self._remove_if_empty(at_ms)
        return None

    def done(self, request: SpooledRequest) -> None:
        """Remove a request, and its interval with the last of them."""
        request.path.unlink(missing_ok=True)
        self._remove_if_empty(request.at_ms)

    def replace(self, request: SpooledRequest, remainder: bytes) -> None:
        """Replace a request by the part of it that is still to be sent."""
        replace_file(request.path, gzip.compress(remainder, 1))

    def _remove_if_empty(self, at_ms: int) -> None:
        """Remove an interval without requests and cursor; the writing and the delivering thread may both find it so."""
        if not any(self.path(at_ms).glob(self.content)) and not (self.path(at_ms) / _CURSOR).exists():
            self.remove(at_ms)

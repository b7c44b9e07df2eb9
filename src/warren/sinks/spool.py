"""The requests that a sink has to send, in order: a file a request, within the directory of its interval.

A note that is put with an interval's requests is there when they are, and stays after them until the next one comes.
"""

import contextlib
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from warren.durable import replace_file, write_new
from warren.sinks.intervals import Intervals

_NOTE, _NEWEST = "note", "newest"


@dataclass(frozen=True, slots=True)
class Batch:
    """One request that waits to be sent, packed."""

    path: Path
    at_ms: int

    @property
    def place(self) -> int:
        """Where it stands among all that a sink ever sends."""
        return self.at_ms * 100_000 + int(self.path.stem)

    def read(self) -> bytes:
        """The request, packed by gzip."""
        return self.path.read_bytes()


class Spool(Intervals):
    """The requests that a sink has not sent yet."""

    content = "*.gz"

    def note(self) -> bytes | None:
        """The note of the newest interval that had one."""
        for at_ms in reversed(self.waiting()):
            if self._note(at_ms).exists():
                return self._note(at_ms).read_bytes()
        return None

    def put(self, at_ms: int, requests: Iterable[bytes | memoryview], note: bytes | None = None) -> int:
        """Keep an interval's requests, durably when it returns; gives how many older intervals had to make room."""

        def fill(folder: Path) -> None:
            for number, request in enumerate(requests):
                write_new(folder / f"{number:05d}.gz", gzip.compress(request, 1))
            if note is not None:
                write_new(folder / _NOTE, note)

        # Also when the clock was set back: who tells requests apart by their places never sees one twice.
        at_ms = max(at_ms, self._newest_ms() + 1)
        dropped = self.add(at_ms, fill)
        replace_file(self._folder / _NEWEST, str(at_ms).encode())
        if note is not None:
            self._forget_notes(at_ms)
        return dropped

    def _newest_ms(self) -> int:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return max([int((self._folder / _NEWEST).read_text()), *self.waiting()])
        return max(self.waiting(), default=0)

    def next(self) -> Batch | None:
        """The request whose turn it is."""
        for at_ms in self.waiting():
            for path in sorted(self.path(at_ms).glob(self.content)):
                return Batch(path, at_ms)
            self._forget_if_done(at_ms)
        return None

    def done(self, batch: Batch) -> None:
        """A request was taken, and is forgotten; its interval with the last of them."""
        batch.path.unlink(missing_ok=True)
        self._forget_if_done(batch.at_ms)

    def replace(self, batch: Batch, request: bytes) -> None:
        """Only a part of a request is left to be sent."""
        replace_file(batch.path, gzip.compress(request, 1))

    def _note(self, at_ms: int) -> Path:
        return self.path(at_ms) / _NOTE

    def _forget_notes(self, newest_ms: int) -> None:
        for at_ms in self.waiting():
            if at_ms < newest_ms:
                self._note(at_ms).unlink(missing_ok=True)
                self._forget_if_done(at_ms)

    def _forget_if_done(self, at_ms: int) -> None:
        """Forget what holds neither requests nor a note: who takes and who writes may both find it so."""
        if not any(self.path(at_ms).glob(self.content)) and not self._note(at_ms).exists():
            self.forget(at_ms)

"""The requests that a sink has to send, in order: a file a request, within the directory of its interval."""

import gzip
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from warren.sinks.intervals import Intervals


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

    def put(self, at_ms: int, requests: Iterable[bytes | memoryview]) -> int:
        """Keep an interval's requests, durably when it returns; gives how many older intervals had to make room."""

        def fill(folder: Path) -> None:
            for number, request in enumerate(requests):
                _write(folder / f"{number:05d}.gz", request)

        return self.add(at_ms, fill)

    def next(self) -> Batch | None:
        """The request whose turn it is."""
        for at_ms in self.waiting():
            for path in sorted(self.path(at_ms).glob("*.gz")):
                return Batch(path, at_ms)
            self.forget(at_ms)
        return None

    def done(self, batch: Batch) -> None:
        """A request was taken, and is forgotten; its interval with the last of them."""
        batch.path.unlink(missing_ok=True)
        if not any(batch.path.parent.glob("*.gz")):
            self.forget(batch.at_ms)

    def replace(self, batch: Batch, request: bytes) -> None:
        """Only a part of a request is left to be sent."""
        draft = batch.path.with_suffix(".part")
        draft.unlink(missing_ok=True)
        _write(draft, request)
        draft.replace(batch.path)


def _write(path: Path, request: bytes | memoryview) -> None:
    with path.open("xb") as out:
        out.write(gzip.compress(request, 1))
        out.flush()
        os.fsync(out.fileno())

"""What a sink has to send, on disk: a directory an interval, a file a request, in order, each whole; bounded.

A note that is put with an interval's requests is there when they are, and stays after them until the next one comes.
"""

import gzip
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_DIGITS = 15
_NOTE = "note"


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


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits, and since when."""

    intervals: int = 0
    size: int = 0
    oldest_ms: int | None = None


class Spool:
    """The intervals that a sink has not delivered yet; one writes and one takes, in one process."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most = most_bytes
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob("*.draft"):
            shutil.rmtree(draft, ignore_errors=True)

    def has(self, at_ms: int) -> bool:
        """Whether an interval waits."""
        return self._path(at_ms).exists()

    def note(self) -> bytes | None:
        """The note of the newest interval that had one."""
        for interval in reversed(self._intervals()):
            if (interval / _NOTE).exists():
                return (interval / _NOTE).read_bytes()
        return None

    def put(self, at_ms: int, requests: Iterable[bytes | memoryview], note: bytes | None = None) -> int:
        """Keep an interval's requests, durably when it returns; gives how many older intervals had to make room."""
        draft = self._path(at_ms).with_suffix(".draft")
        draft.mkdir()
        try:
            for number, request in enumerate(requests):
                _write(draft / f"{number:05d}.gz", gzip.compress(request, 1))
            if note is not None:
                _write(draft / _NOTE, note)
            _sync(draft)
            draft.rename(self._path(at_ms))
            _sync(self._folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        if note is not None:
            self._forget_notes(at_ms)
        return self._make_room(at_ms)

    def next(self) -> Batch | None:
        """The request whose turn it is."""
        for interval in self._intervals():
            for path in sorted(interval.glob("*.gz")):
                return Batch(path, int(interval.name))
            _remove_if_done(interval)
        return None

    def done(self, batch: Batch) -> None:
        """A request was taken, and is forgotten; its interval with the last of them."""
        batch.path.unlink(missing_ok=True)
        _remove_if_done(batch.path.parent)

    def replace(self, batch: Batch, request: bytes) -> None:
        """Only a part of a request is left to be sent."""
        draft = batch.path.with_suffix(".part")
        _write(draft, gzip.compress(request, 1))
        draft.replace(batch.path)

    def backlog(self) -> Backlog:
        """What waits."""
        sizes = {interval: size for interval in self._intervals() if (size := _size(interval))}
        return Backlog(len(sizes), sum(sizes.values()), min((int(one.name) for one in sizes), default=None))

    def _make_room(self, newest_ms: int) -> int:
        intervals = self._intervals()
        sizes = [_size(interval) for interval in intervals]
        dropped, total = 0, sum(sizes)
        for interval, size in zip(intervals, sizes, strict=True):
            if total <= self._most or int(interval.name) == newest_ms:
                break
            shutil.rmtree(interval, ignore_errors=True)
            total -= size
            dropped += 1
        return dropped

    def _forget_notes(self, newest_ms: int) -> None:
        for interval in self._intervals():
            if int(interval.name) < newest_ms:
                (interval / _NOTE).unlink(missing_ok=True)
                _remove_if_done(interval)

    def _intervals(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.name.isdigit())

    def _path(self, at_ms: int) -> Path:
        return self._folder / f"{at_ms:0{_DIGITS}d}"


def _remove_if_done(interval: Path) -> None:
    """Remove what holds neither requests nor a note; the one who takes and the one who writes may both find it so."""
    if not any(interval.glob("*.gz")) and not (interval / _NOTE).exists():
        shutil.rmtree(interval, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _size(interval: Path) -> int:
    try:
        return sum(path.stat().st_size for path in interval.glob("*.gz"))
    except FileNotFoundError:
        return 0


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

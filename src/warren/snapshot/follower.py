"""Follows the snapshots of a data directory: hands each new one to a callback, in one thread."""

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import pyarrow as pa

from warren.errors import CorruptSnapshot, NoSnapshot
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0

Mode = Literal["newest", "every"]


@dataclass
class SnapshotFollower:
    """Calls `take` with every snapshot that holds verdicts, or in mode "newest" with the newest one only.

    In mode "newest", snapshots published while `take` runs are skipped, except for the last of them. In mode "every",
    `take` gets all of them in order; only a snapshot that can no longer be read is skipped, with a warning.
    When `take` fails, the error is logged and the snapshot is tried again: after `retry_s`, or at the next wake-up.

    `after` is the sequence of the last snapshot that is already dealt with. Without it a follower begins with the
    newest snapshot. When the value of `version` changes, mode "newest" takes the newest snapshot once more.
    """

    name: str
    store: Store
    take: Callable[[Snapshot], None]
    _: KW_ONLY
    mode: Mode = "newest"
    after: int | None = None
    version: Callable[[], Hashable] = lambda: None
    poll_s: float = 1.0
    retry_s: float = 10.0

    def __post_init__(self) -> None:
        self._last_version: Hashable = None
        self._last_error = ""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def wake(self) -> None:
        """Look for a new snapshot at once, in the follower's own thread."""
        self._wake.set()

    def close(self) -> None:
        """Finish the snapshot under way and stop."""
        self._is_closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def poll(self) -> bool:
        """Take what is new, in the caller's thread; returns whether that worked."""
        with self._lock:
            try:
                self._take_newest() if self.mode == "newest" else self._take_every()
            except NoSnapshot:
                return True
            except Exception as error:  # noqa: BLE001 - logged, and tried again whatever it was
                self._log_once(error)
                return False
            self._last_error = ""
            return True

    def _run(self) -> None:
        while not self._is_closed:
            wait_s = self.poll_s if self.poll() else self.retry_s
            self._wake.wait(wait_s)
            self._wake.clear()

    def _take_newest(self) -> None:
        sequence, version = max(self.store.sequences(), default=None), self.version()
        if (sequence, version) == (self.after, self._last_version):
            return
        manifest = self.store.newest()
        if sequence is not None and manifest.sequence < sequence:
            log.warning("%s: manifest %d cannot be read, using %d", self.name, sequence, manifest.sequence)
        if manifest.buckets:
            self.take(Snapshot(self.store, manifest))
        self.after, self._last_version = max(sequence or 0, manifest.sequence), version

    def _take_every(self) -> None:
        sequences = sorted(self.store.sequences())
        if not sequences:
            return
        if self.after is None:
            self.after = sequences[-1] - 1
        elif sequences[-1] < self.after:
            log.warning("%s: the data directory was emptied, following it from its beginning", self.name)
            self.after = 0
        for sequence in sequences:
            if sequence > self.after and not self._is_closed:
                self._take_sequence(sequence)
                self.after = sequence

    def _take_sequence(self, sequence: int) -> None:
        try:
            manifest = self.store.manifest(sequence)
            if manifest.buckets:
                self.take(Snapshot(self.store, manifest))
        except (OSError, CorruptSnapshot) as error:
            # A manifest is removed before its files: while it is listed, they are there and something else failed.
            if not isinstance(error, CorruptSnapshot) and sequence in self.store.sequences():
                raise
            log.warning("%s: snapshot %d is skipped, it can no longer be read: %s", self.name, sequence, error)

    def _log_once(self, error: Exception) -> None:
        if str(error) == self._last_error:
            return
        self._last_error = str(error)
        # A full disk, or a snapshot that was removed meanwhile, needs no stack trace.
        is_expected = isinstance(error, (OSError, pa.ArrowException, CorruptSnapshot))
        log.warning(
            "%s: cannot take up the newest snapshot, trying again: %s", self.name, error, exc_info=not is_expected
        )

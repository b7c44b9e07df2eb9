"""A sink at work: each interval what it wants of the newest snapshot is kept on disk, and that is delivered in order.

Both go on by themselves, so that a server that is away costs nothing but room on the disk.
"""

import logging
import platform
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from warren.config.sinks import Sink
from warren.errors import SnapshotError
from warren.sinks.client import RefusedError
from warren.sinks.intervals import Intervals
from warren.sinks.points import Points, points_of
from warren.sinks.spool import Spool
from warren.snapshot.reader import Snapshot, SnapshotReader
from warren.snapshot.sinks import SinkStatus, sink_folder, write_status

log = logging.getLogger(__name__)

STALE_INTERVALS = 3
LEAST_STALE_MS = 60_000
"""A snapshot older than that says nothing about now."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
LOOK_S = 0.5


def wall_clock_ms() -> int:
    """What the clock shows."""
    return time.time_ns() // 1_000_000


class Writer(Protocol):
    """Makes requests of points, and delivers them."""

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one moment."""
        ...

    def deliver(self, request: bytes, place: int) -> bytes | None:
        """Send a packed request; gives what of it is to be sent again, if not all was taken.

        The place of a request is higher than that of all before it, and always its own. RefusedError for one that will
        never be taken, anything else for one that may be later.
        """
        ...

    def close(self) -> None:
        """No more requests come."""
        ...


class Worker(ABC):
    """Samples and delivers for one sink."""

    def __init__(self, sink: Sink, intervals: Intervals, data_dir: Path, clock_ms: Callable[[], int]) -> None:
        self._name = sink.name
        self._interval_ms = round(sink.interval * 1000)
        self._intervals = intervals
        self._reader = SnapshotReader(data_dir)
        self._folder = sink_folder(data_dir, sink.name)
        self._clock_ms = clock_ms
        self._status = SinkStatus(sink.name, sink.class_name)
        self._lock = threading.Lock()

    @abstractmethod
    def keep(self, snapshot: Snapshot, at_ms: int) -> tuple[int, int]:
        """Keep what is wanted of a snapshot; gives how many points that is, and how many intervals had to make room."""

    @abstractmethod
    def deliver_next(self) -> bool:
        """Deliver what is next; says whether there was something."""

    @abstractmethod
    def close(self) -> None:
        """No more is delivered."""

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        delivering = threading.Thread(target=self._deliver_all, args=(stop,), name="deliver", daemon=True)
        delivering.start()
        while not stop.is_set():
            now_ms = self._clock_ms()
            at_ms = now_ms // self._interval_ms * self._interval_ms + self._interval_ms
            if stop.wait((at_ms - now_ms) / 1000):
                break
            self.sample(at_ms)
        delivering.join(5.0)
        self.close()

    def sample(self, at_ms: int) -> None:
        """Keep what is known at a moment, for that moment; nothing where nothing is known of it."""
        try:
            snapshot = self._reader.latest()
            stale_ms = max(STALE_INTERVALS * self._interval_ms, LEAST_STALE_MS)
            if not snapshot.is_judged or at_ms - snapshot.manifest.now_ms > stale_ms or self._intervals.has(at_ms):
                return
            points, dropped = self.keep(snapshot, at_ms)
            if dropped:
                log.error("sink %s: no more room: %d intervals were dropped unsent", self._name, dropped)
            self.note(sampled_ms=at_ms, points=points, dropped=self._status.dropped + dropped)
        except (OSError, SnapshotError) as error:
            # A snapshot that was removed meanwhile, or a full disk.
            log.warning("sink %s: nothing was kept for this interval: %s", self._name, error)
        except Exception:
            log.exception("sink %s: nothing was kept for this interval", self._name)

    def _deliver_all(self, stop: threading.Event) -> None:
        failures = 0
        while not stop.is_set():
            try:
                is_done = self.deliver_next()
                if failures:
                    log.info("sink %s: its server takes what it missed", self._name)
                failures = 0
                if not is_done:
                    stop.wait(LOOK_S)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing is lost
                if not failures:
                    log.warning("sink %s: %s; it is tried again", self._name, error)
                longest = min(FIRST_WAIT_S * 2**failures, LONGEST_WAIT_S)
                failures = min(failures + 1, 10)
                self.note(trouble=str(error)[:300])
                stop.wait(longest * (0.5 + 0.5 * random.random()))  # noqa: S311 - only so that not all come at once

    def note(self, **changes: int | str) -> None:
        """Say how it fares."""
        with self._lock:
            held = self._intervals.backlog()
            self._status = self._status.changed(
                noted_ms=self._clock_ms(),
                waiting=held.intervals,
                waiting_bytes=held.size,
                oldest_ms=held.oldest_ms,
                **changes,
            )
            try:
                write_status(self._folder, self._status)
            except OSError as error:
                # On a full disk nobody can be told, and delivering makes room.
                log.warning("sink %s: how it fares could not be put down: %s", self._name, error)


class SinkWorker(Worker):
    """A sink whose server takes requests."""

    def __init__(self, sink: Sink, writer: Writer, data_dir: Path, clock_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._spool = Spool(sink_folder(data_dir, sink.name) / "spool", sink.spool * 1_000_000)
        super().__init__(sink, self._spool, data_dir, clock_ms)
        self._sink = sink
        self._writer = writer
        self._tags = {"host": platform.node(), **sink.tags}

    def keep(self, snapshot: Snapshot, at_ms: int) -> tuple[int, int]:
        """Keep the requests for a snapshot."""
        points = points_of(snapshot, self._sink, at_ms)
        requests = (one for group in points for one in self._writer.encode(group, self._tags, at_ms))
        return sum(map(len, points)), self._spool.put(at_ms, requests)

    def deliver_next(self) -> bool:
        """Send the request whose turn it is; says whether there was one."""
        batch = self._spool.next()
        if batch is None:
            return False
        try:
            left = self._writer.deliver(batch.read(), batch.place)
        except FileNotFoundError:
            # It had to make room.
            return True
        except RefusedError as error:
            log.error("sink %s: a request was refused, and is given up: %s", self._name, error)
            self._spool.done(batch)
            self.note(refused=self._status.refused + 1, trouble=str(error)[:300])
            return True
        if left is None:
            self._spool.done(batch)
            self.note(delivered_ms=batch.at_ms, trouble="")
            return True
        self._spool.replace(batch, left)
        raise ConnectionError("the server has taken a part, and asks for the rest later")

    def close(self) -> None:
        """No more requests come."""
        self._writer.close()

"""A sink at work: each interval what it wants of the newest snapshot is kept on disk, and that is delivered in order.

Both go on by themselves, so that a server that is away costs nothing but room on the disk. What has changed between
snapshots goes the same way, through a spool of its own.
"""

import logging
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from warren.config.sinks import Sink
from warren.delivery.sink_status import SinkStatus, sink_folder
from warren.errors import SnapshotError
from warren.sinks.change_feed import ChangeFollower
from warren.sinks.delivery import Delivery, Notes, Receiver, Requests
from warren.sinks.intervals import Intervals
from warren.sinks.points import Points, points_of
from warren.sinks.spool import Spool
from warren.snapshot.reader import Snapshot, SnapshotReader

log = logging.getLogger(__name__)

STALE_INTERVALS = 3
LEAST_STALE_MS = 60_000
"""A snapshot older than that says nothing about now."""

Keep = Callable[[Snapshot, int], tuple[int, int]]
"""Keeps what is wanted of a snapshot for a moment: how many points that is, and how many intervals had to make room."""
Part = Callable[[threading.Event], None]
"""Something that goes on by itself until it is told to stop."""


def wall_clock_ms() -> int:
    """What the clock shows."""
    return time.time_ns() // 1_000_000


class Writer(Receiver, Protocol):
    """Makes requests of points, and delivers them."""

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one moment."""
        ...


class Sampler:
    """Has something of the newest snapshot kept, each interval."""

    def __init__(
        self, sink: Sink, waiting: Intervals, notes: Notes, data_dir: Path, clock_ms: Callable[[], int], keep: Keep
    ) -> None:
        self._name = sink.name
        self._interval_ms = round(sink.interval * 1000)
        self._waiting = waiting
        self._notes = notes
        self._reader = SnapshotReader(data_dir)
        self._clock_ms = clock_ms
        self._keep = keep

    def run(self, stop: threading.Event) -> None:
        """Sample until told to stop."""
        while not stop.is_set():
            now_ms = self._clock_ms()
            at_ms = now_ms // self._interval_ms * self._interval_ms + self._interval_ms
            if not stop.wait((at_ms - now_ms) / 1000):
                self.sample(at_ms)

    def sample(self, at_ms: int) -> None:
        """Keep what is known at a moment, for that moment; nothing where nothing is known of it."""
        try:
            snapshot = self._reader.latest()
            stale_ms = max(STALE_INTERVALS * self._interval_ms, LEAST_STALE_MS)
            if not snapshot.is_judged or at_ms - snapshot.manifest.now_ms > stale_ms or self._waiting.has(at_ms):
                return
            points, dropped = self._keep(snapshot, at_ms)
            if dropped:
                log.error("sink %s: no more room: %d intervals were dropped unsent", self._name, dropped)
            self._notes.note(self._waiting, dropped=dropped, sampled_ms=at_ms, points=points)
        except (OSError, SnapshotError) as error:
            # A snapshot that was removed meanwhile, or a full disk.
            log.warning("sink %s: nothing was kept for this interval: %s", self._name, error)
        except Exception:
            log.exception("sink %s: nothing was kept for this interval", self._name)


class Worker:
    """The parts of a sink, at work together."""

    def __init__(self, sampler: Sampler | None, deliveries: Sequence[Delivery], others: Sequence[Part] = ()) -> None:
        self._sampler = sampler
        self._deliveries = deliveries
        self._others = others

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        parts = [delivery.run for delivery in self._deliveries] + list(self._others)
        if self._sampler is not None:
            parts.append(self._sampler.run)
        threads = [threading.Thread(target=part, args=(stop,), daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        stop.wait()
        for thread in threads:
            thread.join(5.0 / len(threads))
        for delivery in self._deliveries:
            delivery.close()

    def sample(self, at_ms: int) -> None:
        """Keep what is known at a moment."""
        assert self._sampler is not None
        self._sampler.sample(at_ms)

    def deliver_next(self) -> bool:
        """Deliver what is next; says whether there was something."""
        return any(delivery.deliver_next() for delivery in self._deliveries)


class SinkWorker(Worker):
    """A sink whose server takes requests: points by its writer, changes of verdicts by another."""

    def __init__(
        self,
        sink: Sink,
        writer: Writer | None,
        data_dir: Path,
        clock_ms: Callable[[], int] = wall_clock_ms,
        *,
        changes: Receiver | None = None,
    ) -> None:
        folder, most_bytes = sink_folder(data_dir, sink.name), sink.spool * 1_000_000
        folder.mkdir(parents=True, exist_ok=True)
        notes = Notes(folder, SinkStatus(sink.name, sink.class_name), clock_ms)
        tags = {"host": platform.node(), **sink.tags}
        sampler: Sampler | None = None
        deliveries: list[Delivery] = []
        if writer is not None:
            spool = Spool(folder / "spool", most_bytes)
            deliveries.append(Requests(sink.name, writer, spool, notes))

            def keep(snapshot: Snapshot, at_ms: int) -> tuple[int, int]:
                points = points_of(snapshot, sink, at_ms)
                requests = (one for group in points for one in writer.encode(group, tags, at_ms))
                return sum(map(len, points)), spool.put(at_ms, requests)

            sampler = Sampler(sink, spool, notes, data_dir, clock_ms, keep)
        self._follower: ChangeFollower | None = None
        if changes is not None:
            told = Spool(folder / "changes", most_bytes)
            deliveries.append(Requests(sink.name, changes, told, notes))
            self._follower = ChangeFollower(sink, told, data_dir, tags, notes)
        super().__init__(sampler, deliveries, [self._follower.run] if self._follower else [])

    def follow(self) -> None:
        """Keep what has changed in the snapshots since the last time."""
        assert self._follower is not None
        self._follower.take_up()

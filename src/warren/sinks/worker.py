"""A sink at work: a sampler fills a spool from the newest snapshot, and a delivery empties it.

They run in threads of their own, so that a server that is down costs nothing but disk space. Changes of verdicts go
through a second spool.
"""

import logging
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from warren.config.sinks import Sink
from warren.delivery.sink_status import SinkStatus, sink_folder
from warren.errors import SnapshotError
from warren.sinks.change_feed import ChangeFeed
from warren.sinks.delivery import Delivery, RequestDelivery, RequestSender, StatusReporter
from warren.sinks.points import Points, points_of
from warren.sinks.spool import IntervalSpool, RequestSpool
from warren.snapshot.reader import Snapshot, newest_snapshot

log = logging.getLogger(__name__)

MAX_AGE_INTERVALS = 3
MIN_MAX_AGE_MS = 60_000
"""An older snapshot says nothing about now: it is not sampled."""
STOP_TIMEOUT_S = 5.0

Put = Callable[[Snapshot, int], tuple[int, int]]
"""Puts a snapshot into a spool for a time; returns the number of points, and of older intervals that were dropped."""


def wall_clock_ms() -> int:
    """The time of day, in ms since the epoch."""
    return time.time_ns() // 1_000_000


class Writer(RequestSender, Protocol):
    """Encodes points as requests, and sends them."""

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one time."""
        ...


@dataclass(frozen=True, slots=True)
class Sampler:
    """Puts the newest snapshot into a spool at the end of every interval."""

    sink: Sink
    spool: IntervalSpool
    status: StatusReporter
    data_dir: Path
    clock_ms: Callable[[], int]
    put: Put

    def run(self, stop: threading.Event) -> None:
        """Sample until told to stop."""
        interval_ms = round(self.sink.interval * 1000)
        while not stop.is_set():
            now_ms = self.clock_ms()
            at_ms = now_ms // interval_ms * interval_ms + interval_ms
            if not stop.wait((at_ms - now_ms) / 1000):
                self.sample(at_ms)

    def sample(self, at_ms: int) -> None:
        """Put the newest snapshot into the spool for a time, unless it is too old."""
        try:
            snapshot = newest_snapshot(self.data_dir)
            max_age_ms = max(MAX_AGE_INTERVALS * self.sink.interval * 1000, MIN_MAX_AGE_MS)
            is_fresh = snapshot.is_judged and at_ms - snapshot.manifest.now_ms <= max_age_ms
            if not is_fresh or self.spool.has(at_ms):
                return
            points, dropped = self.put(snapshot, at_ms)
            if dropped:
                log.error("sink %s: its spool is full: %d intervals were dropped unsent", self.sink.name, dropped)
            self.status.report(self.spool, dropped=dropped, sampled_ms=at_ms, points=points)
        except (OSError, SnapshotError) as error:
            # A snapshot that was removed meanwhile, or a full disk, needs no stack trace.
            log.warning("sink %s: an interval could not be sampled: %s", self.sink.name, error)
        except Exception:
            log.exception("sink %s: an interval could not be sampled", self.sink.name)


@dataclass(frozen=True, slots=True)
class SinkWorker:
    """The parts of a sink."""

    sampler: Sampler | None
    deliveries: Sequence[Delivery]
    change_feed: ChangeFeed | None = None

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop, each part in a thread of its own; connections end with the process."""
        parts = (self.sampler, self.change_feed, *self.deliveries)
        threads = [threading.Thread(target=part.run, args=(stop,), daemon=True) for part in parts if part is not None]
        for thread in threads:
            thread.start()
        stop.wait()
        for thread in threads:
            thread.join(STOP_TIMEOUT_S / len(threads))


def request_worker(
    sink: Sink,
    writer: Writer | None,
    data_dir: Path,
    clock_ms: Callable[[], int] = wall_clock_ms,
    *,
    changes: RequestSender | None = None,
) -> SinkWorker:
    """The worker of a server that takes requests: points from a writer, changes of verdicts through another sender."""
    folder, max_bytes = sink_folder(data_dir, sink.name), sink.spool * 1_000_000
    folder.mkdir(parents=True, exist_ok=True)
    status = StatusReporter(folder, SinkStatus(sink.name, sink.class_name), clock_ms)
    tags = {"host": platform.node(), **sink.tags}
    sampler: Sampler | None = None
    change_feed: ChangeFeed | None = None
    deliveries: list[Delivery] = []
    if writer is not None:
        spool = RequestSpool(folder / "spool", max_bytes)
        deliveries.append(RequestDelivery(sink.name, spool, status, writer))

        def put(snapshot: Snapshot, at_ms: int) -> tuple[int, int]:
            measurements = points_of(snapshot, sink, at_ms)
            requests = (request for points in measurements for request in writer.encode(points, tags, at_ms))
            return sum(map(len, measurements)), spool.put(at_ms, requests)

        sampler = Sampler(sink, spool, status, data_dir, clock_ms, put)
    if changes is not None:
        changes_spool = RequestSpool(folder / "changes", max_bytes)
        deliveries.append(RequestDelivery(sink.name, changes_spool, status, changes))
        change_feed = ChangeFeed(sink, changes_spool, data_dir, tags, status)
    return SinkWorker(sampler, deliveries, change_feed)

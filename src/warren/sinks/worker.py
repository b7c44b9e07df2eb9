"""A sink at work: each interval the newest snapshot becomes requests in the spool, and those are delivered in order.

Both go on by themselves, so that a server that is away costs nothing but room on the disk. What has changed between
snapshots goes the same way, through a spool of its own.
"""

import logging
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from warren.config.sinks import Sink
from warren.errors import SnapshotError
from warren.sinks.delivery import Delivery, Notes, Receiver
from warren.sinks.following import ChangeFollower
from warren.sinks.points import Points, points_of
from warren.sinks.spool import Spool
from warren.snapshot.reader import SnapshotReader
from warren.snapshot.sinks import SinkStatus, sink_folder

log = logging.getLogger(__name__)

STALE_INTERVALS = 3
LEAST_STALE_S = 60.0
"""A snapshot older than that says nothing about now."""


class Writer(Receiver, Protocol):
    """Makes requests of points, and delivers them."""

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes | memoryview]:
        """Requests for points of one moment."""
        ...


class SinkWorker:
    """Samples and delivers for one sink."""

    def __init__(
        self,
        sink: Sink,
        writer: Writer | None,
        data_dir: Path,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        *,
        changes: Receiver | None = None,
    ) -> None:
        self._sink = sink
        self._writer = writer
        self._reader = SnapshotReader(data_dir)
        self._clock_ms = clock_ms
        self._interval_ms = round(sink.interval * 1000)
        self._tags = {"host": platform.node(), **sink.tags}
        folder, most_bytes = sink_folder(data_dir, sink.name), sink.spool * 1_000_000
        self._spool = Spool(folder / "spool", most_bytes)
        self._notes = Notes(folder, SinkStatus(sink.name, sink.class_name), clock_ms)
        self._deliveries: list[Delivery] = []
        if writer is not None:
            self._deliveries.append(Delivery(sink.name, writer, self._spool, self._notes))
        self._follower: ChangeFollower | None = None
        if changes is not None:
            spool = Spool(folder / "changes", most_bytes)
            self._deliveries.append(Delivery(sink.name, changes, spool, self._notes))
            self._follower = ChangeFollower(sink, spool, data_dir, self._tags, self._notes)

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        besides = [delivery.run for delivery in self._deliveries]
        if self._follower is not None:
            besides.append(self._follower.run)
        threads = [threading.Thread(target=one, args=(stop,), daemon=True) for one in besides]
        for thread in threads:
            thread.start()
        while self._writer is not None and not stop.is_set():
            now_ms = self._clock_ms()
            at_ms = now_ms // self._interval_ms * self._interval_ms + self._interval_ms
            if stop.wait((at_ms - now_ms) / 1000):
                break
            self.sample(at_ms)
        stop.wait()
        for thread in threads:
            thread.join(5.0 / len(threads))
        for delivery in self._deliveries:
            delivery.close()

    def sample(self, at_ms: int) -> None:
        """Keep what is known at a moment, for that moment; nothing where nothing is known of it."""
        assert self._writer is not None
        try:
            snapshot = self._reader.latest()
            stale_s = max(STALE_INTERVALS * self._sink.interval, LEAST_STALE_S)
            if not snapshot.is_judged or at_ms - snapshot.manifest.now_ms > stale_s * 1000 or self._spool.has(at_ms):
                return
            points = points_of(snapshot, self._sink)
            writer = self._writer
            requests = (one for group in points for one in writer.encode(group, self._tags, at_ms))
            dropped = self._spool.put(at_ms, requests)
            if dropped:
                log.error("sink %s: no more room: %d intervals were dropped unsent", self._sink.name, dropped)
            self._notes.note(self._spool, dropped=dropped, sampled_ms=at_ms, points=sum(map(len, points)))
        except (OSError, SnapshotError) as error:
            # A snapshot that was removed meanwhile, or a full disk.
            log.warning("sink %s: nothing was kept for this interval: %s", self._sink.name, error)
        except Exception:
            log.exception("sink %s: nothing was kept for this interval", self._sink.name)

    def follow(self) -> None:
        """Keep what has changed in the snapshots since the last time."""
        assert self._follower is not None
        self._follower.take_up()

    def deliver_next(self) -> bool:
        """Send the request whose turn it is; says whether there was one."""
        return any(delivery.deliver_next() for delivery in self._deliveries)

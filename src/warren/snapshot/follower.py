"""Takes note of published snapshots in a thread of its own, so that no cycle waits for it."""

import logging
import threading
from collections.abc import Callable

import pyarrow as pa

from warren.errors import CorruptSnapshot
from warren.snapshot.manifest import Manifest

log = logging.getLogger(__name__)

STOP_S = 10.0


class SnapshotFollower:
    """Gives the newest snapshot to whoever wants it, one at a time; those that come meanwhile are passed over."""

    def __init__(self, name: str, take: Callable[[Manifest], None]) -> None:
        self._name = name
        self._take = take
        self._newest: Manifest | None = None
        self._is_new = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def follow(self, manifest: Manifest) -> None:
        """A snapshot has been published."""
        self._newest = manifest
        self._is_new.set()

    def _run(self) -> None:
        while self._is_new.wait():
            self._is_new.clear()
            if self._closed:
                return
            manifest = self._newest
            try:
                if manifest is not None and manifest.buckets:
                    self._take(manifest)
            except (OSError, pa.ArrowException, CorruptSnapshot) as error:
                # A full disk, or a snapshot that was removed meanwhile: the next one is taken again.
                log.warning("%s: a snapshot could not be taken up: %s", self._name, error)
            except Exception:
                log.exception("%s: a snapshot could not be taken up", self._name)

    def close(self) -> None:
        """Finish what is under way and stop."""
        self._closed = True
        self._is_new.set()
        self._thread.join(STOP_S)

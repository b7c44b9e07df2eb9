"""Follows the snapshots of a data directory: indexes are made beside the server and put in place whole."""

import logging
import threading
import time
from pathlib import Path

from warren.errors import CorruptSnapshot, NoSnapshot
from warren.history.recent import RecentReader
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store
from warren.web.index import Index, build_index, empty_index

log = logging.getLogger(__name__)

LOOK_S = 0.2


class Follower:
    """Holds the index of the newest snapshot; `look` is called by its own thread, or by whoever cannot wait."""

    def __init__(self, data_dir: Path) -> None:
        self._store = Store(data_dir)
        self._box = RequestQueue(data_dir)
        self._recent = RecentReader(data_dir)
        self._held: tuple[int, frozenset[str]] = (-1, frozenset())
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._trouble = ""
        self.index: Index = empty_index()

    def look(self) -> None:
        """Load what is newer than what is held, if anything is."""
        with self._lock:
            try:
                sequence = max(self._store.sequences(), default=-1)
                # Other requests change nothing of what is shown.
                pending = [r for r in self._box.pending() if r.kind is RequestKind.DELETE and r.topic is None]
                if (sequence, _ids(pending)) == self._held:
                    return
                self._load(sequence, pending)
                self._trouble = ""
            except NoSnapshot:
                return
            except (CorruptSnapshot, OSError, ValueError) as error:
                # A file that has just been removed belongs to a snapshot that is old by now: the next look finds its
                # successor. What stays unreadable is said once.
                if str(error) != self._trouble:
                    log.warning("cannot read the newest snapshot, still answering from the one before: %s", error)
                    self._trouble = str(error)

    def _load(self, sequence: int, pending: list[PipelineRequest]) -> None:
        manifest = self._store.newest()
        if manifest.sequence < sequence:
            log.warning("manifest %d cannot be read, answering from %d", sequence, manifest.sequence)
        began = time.monotonic()
        hidden = to_hide(manifest, pending)
        is_first = self.index.snapshot is None
        index = empty_index()
        if manifest.buckets:
            # Nobody should wait at the start for what happened before: that is read with the next look.
            recent_of = None if is_first else self._recent.advance
            index = build_index(Snapshot(self._store, manifest), hidden, recent_of)
        index.texts.warm_up(self.index.texts)
        self.index = index
        if is_first:
            return
        self._held = (max(sequence, manifest.sequence), _ids(pending))
        log.debug("snapshot %d indexed in %.0f ms", manifest.sequence, (time.monotonic() - began) * 1000)

    def run(self) -> None:
        """Look every now and then until told to stop."""
        while not self._stop.is_set():
            try:
                self.look()
            except Exception:
                log.exception("the newest snapshot could not be indexed")
            self._stop.wait(LOOK_S)

    def start(self) -> None:
        """Look in a thread of its own."""
        threading.Thread(target=self.run, name="follow snapshots", daemon=True).start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()


def to_hide(manifest: Manifest, pending: list[PipelineRequest]) -> set[tuple[str, str]]:
    """Groups whose deletion the pipeline has not taken up yet: they are gone for whoever asks."""
    taken = {request.id for request in manifest.requests}
    return {(request.cluster, request.group) for request in pending if request.id not in taken}


def _ids(pending: list[PipelineRequest]) -> frozenset[str]:
    return frozenset(request.id for request in pending)

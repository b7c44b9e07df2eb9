"""The manifests of one data directory as their only writer sees them: take-over, publication, retention."""

import contextlib
import logging
from collections.abc import Callable

from msgspec.structs import replace

from warren.clock import steady_ms
from warren.errors import CorruptSnapshot, Fenced, SnapshotError, UnknownFormat
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

MAX_CLAIMS = 20
KEEP_MANIFESTS = 3
KEEP_MS = 120_000
_CONTINUED = ("now_ms", "steady_ms", "boot_id", "clock_steps", "buckets", "heads", "clusters", "rejects", "requests")
"""What a new writer takes over as it is; all else follows from its own configuration."""


class ManifestWriter:
    """Publishes manifests; the state between two cycles is the newest manifest and nothing else."""

    def __init__(self, store: Store, first: Callable[[], Manifest], steady_ms: Callable[[], int] = steady_ms) -> None:
        """Take over a data directory; `first` makes the manifest of one that has no snapshot."""
        self._store = store
        self._steady_ms = steady_ms
        self._first = first
        self._published: dict[int, tuple[int, set[str]]] = {}
        """For each manifest that still exists when it was first seen, and the paths of the files it names."""
        self._kept_up_to = -1
        """Files of cycles up to this one may be named by a manifest that could not be read."""
        self.newest = self._take_over()
        self._sweep()

    def _take_over(self) -> Manifest:
        """Publish the last snapshot again under a new epoch: from then on no other writer can publish."""
        self._store.create()
        for _ in range(MAX_CLAIMS - 1):
            # A writer that publishes often may win the race a few times; the later one takes over all the same.
            with contextlib.suppress(Fenced):
                return self._claim()
        return self._claim()

    def _claim(self) -> Manifest:
        try:
            before, errors = self._store.newest_whole()
        except OSError as error:
            advice = "Nothing was changed: make it readable, or choose another [pipeline] data-dir"
            raise SnapshotError(f"no snapshot in {self._store.root} can be read: {error}. {advice}") from error
        for trouble in errors:
            log.error("cannot use %s; continuing from what is intact, with its positions", trouble)
        if before is None:
            log.warning("no snapshot in %s: each offsets topic is read from its configured start", self._store.root)
        claim = replace(self._first(), epoch=self._last_epoch() + 1)
        if before is not None:
            continued = {name: getattr(before, name) for name in _CONTINUED}
            claim = replace(claim, predecessor=before.sequence, **continued)
        claim = replace(claim, sequence=max(self._store.sequences(), default=0) + 1)
        self._store.publish(claim)
        return claim

    def _last_epoch(self) -> int:
        """The epoch of the last writer, also if its last snapshot is damaged."""
        for sequence in self._store.sequences():
            with contextlib.suppress(SnapshotError, OSError):
                return self._store.manifest(sequence).epoch
        return 0

    def _sweep(self) -> None:
        """Remove damaged manifests, and files that no manifest names; what only could not be read now is kept."""
        self._store.remove_drafts()
        damaged = []
        for sequence in self._store.sequences():
            try:
                self._remember(self._store.manifest(sequence))
            except (UnknownFormat, OSError) as error:
                log.error("manifest %d cannot be read and is kept, with all that it may name: %s", sequence, error)
                self._kept_up_to = max(self._kept_up_to, sequence)
            except CorruptSnapshot as error:
                log.error("manifest %d is damaged and is removed: %s", sequence, error)
                damaged.append(sequence)
        if removed := self._remove(damaged):
            log.info("removed %d files that no manifest names", removed)

    def fall_back(self) -> bool:
        """If a file of the newest manifest is damaged, continue from what is intact; gives whether one was."""
        if not self._store.newest_whole()[1]:
            return False
        self.newest = self._claim()
        self._remember(self.newest)
        return True

    def publish(self, manifest: Manifest) -> None:
        """Commit a cycle; raises Fenced when another writer has taken over."""
        self._store.publish(manifest)
        self.newest = manifest
        self._remember(manifest)

    def _remember(self, manifest: Manifest) -> None:
        self._published[manifest.sequence] = (self._steady_ms(), {file.path for file in manifest.files()})

    def remove_old(self) -> None:
        """Keep the newest manifests and those of the last minutes; remove what only older ones name."""
        oldest_ms = self._steady_ms() - KEEP_MS
        old = [s for s in sorted(self._published)[:-KEEP_MANIFESTS] if self._published[s][0] < oldest_ms]
        if old:
            for sequence in old:
                del self._published[sequence]
            self._remove(old)

    def _remove(self, sequences: list[int]) -> int:
        """Remove manifests, and all files that no other one names, those of failed and repeated tasks too."""
        self._store.remove(sequences)
        named = (path for _, paths in self._published.values() for path in paths)
        return self._store.sweep(named, self._kept_up_to, self.newest.sequence)

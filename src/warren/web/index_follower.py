"""Keeps the index of the newest snapshot: each is built in a thread of its own and replaces the one before at once."""

import logging
import time
from collections.abc import Hashable
from pathlib import Path

from warren.history.recent import RecentReader
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store
from warren.web.index import Index, build_index

log = logging.getLogger(__name__)

POLL_S = 0.2


class IndexFollower:
    """Holds the index of the newest snapshot."""

    def __init__(self, data_dir: Path) -> None:
        self._requests = RequestQueue(data_dir)
        self._recent = RecentReader(data_dir)
        self._follower = SnapshotFollower(
            "index", Store(data_dir), self._load, version=self._version, poll_s=POLL_S, retry_s=POLL_S
        )
        self.index: Index = build_index(None)

    def start(self) -> None:
        """Load the newest snapshot, then follow in a thread."""
        self.refresh()
        self._follower.start()

    def refresh(self) -> None:
        """Load what is new, in the caller's thread."""
        self._follower.poll()

    def close(self) -> None:
        """Stop following."""
        self._follower.close()

    def _load(self, snapshot: Snapshot) -> None:
        began = time.monotonic()
        hidden = hidden_groups(snapshot.manifest, self._deletions())
        # The first answers do not wait for the history of the last hour: the next poll adds it.
        recent_of = self._recent.advance if self.index.snapshot else None
        index = build_index(snapshot, hidden, recent_of)
        index.status_json.warm_up(self.index.status_json)
        self.index = index
        if recent_of:
            took_ms = (time.monotonic() - began) * 1000
            log.debug("snapshot %d indexed in %.0f ms", snapshot.manifest.sequence, took_ms)

    def _version(self) -> Hashable:
        return self.index.snapshot is not None, frozenset(request.id for request in self._deletions())

    def _deletions(self) -> list[PipelineRequest]:
        pending = self._requests.pending()
        return [request for request in pending if request.kind is RequestKind.DELETE and request.topic is None]


def hidden_groups(manifest: Manifest, deletions: list[PipelineRequest]) -> set[tuple[str, str]]:
    """Groups whose deletion the pipeline has not carried out yet: answers leave them out already."""
    done = {request.id for request in manifest.requests}
    return {(request.cluster, request.group) for request in deletions if request.id not in done}

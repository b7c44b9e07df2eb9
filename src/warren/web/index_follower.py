"""Keeps the index of the newest snapshot: each is built in a thread of its own and replaces the one before at once."""

import logging
import time
from collections.abc import Hashable
from pathlib import Path

from warren.history.recent import RecentReader
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.reader import Snapshot
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store
from warren.web.index import Index, build_index

log = logging.getLogger(__name__)

POLL_S = 0.2


class IndexFollower(SnapshotFollower):
    """Holds the index of the newest snapshot."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(
            "index", Store(data_dir), self._load, version=self._index_version, poll_s=POLL_S, retry_s=POLL_S
        )
        self._requests = RequestQueue(data_dir)
        self._recent = RecentReader(data_dir)
        self.index: Index = build_index(None)

    def _load(self, snapshot: Snapshot) -> None:
        began = time.monotonic()
        # Answers already leave out the groups whose deletion the pipeline has not carried out yet.
        done = {request.id for request in snapshot.manifest.requests}
        hidden = {(request.cluster, request.group) for request in self._deletions() if request.id not in done}
        # The first answers do not wait for the history of the last hour: the next poll adds it.
        recent_of = self._recent.advance if self.index.snapshot else None
        index = build_index(snapshot, hidden, recent_of)
        index.status_json.warm_up(self.index.status_json)
        self.index = index
        if recent_of:
            took_ms = (time.monotonic() - began) * 1000
            log.debug("snapshot %d indexed in %.0f ms", snapshot.manifest.sequence, took_ms)

    def _index_version(self) -> Hashable:
        return self.index.snapshot is not None, frozenset(request.id for request in self._deletions())

    def _deletions(self) -> list[PipelineRequest]:
        pending = self._requests.pending()
        return [request for request in pending if request.kind is RequestKind.DELETE and request.topic is None]

"""What the endpoints answer from: the configuration, the newest snapshot and the queue of requests to the pipeline.

The index of each snapshot is built in a thread of its own and replaces the one before at once.
"""

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path

from warren.config import Config
from warren.domain.reasons import format_duration
from warren.errors import RequestError
from warren.history.recent import RecentReader
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.manifest import NO_MANIFEST
from warren.snapshot.reader import Snapshot
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store
from warren.web.http import Request
from warren.web.index import Index, build_index
from warren.web.logins import Logins

log = logging.getLogger(__name__)

POLL_S = 0.2
LATE_AFTER_TRIGGERS = 3
"""How many triggers, or cycles if those take longer, a snapshot may be old."""


class IndexFollower(SnapshotFollower):
    """Holds the index of the newest snapshot."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(
            "index", Store(data_dir), self._load, version=self._index_version, poll_s=POLL_S, retry_s=POLL_S
        )
        self._requests = RequestQueue(data_dir)
        self._recent = RecentReader(data_dir)
        self.index: Index = build_index(Snapshot(self.store, NO_MANIFEST))

    def _load(self, snapshot: Snapshot) -> None:
        began = time.monotonic()
        # Answers already leave out the groups whose deletion the pipeline has not carried out yet.
        done = {request.id for request in snapshot.manifest.requests}
        hidden = {(request.cluster, request.group) for request in self._deletions() if request.id not in done}
        # The first answers do not wait for the history of the last hour: the next poll adds it.
        recent_of = self._recent.advance if self.index.snapshot.is_judged else None
        index = build_index(snapshot, hidden, recent_of)
        index.details.warm_up(self.index.details)
        index.status_json.warm_up(self.index.status_json)
        self.index = index
        if recent_of:
            took_ms = (time.monotonic() - began) * 1000
            log.debug("snapshot %d indexed in %.0f ms", snapshot.manifest.sequence, took_ms)

    def _index_version(self) -> Hashable:
        return self.index.snapshot.is_judged, frozenset(request.id for request in self._deletions())

    def _deletions(self) -> list[PipelineRequest]:
        pending = self._requests.pending()
        return [request for request in pending if request.kind is RequestKind.DELETE and request.topic is None]


@dataclass(frozen=True)
class Api:
    """The state that endpoints share; each endpoint is a function of it and a request."""

    config: Config
    follower: IndexFollower
    requests: RequestQueue
    clock_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    logins: Logins = field(default_factory=Logins)

    @property
    def index(self) -> Index:
        """The index of the newest snapshot."""
        return self.follower.index

    @property
    def data_dir(self) -> Path:
        """The data directory of the pipeline."""
        return self.config.pipeline.data_dir

    def cluster_of(self, request: Request) -> str:
        """The cluster of a request's path, which must be configured."""
        if request.params["cluster"] not in self.config.clusters:
            raise RequestError("cluster not found", 404)
        return request.params["cluster"]


def not_ready(snapshot: Snapshot, now_ms: int) -> str | None:
    """Why the newest snapshot is not to be relied on, after Burrow's word for it; None if it is."""
    if not snapshot.is_judged:
        return "STARTING\nno snapshot yet: the first cycle has not ended, or the pipeline does not run\n"
    manifest = snapshot.manifest
    pace_ms = max(manifest.trigger_ms, sum(manifest.cycle_ms.values()))
    age_ms = now_ms - manifest.now_ms
    if age_ms > LATE_AFTER_TRIGGERS * pace_ms:
        age = format_duration(age_ms)
        return f"STARTING\nthe newest snapshot is {age} old: the pipeline is behind or does not run\n"
    if not manifest.is_ready:
        return f"STARTING\ncatching up with the offsets topics: {manifest.backlog:,} offsets left\n"
    return None

"""What the endpoints answer from: the configuration, the newest snapshot and the queue of requests to the pipeline."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from warren.config import Config
from warren.domain.reasons import format_duration
from warren.errors import RequestError
from warren.snapshot.reader import Snapshot
from warren.snapshot.requests import RequestQueue
from warren.web.http import Request
from warren.web.index import Index
from warren.web.index_follower import IndexFollower

LATE_AFTER_TRIGGERS = 3
"""How many triggers, or cycles if those take longer, a snapshot may be old."""


@dataclass(frozen=True)
class Api:
    """The state that endpoints share; each endpoint is a function of it and a request."""

    config: Config
    follower: IndexFollower
    requests: RequestQueue
    clock_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)

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


def not_ready(snapshot: Snapshot | None, now_ms: int) -> str | None:
    """Why the newest snapshot is not to be relied on, after Burrow's word for it; None if it is."""
    if snapshot is None:
        return "STARTING\nno snapshot yet: the first cycle has not ended, or the pipeline does not run\n"
    manifest = snapshot.manifest
    pace_ms = max(manifest.trigger_ms, sum(manifest.cycle_ms.values()))
    age_ms = now_ms - manifest.now_ms
    if age_ms > LATE_AFTER_TRIGGERS * pace_ms:
        age = format_duration(age_ms)
        return f"STARTING\nthe newest snapshot is {age} old: the pipeline is behind or does not run\n"
    if not manifest.is_ready:
        return f"STARTING\ncatching up with the offsets topics: {manifest.left_to_catch_up:,} offsets left\n"
    return None

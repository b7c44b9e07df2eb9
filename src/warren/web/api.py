"""What the endpoints answer from: the configuration, the newest snapshot and the queue of requests to the pipeline."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from warren.config import Config
from warren.errors import RequestError
from warren.snapshot.requests import RequestQueue
from warren.web.http import Request
from warren.web.index import Index
from warren.web.index_follower import IndexFollower


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

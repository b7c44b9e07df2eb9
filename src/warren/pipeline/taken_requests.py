"""The requests of the API that a cycle takes up."""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from warren.snapshot.manifest import Manifest
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TakenRequests:
    """Takes requests from the queue; `on_level` sets the level of the log."""

    queue: RequestQueue
    on_level: Callable[[str], None]

    def take(self, manifest: Manifest, clusters: Collection[str]) -> list[PipelineRequest]:
        """The requested deletions that no manifest knows yet; levels are set at once, reloads wait for the end."""
        known = {request.id for request in manifest.requests}
        deletions: list[PipelineRequest] = []
        done: list[PipelineRequest] = []
        for request in self.queue.pending():
            if request.kind == RequestKind.RELOAD:
                continue
            if request.kind == RequestKind.LOGLEVEL:
                self._set_level(request.level)
            is_new = request.kind == RequestKind.DELETE and request.id not in known
            (deletions if is_new and request.cluster in clusters else done).append(request)
        self.remove(request.id for request in done)
        return deletions

    def remove(self, ids: Iterable[str]) -> None:
        """Remove requests that a manifest lists."""
        self.queue.remove(ids)

    def _set_level(self, level: str) -> None:
        try:
            self.on_level(level)
        except (LookupError, ValueError):
            log.warning("the requested log level %r does not exist", level)

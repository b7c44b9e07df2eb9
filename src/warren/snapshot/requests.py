"""Requests of other processes to the pipeline: one file each in the data directory, until a cycle has done them."""

import logging
import uuid
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from warren.durable import replace_file, sync
from warren.errors import RequestError

log = logging.getLogger(__name__)

MAX_PENDING = 1_000
MAX_PENDING_BYTES = 4 << 20
"""How much may wait for the pipeline, which may not be running."""


class RequestKind(StrEnum):
    """What can be requested."""

    DELETE = "delete"
    LOGLEVEL = "loglevel"
    RELOAD = "reload"
    """Read the configuration again."""


class PipelineRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request; a deletion without a topic deletes the whole group."""

    id: str
    kind: RequestKind
    asked_at_ms: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    cluster: str = ""
    group: str = ""
    topic: str | None = None
    level: str = ""

    @property
    def subject(self) -> tuple[RequestKind, str, str, str | None]:
        """What it is about: a later request for the same replaces it."""
        return self.kind, self.cluster, self.group, self.topic


class RequestQueue:
    """The requests of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "requests"
        self._logged: set[str] = set()

    def ask(self, kind: RequestKind, asked_at_ms: int, **values: Any) -> PipelineRequest:  # noqa: ANN401
        """Write a request, durable when this returns, in place of an earlier one for the same.

        ValueError for a name that is not valid Unicode, RequestError if too much waits already.
        """
        request = PipelineRequest(uuid.uuid4().hex, kind, asked_at_ms, **values)
        data = msgspec.json.encode(request)
        pending = self.pending()
        earlier = [each for each in pending if each.subject == request.subject and kind is not RequestKind.RELOAD]
        if not earlier:
            self._check_size([*pending, request])
        self._folder.mkdir(parents=True, exist_ok=True)
        sync(self._folder.parent)
        replace_file(self._path(request.id), data)
        # Only now: whatever happens between, one of them is there.
        self.remove(each.id for each in earlier)
        return request

    def _check_size(self, requests: list[PipelineRequest]) -> None:
        size = sum(len(msgspec.json.encode(request)) for request in requests)
        if len(requests) > MAX_PENDING or size > MAX_PENDING_BYTES:
            message = "too many requests wait for the pipeline; try again after its next cycle"
            raise RequestError(message, 503, (("Retry-After", "10"),))

    def pending(self) -> list[PipelineRequest]:
        """All requests, oldest first; a file that is not a request is logged once and left alone."""
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix != ".draft"]
        except FileNotFoundError:
            return []
        except OSError as error:
            self._log_once(self._folder.name, f"{self._folder} cannot be read: {error}")
            return []
        requests = [request for request in map(self._read, paths) if request is not None]
        return sorted(requests, key=lambda request: (request.asked_at_ms, request.id))

    def is_pending(self, request_id: str) -> bool:
        """Whether a request is still to be done."""
        return self._path(request_id).exists()

    def remove(self, ids: Iterable[str]) -> None:
        """Remove requests that are done; one that does not exist any more is no error."""
        removed = 0
        for request_id in ids:
            path = self._path(request_id)
            try:
                path.unlink()
                removed += 1
            except FileNotFoundError:
                continue
            except OSError as error:
                self._log_once(f"{path.name} stays", f"{path} cannot be removed, so it will be done again: {error}")
        if removed:
            sync(self._folder)

    def _read(self, path: Path) -> PipelineRequest | None:
        try:
            request = msgspec.json.decode(path.read_bytes(), type=PipelineRequest)
            if path != self._path(request.id):
                raise ValueError(f"it contains the request {request.id!r}")
            return request
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self._log_once(path.name, f"{path} is not a valid request and is ignored: {error}")
            return None

    def _path(self, request_id: str) -> Path:
        return self._folder / f"{request_id}.json"

    def _log_once(self, name: str, message: str) -> None:
        if name not in self._logged:
            self._logged.add(name)
            log.warning("%s", message)

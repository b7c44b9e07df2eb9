"""What other processes ask of the pipeline: one file each in the data directory, taken up by the next cycle."""

import logging
import uuid
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from warren.durable import replace_file, sync

log = logging.getLogger(__name__)


class RequestKind(StrEnum):
    """What can be asked for."""

    DELETE = "delete"
    LOGLEVEL = "loglevel"


class PipelineRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that is asked for; a deletion without a topic means the whole group."""

    id: str
    kind: RequestKind
    asked_at_ms: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    cluster: str = ""
    group: str = ""
    topic: str | None = None
    level: str = ""


class RequestQueue:
    """The requests of one data directory, for those who ask and for the one who takes them up."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "requests"
        self._told: set[str] = set()

    def ask(
        self,
        kind: RequestKind,
        asked_at_ms: int,
        *,
        cluster: str = "",
        group: str = "",
        topic: str | None = None,
        level: str = "",
    ) -> PipelineRequest:
        """Leave a request, whole and durable when this returns; ValueError for a name that is no unicode."""
        request_id = uuid.uuid4().hex
        request = PipelineRequest(request_id, kind, asked_at_ms, cluster, group, topic, level)
        data = msgspec.json.encode(request)
        self._folder.mkdir(parents=True, exist_ok=True)
        sync(self._folder.parent)
        replace_file(self._path(request_id), data)
        return request

    def pending(self) -> list[PipelineRequest]:
        """All requests that have not been removed, oldest first; what is no request is told once and left alone."""
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix != ".draft"]
        except FileNotFoundError:
            return []
        except OSError as error:
            self._tell(self._folder.name, f"{self._folder} cannot be read: {error}")
            return []
        found = [request for request in map(self._read, paths) if request is not None]
        return sorted(found, key=lambda request: (request.asked_at_ms, request.id))

    def remove(self, ids: Iterable[str]) -> None:
        """Forget requests that have been taken up; one that is gone already does no harm."""
        removed = 0
        for request_id in ids:
            path = self._path(request_id)
            try:
                path.unlink()
                removed += 1
            except FileNotFoundError:
                continue
            except OSError as error:
                self._tell(f"{path.name} stays", f"{path} cannot be removed and is taken up again: {error}")
        if removed:
            sync(self._folder)

    def _read(self, path: Path) -> PipelineRequest | None:
        try:
            request = msgspec.json.decode(path.read_bytes(), type=PipelineRequest)
            if path != self._path(request.id):
                raise ValueError(f"it holds the request {request.id!r}")
            return request
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self._tell(path.name, f"{path} is no request that can be read, and is left alone: {error!r}")
            return None

    def _path(self, request_id: str) -> Path:
        return self._folder / f"{request_id}.json"

    def _tell(self, name: str, what: str) -> None:
        if name not in self._told:
            self._told.add(name)
            log.warning("%s", what)

"""Requests, responses in Burrow's envelope, and the routing of paths, independent of the server that carries them."""

import gzip
import platform
import posixpath
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from msgspec import Struct

from warren.domain.windows import UNKNOWN
from warren.errors import RequestError
from warren.web.go_json import dumps

if TYPE_CHECKING:
    from warren.web.api import Api

_QUALITY_ZERO = re.compile(r"q=0(\.0*)?")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
HOST = platform.node()

Answer = TypeVar("Answer", bound=Struct)
Fields = Mapping[str, Any]
"""The types of fields by name."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request; `params` are the {names} of its path, unescaped."""

    path: str
    params: Mapping[str, str]
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def last(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        return self.query.get(name, (default,))[-1]

    def integer(self, name: str, maximum: int, minimum: int = 1) -> int | None:
        """A query parameter that must be an integer within bounds; None if it is missing or empty."""
        value = self.last(name)
        if not value:
            return None
        is_number = value.isascii() and value.isdigit() and len(value) <= 16
        if not is_number or not minimum <= int(value) <= maximum:
            raise RequestError(f"{name} must be a number from {minimum} to {maximum:,}, not {value[:20]!r}")
        return int(value)

    def accepts(self, encoding: str, header: str = "accept-encoding") -> bool:
        """Whether a header such as Accept-Encoding lists a value and does not exclude it by `q=0`."""
        items = [[word.strip().lower() for word in item.split(";")] for item in self.headers.get(header, "").split(",")]
        return any(name == encoding and not _QUALITY_ZERO.fullmatch("".join(rest[-1:])) for name, *rest in items)


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response; an iterator as body is produced while it is sent."""

    status: int
    body: bytes | Iterator[bytes | memoryview]
    content_type: str | None = JSON
    headers: tuple[tuple[str, str], ...] = ()


AnswerFunction = Callable[["Api", Request], Response]
"""Answers a request; its docstring is the summary in the OpenAPI description."""


Condition = Callable[["Api", Request], bool]


@dataclass(frozen=True, slots=True)
class Handler:
    """The function that answers one method of a path, and how it may be called."""

    answer: AnswerFunction
    fields: Fields | None = None
    """The fields of its JSON beside `error`, `message` and `request`; None if it answers something else."""
    is_cached: bool = False
    """The answer stays the same until the next snapshot."""
    is_fast: bool = False
    """It answers from memory at once; any other runs in a thread."""
    is_in_memory: Condition | None = None
    """Whether it can answer a request from memory at once, if that is not always so or never."""
    is_admin: bool = False
    """It needs the admin role."""
    is_local: bool = False
    """Burrow has nothing of the kind: without `[auth]` only clients on this machine may call it."""
    is_public: bool = False
    """It needs no authentication."""
    is_waiting: bool = False
    """It waits for the pipeline, in a thread that no other answer needs."""

    def can_answer_at_once(self, api: "Api", request: Request) -> bool:
        """Whether the answer to a request takes no thread."""
        return self.is_fast or (self.is_in_memory is not None and self.is_in_memory(api, request))


Routes = Mapping[str, Mapping[str, Handler]]
"""The handlers of each path by method; a path may have {names} as segments."""


Match = tuple[str, dict[str, str]]
"""The path of a route, and the values of its {names}."""


class Router:
    """Finds the path with {names} that a request's path matches; a literal segment wins over a {name}.

    As in Burrow, a name may be empty, but no path has a slash at its end.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._root: dict[str, Any] = {}
        for path in paths:
            node = self._root
            for segment in path.strip("/").split("/"):
                node = node.setdefault("{}" if segment.startswith("{") else segment, {})
            node["/"] = path, names_of(path)

    def find(self, segments: Sequence[str]) -> Match | None:
        """The route that unescaped segments match."""
        node, values = self._root, []
        for segment in segments:
            if segment in node and segment not in ("/", "{}"):
                node = node[segment]
            elif "{}" in node:
                node = node["{}"]
                values.append(segment)
            else:
                return None
        if "/" not in node or (not segments[-1] and len(segments) > 1):
            return None
        path, names = node["/"]
        return path, dict(zip(names, values, strict=True))


def names_of(path: str) -> list[str]:
    """The {names} of a path."""
    return [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]


def split_path(raw_path: str) -> list[str]:
    """The segments of a path, each unescaped by itself, so that a name may contain an escaped slash."""
    if "%" not in raw_path:
        return raw_path.split("/")[1:]
    if _BAD_ESCAPE.search(raw_path):
        raise RequestError("the path has an invalid % escape")
    try:
        return [unquote(segment, errors="strict") for segment in raw_path.split("/")[1:]]
    except UnicodeDecodeError:
        raise RequestError("the path is not UTF-8") from None


def normalize_path(raw_path: str) -> str:
    """A path without empty segments, dot segments and a trailing slash."""
    return "/" + posixpath.normpath(f"/{raw_path}").lstrip("/")


@dataclass(frozen=True, slots=True)
class CachedBody:
    """A large body that is requested often: compressed once, and not sent to clients that have it."""

    plain: bytes
    gzipped: bytes
    etag: str

    @classmethod
    def of(cls, plain: bytes, level: int = 1) -> "CachedBody":
        """Compress a body and compute its ETag."""
        return cls(plain, gzip.compress(plain, level), f'W/"{zlib.crc32(plain):08x}-{len(plain):x}"')

    def response(self, request: Request, content_type: str = JSON, headers: Sequence[tuple[str, str]] = ()) -> Response:
        """The body in the encoding that the client accepts, or 304 if the client has it."""
        common = (*headers, ("ETag", self.etag), ("Vary", "Accept-Encoding"))
        if request.headers.get("if-none-match") == self.etag:
            return Response(304, b"", content_type, common)
        if request.accepts("gzip"):
            return Response(200, self.gzipped, content_type, (*common, ("Content-Encoding", "gzip")))
        return Response(200, self.plain, content_type, common)


def plain_error(status: int, message: str, *headers: tuple[str, str]) -> Response:
    """An error of the server itself, before any lookup: Burrow sends JSON as plain text here."""
    body = dumps({"error": True, "message": message, "result": {}}) + b"\n"
    return Response(status, body, TEXT, (("X-Content-Type-Options", "nosniff"), *headers))


def to_answer(answer_type: type[Answer], source: object, **given: object) -> Answer:
    """An answer whose fields are given, or are the attributes or keys of the same names of a source."""
    read = source.__getitem__ if isinstance(source, Mapping) else partial(getattr, source)
    return answer_type(**{name: given[name] if name in given else read(name) for name in answer_type.__struct_fields__})


def known(number: int) -> int | None:
    """A number of the snapshot; None if it is unknown."""
    return None if number == UNKNOWN else number


class RequestInfo(Struct):
    """The path that was requested and the host that answers."""

    url: str
    host: str


def success(request: Request, message: str, **fields: object) -> Response:
    """An answer with the given fields."""
    info = RequestInfo(request.path, HOST)
    return Response(200, dumps({"error": False, "message": message, **fields, "request": info}))


def error(path: str, status: int, message: str, *headers: tuple[str, str], **fields: object) -> Response:
    """An error with its HTTP status."""
    body = dumps({"error": True, "message": message, **fields, "request": RequestInfo(path, HOST)})
    return Response(status, body, headers=headers)

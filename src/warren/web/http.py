"""Requests, responses and the routing of paths, independent of the server that carries them."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warren.errors import RequestError
from warren.web.go_json import dumps

if TYPE_CHECKING:
    from warren.web.api import Api

_QUALITY_ZERO = re.compile(r"q=0(\.0*)?")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


Fields = Mapping[str, Any]
"""The types of fields by name."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request; `params` are the {names} of its path, unescaped."""

    method: str
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
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Handler:
    """The function that answers one method of a path, and how it may be called."""

    answer: "Callable[[Api, Request], Response]"
    fields: Fields | None = None
    """The fields of its JSON beside `error`, `message` and `request`; None if it answers something else."""
    is_cached: bool = False
    """The answer stays the same until the next snapshot."""
    is_slow: bool = False
    """It reads files or computes for long, so it runs in a thread."""
    is_admin: bool = False
    """It needs the admin role."""
    is_public: bool = False
    """It needs no authentication."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path with {names} in it, and its handlers by method."""

    path: str
    handlers: Mapping[str, Handler]


class Router:
    """Finds the endpoint of a path, segment by segment; a literal segment wins over a {name}."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._root: dict[str, Any] = {}
        for endpoint in endpoints:
            node = self._root
            for segment in endpoint.path.strip("/").split("/"):
                node = node.setdefault("{}" if segment.startswith("{") else segment, {})
            node["/"] = (endpoint, [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")])

    def find(self, segments: Sequence[str]) -> tuple[Endpoint, dict[str, str]] | None:
        """The endpoint of a path's unescaped segments, and the values of its {names}."""
        node, values = self._root, []
        for segment in segments:
            if segment in node and segment not in ("/", "{}"):
                node = node[segment]
            elif "{}" in node and segment:
                node = node["{}"]
                values.append(segment)
            else:
                return None
        if "/" not in node:
            return None
        endpoint, names = node["/"]
        return endpoint, dict(zip(names, values, strict=True))


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
    segments: list[str] = []
    for segment in raw_path.split("/"):
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


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

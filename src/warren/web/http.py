"""Requests and answers as the API sees them, and the table that leads one to the other."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from warren.errors import RequestError
from warren.web.go_json import dumps

_REFUSED = re.compile(r"q=0(\.0*)?")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for; `names` are the parts of the path that stand for names, unescaped."""

    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """What is sent back; a body in parts is made while it is sent."""

    status: int
    body: bytes | Iterator[bytes | memoryview]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Handler:
    """Who answers, and how: the same until the next snapshot, from files and so not between others, to whom."""

    answer: Callable[[Request], Response]
    is_cached: bool = False
    is_slow: bool = False
    is_admin: bool = False
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path with {names} in it, and who answers it by method."""

    path: str
    handlers: Mapping[str, Handler]


class Router:
    """Finds the route of a path, part by part; a part that is written out wins over a name."""

    def __init__(self, routes: Sequence[Endpoint]) -> None:
        self._root: dict[str, Any] = {}
        for route in routes:
            node = self._root
            for part in route.path.strip("/").split("/"):
                node = node.setdefault("{}" if part.startswith("{") else part, {})
            node["/"] = (route, [part[1:-1] for part in route.path.split("/") if part.startswith("{")])

    def find(self, parts: Sequence[str]) -> tuple[Endpoint, dict[str, str]] | None:
        """The route of a path's unescaped parts, with its names."""
        node, names = self._root, []
        for part in parts:
            if part in node and part not in ("/", "{}"):
                node = node[part]
            elif "{}" in node and part:
                node = node["{}"]
                names.append(part)
            else:
                return None
        if "/" not in node:
            return None
        route, keys = node["/"]
        return route, dict(zip(keys, names, strict=True))


def split(raw_path: str) -> list[str]:
    """The parts of a path, each unescaped on its own, so that a name may hold an escaped slash."""
    if "%" not in raw_path:
        return raw_path.split("/")[1:]
    if _BAD_ESCAPE.search(raw_path):
        raise RequestError("the path has a % that is no escape")
    try:
        return [unquote(part, errors="strict") for part in raw_path.split("/")[1:]]
    except UnicodeDecodeError:
        raise RequestError("the path is not UTF-8") from None


def unquoted(raw_path: str) -> str:
    """A path as answers show it."""
    return unquote(raw_path) if "%" in raw_path else raw_path


def cleaned(raw_path: str) -> str:
    """A path without empty parts, dots and a slash at its end."""
    kept: list[str] = []
    for part in raw_path.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in ("", "."):
            kept.append(part)
    return "/" + "/".join(kept)


def number_in(query: Mapping[str, Sequence[str]], name: str, most: int) -> int | None:
    """A number from 1 on that a question holds; None where it holds none."""
    given = query.get(name, ("",))[-1]
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 16 or not 0 < int(given) <= most:
        raise RequestError(f"{name} must be a number from 1 to {most:,}, not {given[:20]!r}")
    return int(given)


def accepts(wishes: str, what: str) -> bool:
    """Whether a list of what is liked, and how much, has this and does not refuse it."""
    held = [[word.strip().lower() for word in wish.split(";")] for wish in wishes.split(",")]
    return any(name == what and not _REFUSED.fullmatch("".join(how[-1:])) for name, *how in held)


@dataclass(frozen=True, slots=True)
class CachedBody:
    """JSON that is large and often asked for again: packed once, and not sent to whoever has it."""

    plain: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, plain: bytes) -> "CachedBody":
        """A body with all that is sent of it."""
        return cls(plain, gzip.compress(plain, 1), f'W/"{zlib.crc32(plain):08x}-{len(plain):x}"')

    def answer(self, request: Request) -> Response:
        """As much of it as is wanted, in the form that is."""
        headers = (("ETag", self.tag), ("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding"))
        if request.headers.get("if-none-match") == self.tag:
            return Response(304, b"", JSON, headers)
        if accepts(request.headers.get("accept-encoding", ""), "gzip"):
            return Response(200, self.packed, JSON, (*headers, ("Content-Encoding", "gzip")))
        return Response(200, self.plain, JSON, headers)


def json_answer(value: object, status: int = 200) -> Response:
    """A value as Burrow would answer it."""
    return Response(status, dumps(value))


def plain_error(status: int, message: str, *headers: tuple[str, str]) -> Response:
    """An error of the server itself, before anything was looked up: Burrow's words for it are JSON in plain text."""
    body = dumps({"error": True, "message": message, "result": {}}) + b"\n"
    return Response(status, body, TEXT, (("X-Content-Type-Options", "nosniff"), *headers))

"""The API as an ASGI application, with a fast path for answers from memory."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from html import escape
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from warren.config import Config
from warren.errors import RequestError
from warren.web.access import Access
from warren.web.api import Api
from warren.web.auth import Role
from warren.web.http import (
    HTML,
    Handler,
    Match,
    Request,
    Response,
    Router,
    error,
    normalize_path,
    plain_error,
    split_path,
)
from warren.web.routes import ROUTES

log = logging.getLogger(__name__)

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Parts = Iterator[bytes | memoryview]

MAX_BODY_BYTES = 65_536
MAX_QUERY_BYTES = 8_192
MAX_CACHE_BYTES = 96 << 20
CACHE_ENTRY_BYTES = 2_048
"""What a cached answer takes beside its own bytes."""
MAX_KNOWN_URLS = 10_000
MAX_KNOWN_URL_BYTES = 500
PARTS_AHEAD = 2
MAX_SEGMENTS_AFTER_GROUP = 2
"""The longest that follows a group in a path: `topic` and its name."""

_POLICY = "Content-Security-Policy"
_ROUTER = Router(ROUTES)


class App:
    """The API as an ASGI application."""

    def __init__(self, api: Api) -> None:
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="answer")
        self._waiting_threads = ThreadPoolExecutor(4, thread_name_prefix="answer of the pipeline")
        self._cache: dict[bytes, tuple[bytes, bytes]] = {}
        self._cache_bytes = 0
        self._api = api
        self._access = Access(api.logins)
        self.configure(api.config)

    def configure(self, config: Config) -> None:
        """Answer by another configuration from the next request on."""
        self._api = replace(self._api, config=config)
        self._access.configure(config)
        origin = (config.general.access_control_allow_origin or "").encode("latin-1", "replace")
        self._common_headers = [(b"Access-Control-Allow-Origin", origin)] if origin else []
        self._cached_index: object = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        response = await self._respond(scope, receive)
        if not isinstance(response.body, bytes) and scope["http_version"] == "1.0":
            # HTTP/1.0 has no chunks: the length must be known before the body is sent.
            response = replace(response, body=b"".join([part async for part in self._produce(response.body)]))
        await send({"type": "http.response.start", "status": response.status, "headers": self._headers(response)})
        if isinstance(response.body, bytes):
            await send({"type": "http.response.body", "body": response.body})
        else:
            await self._stream(response.body, receive, send)

    def fast_answer(self, url: bytes) -> tuple[bytes, bytes] | None:
        """The answer to a GET that needs neither files nor authentication, from the cache or made now.

        It is a complete HTTP response in two parts: more headers can be put between them. None if the request has to
        go through ASGI.
        """
        index = self._api.index
        if index is not self._cached_index:
            self._cache, self._cache_bytes, self._cached_index = {}, 0, index
        cached = self._cache.get(url)
        is_known = b"#" not in url and len(url) <= MAX_KNOWN_URL_BYTES
        if cached is not None or not self._access.is_open or not is_known:
            return cached
        try:
            handler, request = _resolve(url)
            if not handler.can_answer_at_once(self._api, request):
                return None
            response = handler.answer(self._api, request)
        except Exception:  # noqa: BLE001 - the request goes through ASGI, which reports the error
            return None
        # The path of an unknown group may be the name of another one.
        if not isinstance(response.body, bytes) or response.status == 404:
            return None
        message = self._message(response)
        if handler.is_cached and not request.query:
            self._keep(url, response, message)
        return message

    def _message(self, response: Response) -> tuple[bytes, bytes]:
        """A complete HTTP response, in two parts."""
        assert isinstance(response.body, bytes)
        lines = b"".join([b"%b: %b\r\n" % header for header in self._headers(response)])
        return STATUS_LINE[response.status] + lines, b"\r\n" + response.body

    def _keep(self, url: bytes, response: Response, message: tuple[bytes, bytes]) -> None:
        """Cache an answer until the next snapshot; there are too many names that do not exist to cache errors."""
        size = len(message[1]) + len(url) + CACHE_ENTRY_BYTES
        if response.status == 200 and self._cache_bytes + size <= MAX_CACHE_BYTES:
            self._cache[url] = message
            self._cache_bytes += size

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        method, path, raw_path = scope["method"], scope["path"], scope["raw_path"].decode("latin-1")
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            segments = split_path(raw_path)
            match = _ROUTER.find(segments)
            is_public = match is not None and any(handler.is_public for handler in ROUTES[match[0]].values())
            authorization = "" if is_public else headers.get("authorization", "")
            role = await self._access.log_in(authorization, scope["client"][0])
            match = self._find(method, segments, match, role)
            if match is None:
                return _redirect_or_404(method, raw_path, scope["query_string"].decode("latin-1"))
            handlers, params = ROUTES[match[0]], match[1]
            handler = handlers.get(method)
            if handler is None:
                allow = ("Allow", ", ".join(sorted({*handlers, "OPTIONS"})))
                if method == "OPTIONS":
                    return Response(200, b"", None, (allow,))
                return plain_error(405, "method not allowed", allow)
            self._access.check(handler, role, headers, scope)
            body = await _read_body(receive) if method in ("POST", "PUT") else b""
            request = Request(path, params, _parse_query(scope["query_string"]), headers, body)
            return await self._call(handler, request, scope["raw_path"], is_plain=not scope["query_string"])
        except RequestError as failure:
            return error(path, failure.status, str(failure), *failure.headers)
        except Exception:
            log.exception("%s %s", method, raw_path)
            return error(path, 500, "internal error; see the server's log")

    async def _call(self, handler: Handler, request: Request, url: bytes, *, is_plain: bool) -> Response:
        if handler.can_answer_at_once(self._api, request):
            return handler.answer(self._api, request)
        api, index = self._api, self._api.index
        threads = self._waiting_threads if handler.is_waiting else self._threads
        response = await asyncio.get_running_loop().run_in_executor(threads, handler.answer, api, request)
        is_current = index is self._cached_index and index is self._api.index and api is self._api
        if handler.is_cached and is_plain and is_current and self._access.is_open:
            self._keep(url, response, self._message(response))
        return response

    def _find(self, method: str, segments: list[str], match: Match | None, role: Role | None) -> Match | None:
        """The route of a path.

        If it has no route or no known group, the group may have slashes in its name: the longest known name wins. Which
        groups exist makes no difference to clients without a role.
        """
        has_handler = match is not None and method in ROUTES[match[0]]
        is_below_group = segments[:2] == ["v3", "kafka"] and segments[3:4] == ["consumer"] and len(segments) > 5
        if not is_below_group or (has_handler and method != "GET"):
            return match
        groups = self._api.index.groups.get(segments[2], {})
        if has_handler and segments[4] in groups:
            return match
        if role is None:
            return match or _ROUTER.find(segments[:5])
        for end in range(len(segments), max(len(segments) - MAX_SEGMENTS_AFTER_GROUP, 6) - 1, -1):
            name = "/".join(segments[4:end])
            found = _ROUTER.find([*segments[:4], name, *segments[end:]]) if name in groups else None
            if found is not None:
                return found
        return match

    def _headers(self, response: Response) -> list[tuple[bytes, bytes]]:
        headers = [(b"Content-Type", response.content_type.encode())] if response.content_type else []
        if isinstance(response.body, bytes):
            headers.append((b"Content-Length", str(len(response.body)).encode()))
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in response.headers]
        if response.content_type == HTML and not any(name == _POLICY for name, _ in response.headers):
            headers.append((_POLICY.encode(), b"default-src 'none'; frame-ancestors 'none'"))
        return headers + self._common_headers

    async def _stream(self, parts: Parts, receive: Receive, send: Send) -> None:
        disconnected = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            async for part in self._produce(parts):
                if disconnected.done():
                    return
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            disconnected.cancel()

    async def _produce(self, parts: Parts) -> AsyncIterator[bytes | memoryview]:
        """The parts, a few produced ahead; no thread waits for a client that does not read."""
        loop = asyncio.get_running_loop()
        ahead = loop.run_in_executor(self._threads, _take, parts)
        while ready := await ahead:
            ahead = loop.run_in_executor(self._threads, _take, parts)
            for part in ready:
                yield part


@lru_cache(MAX_KNOWN_URLS)
def _resolve(url: bytes) -> tuple[Handler, Request]:
    """The handler and request of a GET; remembered, as clients repeat their requests."""
    path, _, query = url.partition(b"?")
    match = _ROUTER.find(split_path(path.decode("ascii")))
    if match is None:
        raise RequestError("not found", 404)
    return ROUTES[match[0]]["GET"], Request(unquote(path.decode("ascii")), match[1], _parse_query(query))


def _redirect_or_404(method: str, raw_path: str, query: str) -> Response:
    """Redirect an unnormalized path to its normal form, if that exists."""
    normal = normalize_path(raw_path)
    match = _ROUTER.find(split_path(normal)) if normal != raw_path else None
    if match is None or method not in ROUTES[match[0]]:
        return plain_error(404, "invalid request type")
    location = f"{normal}?{query}" if query else normal
    if method != "GET":
        return Response(308, b"", None, (("Location", location),))
    body = f'<a href="{escape(location)}">Moved Permanently</a>.\n\n'
    return Response(301, body.encode("latin-1"), HTML, (("Location", location),))


def _take(parts: Parts) -> list[bytes | memoryview]:
    return list(islice(parts, PARTS_AHEAD))


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the client has gone")
        body += bytes(message.get("body", b""))
        if len(body) > MAX_BODY_BYTES:
            raise RequestError("the body is too large", 413)
        if not message.get("more_body"):
            return body


def _parse_query(raw: bytes) -> Mapping[str, list[str]]:
    if len(raw) > MAX_QUERY_BYTES:
        raise RequestError("the query is too long")
    try:
        return parse_qs(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise RequestError("the query cannot be parsed") from None

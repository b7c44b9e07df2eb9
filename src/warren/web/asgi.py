"""The API as an ASGI application, and its shorter way for what can be answered at once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import Any
from urllib.parse import parse_qs

from warren.errors import RequestError
from warren.web.api import Api
from warren.web.auth import Guard, Role
from warren.web.http import JSON, Handler, Request, Response, Router, cleaned, plain_error, split, unquoted

log = logging.getLogger(__name__)

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Parts = Iterator[bytes | memoryview]

BODY_MOST = 65_536
CACHE_MOST = 64 << 20
CACHE_ENTRY = 2_048
"""What an answer in the cache takes beside its own bytes."""
QUERY_MOST = 8_192
KNOWN_MOST = 10_000
KNOWN_URL_MOST = 500
PARTS_AHEAD = 2


class App:
    """The API as an ASGI application."""

    def __init__(self, api: Api, guard: Guard, origin: str | None) -> None:
        self._api = api
        self._guard = guard
        self._router = Router(api.routes())
        self._origin = ((b"Access-Control-Allow-Origin", origin.encode("latin-1", "replace")),) if origin else ()
        origin_line = b"".join(b"%b: %b\r\n" % header for header in self._origin).replace(b"%", b"%%")
        self._json_head = f"Content-Type: {JSON}\r\nContent-Length: %d\r\n".encode() + origin_line
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="answer")
        self._cache: dict[bytes, tuple[bytes, bytes]] = {}
        self._cached = 0
        self._known: dict[bytes, tuple[Handler, Request]] = {}
        self._cached_of: object = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        answer = await self._answer(scope, receive)
        if not isinstance(answer.body, bytes) and scope["http_version"] == "1.0":
            # It knows no chunks: it is told the size, so there has to be a whole.
            answer = replace(answer, body=b"".join([part async for part in self._made(answer.body)]))
        await send({"type": "http.response.start", "status": answer.status, "headers": self._headers(answer)})
        if isinstance(answer.body, bytes):
            await send({"type": "http.response.body", "body": answer.body})
        else:
            await self._stream(answer.body, receive, send)

    def quick(self, url: bytes) -> tuple[bytes, bytes] | None:
        """The answer to a GET that needs no file and no question about who asks, from the cache or made now."""
        index = self._api.index
        if index is not self._cached_of:
            self._cache, self._cached, self._cached_of = {}, 0, index
        held = self._cache.get(url)
        if held is not None or not self._guard.is_open or b"?" in url or b"#" in url:
            return held
        try:
            known = self._known.get(url) or self._get(url)
            if known is None:
                return None
            handler, request = known
            answer = handler.answer(request)
        except Exception:  # noqa: BLE001 - the long way comes to it too, and says it
            return None
        if not isinstance(answer.body, bytes):
            return None
        made = self._whole(answer)
        if handler.is_cached:
            self._keep(url, answer, made)
        return made

    def _get(self, url: bytes) -> tuple[Handler, Request] | None:
        """Who answers a GET at once; remembered, as people ask for the same again and again."""
        path = url.decode("ascii")
        found = self._router.find(split(path))
        handler = found[0].handlers.get("GET") if found else None
        if found is None or handler is None or handler.is_slow:
            return None
        known = handler, Request("GET", unquoted(path), found[1])
        if len(self._known) >= KNOWN_MOST:
            self._known.clear()
        # Long ones are nobody's, and would take much memory.
        if len(url) <= KNOWN_URL_MOST:
            self._known[url] = known
        return known

    def _whole(self, answer: Response) -> tuple[bytes, bytes]:
        assert isinstance(answer.body, bytes)
        if answer.content_type is JSON and not answer.headers:
            return _STATUS_LINES[answer.status] + self._json_head % len(answer.body), b"\r\n" + answer.body
        lines = [b"%b: %b\r\n" % header for header in self._headers(answer)]
        return _STATUS_LINES[answer.status] + b"".join(lines), b"\r\n" + answer.body

    def _keep(self, url: bytes, answer: Response, made: tuple[bytes, bytes]) -> None:
        """Hold an answer until the next snapshot; names that do not exist are without number, so they are not kept."""
        size = len(answer.body) + len(url) + CACHE_ENTRY  # type: ignore[arg-type]
        if answer.status == 200 and self._cached + size <= CACHE_MOST:
            self._cache[url] = made
            self._cached += size

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        method, raw_path = scope["method"], scope["raw_path"].decode("latin-1")
        path = scope["path"]
        try:
            found = self._router.find(split(raw_path))
            if found is None:
                return self._lost(method, raw_path, scope["query_string"].decode("latin-1"))
            route, names = found
            handler = route.handlers.get(method)
            if handler is None:
                allow = ("Allow", ", ".join(sorted({*route.handlers, "OPTIONS"})))
                if method == "OPTIONS":
                    return Response(200, b"", JSON, (allow,))
                return plain_error(405, "method not allowed", allow)
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            refusal = self._refusal(handler, headers.get("authorization"), path)
            if refusal is not None:
                return refusal
            body = await _body(receive) if method in ("POST", "PUT") else b""
            request = Request(method, path, names, _query(scope["query_string"]), headers, body)
            if not handler.is_slow:
                return handler.answer(request)
            index = self._api.index
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._threads, handler.answer, request)
            is_kept = handler.is_cached and not scope["query_string"] and self._guard.is_open
            if is_kept and index is self._cached_of and index is self._api.index:
                self._keep(scope["raw_path"], answer, self._whole(answer))
            return answer
        except RequestError as error:
            return self._api.refused(path, error.status, str(error))
        except _TooLargeError:
            return self._api.refused(path, 413, "the body is too large")
        except _GoneError:
            return Response(400, b"")
        except Exception:
            log.exception("%s %s", method, raw_path)
            return self._api.refused(path, 500, "internal error; the server's log has it")

    def _lost(self, method: str, raw_path: str, query: str) -> Response:
        """A path that is none: the one that was meant, if it is only untidy."""
        tidy = cleaned(raw_path)
        if tidy != raw_path and self._router.find(split(tidy)) is not None:
            status = 301 if method == "GET" else 308
            location = f"{tidy}?{query}" if query else tidy
            return plain_error(status, HTTPStatus(status).phrase.lower(), ("Location", location))
        return plain_error(404, "invalid request type")

    def _refusal(self, handler: Handler, authorization: str | None, path: str) -> Response | None:
        if handler.is_open or self._guard.is_open:
            return None
        role = self._guard.role_of(authorization.encode("latin-1") if authorization is not None else None)
        if role is None:
            answer = self._api.refused(path, 401, "who are you? send a token or a name and password")
            challenge = (("WWW-Authenticate", 'Basic realm="warren"'), ("WWW-Authenticate", 'Bearer realm="warren"'))
            return Response(answer.status, answer.body, JSON, challenge)
        if handler.is_admin and role is not Role.ADMIN:
            return self._api.refused(path, 403, "this needs the admin role")
        return None

    def _headers(self, answer: Response) -> list[tuple[bytes, bytes]]:
        headers = [(b"Content-Type", answer.content_type.encode())]
        if isinstance(answer.body, bytes):
            headers.append((b"Content-Length", str(len(answer.body)).encode()))
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in answer.headers]
        return [*headers, *self._origin]

    async def _stream(self, parts: Parts, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_gone(receive))
        try:
            async for part in self._made(parts):
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _made(self, parts: Parts) -> AsyncIterator[bytes | memoryview]:
        """The parts, some ahead of those that are on their way; no thread waits for a client that does not read."""
        loop = asyncio.get_running_loop()
        ahead = loop.run_in_executor(self._threads, _some, parts)
        while held := await ahead:
            ahead = loop.run_in_executor(self._threads, _some, parts)
            for part in held:
                yield part


def _some(parts: Parts) -> list[bytes | memoryview]:
    return list(islice(parts, PARTS_AHEAD))


async def _gone(receive: Receive) -> None:
    """Comes back when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


_STATUS_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}


class _TooLargeError(Exception):
    pass


class _GoneError(Exception):
    pass


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        body += bytes(message.get("body", b""))
        if len(body) > BODY_MOST:
            raise _TooLargeError
        if not message.get("more_body"):
            return body


def _query(raw: bytes) -> Mapping[str, list[str]]:
    if len(raw) > QUERY_MOST:
        raise RequestError("the query is too long")
    try:
        return parse_qs(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise RequestError("the query cannot be read") from None

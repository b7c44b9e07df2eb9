"""The server: the API behind uvicorn, on every configured address, bounded in what a client may send and take."""

import asyncio
import contextlib
import logging
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from warren.config import Config, HttpServer
from warren.errors import RequestError, WarrenError
from warren.snapshot.requests import RequestBox
from warren.web.api import Api
from warren.web.auth import Guard, Role
from warren.web.follow import Follower
from warren.web.go_json import dumps
from warren.web.http import JSON, Answer, Handler, Request, Router, cleaned, plain_error, split

log = logging.getLogger(__name__)

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

HEADERS_MOST = 32_768
BODY_MOST = 65_536
CACHE_MOST = 64 << 20
CACHE_ENTRY = 2_048
"""What an answer in the cache takes beside its own bytes."""
QUERY_MOST = 8_192
BACKLOG = 1_024
SWITCH_S = 0.001
"""How long a thread that indexes a snapshot may keep the interpreter from one that answers."""


class App:
    """The API as an ASGI application."""

    def __init__(self, api: Api, guard: Guard, origin: str | None) -> None:
        self._api = api
        self._guard = guard
        self._router = Router(api.routes())
        self._origin = ((b"Access-Control-Allow-Origin", origin.encode("latin-1", "replace")),) if origin else ()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="answer")
        self._cache: dict[bytes, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._cached = 0
        self._cached_of: object = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        index = self._api.index
        if index is not self._cached_of:
            self._cache, self._cached, self._cached_of = {}, 0, index
        raw_path: bytes = scope["raw_path"]
        if scope["method"] == "GET" and self._guard.is_open and not scope["query_string"]:
            held = self._cache.get(raw_path)
            if held is not None:
                await send(held[0])
                await send(held[1])
                return
        answer, is_cached = await self._answer(scope, receive)
        start = {"type": "http.response.start", "status": answer.status, "headers": self._headers(answer)}
        if not isinstance(answer.body, bytes) and scope["http_version"] == "1.0":
            # It knows no chunks: it is told the size, so there has to be a whole.
            answer = replace(answer, body=b"".join([part async for part in self._made(answer.body)]))
            start["headers"] = self._headers(answer)
        if not isinstance(answer.body, bytes):
            await send(start)
            await self._stream(answer.body, send)
            return
        body = {"type": "http.response.body", "body": answer.body}
        size = len(answer.body) + len(raw_path) + CACHE_ENTRY
        # Names that do not exist are without number, so they are not kept.
        if is_cached and answer.status == 200 and index is self._cached_of and self._cached + size <= CACHE_MOST:
            self._cache[raw_path] = (start, body)
            self._cached += size
        await send(start)
        await send(body)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[Answer, bool]:
        method, raw_path = scope["method"], scope["raw_path"].decode("latin-1")
        path = scope["path"]
        try:
            found = self._router.find(split(raw_path))
            if found is None:
                return self._lost(method, raw_path, scope["query_string"].decode("latin-1")), False
            route, names = found
            handler = route.handlers.get(method)
            if handler is None:
                allow = ("Allow", ", ".join(sorted({*route.handlers, "OPTIONS"})))
                if method == "OPTIONS":
                    return Answer(200, b"", JSON, (allow,)), False
                return plain_error(405, "method not allowed", allow), False
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            refusal = self._refusal(handler, headers.get("authorization"), path)
            if refusal is not None:
                return refusal, False
            body = await _body(receive) if method in ("POST", "PUT") else b""
            request = Request(method, path, names, _query(scope["query_string"]), headers, body)
            is_cached = handler.is_cached and not scope["query_string"] and self._guard.is_open
            if not handler.is_slow:
                return handler.answer(request), is_cached
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, handler.answer, request), is_cached
        except RequestError as error:
            return self._api.refused(path, 400, str(error)), False
        except _TooLargeError:
            return self._api.refused(path, 413, "the body is too large"), False
        except _GoneError:
            return Answer(400, b""), False
        except Exception:
            log.exception("%s %s", method, raw_path)
            return self._api.refused(path, 500, "internal error; the server's log has it"), False

    def _lost(self, method: str, raw_path: str, query: str) -> Answer:
        """A path that is none: the one that was meant, if it is only untidy."""
        tidy = cleaned(raw_path)
        if tidy != raw_path and self._router.find(split(tidy)) is not None:
            status = 301 if method == "GET" else 308
            location = f"{tidy}?{query}" if query else tidy
            return plain_error(status, HTTPStatus(status).phrase.lower(), ("Location", location))
        return plain_error(404, "invalid request type")

    def _refusal(self, handler: Handler, authorization: str | None, path: str) -> Answer | None:
        if handler.is_open or self._guard.is_open:
            return None
        role = self._guard.role_of(authorization.encode("latin-1") if authorization is not None else None)
        if role is None:
            answer = self._api.refused(path, 401, "who are you? send a token or a name and password")
            challenge = (("WWW-Authenticate", 'Basic realm="warren"'), ("WWW-Authenticate", 'Bearer realm="warren"'))
            return Answer(answer.status, answer.body, JSON, challenge)
        if handler.is_admin and role is not Role.ADMIN:
            return self._api.refused(path, 403, "this needs the admin role")
        return None

    def _headers(self, answer: Answer) -> list[tuple[bytes, bytes]]:
        headers = [(b"Content-Type", answer.content_type.encode())]
        if isinstance(answer.body, bytes):
            headers.append((b"Content-Length", str(len(answer.body)).encode()))
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in answer.headers]
        return [*headers, *self._origin]

    async def _stream(self, parts: Iterator[bytes], send: Send) -> None:
        async for part in self._made(parts):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _made(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """The parts, each made in a thread while the one before it is on its way."""
        loop = asyncio.get_running_loop()
        ahead = loop.run_in_executor(self._threads, next, parts, None)
        while (part := await ahead) is not None:
            ahead = loop.run_in_executor(self._threads, next, parts, None)
            yield part


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


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed when its client is too slow or says too much."""

    timeout_s = 300.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come: its first request is awaited."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._is_head = True
        self._deadline: asyncio.TimerHandle | None = None
        self._await_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some more of a request."""
        self._head_bytes += len(data) if self._is_head else 0
        if self._deadline is None:
            self._await_progress()
        super().data_received(data)
        if self._head_bytes > HEADERS_MOST and not self.transport.is_closing():
            self._refuse(431, "the head of the request is too large")

    def on_headers_complete(self) -> None:
        """The head is whole; the body is counted by whoever reads it."""
        self._is_head, self._head_bytes = False, 0
        # A head that came in one piece has not been counted before.
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEADERS_MOST:
            self._head_bytes = HEADERS_MOST + 1
            raise _TooLargeError
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._is_head = True
        self._rest()
        super().on_message_complete()
        if self.cycle.response_complete:
            # It was answered before it was whole, and is idle only now.
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_s, self.timeout_keep_alive_handler)

    def pause_writing(self) -> None:
        """The client does not take what it asked for."""
        self._await_progress()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client takes more."""
        self._rest()
        super().resume_writing()

    def _await_progress(self) -> None:
        self._rest()
        self._deadline = self.loop.call_later(self.timeout_s, self._give_up)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP; whatever was asked before it is answered first, and then that is all."""
        before: RequestResponseCycle | None = self.cycle
        if self._head_bytes > HEADERS_MOST:
            self._refuse(431, "the head of the request is too large")
        elif before is not None and not before.more_body and not before.response_complete:
            before.keep_alive = False
        else:
            self._refuse(400, "this is no HTTP request that can be read")

    def _refuse(self, status: int, message: str) -> None:
        body = dumps({"error": True, "message": message, "result": {}}) + b"\n"
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        head += f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()


class _Listener(uvicorn.Server):
    """A server among several: signals are for the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(server: HttpServer) -> socket.socket:
    """A socket on a section's address; a WarrenError says what is wrong with it."""
    is_both = not server.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_both or ":" in server.host else socket.AF_INET
    try:
        made = socket.create_server((server.host, server.port), family=family, backlog=BACKLOG, dualstack_ipv6=is_both)
    except OSError as error:
        raise WarrenError(
            f"[httpserver.{server.name}] cannot listen at {server.address!r}: {error.strerror or error}"
        ) from error
    made.setblocking(False)
    return made


def url_of(server: HttpServer, held: socket.socket) -> str:
    """Where a listener answers, as people type it."""
    host, port = held.getsockname()[:2]
    shown = "127.0.0.1" if host in ("::", "0.0.0.0") else f"[{host}]" if ":" in host else host  # noqa: S104
    return f"{'https' if server.tls else 'http'}://{shown}:{port}"


async def serve(config: Config, stop: asyncio.Event, on_listening: Callable[[list[str]], None]) -> None:
    """Answer on all listeners until told to stop; `on_listening` hears where."""
    sys.setswitchinterval(SWITCH_S)
    servers = config.listeners
    sockets = {name: listen(server) for name, server in servers.items()}
    data_dir = config.pipeline.data_dir
    follower = Follower(data_dir)
    follower.look()
    follower.start()
    guard = Guard.of(config)
    app = App(Api(config, follower, RequestBox(data_dir)), guard, config.general.access_control_allow_origin)
    running = [_Listener(_settings(app, config, server)) for server in servers.values()]
    tasks = [asyncio.create_task(one.serve([held])) for one, held in zip(running, sockets.values(), strict=True)]
    urls = [url_of(server, sockets[name]) for name, server in servers.items()]
    for url in urls:
        log.info("answering at %s", url)
    on_listening(urls)
    await asyncio.wait([asyncio.create_task(stop.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    for one in running:
        one.should_exit = True
    await asyncio.wait(tasks, timeout=5.0)
    follower.close()


def _settings(app: App, config: Config, server: HttpServer) -> uvicorn.Config:
    class Protocol(BoundedProtocol):
        timeout_s = float(server.timeout)

    settings = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=server.timeout,
        timeout_graceful_shutdown=3,
    )
    settings.load()
    if server.tls:
        tls = config.tls[server.tls]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(str(tls.certfile), str(tls.keyfile))
            if tls.cafile:
                context.load_verify_locations(str(tls.cafile))
        except (OSError, ssl.SSLError) as error:
            raise WarrenError(f"[tls.{server.tls}] certificate or key cannot be used: {error}") from error
        settings.ssl = context
    # What strangers send that is no HTTP is no matter for a log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return settings

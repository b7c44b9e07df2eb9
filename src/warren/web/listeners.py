"""The addresses at which a server process answers: uvicorn on each of them, changed while the others go on."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import uvicorn

from warren.config import Config, HttpServer
from warren.config.secrets import revealed
from warren.config.security import Tls
from warren.errors import WarrenError
from warren.web.asgi import App
from warren.web.connection import LimitedConnection

LISTEN_BACKLOG = 1_024
RECEIVE_BUFFER_BYTES = 65_536
"""What is read of a client at once, and kept while it must wait: requests are small."""
STOP_S = 5.0
DRAIN_S = 60
"""How long the answers under way of a listener may take that is configured no more."""


class _Server(uvicorn.Server):
    """A server for one address; the process handles the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def replace(self) -> None:
        """Accept no connection from now on, and end when the answers under way are sent."""
        self.config.timeout_graceful_shutdown = DRAIN_S
        self.should_exit = True
        # uvicorn looks at should_exit ten times per second, and would answer as before until then.
        if self.started:
            for accepting in self.servers:
                accepting.close()


def listen(server: HttpServer, own: Sequence[socket.socket] = ()) -> socket.socket:
    """Open a socket at a section's address; a WarrenError says why that is not possible.

    `own` are this process's sockets at the same port, which do not count as its use: 127.0.0.1:8000 may become :8000.
    """
    is_dual_stack = not server.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual_stack or ":" in server.host else socket.AF_INET
    for each in own:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener = socket.create_server(
            (server.host, server.port),
            family=family,
            backlog=LISTEN_BACKLOG,
            dualstack_ipv6=is_dual_stack,
            reuse_port=bool(own),
        )
    except OSError as error:
        # Python's own message repeats the address.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise WarrenError(f"[httpserver.{server.name}] cannot listen at {server.address!r}: {reason}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    listener.setblocking(False)
    return listener


def url_of(server: HttpServer, listener: socket.socket) -> str:
    """The URL of a listener."""
    host, port = listener.getsockname()[:2]
    shown = "127.0.0.1" if host in ("::", "0.0.0.0") else f"[{host}]" if ":" in host else host  # noqa: S104
    return f"{'https' if server.tls else 'http'}://{shown}:{port}"


@dataclass(frozen=True, slots=True)
class _Listener:
    """A socket, the uvicorn that answers on it, and all that both were made of."""

    section: HttpServer
    tls: Tls
    certificate: bytes
    bound: socket.socket
    server: _Server

    def is_same(self, other: "_Listener") -> bool:
        return (self.section, self.tls, self.certificate) == (other.section, other.tls, other.certificate)


class Listeners:
    """The listeners of one process; `on_end` is called if one ends by itself."""

    def __init__(self, app: App, on_end: Callable[[], None]) -> None:
        self._app = app
        self._on_end = on_end
        self._running: dict[tuple[str, str], _Listener] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def configure(self, config: Config) -> list[str]:
        """Listen where a configuration says, and return the URLs; a listener that has not changed goes on.

        A WarrenError says which address or certificate cannot be used; then nothing has changed.
        """
        before, after = self._running, {}
        try:
            for section in config.listeners.values():
                after[_key(section)] = self._prepare(section, config.tls[section.tls] if section.tls else Tls())
        except WarrenError:
            _close_sockets(after, before)
            raise
        for key, listener in after.items():
            if key in before and listener.is_same(before[key]):
                after[key] = before[key]
            else:
                self._start(listener)
        for key, listener in before.items():
            if after.get(key) is not listener:
                listener.server.replace()
        _close_sockets(before, after)
        self._running = after
        return [url_of(listener.section, listener.bound) for listener in after.values()]

    def _prepare(self, section: HttpServer, tls: Tls) -> _Listener:
        settings = _settings(self._app, section, tls)
        files = [path for path in (tls.certfile, tls.keyfile, tls.cafile) if path]
        certificate = b"\0".join(path.read_bytes() for path in files)
        # An address in use is taken over with its socket, so that no client is refused.
        if _key(section) in self._running:
            bound = self._running[_key(section)].bound
        else:
            bound = listen(section, self._at_port(section.port))
        return _Listener(section, tls, certificate, bound, _Server(settings))

    def _at_port(self, port: int) -> list[socket.socket]:
        return [each.bound for each in self._running.values() if port and each.section.port == port]

    def _start(self, listener: _Listener) -> None:
        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not listener.server.should_exit:
                self._on_end()

        task = asyncio.create_task(listener.server.serve([listener.bound.dup()]))
        self._tasks.add(task)
        task.add_done_callback(end)

    async def close(self) -> None:
        """Stop, after the answers under way if they do not take long."""
        for listener in self._running.values():
            listener.server.should_exit = True
            listener.bound.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)


def _key(section: HttpServer) -> tuple[str, str]:
    """What tells sockets apart: the address, and if that is any free port the name of the section."""
    return section.address, "" if section.port else section.name


def _close_sockets(listeners: dict[tuple[str, str], _Listener], kept: dict[tuple[str, str], _Listener]) -> None:
    for key, listener in listeners.items():
        if key not in kept:
            listener.bound.close()


def _settings(app: App, server: HttpServer, tls: Tls) -> uvicorn.Config:
    class Protocol(LimitedConnection):
        timeout_s = float(server.timeout)
        max_connections = server.max_connections
        fast_answer = staticmethod(app.fast_answer)

    settings = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=server.timeout,
        timeout_graceful_shutdown=3,
        ssl_certfile=tls.certfile,
        ssl_keyfile=tls.keyfile,
        ssl_keyfile_password=revealed(tls.keypassword) or None,
        ssl_ca_certs=tls.cafile,
        # The ciphers of Python, which are stricter than uvicorn's.
        ssl_ciphers="",
    )
    try:
        settings.load()
    except OSError as error:
        raise WarrenError(f"[tls.{server.tls}] certificate or key cannot be used: {error}") from error
    # Input that is not HTTP is not worth a line in the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return settings

"""The HTTP server on uvicorn, at every configured address: a process of its own beside the pipeline, or this one."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection

import pyarrow as pa
import uvicorn
import uvloop

from warren.config import Config, HttpServer
from warren.config.security import Tls
from warren.errors import WarrenError
from warren.processes import SupervisedProcess
from warren.snapshot.requests import RequestQueue
from warren.web.api import Api, IndexFollower
from warren.web.asgi import App
from warren.web.auth import Guard
from warren.web.connection import LimitedConnection

log = logging.getLogger(__name__)

START_TIMEOUT_S = 60.0
LISTEN_BACKLOG = 1_024
MAX_FREE_BYTES = 256 << 20
"""How much freed memory the C library keeps for the next scrape, as new pages cost time."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
SWITCH_INTERVAL_S = 0.001
"""How long a thread that indexes a snapshot may keep the interpreter from one that answers."""

OnListening = Callable[[list[str]], None]


class _Listener(uvicorn.Server):
    """A server for one address; the process handles the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(server: HttpServer) -> socket.socket:
    """Open a socket at a section's address; a WarrenError says why that is not possible."""
    is_dual_stack = not server.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual_stack or ":" in server.host else socket.AF_INET
    try:
        listener = socket.create_server(
            (server.host, server.port), family=family, backlog=LISTEN_BACKLOG, dualstack_ipv6=is_dual_stack
        )
    except OSError as error:
        # Python's own message repeats the address.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise WarrenError(f"[httpserver.{server.name}] cannot listen at {server.address!r}: {reason}") from error
    listener.setblocking(False)
    return listener


def url_of(server: HttpServer, listener: socket.socket) -> str:
    """The URL of a listener."""
    host, port = listener.getsockname()[:2]
    shown = "127.0.0.1" if host in ("::", "0.0.0.0") else f"[{host}]" if ":" in host else host  # noqa: S104
    return f"{'https' if server.tls else 'http'}://{shown}:{port}"


def _keep_memory() -> None:
    """Make the C library keep freed memory: every scrape needs as much as the one before."""
    with contextlib.suppress(AttributeError, OSError, NotImplementedError):
        libc = ctypes.CDLL(None)
        for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            libc.mallopt(option, MAX_FREE_BYTES)
        pa.set_memory_pool(pa.system_memory_pool())


async def serve(
    config: Config,
    on_listening: OnListening,
    stop_signals: Iterable[signal.Signals],
    connection: Connection | None = None,
) -> None:
    """Answer at all addresses until a signal, or until a connection is readable; `on_listening` gets their URLs."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for stop_signal in stop_signals:
        loop.add_signal_handler(stop_signal, stop.set)
    if connection:
        loop.add_reader(connection.fileno(), stop.set)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _keep_memory()
    sockets = [listen(server) for server in config.listeners.values()]
    data_dir = config.pipeline.data_dir
    follower = IndexFollower(data_dir)
    api = Api(config, follower, RequestQueue(data_dir))
    app = App(api, Guard(config.auth.entries if config.auth else None), config.general.access_control_allow_origin)
    listeners = [_Listener(_settings(app, config, server)) for server in config.listeners.values()]
    # The first answers are those of a snapshot, if there is one.
    follower.poll()
    follower.start()
    tasks = [asyncio.create_task(listener.serve([bound])) for listener, bound in zip(listeners, sockets, strict=True)]
    urls = [url_of(server, bound) for server, bound in zip(config.listeners.values(), sockets, strict=True)]
    for url in urls:
        log.info("answering at %s", url)
    on_listening(urls)
    await asyncio.wait([asyncio.create_task(stop.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    for listener in listeners:
        listener.should_exit = True
    await asyncio.wait(tasks, timeout=5.0)
    follower.close()


def _settings(app: App, config: Config, server: HttpServer) -> uvicorn.Config:
    class Protocol(LimitedConnection):
        timeout_s = float(server.timeout)
        fast_answer = staticmethod(app.fast_answer)

    tls = config.tls[server.tls] if server.tls else Tls()
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


def serve_alone(config: Config, on_listening: OnListening = lambda _: None) -> None:
    """Answer in this process until SIGTERM or SIGINT."""
    uvloop.run(serve(config, on_listening, (signal.SIGTERM, signal.SIGINT)))


def _serve_beside(connection: Connection, tell: Callable[[object], None], config: Config) -> None:
    """Answer until SIGTERM, or until the parent sends a message or ends."""
    uvloop.run(serve(config, tell, (signal.SIGTERM,), connection))


class WebServer(SupervisedProcess):
    """Keeps a server process running beside this one."""

    def __init__(self, config: Config) -> None:
        self._urls: list[str] = []
        self._is_listening = threading.Event()
        # A server that never listened would fail again: only others are restarted.
        super().__init__("web server", _serve_beside, config, self._on_listening, self._is_listening.is_set)

    def _on_listening(self, urls: object) -> None:
        assert isinstance(urls, list)
        self._urls = urls
        self._is_listening.set()

    def urls(self) -> list[str]:
        """The URLs at which it answers; raises the error that keeps it from starting."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_listening.wait(0.05):
            if self.ended.is_set():
                raise self.error or WarrenError("the web server ended while starting; see its log")
            if time.monotonic() > deadline:
                raise WarrenError(f"the web server did not start within {START_TIMEOUT_S:.0f} s")
        return self._urls

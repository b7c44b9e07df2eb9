"""The server: the API behind uvicorn on every configured address, until it is told to stop."""

import asyncio
import contextlib
import ctypes
import logging
import os
import socket
import ssl
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
import uvicorn

from warren.config import Config, HttpServer
from warren.errors import WarrenError
from warren.snapshot.requests import RequestQueue
from warren.web.api import Api
from warren.web.asgi import App
from warren.web.auth import Guard
from warren.web.connection import Connection
from warren.web.index_follower import Follower

log = logging.getLogger(__name__)

BACKLOG = 1_024
KEPT_MOST = 256 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
SWITCH_S = 0.001
"""How long a thread that indexes a snapshot may keep the interpreter from one that answers."""


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
        # Python's own words repeat the address.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise WarrenError(f"[httpserver.{server.name}] cannot listen at {server.address!r}: {reason}") from error
    made.setblocking(False)
    return made


def url_of(server: HttpServer, held: socket.socket) -> str:
    """Where a listener answers, as people type it."""
    host, port = held.getsockname()[:2]
    shown = "127.0.0.1" if host in ("::", "0.0.0.0") else f"[{host}]" if ":" in host else host  # noqa: S104
    return f"{'https' if server.tls else 'http'}://{shown}:{port}"


def _keep_memory() -> None:
    """Ask the C library to keep what is freed: every scrape needs as much as the one before, and new pages cost."""
    with contextlib.suppress(AttributeError, OSError, NotImplementedError):
        libc = ctypes.CDLL(None)
        for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            libc.mallopt(option, KEPT_MOST)
        pa.set_memory_pool(pa.system_memory_pool())


async def serve(config: Config, stop: asyncio.Event, on_listening: Callable[[list[str]], None]) -> None:
    """Answer on all listeners until told to stop; `on_listening` hears where."""
    sys.setswitchinterval(SWITCH_S)
    _keep_memory()
    servers = config.listeners
    sockets = {name: listen(server) for name, server in servers.items()}
    data_dir = config.pipeline.data_dir
    follower = Follower(data_dir)
    guard = Guard.of(config)
    app = App(Api(config, follower, RequestQueue(data_dir)), guard, config.general.access_control_allow_origin)
    running = [_Listener(_settings(app, config, server)) for server in servers.values()]
    follower.look()
    follower.start()
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
    class Protocol(Connection):
        timeout_s = float(server.timeout)
        quick = staticmethod(app.quick)

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

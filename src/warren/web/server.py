"""The HTTP server: a process of its own beside the pipeline, or this one."""

import asyncio
import contextlib
import ctypes
import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa
import uvloop

from warren.config import Config
from warren.config.changes import with_fixed_keys
from warren.errors import WarrenError
from warren.logs import set_level
from warren.processes import SupervisedProcess
from warren.snapshot.reloads import read_outcome
from warren.snapshot.requests import RequestQueue
from warren.web.api import Api, IndexFollower
from warren.web.asgi import App
from warren.web.listeners import Listeners

log = logging.getLogger(__name__)

START_TIMEOUT_S = 60.0
CONFIGURE_TIMEOUT_S = 20.0
FOLLOW_S = 1.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MALLOC_OPTIONS = {_M_TRIM_THRESHOLD: 32 << 20, _M_MMAP_THRESHOLD: 4 << 20, _M_ARENA_MAX: 1}
"""Parts of answers are smaller than 4 MB, as new pages would cost time; the columns of a large snapshot are larger."""
SWITCH_INTERVAL_S = 0.001
"""How long a thread that indexes a snapshot may keep the interpreter from one that answers."""

OnListening = Callable[[list[str]], None]
ReadConfig = Callable[[], Config]
"""Reads the configuration again; raises ConfigError if it has mistakes."""


def _bound_memory() -> None:
    """Make the C library reuse the buffers of answers, and return those of a snapshot when it is replaced."""
    with contextlib.suppress(AttributeError, OSError, NotImplementedError):
        libc = ctypes.CDLL(None)
        for option, value in _MALLOC_OPTIONS.items():
            libc.mallopt(option, value)
        pa.set_memory_pool(pa.system_memory_pool())


class HttpServers:
    """All that answers in this process; it changes to another configuration as a whole."""

    def __init__(self, config: Config, on_end: Callable[[], None]) -> None:
        data_dir = config.pipeline.data_dir
        self.config = config
        self.follower = IndexFollower(data_dir)
        self._app = App(Api(config, self.follower, RequestQueue(data_dir)))
        self.listeners = Listeners(self._app, on_end)
        self._urls: list[str] = []

    def configure(self, config: Config) -> list[str]:
        """Answer by a configuration, and return the URLs; a WarrenError says why not, and nothing has changed."""
        urls = self.listeners.configure(config)
        self._app.configure(config)
        if config.logging.level != self.config.logging.level:
            set_level(config.logging.level)
        for url in urls:
            if url not in self._urls:
                is_chosen = bool(config.http_servers)
                where = "" if is_chosen else " and on all interfaces: there is no [httpserver.NAME] section"
                log.log(logging.INFO if is_chosen else logging.WARNING, "answering at %s%s", url, where)
        self.config, self._urls = config, urls
        return urls


@dataclass(frozen=True, slots=True)
class Configured:
    """What a server process says to another configuration: its URLs, or why it goes on with the one before."""

    urls: list[str]
    refusal: str = ""


async def serve(
    config: Config,
    tell: Callable[[object], None],
    stop_signals: Iterable[signal.Signals],
    connection: Connection | None = None,
    read: ReadConfig | None = None,
) -> None:
    """Answer at all addresses until a signal, or until the other end of a connection is closed.

    `tell` gets the URLs, and what becomes of each configuration that comes through the connection. With `read`, the
    configuration is read again after SIGHUP and after each reload of the pipeline.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for stop_signal in stop_signals:
        loop.add_signal_handler(stop_signal, stop.set)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _bound_memory()
    servers = HttpServers(config, stop.set)
    urls = servers.configure(config)
    # The first answers are those of a snapshot, if there is one.
    servers.follower.poll()
    servers.follower.start()
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
    if connection:
        loop.add_reader(connection.fileno(), _receive, servers, connection, tell, stop)
    if read:
        loop.add_signal_handler(signal.SIGHUP, _reload, servers, read)
        tasks.append(asyncio.create_task(_follow_reloads(servers, read)))
    tell(urls)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await servers.listeners.close()
    servers.follower.close()


def _receive(servers: HttpServers, connection: Connection, tell: Callable[[object], None], stop: asyncio.Event) -> None:
    try:
        message = connection.recv()
    except (EOFError, OSError):
        stop.set()
        return
    try:
        tell(Configured(servers.configure(message)))
    except WarrenError as error:
        tell(Configured([], str(error)))


def _reload(servers: HttpServers, read: ReadConfig) -> None:
    try:
        config, needs_restart = with_fixed_keys(servers.config, read())
        servers.configure(config)
    except WarrenError as error:
        log.error("the configuration was not reloaded, and nothing has changed: %s", error)
        return
    log.info("the configuration was reloaded")
    for each in needs_restart:
        log.warning("%s", each)


async def _follow_reloads(servers: HttpServers, read: ReadConfig) -> None:
    """Reload whenever the pipeline of the same data directory has reloaded, or was started again."""
    data_dir = servers.config.pipeline.data_dir
    last = read_outcome(data_dir)
    while True:
        await asyncio.sleep(FOLLOW_S)
        newest = read_outcome(data_dir)
        if newest is not None and newest.applied_ms != (last.applied_ms if last else 0):
            last = newest
            _reload(servers, read)


def serve_alone(config: Config, on_listening: OnListening = lambda _: None, read: ReadConfig | None = None) -> None:
    """Answer in this process until SIGTERM or SIGINT; `read` reads the configuration again."""
    uvloop.run(serve(config, on_listening, (signal.SIGTERM, signal.SIGINT), read=read))  # type: ignore[arg-type]


def _serve_beside(connection: Connection, tell: Callable[[object], None], config: Config) -> None:
    """Answer until SIGTERM, or until the parent ends."""
    uvloop.run(serve(config, tell, (signal.SIGTERM,), connection))


class WebServer(SupervisedProcess):
    """Keeps a server process running beside this one."""

    def __init__(self, config: Config) -> None:
        self._urls: list[str] = []
        self._is_listening = threading.Event()
        self._offered: Config | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        # A server that never listened would fail again: only others are restarted.
        super().__init__("web server", _serve_beside, config, self._on_message_of_child, self._is_listening.is_set)

    def _on_message_of_child(self, message: object) -> None:
        if isinstance(message, Configured):
            offered, self._offered = self._offered, None
            if offered is not None and not message.refusal:
                # From now on it is restarted with this one.
                self.argument, self._urls = offered, message.urls
            self._answers.put(message.refusal)
            return
        assert isinstance(message, list)
        self._urls = message
        self._is_listening.set()

    def configure(self, config: Config) -> None:
        """Answer by another configuration; a WarrenError says why not, and nothing has changed."""
        self._answers = queue.SimpleQueue()
        self._offered = config
        self.send(config)
        try:
            refusal = self._answers.get(timeout=CONFIGURE_TIMEOUT_S)
        except queue.Empty:
            self._offered = None
            # Started again, it certainly has the configuration from before.
            self.kill()
            raise WarrenError(f"the web server did not answer within {CONFIGURE_TIMEOUT_S:.0f} s") from None
        if refusal:
            raise WarrenError(refusal)

    def urls(self) -> list[str]:
        """The URLs at which it answers; raises the error that keeps it from starting."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_listening.wait(0.05):
            if self.ended.is_set():
                raise self.error or WarrenError("the web server ended while starting; see its log")
            if time.monotonic() > deadline:
                raise WarrenError(f"the web server did not start within {START_TIMEOUT_S:.0f} s")
        return self._urls

"""The server as an operating-system process of its own, beside the pipeline or alone."""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import uvloop

from warren.config import Config
from warren.errors import WarrenError
from warren.logs import PipeHandler
from warren.web.server import serve

log = logging.getLogger(__name__)

START_S = 60.0
STOP_S = 6.0
AGAIN_S = (1.0, 2.0, 5.0, 10.0)
"""How long to wait before a server that died is started again, the more often it did the longer."""


def serve_alone(config: Config, on_listening: Callable[[list[str]], None] = lambda _: None) -> None:
    """Answer in this process until SIGTERM or SIGINT."""
    uvloop.run(_until_signal(config, on_listening))


async def _until_signal(config: Config, on_listening: Callable[[list[str]], None]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(config, stop, on_listening)


def _main(config: Config, connection: Connection, level: int) -> None:
    """The server beside a pipeline: its log goes to its parent, and it ends with it, killed without a word included."""
    # Ctrl-C reaches every process of a terminal; when to stop is for the parent to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()

    def tell(what: object) -> None:
        with lock:
            connection.send(what)

    root = logging.getLogger()
    root.handlers[:] = [PipeHandler(tell)]
    root.setLevel(level)
    try:
        uvloop.run(_until_told(config, connection, tell))
    except WarrenError as error:
        tell(error)
    os._exit(0)


async def _until_told(config: Config, connection: Connection, tell: Callable[[object], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # A word from the parent, or its end, is the end.
    loop.add_reader(connection.fileno(), stop.set)
    await serve(config, stop, tell)


class WebServer:
    """Keeps a server process running beside this one."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._context = multiprocessing.get_context("spawn")
        self._closed = threading.Event()
        self._spawning = threading.Lock()
        self._listening: list[str] | None = None
        self._trouble: WarrenError | None = None
        self._heard = threading.Event()
        self._process, self._connection = self._spawn()
        self._watch = threading.Thread(target=self._keep, name="web server", daemon=True)
        self._watch.start()

    def _spawn(self) -> tuple[BaseProcess, Connection]:
        mine, theirs = self._context.Pipe()
        arguments = (self._config, theirs, logging.getLogger().level)
        process = self._context.Process(target=_main, args=arguments, name="warren web", daemon=True)
        process.start()
        theirs.close()
        return process, mine

    def urls(self) -> list[str]:
        """Where it answers; raises what keeps it from doing so."""
        if not self._heard.wait(START_S):
            raise WarrenError(f"the web server did not start within {START_S:.0f} s")
        if self._listening is not None:
            return self._listening
        raise self._trouble or WarrenError("the web server ended while it started; its log says why")

    @property
    def pid(self) -> int | None:
        """The process that answers at the moment."""
        return self._process.pid

    def _keep(self) -> None:
        deaths = 0
        while True:
            began = time.monotonic()
            self._trouble = self._listen()
            self._process.join()
            self._heard.set()
            if self._closed.is_set() or self._listening is None:
                return
            deaths = deaths + 1 if time.monotonic() - began < 60 else 1
            wait_s = AGAIN_S[min(deaths, len(AGAIN_S)) - 1]
            why = self._trouble or self._process.exitcode
            log.error("the web server ended (%s); again in %.0f s", why, wait_s)
            self._closed.wait(wait_s)
            with self._spawning:
                if self._closed.is_set():
                    return
                self._process, self._connection = self._spawn()

    def _listen(self) -> WarrenError | None:
        """Take what the process says until it says no more, and give what it ended of, if it says."""
        trouble = None
        while True:
            try:
                said = self._connection.recv()
            except (EOFError, OSError):
                return trouble
            if isinstance(said, logging.LogRecord):
                if said.levelno >= logging.getLogger().level:
                    logging.getLogger(said.name).handle(said)
            elif isinstance(said, WarrenError):
                trouble = said
            else:
                self._listening = said
                self._heard.set()

    def close(self) -> None:
        """End the process; one that does not is killed."""
        with self._spawning:
            self._closed.set()
        if self._process.is_alive():
            self._process.terminate()
            self._watch.join(STOP_S)
        if self._process.is_alive():
            self._process.kill()
            self._watch.join(STOP_S)

"""The server as an operating-system process of its own, beside the pipeline or alone."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import uvloop

from warren.config import Config
from warren.errors import WarrenError
from warren.processes import SupervisedProcess
from warren.web.server import serve

START_S = 60.0


def serve_alone(config: Config, on_listening: Callable[[list[str]], None] = lambda _: None) -> None:
    """Answer in this process until SIGTERM or SIGINT."""
    uvloop.run(_until_signal(config, on_listening))


async def _until_signal(config: Config, on_listening: Callable[[list[str]], None]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(config, stop, on_listening)


def _main(connection: Connection, tell: Callable[[object], None], config: Config) -> None:
    """The server beside a pipeline."""
    uvloop.run(_until_told(config, connection, tell))


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
        self._listening: list[str] | None = None
        self._heard = threading.Event()
        # One that never listened would not do so the next time either.
        self._process = SupervisedProcess("web server", _main, config, self._take, lambda: self._listening is not None)

    def _take(self, said: object) -> None:
        assert isinstance(said, list)
        self._listening = said
        self._heard.set()

    def urls(self) -> list[str]:
        """Where it answers; raises what keeps it from doing so."""
        until = time.monotonic() + START_S
        while not self._heard.wait(0.05):
            if self._process.ended.is_set():
                raise self._process.error or WarrenError("the web server ended while it started; its log says why")
            if time.monotonic() > until:
                raise WarrenError(f"the web server did not start within {START_S:.0f} s")
        assert self._listening is not None
        return self._listening

    @property
    def pid(self) -> int | None:
        """The process that answers at the moment."""
        return self._process.pid

    def close(self) -> None:
        """End the process; one that does not is killed."""
        self._process.close()

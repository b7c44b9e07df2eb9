"""The web server as a process: of its own beside the pipeline, or this one."""

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

START_TIMEOUT_S = 60.0

OnListening = Callable[[list[str]], None]


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

"""A process beside this one: its log comes here, it is started again when it dies, and it ends with us."""

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from warren.delivery.backoff import Backoff
from warren.errors import WarrenError
from warren.logs import PipeHandler

log = logging.getLogger(__name__)

STOP_S = 6.0
RESTARTS = Backoff(first_s=1.0, longest_s=10.0)
HEALTHY_S = 60.0
"""A process that ran for so long is restarted as if it had never failed."""

Tell = Callable[[object], None]
Main = Callable[[Connection, Tell, Any], None]
"""What a process does: it ends when its parent says a word or is gone, and may tell the parent something."""


def _main(main: Main, argument: Any, connection: Connection, level: int) -> None:  # noqa: ANN401
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
        main(connection, tell, argument)
    except WarrenError as error:
        tell(error)
    os._exit(0)


class SupervisedProcess:
    """Keeps a process running beside this one."""

    def __init__(
        self,
        name: str,
        main: Main,
        argument: Any,  # noqa: ANN401
        on_said: Callable[[object], None] = lambda _: None,
        may_again: Callable[[], bool] = lambda: True,
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._run = (main, argument)
        self._on_said = on_said
        self._may_again = may_again
        self._on_restart = on_restart
        self._context = multiprocessing.get_context("spawn")
        self._closed = threading.Event()
        self._spawning = threading.Lock()
        self._sending = threading.Lock()
        self.trouble: WarrenError | None = None
        self.ended = threading.Event()
        """The process is gone, and is not started again."""
        self._process, self._connection = self._spawn()
        self._watch = threading.Thread(target=self._keep, name=name, daemon=True)
        self._watch.start()

    def _spawn(self) -> tuple[BaseProcess, Connection]:
        mine, theirs = self._context.Pipe()
        arguments = (*self._run, theirs, logging.getLogger().level)
        process = self._context.Process(target=_main, args=arguments, name=f"warren {self._name}", daemon=True)
        process.start()
        theirs.close()
        return process, mine

    @property
    def pid(self) -> int | None:
        """The process that runs at the moment."""
        return self._process.pid

    def _keep(self) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            self.trouble = self._listen()
            self._process.join()
            if self._closed.is_set() or not self._may_again():
                self.ended.set()
                return
            failures = failures if time.monotonic() - began < HEALTHY_S else 0
            wait_s = RESTARTS.wait_s(failures)
            failures += 1
            why = self.trouble or self._process.exitcode
            log.error("the %s ended (%s); again in %.0f s", self._name, why, wait_s)
            self._closed.wait(wait_s)
            with self._spawning:
                if self._closed.is_set():
                    self.ended.set()
                    return
                self._process, self._connection = self._spawn()
            self._on_restart()

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
                self._on_said(said)

    def send(self, message: object) -> None:
        """Send a message to the process that runs now; one that has just ended does not get it."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(message)

    def kill(self) -> None:
        """Kill the process, which is then started again."""
        self._process.kill()

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

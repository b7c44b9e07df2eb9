"""A child process under supervision: it logs to this process, is restarted when it dies, and ends with this one."""

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from warren.delivery.backoff import Backoff
from warren.errors import WarrenError
from warren.logs import PipeHandler, log_uncaught

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 6.0
RESTARTS = Backoff(first_s=1.0, longest_s=10.0)
HEALTHY_S = 60.0
"""A process that ran for so long is restarted as if it had never failed."""

Send = Callable[[object], None]
"""Sends a message to the parent."""
Main = Callable[[Connection, Send, Any], None]
"""The main function of a child: it returns when its connection to the parent becomes readable or is closed."""


def _main(main: Main, argument: Any, connection: Connection, level: int) -> None:  # noqa: ANN401
    # Ctrl-C and the end of a terminal reach every process of it, but the parent decides what follows.
    for signal_number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    lock = threading.Lock()

    def send(message: object) -> None:
        with lock:
            connection.send(message)

    root = logging.getLogger()
    root.handlers[:] = [PipeHandler(send)]
    root.setLevel(level)
    threading.excepthook = log_uncaught
    try:
        main(connection, send, argument)
    except WarrenError as error:
        send(error)
    except Exception:
        # multiprocessing would print the traceback as it is, with the names that it may quote.
        log.exception("this process ends with an error")
        os._exit(1)
    os._exit(0)


@dataclass(eq=False, repr=False)
class SupervisedProcess:
    """Runs `main(connection, send, argument)` in a child process, and runs it again when the child dies.

    `on_message` gets what the child sends, `may_restart` decides whether a dead child is restarted, and `on_restart` is
    called after each restart.
    """

    name: str
    main: Main
    argument: Any
    on_message: Callable[[object], None] = lambda _: None
    may_restart: Callable[[], bool] = lambda: True
    on_restart: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._closed = threading.Event()
        self._spawning = threading.Lock()
        self._sending = threading.Lock()
        self.error: WarrenError | None = None
        """The error that the last child ended with."""
        self.ended = threading.Event()
        """The child is gone and is not restarted."""
        self._process, self._connection = self._spawn()
        self._supervisor = threading.Thread(target=self._supervise, name=self.name, daemon=True)
        self._supervisor.start()

    def _spawn(self) -> tuple[BaseProcess, Connection]:
        ours, theirs = self._context.Pipe()
        arguments = (self.main, self.argument, theirs, logging.getLogger().level)
        process = self._context.Process(target=_main, args=arguments, name=f"warren {self.name}", daemon=True)
        process.start()
        theirs.close()
        return process, ours

    @property
    def pid(self) -> int | None:
        """The id of the current child."""
        return self._process.pid

    def _supervise(self) -> None:
        failures = 0
        while True:
            started = time.monotonic()
            self.error = self._receive_all()
            self._process.join()
            if self._closed.is_set() or not self.may_restart():
                break
            failures = failures if time.monotonic() - started < HEALTHY_S else 0
            wait_s = RESTARTS.wait_s(failures)
            failures += 1
            cause = self.error or f"exit code {self._process.exitcode}"
            log.error("the %s ended (%s); it is restarted in %.0f s", self.name, cause, wait_s)
            self._closed.wait(wait_s)
            with self._spawning:
                if self._closed.is_set():
                    break
                self._process, self._connection = self._spawn()
            self.on_restart()
        self.ended.set()

    def _receive_all(self) -> WarrenError | None:
        """Receive messages until the child ends, and return the error that it ended with, if it sent one."""
        last_error = None
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                return last_error
            if isinstance(message, logging.LogRecord):
                if message.levelno >= logging.getLogger().level:
                    logging.getLogger(message.name).handle(message)
            elif isinstance(message, WarrenError):
                last_error = message
            else:
                self.on_message(message)

    def send(self, message: object) -> None:
        """Send a message to the current child; a child that has just ended does not get it."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(message)

    def change_argument(self, argument: Any) -> None:  # noqa: ANN401
        """Send another argument to the child, and start it with that one from now on."""
        with self._spawning:
            self.argument = argument
            self.send(argument)

    def kill(self) -> None:
        """Kill the child, which is then restarted."""
        self._process.kill()

    def close(self) -> None:
        """Terminate the child; kill it if it does not end in time."""
        with self._spawning:
            self._closed.set()
        for end in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                end()
                self._supervisor.join(STOP_TIMEOUT_S)

"""A supervised child process: what it sends and logs arrives, it is restarted when it dies, and ends when closed."""

import contextlib
import logging
import os
import signal
from multiprocessing.connection import Connection
from queue import Queue

import pytest

from tests.kit.warrens import wait_for
from warren.delivery.backoff import Backoff
from warren.errors import WarrenError
from warren.processes import Send, SupervisedProcess

log = logging.getLogger(__name__)


def echo(connection: Connection, send: Send, greeting: str) -> None:
    """Send a greeting, then each message back, until told to stop."""
    send(greeting)
    while (message := connection.recv()) != "stop":
        log.warning("got %s", message)
        send(message)


def fail(_: Connection, send: Send, reason: str) -> None:
    """End with an error."""
    send("started")
    raise WarrenError(reason)


def test_messages_and_logs_arrive_and_it_is_restarted_until_it_is_closed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.processes.RESTARTS", Backoff(0.01, 0.02))
    messages: Queue[object] = Queue()
    process = SupervisedProcess("echo", echo, "hello", messages.put, on_restart=lambda: messages.put("restarted"))
    with contextlib.closing(process):
        assert messages.get(timeout=30) == "hello"
        process.send("one")
        assert messages.get(timeout=30) == "one"
        assert "got one" in caplog.messages
        first = process.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert {messages.get(timeout=30), messages.get(timeout=30)} == {"restarted", "hello"}
        assert process.pid != first
        assert "the echo ended (exit code -9); it is restarted in 0 s" in caplog.messages
        second = process.pid
        process.kill()
        assert {messages.get(timeout=30), messages.get(timeout=30)} == {"restarted", "hello"}
        assert process.pid != second
        assert not process.ended.is_set()
    assert process.ended.is_set()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid or 0, 0)


def test_its_error_is_kept_and_one_that_may_not_restart_ends() -> None:
    messages: Queue[object] = Queue()
    with contextlib.closing(SupervisedProcess("x", fail, "no luck", messages.put, lambda: False)) as process:
        wait_for(process.ended.is_set, "it ends", 30)
    assert messages.get_nowait() == "started"
    assert str(process.error) == "no luck"
    assert messages.empty()

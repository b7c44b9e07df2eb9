"""The server as a process: it is restarted when it dies, and ends on request or with its parent."""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.servers import Client, server_config, within
from warren.config import HttpServer
from warren.delivery.backoff import Backoff
from warren.errors import WarrenError
from warren.web.server import WebServer

ROOT = Path(__file__).parents[2]
PARENT = """
import json, sys, time
from pathlib import Path
from tests.kit.servers import server_config
from warren.web.server import WebServer, serve_alone

if __name__ == "__main__":
    config = server_config(Path(sys.argv[2]))
    if sys.argv[1] == "alone":
        serve_alone(config, lambda urls: print(json.dumps([0, urls[0]]), flush=True))
    else:
        server = WebServer(config)
        print(json.dumps([server.pid, server.urls()[0]]), flush=True)
        time.sleep(600)
"""


@pytest.fixture
def server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[WebServer]:
    caplog.set_level(logging.INFO)
    with contextlib.closing(WebServer(server_config(tmp_path))) as server:
        yield server


def is_there(pid: int | None) -> bool:
    """Whether a process lives; one that is dead and not buried does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def is_answering(client: Client) -> bool:
    with contextlib.suppress(OSError):
        return client.ask("/burrow/admin").body == b"GOOD"
    return False


def test_it_is_a_separate_process_whose_log_reaches_the_parent(
    server: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    [url] = server.urls()
    assert server.urls() == [url]
    assert server.pid not in (None, os.getpid())
    [line] = [record for record in caplog.records if record.name == "warren.web.server"]
    assert (line.levelno, line.getMessage(), line.process) == (logging.INFO, f"answering at {url}", server.pid)
    # Ctrl-C reaches every process of a terminal, and is for the parent to hear.
    os.kill(server.pid or 0, signal.SIGINT)
    silence, is_json = b'{"group": "gone", "hours": 1, "by": "ann", "why": "x"}', {"Content-Type": "application/json"}
    assert Client(url).ask("/v3/silences", "POST", silence, is_json).status == 200
    within(lambda: "groups gone of clusters * silenced by ann" in caplog.text, "its later lines come too")
    assert is_there(server.pid)


def test_it_can_be_closed_while_it_waits_for_a_restart(server: WebServer, caplog: pytest.LogCaptureFixture) -> None:
    server.urls()
    pid = server.pid
    kill(pid)
    within(lambda: "it is restarted in 1 s" in caplog.text, "it waits")
    server.close()
    within(lambda: not is_kept(), "nobody is left to start it", 0.8)
    assert (server.pid, is_there(pid)) == (pid, False)


def kill(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def is_kept() -> bool:
    """Whether a server would be started again."""
    return any(thread.name == "web server" for thread in threading.enumerate())


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        config = server_config(tmp_path, http_servers={"web": HttpServer(address, name="web")})
        with contextlib.closing(WebServer(config)) as server:
            for _ in range(2):
                with pytest.raises(
                    WarrenError, match=rf"\[httpserver.web\] cannot listen at '{address}': Address already"
                ):
                    server.urls()
            within(lambda: not is_kept(), "one that never answered is not tried again")


def test_it_is_restarted_when_killed_and_ends_when_closed(server: WebServer, caplog: pytest.LogCaptureFixture) -> None:
    first = server.pid
    server.urls()
    kill(first)
    within(lambda: server.pid != first and is_answering(Client(server.urls()[0])), "it is back", 20)
    assert "the web server ended (exit code -9); it is restarted in 1 s" in caplog.text
    began, second = time.monotonic(), server.pid
    server.close()
    assert time.monotonic() - began < 5
    assert not is_there(second)
    assert not is_kept()
    assert not is_answering(Client(server.urls()[0]))


def test_it_is_restarted_even_if_its_address_is_in_use_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.processes.RESTARTS", Backoff(0.1, 0.2))
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
    config = server_config(tmp_path, http_servers={"web": HttpServer(address, name="web")})
    with contextlib.closing(WebServer(config)) as server:
        assert server.urls() == [f"http://{address}"]
        kill(server.pid)
        within(lambda: "the web server ended (exit code -9)" in caplog.text, "it is dead")
        with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
            within(lambda: f"cannot listen at '{address}'" in caplog.text, "it says why not", 20)
            assert server.urls() == [f"http://{address}"]
        within(lambda: is_answering(Client(server.urls()[0])), "it is back as soon as it can", 20)


@contextlib.contextmanager
def parent(tmp_path: Path, how: str) -> Iterator[tuple["subprocess.Popen[str]", int, Client]]:
    """A process that holds a server: itself, the pid of the server, and where that answers."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    command = [sys.executable, str(script), how, str(tmp_path / "data")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as running:
        try:
            assert running.stdout is not None
            pid, url = json.loads(running.stdout.readline())
            yield running, pid or running.pid, Client(url)
        finally:
            running.kill()


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    with parent(tmp_path, "beside") as (running, pid, client):
        assert is_answering(client)
        assert pid != running.pid
        # A client that holds on to it does not keep it.
        with client.connect() as connection:
            connection.sendall(b"GET /burrow/admin HTTP/1.1\r\n")
            running.kill()
            running.wait(10)
            within(lambda: not is_there(pid), "the server has followed its parent", 8)
        assert not is_answering(client)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_alone_it_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with parent(tmp_path, "alone") as (running, _, client):
        assert is_answering(client)
        running.send_signal(number)
        assert running.wait(8) == 0

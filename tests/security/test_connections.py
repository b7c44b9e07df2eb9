"""A hostile load of connections on loopback: others are answered meanwhile, and its memory comes back."""

import asyncio
import contextlib
import http.client
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.servers import Client, Town, group_path, read_to_end, server_config, to_got, within
from tests.web.test_connection_limits import sockets_of
from warren.config import HttpServer
from warren.web import connection as limits
from warren.web.server import HttpServers, WebServer

CONNECTIONS = 20
FLOOD_BYTES = 256_000
MAX_CONNECTIONS = 60
HEALTH_S, MOST_HEALTH_S = 0.3, 5.0
"""What an answer usually takes, and at most, on a machine that is busy with other tests; without limits it is 15 s."""
MAX_GROWTH_KB = 48_000
"""Ten times as much is what the requests of this load take if they are all kept."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    town = Town(tmp_path_factory.mktemp("connections")).grow()
    town.publish()
    return town.data


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[WebServer]:
    listener = HttpServer("127.0.0.1:0", timeout=20, max_connections=MAX_CONNECTIONS, name="default")
    with contextlib.closing(WebServer(server_config(data, http_servers={"default": listener}))) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: WebServer) -> Client:
    return Client(server.urls()[0])


def resident_kb(server: WebServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\n\r\n".encode()


def pipelined(client: Client, path: str) -> None:
    """As many requests as fit, whose answers are not read until all are sent."""
    with client.connect() as connection:
        connection.settimeout(2)
        with contextlib.suppress(OSError):
            connection.sendall(get(path) * (FLOOD_BYTES // len(get(path))))
            read_to_end(connection)


def unread(client: Client) -> None:
    """Requests whose answers are never read."""
    with client.connect() as connection:
        connection.settimeout(1)
        with contextlib.suppress(OSError):
            connection.sendall(get("/metrics") * 1000)
        time.sleep(1)


def slow(client: Client) -> None:
    """Half a request, which goes on a byte at a time."""
    with client.connect() as connection, contextlib.suppress(OSError):
        connection.sendall(b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: 60000\r\n\r\n")
        for _ in range(20):
            connection.sendall(b" ")
            time.sleep(0.1)


def half_closed(client: Client) -> None:
    """Requests of a client that says it will send no more, and then reads."""
    for _ in range(20):
        with client.connect() as connection, contextlib.suppress(OSError):
            connection.sendall(get(group_path("slow")) * 50)
            connection.shutdown(socket.SHUT_WR)
            read_to_end(connection)


def oversized(client: Client) -> None:
    """Heads and bodies that are too large."""
    head = b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n"
    for _ in range(3):
        client.tell(b"GET / HTTP/1.1\r\nX: " + b"a" * 300_000 + b"\r\n\r\n")
        client.tell(head, b" " * 1_000_000)


def abandoned(client: Client) -> None:
    """Connections that are made and left."""
    with contextlib.ExitStack() as held:
        for _ in range(MAX_CONNECTIONS):
            held.enter_context(client.connect())
        time.sleep(1)


LOADS: dict[str, Callable[[Client], None]] = {
    "pipelined from memory": lambda client: pipelined(client, "/burrow/admin"),
    "pipelined from files": lambda client: pipelined(client, group_path("slow")),
    "unread": unread,
    "slow": slow,
    "half closed": half_closed,
    "oversized": oversized,
    "abandoned": abandoned,
}


class Probe:
    """Asks for the health of a server again and again, each time by a new connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()
        self.took_s: list[float] = []

    def __enter__(self) -> "Probe":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            began = time.monotonic()
            assert self._client.ask("/burrow/admin").body == b"GOOD"
            self.took_s.append(time.monotonic() - began)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("load", LOADS)
def test_others_are_answered_and_memory_comes_back(client: Client, server: WebServer, load: str) -> None:
    # Once before: what it takes for good, such as code and caches, is no leak.
    LOADS[load](client)
    before = resident_kb(server)
    with Probe(client) as probe, ThreadPoolExecutor(CONNECTIONS) as clients:
        list(clients.map(lambda _: LOADS[load](client), range(CONNECTIONS)))
    assert len(probe.took_s) >= 2
    assert statistics.median(probe.took_s) < HEALTH_S, probe.took_s
    assert max(probe.took_s) < MOST_HEALTH_S
    within(lambda: resident_kb(server) - before < MAX_GROWTH_KB, "memory comes back", 20)


def test_requests_sent_ahead_are_all_answered_in_order(client: Client) -> None:
    paths = ["/burrow/admin", group_path("slow"), group_path("slow", "lag"), "/nothing"]
    expected = [client.ask(path).body for path in paths]
    with client.connect() as connection:
        sender = threading.Thread(target=connection.sendall, args=(b"".join(map(get, paths)) * 500 + LAST,))
        sender.start()
        rest = read_to_end(connection)
        sender.join()
    for _ in range(500):
        for body in expected:
            got, rest = to_got(rest)
            assert got.body == body
    assert to_got(rest)[0].body == b"GOOD"


LAST = b"GET /burrow/admin HTTP/1.1\r\nConnection: close\r\n\r\n"


def test_a_request_in_pieces_is_the_same_request(client: Client) -> None:
    sent = get(group_path("slow")) + get("/burrow/admin") + LAST
    whole = client.tell(sent)
    for step in (1, 3, 7, 50):
        with client.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(sent), step):
                connection.sendall(sent[at : at + step])
            assert len(read_to_end(connection)) == len(whole)


def test_a_body_is_followed_by_the_next_request(client: Client) -> None:
    body = b'{"level":"info"}' + b"\r\n\r\n" * 10_000
    head = b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    got, rest = to_got(client.tell(head + body + LAST))
    assert (got.status, got.json["message"]) == (200, "set log level")
    assert to_got(rest)[0].body == b"GOOD"


def test_connections_are_capped_and_new_clients_come_first(client: Client, server: WebServer) -> None:
    with contextlib.ExitStack() as held:
        idle = [held.enter_context(client.connect()) for _ in range(3 * MAX_CONNECTIONS)]
        within(lambda: sockets_of(server) <= MAX_CONNECTIONS + 20, "those that have waited longest are closed")
        for _ in range(10):
            assert client.ask("/burrow/admin").body == b"GOOD"
        assert read_to_end(idle[0]) == b""
        idle[-1].sendall(LAST)
        assert to_got(read_to_end(idle[-1]))[0].body == b"GOOD"


def test_connections_that_are_being_answered_stay(data: Path) -> None:
    listener = HttpServer("127.0.0.1:0", max_connections=10, name="default")
    with contextlib.closing(WebServer(server_config(data, http_servers={"default": listener}))) as server:
        client = Client(server.urls()[0])
        with contextlib.ExitStack() as held:
            # No pipeline runs, so they wait for half a minute.
            for _ in range(10):
                waiting = http.client.HTTPConnection(client.url.removeprefix("http://"))
                held.callback(waiting.close)
                waiting.request("POST", "/v3/admin/reload")
            time.sleep(0.5)
            got, _ = to_got(client.tell())
            assert (got.status, got.json["message"]) == (503, "too many connections")
        within(lambda: _answers(client), "they are gone")


def _answers(client: Client) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return client.ask("/burrow/admin").status == 200
    return False


@pytest.mark.parametrize(
    ("limit", "sent"),
    [
        ("HEAD_S", b""),
        ("HEAD_S", b"GET /burrow"),
        ("HEAD_S", get("/burrow/admin") + b"GET /burr"),
        ("BODY_S", b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"),
        ("READ_S", get("/metrics") * 500),
    ],
)
def test_slow_clients_are_cut_long_before_the_timeout(
    data: Path, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes
) -> None:
    monkeypatch.setattr(limits, limit, 0.5)

    async def cut() -> float:
        servers = HttpServers(server_config(data), lambda: None)
        port = int(servers.configure(servers.config)[0].rsplit(":", 1)[1])
        servers.follower.poll()
        loop = asyncio.get_running_loop()
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", port))
        began = time.monotonic()
        with contextlib.closing(connection), contextlib.suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(loop.sock_sendall(connection, sent), 8)
            await asyncio.sleep(2)
            async with asyncio.timeout(8):
                while await loop.sock_recv(connection, 65_536):
                    pass
        took_s = time.monotonic() - began
        await servers.listeners.close()
        return took_s

    assert asyncio.run(cut()) < 8

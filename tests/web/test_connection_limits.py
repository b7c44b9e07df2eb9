"""Limits: malformed, slow, large or old requests get an answer or are disconnected, and block no other client."""

import contextlib
import gzip
import http.client
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.plans import Commit
from tests.kit.servers import Client, Town, group_path, read_to_end, server_config, to_got, within
from warren.config import HttpServer
from warren.web.server import WebServer

TIMEOUT_S = 1
LATE_S = 8
"""Longer than a busy machine needs for what takes TIMEOUT_S, and shorter than any other limit."""
HEAD = b"GET /burrow/admin HTTP/1.1\r\nHost: warren\r\n"
MANY = 20_000
"""Groups enough that their metrics fit into no buffer on the way."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("limits")).grow()
    commits = [Commit(f"many-{number}", "orders", 0, 1, town.now_ms, 10**6 + number, 1) for number in range(MANY)]
    town.cycles.cycle(town.now_ms, commits)
    town.publish()
    return town


@pytest.fixture(scope="module")
def server(town: Town) -> Iterator[WebServer]:
    listener = HttpServer("127.0.0.1:0", timeout=TIMEOUT_S, name="default")
    with contextlib.closing(WebServer(server_config(town.data, http_servers={"default": listener}))) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: WebServer) -> Client:
    return Client(server.urls()[0])


def assert_alive(client: Client) -> None:
    assert client.ask("/burrow/admin").body == b"GOOD"


def assert_refused(raw: bytes, status: int) -> None:
    got, rest = to_got(raw)
    assert (got.status, got.type, rest) == (status, "application/json", b"")
    assert got.json["error"] is True
    assert got.json["message"]


@pytest.mark.parametrize("size", [40_000, 200_000, 2_000_000])
@pytest.mark.parametrize("pieces", [1, 50])
def test_a_head_that_is_too_large(client: Client, size: int, pieces: int) -> None:
    head = HEAD + b"X-Much: " + b"a" * size + b"\r\n\r\n"
    step = len(head) // pieces + 1
    assert_refused(client.tell(*(head[at : at + step] for at in range(0, len(head), step))), 431)
    assert_alive(client)


def test_a_head_of_many_headers(client: Client) -> None:
    assert_refused(client.tell(HEAD, *(b"X-%d: y\r\n" % number for number in range(10_000)), b"\r\n"), 431)


def test_a_path_that_is_too_long(client: Client) -> None:
    assert_refused(client.tell(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n"), 431)


def test_a_large_head_that_is_allowed(client: Client) -> None:
    assert client.ask("/burrow/admin", headers={"X-Much": "a" * 30_000}).body == b"GOOD"


@pytest.mark.parametrize("size", [70_000, 3_000_000])
def test_a_body_that_is_too_large(client: Client, size: int) -> None:
    got = client.ask("/v3/admin/loglevel", "POST", b" " * size)
    assert (got.status, got.type, got.json["error"]) == (413, "application/json", True)


def test_an_endless_chunked_body(client: Client) -> None:
    with client.connect() as connection:
        connection.sendall(b"POST /v3/admin/loglevel HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(10):
            connection.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert (answer.status, json.loads(answer.read())["error"]) == (413, True)


def test_an_unread_body_does_not_keep_its_connection_open(client: Client) -> None:
    began = time.monotonic()
    raw = client.tell(HEAD + b"Content-Length: 500000\r\n\r\n", b" " * 500_000)
    assert to_got(raw)[0].body == b"GOOD"
    assert time.monotonic() - began < LATE_S


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\xff\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600),
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET ?a HTTP/1.1\r\n\r\n",
        b"GET http://elsewhere HTTP/1.1\r\n\r\n",
        b"CONNECT elsewhere:80 HTTP/1.1\r\n\r\n",
        b"GET /v3/kafka HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /v3/kafka HTTP/1.1\r\nbad name: x\r\n\r\n",
        b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v3/admin/loglevel HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n",
        b"GET /v3/kafka/\xff\xfe HTTP/1.1\r\n\r\n",
        b"GET /v3/kafka/one/lag?group=\xff HTTP/1.1\r\n\r\n",
    ],
)
def test_input_that_is_not_http(client: Client, garbage: bytes) -> None:
    assert_refused(client.tell(garbage), 400)


@pytest.mark.parametrize(
    "path",
    [
        "/v3/kafka/%zz",
        "/v3/kafka/100%",
        "/v3/kafka/%ff%fe",
        "/v3/kafka/one/consumer/%ed%a0%80/lag",
        "/v3/kafka/one/lag?group=%ff",
        "/v3/kafka/one/lag?group=" + "x" * 10_000,
        "/v3/kafka/one/lag?" + "group=a&" * 200,
        "/v3/kafka/one/lag?group=" + "*a" * 1_000,
    ],
)
def test_invalid_paths_and_queries(client: Client, path: str) -> None:
    got = client.ask(path)
    assert (got.status, got.type) == (400, "application/json")
    assert (got.json["error"], got.json["request"]["url"][:9]) == (True, "/v3/kafka")


def test_half_a_request_is_closed_in_time_and_blocks_nobody(client: Client) -> None:
    began = time.monotonic()
    with contextlib.ExitStack() as held:
        halves = [held.enter_context(client.connect()) for _ in range(20)]
        for number, half in enumerate(halves):
            half.sendall(
                (HEAD, b"", b"POST /v3/admin/loglevel HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", b"G")[number % 4]
            )
        with ThreadPoolExecutor(10) as others:
            list(others.map(lambda _: assert_alive(client), range(50)))
        assert time.monotonic() - began < LATE_S
        assert [read_to_end(half) for half in halves] == [b""] * 20
    assert TIMEOUT_S - 0.5 < time.monotonic() - began < LATE_S


def test_a_request_that_trickles_in_is_closed_in_time(client: Client) -> None:
    began = time.monotonic()
    with client.connect() as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(0.2)
        for byte in HEAD * 10:
            connection.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                assert connection.recv(100) == b""
                break
    assert time.monotonic() - began < LATE_S


def test_an_idle_connection_is_closed_in_time(client: Client) -> None:
    with client.connect() as connection:
        connection.sendall(HEAD + b"\r\n")
        began = time.monotonic()
        assert to_got(read_to_end(connection))[0].body == b"GOOD"
    assert TIMEOUT_S - 0.5 < time.monotonic() - began < LATE_S


def sockets_of(server: WebServer) -> int:
    """How many sockets a server has open."""
    found = 0
    for handle in Path(f"/proc/{server.pid}/fd").iterdir():
        # One may be closed while we look.
        with contextlib.suppress(OSError):
            found += str(handle.readlink()).startswith("socket:")
    return found


def test_a_client_that_never_reads_is_disconnected_and_blocks_nobody(client: Client, server: WebServer) -> None:
    whole = client.ask("/metrics").body
    before = sockets_of(server)
    with contextlib.ExitStack() as held:
        lazy = [held.enter_context(socket.socket()) for _ in range(8)]
        for each in lazy:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.connect(("127.0.0.1", int(client.url.rsplit(":", 1)[1])))
            each.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        assert_alive(client)
        assert client.ask(group_path("healthy", "lag")).status == 200
        # This one needs a thread, of which there are fewer than clients that do not read.
        assert client.ask(group_path("healthy", "explain")).status == 200
        assert client.ask("/metrics").body[:1000] == whole[:1000]
        assert time.monotonic() - began < LATE_S
        within(lambda: sockets_of(server) <= before, "they are shown out", 20)
        for each in lazy:
            each.settimeout(10)
            taken = read_to_end(each)
            assert len(taken) < len(whole), "it was closed before it had all"


def test_a_slow_reader_gets_the_whole_answer(client: Client) -> None:
    with client.connect() as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n")
        found = b""
        while part := connection.recv(100_000):
            found += part
            time.sleep(0.05)
    head, _, rest = found.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert gzip.decompress(unchunked(rest)).count(b'consumer_group="many-') == 6 * MANY


def unchunked(data: bytes) -> bytes:
    """A body out of its chunks, all of which must be there."""
    parts: list[bytes] = []
    while True:
        size, _, data = data.partition(b"\r\n")
        if int(size, 16) == 0:
            return b"".join(parts)
        parts.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]


def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    paths = [group_path("stalled"), "/burrow/admin", group_path("slow", "explain"), group_path("slow", "lag"), "/no"]
    # Those from files take longer than those from memory.
    asked = b"".join(f"GET {path} HTTP/1.1\r\n\r\n".encode() for path in paths * 5)
    rest = client.tell(asked + b"GET /v3/kafka HTTP/1.1\r\nConnection: close\r\n\r\n")
    for path in [*paths * 5, "/v3/kafka"]:
        got, rest = to_got(rest)
        assert got.body == client.ask(path).body
    assert rest == b""


def test_garbage_after_a_request_does_not_cancel_its_answer(client: Client) -> None:
    got, rest = to_got(client.tell(f"GET {group_path('slow')} HTTP/1.1\r\n\r\n\x01\x02\r\n\r\n".encode()))
    assert (got.status, got.json["topics"].keys()) == (200, {"orders"})
    assert_refused(rest, 400)


@pytest.mark.parametrize("path", ["/burrow/admin", "/metrics", "/v3/kafka/two/lag?limit=3", "/nothing"])
def test_http_1_0_gets_a_whole_answer_and_is_closed(client: Client, path: str) -> None:
    got, rest = to_got(client.tell(f"GET {path} HTTP/1.0\r\n\r\n".encode()))
    assert (got.headers["Transfer-Encoding"], got.headers["Connection"]) == (None, "close")
    assert (rest, len(got.body)) == (b"", int(got.headers["Content-Length"]))
    assert got.status == client.ask(path).status
    if got.type == "application/json":
        assert json.loads(got.body)["total"] == MANY + 24


def test_connections_are_kept_alive(client: Client) -> None:
    with contextlib.closing(http.client.HTTPConnection(client.url.removeprefix("http://"))) as connection:
        connection.connect()
        first = connection.sock
        for path in ("/burrow/admin", "/metrics", "/nothing", "/v3/kafka"):
            connection.request("GET", path)
            assert connection.getresponse().read()
            assert connection.sock is first


def test_unknown_names_take_no_memory(client: Client, server: WebServer) -> None:
    def resident_kb() -> int:
        status = Path(f"/proc/{server.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def ask(numbers: range) -> None:
        with contextlib.closing(http.client.HTTPConnection(client.url.removeprefix("http://"))) as connection:
            for number in numbers:
                connection.request("GET", group_path(f"{number}-" + "x" * 16_000, "lag"))
                assert connection.getresponse().read().startswith(b'{"error":false')

    ask(range(200))
    before = resident_kb()
    ask(range(1000, 2500))
    assert resident_kb() - before < 20_000

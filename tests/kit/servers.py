"""A real server over a data directory that no Spark has made, and a client that speaks to it as strangers do."""

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.message import Message
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

from tests.kit.plans import Commit, Rehearsal, plan
from tests.kit.warrens import wait_for
from warren.config import Cluster, Config, Consumer, HttpServer, Pipeline
from warren.domain.offsets_logs import OffsetsLog
from warren.domain.windows import UNKNOWN
from warren.pipeline.plan import PlannedCluster
from warren.snapshot.requests import RequestQueue
from warren.web.api import Api, IndexFollower
from warren.web.server import WebServer

CLUSTERS = ("one", "two")
ODD_NAMES = ("a+b c", "billing/eu", "groß✓", "100%2Fsure", "<b>&'", 'say "hi"\\\nbye', "..", "?x=1#y", "{}", "*")
"""Names that are hard on paths, on JSON, on HTML, on patterns or on metrics."""
INTERVALS = 10
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Got:
    """An answer as it came over the wire."""

    status: int
    headers: Message
    body: bytes

    @property
    def type(self) -> str:
        """The content type."""
        return str(self.headers["Content-Type"])

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Asks one listener; every question has a connection of its own."""

    url: str
    context: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Got:
        """One request, whose path is sent as it is."""
        with contextlib.closing(self._connection()) as connection:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return Got(answer.status, answer.headers, answer.read())

    def json(self, path: str) -> Any:
        """What a path answers, which must be good."""
        got = self.ask(path)
        assert got.status == 200, (path, got.status, got.body[:200])
        return got.json

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=PATIENCE_S, context=self.context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S)

    def connect(self) -> socket.socket:
        """A bare connection, for whoever does not speak HTTP properly."""
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname, parts.port), PATIENCE_S)

    def tell(self, *parts: bytes) -> bytes:
        """Send bytes as they are and give all that comes back until the server hangs up."""
        with self.connect() as connection:
            # A server that has read enough hangs up in the middle.
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    connection.sendall(part)
            return read_to_end(connection)

    def known_as(self, authorization: str) -> "Client":
        """The same listener, asked by somebody."""
        return replace(self, headers={"Authorization": authorization})


def read_to_end(connection: socket.socket) -> bytes:
    """Everything until the other side hangs up."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            found += part
    return found


def to_got(raw: bytes) -> tuple[Got, bytes]:
    """The first answer of what came over a connection, and what follows it."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    headers = Message()
    for line in lines[1:]:
        name, _, value = line.decode("latin-1").partition(": ")
        headers[name] = value
    size = int(headers["Content-Length"])
    return Got(int(lines[0].split()[1]), headers, rest[:size]), rest[size:]


def group_path(group: str, what: str = "", cluster: str = "one") -> str:
    """The path of a group, or of something of it."""
    return f"/v3/kafka/{cluster}/consumer/{quote(group, safe='')}" + (f"/{what}" if what else "")


def server_config(data: Path, **changes: Any) -> Config:
    """A configuration of two clusters and one listener on a free port, with some things changed."""
    servers = ("127.0.0.1:1",)
    made = Config(
        clusters={name: Cluster(name, servers) for name in CLUSTERS},
        consumers={name: Consumer(name, name, servers) for name in CLUSTERS},
        pipeline=Pipeline(data_dir=data),
        http_servers={"default": HttpServer("127.0.0.1:0", name="default")},
    )
    return replace(made, **changes)


def new_api(config: Config) -> Api:
    """The API over a data directory, without a server."""
    data_dir = config.pipeline.data_dir
    return Api(config, IndexFollower(data_dir), RequestQueue(data_dir))


@contextlib.contextmanager
def serving(config: Config) -> Iterator[list[Client]]:
    """A server process, and a client for each of its listeners."""
    server = WebServer(config)
    try:
        yield [Client(url) for url in server.urls()]
    finally:
        server.close()


class Town:
    """Two clusters with groups of every kind, judged in cycles a second apart that end now."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        # The times of its snapshots are far apart.
        clusters = tuple(PlannedCluster(name, is_judged=True, max_gap_ms=86_400_000) for name in CLUSTERS)
        self.cycles = Rehearsal(root, plan(root, clusters=clusters, slots=(0, 1, 0), intervals=INTERVALS))
        self.data = root
        self._order = 0
        self.now_ms = time.time_ns() // 1_000_000 - INTERVALS * 1000

    def grow(self) -> Self:
        """As many cycles as fill a window."""
        for turn in range(INTERVALS):
            self.turn(self._commits(turn), head=1000 + 10 * turn)
        return self

    def turn(self, commits: list[tuple[int, str, str, int, int]], head: int = 1090) -> None:
        """One more cycle: cluster, group, topic, partition and offset of each commit."""
        self.now_ms += 1000
        topics = {"orders": [head, head, head], "audit": [head, UNKNOWN], "unread": [7]}
        self.cycles.sample(self.now_ms, {"one": topics, "two": topics})
        made = []
        for cluster, group, topic, partition, offset in commits:
            self._order += 1
            made.append(Commit(group, topic, partition, offset, self.now_ms - 10, self._order, cluster))
        self.cycles.cycle(self.now_ms, made)

    def _commits(self, turn: int) -> list[tuple[int, str, str, int, int]]:
        head = 1000 + 10 * turn
        found = [(0, "healthy", "orders", p, head) for p in range(3)] + [(1, "healthy", "orders", 1, head - 5)]
        found += [(0, "stalled", "orders", p, 500 + p) for p in range(3)]
        found += [(0, "slow", "orders", 0, 900 + turn), (0, "slow", "orders", 1, head)]
        found += [(0, "blind", "audit", 1, turn)]
        found += [(0, name, "orders", 2, head) for name in ODD_NAMES]
        found += [(1, f"bulk-{number:02d}", "orders", number % 3, 1000) for number in range(23)]
        return found + ([(0, "fresh", "orders", 1, 1000), (0, "fresh", "audit", 0, 1)] if turn == 9 else [])

    def hold_back(self, group: str, since_ms: int) -> None:
        """A cycle in which the offsets partition of a group of the first cluster has not been read whole for long."""
        self.now_ms += 1000
        log = OffsetsLog(1, since_ms, self.now_ms, since_ms, unknown_since_ms=since_ms)
        one, *others = self.cycles.plan.clusters
        commit = Commit(group, "orders", 0, 1090, self.now_ms - 10, self._order, log=1)
        self.cycles.cycle(self.now_ms, [commit], clusters=(replace(one, logs=(log,)), *others))

    def publish(self, **changes: Any) -> None:
        """Make a manifest of what was judged last, as of now."""
        self.cycles.store.publish(self.cycles.manifest(now_ms=self.now_ms, **changes))


def within(holds: Callable[[], bool], what: str, seconds: float = 5.0) -> None:
    """Wait until something holds that should do so soon."""
    wait_for(holds, what, seconds)

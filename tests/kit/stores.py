"""Real stores for sinks to write to, on this machine: each can be killed and brought back on its port and its data."""

import contextlib
import gzip
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import orjson

from tests.kit.debian import debian_files
from tests.kit.warrens import wait_for
from warren.demo.broker import free_ports
from warren.errors import BusyError
from warren.java import cache_dir, create_once, java_home, run_ivy
from warren.sinks.points import Points
from warren.sinks.worker import Writer

NOBODY = 65534
MOST_TRIES = 1000
_JAVA_OPTIONS = "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
_WATCHDOG = 'read -r _; kill -s KILL -- "-$0"; rm -rf "$1"'


class StoreServer:
    """A server on free ports of 127.0.0.1 that does not outlive us, with data that outlives its process."""

    ready = "/health"
    user: int | None = None
    """Whom it runs as, where not as we do."""

    def __init__(self) -> None:
        self._home = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._port = self._other_port = 0

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._port, self._other_port = free_ports()
        self._home = Path(tempfile.mkdtemp(prefix="warren-store-"))
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def prepare(self) -> None:
        """Make what the server needs in its home."""

    def command(self) -> list[str]:
        """How it is started."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """What it finds in its environment."""
        return {}

    def start(self) -> None:
        """Start it, on its port and its data, and wait until it serves."""
        base = {"PATH": os.environ["PATH"], "HOME": str(self._home), "LANG": "C.UTF-8"}
        # A session of its own, so that all of its processes end at once.
        with (self._home / "output").open("ab") as output:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self._home,
                env={**base, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, str(self._process.pid), str(self._home)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_for(self._is_well, f"{type(self).__name__} serves", 120.0)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is None or self._watchdog is None:
            return
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            for _ in range(100):
                os.killpg(self._process.pid, 0)
                time.sleep(0.02)
        self._watchdog.kill()
        self._watchdog.communicate()
        self._process = self._watchdog = None

    def _is_well(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._home / "output").read_text(errors="replace")[-3000:]
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}{self.ready}").is_success
        return False


@dataclass(frozen=True)
class Distribution:
    """A server's own distribution, as a zip of Maven Central."""

    name: str
    version: str
    settings: str = ""

    def directory(self) -> Path:
        """Where it is, unpacked; fetched once."""
        return create_once(cache_dir() / "stores" / f"{self.name}-{self.version}", self._fetch)

    def _fetch(self, into: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="warren-stores-") as scratch_name:
            scratch = Path(scratch_name)
            ivy_xml = (
                f'<ivy-module version="2.0"><info organisation="warren" module="{self.name}"/><dependencies>'
                f'<dependency org="org.{self.name}.distribution.integ-test-zip" name="{self.name}" rev="{self.version}"'
                f' conf="default->default" transitive="false"><artifact name="{self.name}" type="zip" ext="zip"/>'
                "</dependency></dependencies></ivy-module>"
            )
            error = run_ivy(ivy_xml, scratch / "[artifact].[ext]", ["zip"])
            assert not error, f"could not download {self.name} {self.version}: {error}"
            with zipfile.ZipFile(scratch / f"{self.name}.zip") as packed:
                packed.extractall(scratch / "unpacked")
            [found] = (scratch / "unpacked").iterdir()
            shutil.copytree(found, into, dirs_exist_ok=True)
        for program in into.glob("bin/*"):
            program.chmod(0o755)


ELASTICSEARCH = Distribution("elasticsearch", "8.19.21", "xpack.security.enabled: false\n")
OPENSEARCH = Distribution("opensearch", "2.19.6")


class SearchServer(StoreServer):
    """Elasticsearch or OpenSearch, of one node."""

    ready = "/_cluster/health?wait_for_status=yellow&timeout=1s"
    # It does not run as root.
    user = NOBODY if os.geteuid() == 0 else None

    def __init__(self, distribution: Distribution) -> None:
        super().__init__()
        self._distribution = distribution
        self.name = distribution.name

    def prepare(self) -> None:
        """Copy the distribution to where the server's user may read it, and write its settings."""
        shutil.copytree(self._distribution.directory(), self._home, dirs_exist_ok=True)
        (self._home / "tmp").mkdir()
        (self._home / "config" / f"{self.name}.yml").write_text(
            f"network.host: 127.0.0.1\nhttp.port: {self._port}\ntransport.port: {self._other_port}\n"
            f"discovery.type: single-node\npath.data: {self._home}/data\npath.logs: {self._home}/logs\n"
            f"cluster.routing.allocation.disk.threshold_enabled: false\n{self._distribution.settings}"
        )
        if self.user is not None:
            for path in (self._home, *self._home.rglob("*")):
                os.chown(path, self.user, self.user)

    def command(self) -> list[str]:
        """Its own script."""
        return [str(self._home / "bin" / self.name)]

    def environment(self) -> dict[str, str]:
        """Which Java, and how much memory."""
        prefix = "ES" if self.name == "elasticsearch" else "OPENSEARCH"
        return {
            f"{prefix}_JAVA_HOME": str(java_home()),
            f"{prefix}_JAVA_OPTS": _JAVA_OPTIONS,
            f"{prefix}_TMPDIR": str(self._home / "tmp"),
            "CLI_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:-UsePerfData",
        }

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What it answers, which must be good."""
        # Without verify it would read all certificates of the machine first.
        answer = httpx.request(method, f"{self.url}{path}", json=body, timeout=30.0, verify=False)
        assert answer.is_success, answer.text
        return answer.json()

    def documents(self, index: str) -> list[dict[str, Any]]:
        """All that it holds under a name."""
        self.ask("POST", f"/{index}/_refresh")
        return [hit["_source"] for hit in self.ask("GET", f"/{index}/_search?size=10000")["hits"]["hits"]]

    def values(self, index: str, field: str) -> dict[Any, int]:
        """The values of a field, and how many documents have each."""
        self.ask("POST", f"/{index}/_refresh")
        wanted = {"size": 0, "aggs": {"all": {"terms": {"field": field, "size": 10_000}}}}
        found = self.ask("POST", f"/{index}/_search", wanted)["aggregations"]["all"]["buckets"]
        return {bucket["key"]: bucket["doc_count"] for bucket in found}


class InfluxDb(StoreServer):
    """InfluxDB 1."""

    ready = "/ping"

    def __init__(self, *, has_users: bool = False) -> None:
        super().__init__()
        self._has_users = has_users

    def command(self) -> list[str]:
        """The server, with no file of settings."""
        return [str(debian_files("influxdb", "usr/bin/influxd") / "influxd"), "run", "-config", os.devnull]

    def environment(self) -> dict[str, str]:
        """All of its settings."""
        return {
            "INFLUXDB_REPORTING_DISABLED": "true",
            "INFLUXDB_BIND_ADDRESS": f"127.0.0.1:{self._other_port}",
            "INFLUXDB_META_DIR": str(self._home / "meta"),
            "INFLUXDB_DATA_DIR": str(self._home / "data"),
            "INFLUXDB_DATA_WAL_DIR": str(self._home / "wal"),
            "INFLUXDB_HTTP_BIND_ADDRESS": f"127.0.0.1:{self._port}",
            "INFLUXDB_HTTP_AUTH_ENABLED": str(self._has_users).lower(),
            "INFLUXDB_MONITOR_STORE_ENABLED": "false",
        }

    def rows(self, statement: str, database: str = "", user: tuple[str, str] | None = None) -> list[dict[str, Any]]:
        """What a statement of InfluxQL gives, times in milliseconds; the tags of a series with each of its rows."""
        wanted = {"q": statement, "db": database, "epoch": "ms"}
        answer = httpx.post(f"{self.url}/query", params=wanted, auth=user, verify=False)
        [result] = answer.json()["results"]
        assert "error" not in result, result
        return [
            {**series.get("tags", {}), **dict(zip(series["columns"], values, strict=True))}
            for series in result.get("series", ())
            for values in series.get("values", ())
        ]


class VictoriaMetrics(StoreServer):
    """VictoriaMetrics, which takes InfluxDB's line protocol."""

    def command(self) -> list[str]:
        """The server."""
        return [
            str(debian_files("victoria-metrics", "usr/bin/victoria-metrics") / "victoria-metrics"),
            f"-httpListenAddr=127.0.0.1:{self._port}",
            f"-storageDataPath={self._home / 'data'}",
            "-retentionPeriod=100y",
            # Else it keeps a point twice that comes twice.
            "-dedup.minScrapeInterval=1ms",
        ]

    def series(self, name: str) -> list[dict[str, Any]]:
        """All series of a metric, with their values and their times."""
        httpx.get(f"{self.url}/internal/force_flush").raise_for_status()
        answer = httpx.get(f"{self.url}/api/v1/export", params={"match[]": name})
        return [orjson.loads(line) for line in answer.raise_for_status().content.splitlines()]


def requests_for(writer: Writer, points: Points, tags: Mapping[str, str], at_ms: int) -> list[bytes]:
    """Requests as a sink keeps them."""
    return [gzip.compress(request) for request in writer.encode(points, tags, at_ms)]


def deliver(writer: Writer, points: Points, tags: Mapping[str, str], at_ms: int) -> None:
    """Write points, all of which must be taken at once."""
    for position, request in enumerate(requests_for(writer, points, tags, at_ms)):
        assert writer.deliver(request, at_ms * 100_000 + position) is None


def deliver_all(writer: Writer, requests: Iterable[bytes]) -> tuple[int, int]:
    """Deliver requests as a sink does, each until it is taken; gives how many, and how often the server was away."""
    count = away = 0
    for position, request in enumerate(requests):
        left: bytes | None = request
        while left is not None:
            try:
                rest = writer.deliver(left, position)
                left = None if rest is None else gzip.compress(rest)
            except BusyError:
                away += 1
                assert away < MOST_TRIES, "the server stays away"
                time.sleep(0.05)
        count += 1
    return count, away


def deliver_through_a_kill(
    writer: Writer, request_of: Callable[[int], bytes], server: StoreServer, first: int = 10
) -> tuple[int, int]:
    """Deliver one request after another while the server is killed and brought back; gives what deliver_all gives."""
    is_under_way, is_back = threading.Event(), threading.Event()

    def requests() -> Iterable[bytes]:
        for number in itertools.count():
            if number == first:
                is_under_way.set()
            yield request_of(number)
            if is_back.is_set():
                return

    with ThreadPoolExecutor(1) as pool:
        delivered = pool.submit(deliver_all, writer, requests())
        try:
            assert is_under_way.wait(60.0)
            server.kill()
            server.start()
        finally:
            is_back.set()
        return delivered.result(120.0)

"""One history for all stores, each of them real and started once for all tests of a module."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.kit.history import History
from tests.kit.prometheus import Prometheus, scraping
from tests.kit.servers import serving
from tests.kit.stores import ELASTICSEARCH, OPENSEARCH, InfluxDb, SearchServer, deliver
from warren.config.sinks import ElasticsearchSink, InfluxSink, OpenSearchSink
from warren.sinks.elasticsearch import ElasticsearchWriter
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.worker import Writer

OWN = {"host": "h"}
SETTLE_S = 2.5
"""So long until the newest snapshot is scraped."""


@contextmanager
def _scraped(history: History, root: Path) -> Iterator[Prometheus]:
    history.publish()
    with serving(history.config()) as [client], scraping(client.url, root) as scraper:
        history.go_on(lambda: time.sleep(1.0))
        time.sleep(SETTLE_S)
        yield scraper


@pytest.fixture(scope="module")
def history_and_scraper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[History, Prometheus]]:
    history = History(tmp_path_factory.mktemp("history"))
    with _scraped(history, tmp_path_factory.mktemp("prometheus")) as scraper:
        yield history, scraper


@pytest.fixture(scope="module")
def history(history_and_scraper: tuple[History, Prometheus]) -> History:
    """What happened."""
    return history_and_scraper[0]


@pytest.fixture(scope="module")
def prometheus(history_and_scraper: tuple[History, Prometheus]) -> Prometheus:
    """A Prometheus that saw it happen."""
    return history_and_scraper[1]


@pytest.fixture(scope="module")
def influxdb(history: History) -> Iterator[InfluxDb]:
    """An InfluxDB to which a sink has written it."""
    with InfluxDb() as running:
        _write(history, InfluxWriter(InfluxSink("flux", urls=(running.url,), database="telegraf")))
        yield running


@pytest.fixture(scope="module")
def starting() -> Iterator[dict[str, Future[SearchServer]]]:
    """Elasticsearch and OpenSearch, which take their time, and start while history is made."""
    servers = {one.name: SearchServer(one) for one in (ELASTICSEARCH, OPENSEARCH)}
    # Whoever has begun to start is waited for before it is ended.
    with ExitStack() as stack, ThreadPoolExecutor(len(servers)) as pool:
        for server in servers.values():
            stack.callback(server.__exit__)
        yield {name: pool.submit(server.__enter__) for name, server in servers.items()}


@pytest.fixture(scope="module")
def elasticsearch(starting: dict[str, Future[SearchServer]], history: History) -> SearchServer:
    """An Elasticsearch to which a sink has written it."""
    return _searched(starting["elasticsearch"].result(), ElasticsearchSink, history)


@pytest.fixture(scope="module")
def opensearch(starting: dict[str, Future[SearchServer]], history: History) -> SearchServer:
    """An OpenSearch to which a sink has written it."""
    return _searched(starting["opensearch"].result(), OpenSearchSink, history)


def _searched(server: SearchServer, kind: type[ElasticsearchSink], history: History) -> SearchServer:
    _write(history, ElasticsearchWriter(kind("search", urls=(server.url,))))
    server.ask("POST", "/burrow-*/_refresh")
    return server


def _write(history: History, writer: Writer) -> None:
    for at_ms, points in history.moments.items():
        for some in points:
            deliver(writer, some, OWN, at_ms)

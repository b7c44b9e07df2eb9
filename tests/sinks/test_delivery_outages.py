"""A server is killed and away for a minute: nothing is missing afterwards, and nothing is there twice."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit.servers import server_config
from tests.kit.stores import ELASTICSEARCH, OPENSEARCH, InfluxDb, SearchServer, StoreServer, VictoriaMetrics
from tests.kit.verdicts import Verdicts
from tests.kit.warrens import wait_for
from tests.sinks.test_verdict_changes import OK
from warren.config.sinks import ElasticsearchSink, InfluxSink, OpenSearchSink, Sink
from warren.delivery.sink_status import read_status
from warren.sinks.process import Sinks

GROUPS = 20
INTERVAL_S = 2.0
AWAY_S = 60.0
KEYS: dict[str, Any] = {"interval": INTERVAL_S, "detail": "group"}

Found = Counter[tuple[int, str]]
"""How often a group is there, at each moment in milliseconds."""


def documents(server: SearchServer) -> Found:
    found = [one for one in server.documents("burrow-*") if one["measurement_name"] == "burrow_group"]
    moments = [round(datetime.fromisoformat(one["@timestamp"]).timestamp() * 1000) for one in found]
    return Counter((at_ms, one["tag"]["group"]) for at_ms, one in zip(moments, found, strict=True))


def points(server: InfluxDb) -> Found:
    return Counter(
        (row["time"], row["group"])
        for row in server.rows('SELECT "group", "status_code" FROM burrow_group', "telegraf")
    )


def samples(server: VictoriaMetrics) -> Found:
    found = server.series("burrow_group_status_code")
    return Counter((at_ms, one["metric"]["group"]) for one in found for at_ms in one["timestamps"])


@dataclass(frozen=True)
class Store:
    """A server, how it is written to, and what it holds."""

    server: Callable[[], StoreServer]
    sink: Callable[[str], Sink]
    found: Callable[[Any], Found]
    forgets_s: float = 0.0
    """How much of what it has said to have taken it does not know after a kill."""


STORES = {
    "elasticsearch": Store(
        lambda: SearchServer(ELASTICSEARCH), lambda url: ElasticsearchSink("s", urls=(url,), **KEYS), documents
    ),
    "opensearch": Store(
        lambda: SearchServer(OPENSEARCH), lambda url: OpenSearchSink("s", urls=(url,), **KEYS), documents
    ),
    "influxdb": Store(InfluxDb, lambda url: InfluxSink("s", urls=(url,), **KEYS), points),
    "victoriametrics": Store(
        VictoriaMetrics, lambda url: InfluxSink("s", urls=(url,), **KEYS), samples, forgets_s=15.0
    ),
}


@contextmanager
def judging(root: Path) -> Iterator[None]:
    """A snapshot every few seconds, as of now."""
    verdicts, stop = Verdicts(root), threading.Event()

    def judge() -> None:
        while not stop.is_set():
            verdicts.now_ms = time.time_ns() // 1_000_000
            verdicts.publish({"one": {f"g{number}": OK for number in range(GROUPS)}})
            stop.wait(5.0)

    thread = threading.Thread(target=judge)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STORES)
def test_nothing_is_missing_and_nothing_is_twice_after_a_minute_without_the_server(tmp_path: Path, name: str) -> None:
    store = STORES[name]
    with store.server() as server, judging(tmp_path):
        sink = store.sink(server.url)
        with closing(Sinks(server_config(tmp_path, sinks={"s": sink}))):
            wait_for(lambda: (held := read_status(tmp_path, "s")) and held.delivered_ms, "the first interval", 60)
            first = read_status(tmp_path, "s")
            assert first is not None
            assert first.delivered_ms is not None
            time.sleep(20.0)
            killed_ms = time.time_ns() // 1_000_000
            server.kill()
            time.sleep(AWAY_S)
            held = read_status(tmp_path, "s")
            assert held is not None
            assert held.waiting >= AWAY_S / INTERVAL_S - 3
            assert held.trouble
            server.start()
            back_ms = time.time_ns() // 1_000_000
            wait_for(
                lambda: (held := read_status(tmp_path, "s")) and (held.delivered_ms or 0) > back_ms + 5_000,
                "all of it, and what came after it",
                90,
            )
        found = store.found(server)
    moments = sorted({at_ms for at_ms, _ in found})
    expected = range(first.delivered_ms, moments[-1] + 1, round(INTERVAL_S * 1000))
    missing = [at_ms for at_ms in expected if at_ms not in moments]
    assert all(killed_ms - store.forgets_s * 1000 < at_ms < killed_ms for at_ms in missing), missing
    assert found == Counter((at_ms, f"g{number}") for at_ms in moments for number in range(GROUPS))

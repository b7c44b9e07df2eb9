"""100,000 partitions an interval into each sink: how long until they are kept on disk, and until the server has them.

`python -m benchmarks.sinks`; then what each adds to a cycle (`benchmarks/beside.py`).
"""

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks import beside
from benchmarks.conditions import cpu_s, show
from benchmarks.snapshots import record
from tests.kit.sink_workers import deliver_next, sample
from tests.kit.stores import ELASTICSEARCH, OPENSEARCH, InfluxDb, SearchServer
from warren.config.kafka import Connection
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, OpenSearchSink, Sink
from warren.delivery.sink_status import read_status, sink_folder
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.sinks.elasticsearch import ElasticsearchWriter
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.kafka import KafkaWriter
from warren.sinks.worker import Writer, request_worker

PARTITIONS = 100_000
INTERVALS = 3
TRIGGER_S = 10.0


def main() -> None:
    """Each sink in turn, alone with its server, and then beside the judging."""
    with tempfile.TemporaryDirectory() as root:
        [manifest] = deque(record(Path(root), PARTITIONS, cycles=2), maxlen=1)
        sinks = (_influxdb, _elasticsearch, _opensearch, _kafka)
        rows = [_measured(Path(root), begin, manifest.now_ms) for begin in sinks]
    show(f"{PARTITIONS:,} partitions an interval", rows)
    beside.main()


def _influxdb(parts: ExitStack) -> tuple[Sink, Writer]:
    server = parts.enter_context(InfluxDb())
    sink = InfluxSink("influxdb", urls=(server.url,), timeout=60.0)
    return sink, InfluxWriter(sink)


def _elasticsearch(parts: ExitStack) -> tuple[Sink, Writer]:
    server = parts.enter_context(SearchServer(ELASTICSEARCH))
    sink = ElasticsearchSink("elasticsearch", urls=(server.url,), timeout=60.0)
    return sink, ElasticsearchWriter(sink)


def _opensearch(parts: ExitStack) -> tuple[Sink, Writer]:
    server = parts.enter_context(SearchServer(OPENSEARCH))
    sink = OpenSearchSink("opensearch", urls=(server.url,), timeout=60.0)
    return sink, ElasticsearchWriter(sink)


def _kafka(parts: ExitStack) -> tuple[Sink, Writer]:
    kafka = parts.enter_context(Kafka())
    create_topics(kafka.bootstrap, {"lag": 4})
    sink = KafkaSink("kafka", topic="lag")
    return sink, KafkaWriter(sink, Connection((kafka.bootstrap,)))


def _measured(root: Path, begin: Callable[[ExitStack], tuple[Sink, Writer]], now_ms: int) -> dict[str, object]:
    with ExitStack() as parts:
        sink, writer = begin(parts)
        worker = request_worker(sink, writer, root)
        kept, delivered, used, size = [], [], [], 0
        for interval in range(INTERVALS):
            at_ms = now_ms + interval * 1000
            cpu, began = cpu_s(os.getpid()), time.monotonic()
            sample(worker, at_ms)
            kept.append(time.monotonic() - began)
            size = sum(path.stat().st_size for path in sink_folder(root, sink.name).rglob("*.gz"))
            while deliver_next(worker):
                pass
            delivered.append(time.monotonic() - began)
            used.append(cpu_s(os.getpid()) - cpu)
    status = read_status(root, sink.name)
    assert status is not None
    assert not status.trouble
    return {
        "sink": sink.name,
        "points": status.points,
        "spool_mb": round(size / 1e6, 1),
        "kept_s": round(min(kept), 2),
        "delivered_s": round(min(delivered), 2),
        "points_a_second": round(status.points / min(delivered)),
        "cpu_s": round(min(used), 2),
        "of_a_core": f"{min(used) / TRIGGER_S:.0%}",
    }


if __name__ == "__main__":
    main()

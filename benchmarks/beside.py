"""What a sink adds to a cycle of 100,000 partitions: cycles with its process beside them and without, by turns.

    python -m benchmarks.beside [away] [influxdb] [elasticsearch] [opensearch] [kafka] [changes]

Cycles begin every 10 s, on the very moments at which a sink samples: the worst case. The server of a sink runs all the
time, on the same cores; what the sink alone adds is told by one whose server is away.
"""

import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.conditions import show
from benchmarks.cycle import INTERVALS, WARM_UP, Rehearsal
from tests.kit.stores import ELASTICSEARCH, OPENSEARCH, InfluxDb, SearchServer
from warren.app import SAMPLE_TIMEOUT_S, targets
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, OpenSearchSink, Sink
from warren.delivery.sink_status import read_status
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import SparkEngine
from warren.sinks.process import Sinks
from warren.snapshot.store import Store
from warren.spark.session import start_session
from warren.spark.supervised import SupervisedSpark

PARTITIONS = 100_000
TRIGGER_S = 10
TURNS, CYCLES = 2, 4
"""So often each way, and so many cycles at a time, of which the first is not counted."""


def main() -> None:
    """Each sink in turn, beside the same judging."""
    logging.basicConfig(level="ERROR")
    all_of_them = (_away, _influxdb, _elasticsearch, _opensearch, _kafka, _changes)
    wanted = [begin for begin in all_of_them if begin.__name__[1:] in sys.argv] or all_of_them
    spark = start_session("local[*]", fetch_jars(SPARK_CONNECTOR), java_home())
    rows = []
    with Kafka(fast_start=False, memory="1g") as kafka, judging(spark, kafka.bootstrap) as made:
        create_topics(kafka.bootstrap, {"lag": 4, "verdicts": 4})
        for begin in wanted:
            with ExitStack() as parts:
                rows.append(made.beside(begin(parts, kafka.bootstrap)))
            print(rows[-1], flush=True)
    show(f"a cycle of {PARTITIONS:,} partitions beside a sink", rows)
    spark.stop()


def _away(parts: ExitStack, bootstrap: str) -> Sink:
    del parts, bootstrap
    return InfluxSink("influxdb, server away", urls=("http://127.0.0.1:1",))


def _influxdb(parts: ExitStack, bootstrap: str) -> Sink:
    del bootstrap
    return InfluxSink("influxdb", urls=(parts.enter_context(InfluxDb()).url,), timeout=60.0)


def _elasticsearch(parts: ExitStack, bootstrap: str) -> Sink:
    del bootstrap
    url = parts.enter_context(SearchServer(ELASTICSEARCH)).url
    return ElasticsearchSink("elasticsearch", urls=(url,), timeout=60.0)


def _opensearch(parts: ExitStack, bootstrap: str) -> Sink:
    del bootstrap
    return OpenSearchSink("opensearch", urls=(parts.enter_context(SearchServer(OPENSEARCH)).url,), timeout=60.0)


def _kafka(parts: ExitStack, bootstrap: str) -> Sink:
    del parts, bootstrap
    return KafkaSink("kafka", topic="lag")


def _changes(parts: ExitStack, bootstrap: str) -> Sink:
    del parts, bootstrap
    return KafkaSink("kafka, changes", changes_topic="verdicts")


class Judging:
    """Cycles in which every partition commits once, on the beat."""

    def __init__(self, config: Config, rehearsal: Rehearsal, watch: ClusterSamplers, spark: SparkSession) -> None:
        self._config = config
        self._rehearsal = rehearsal
        self._watch = watch
        self._looked: dict[str, ClusterSample] = {}
        store = Store(config.pipeline.data_dir)
        self._cycles = Cycles(
            config, SparkEngine(config, SupervisedSpark(lambda: spark)), store, lambda: self._looked, lambda _: None
        )

    def cycle_s(self) -> float:
        """How long the next cycle takes."""
        self._rehearsal.commit(1)
        self._looked = self._rehearsal.with_heads(self._watch.sample(SAMPLE_TIMEOUT_S))
        time.sleep(TRIGGER_S - time.time() % TRIGGER_S)
        self._cycles.run_once()
        return sum(self._cycles.timing.values()) / 1000

    def beside(self, sink: Sink) -> dict[str, object]:
        """How long cycles take with a sink and without it."""
        data_dir = self._config.pipeline.data_dir
        without: list[float] = []
        with_it: list[float] = []
        load = []
        for _ in range(TURNS):
            without += [self.cycle_s() for _ in range(CYCLES)][1:]
            with closing(Sinks(replace(self._config, sinks={sink.name: sink}))):
                with_it += [self.cycle_s() for _ in range(CYCLES)][1:]
            load.append(os.getloadavg()[0])
        status = read_status(data_dir, sink.name)
        assert status is not None
        before, after = statistics.median(without), statistics.median(with_it)
        return {
            "sink": sink.name,
            "points": status.points,
            "without_s": round(before, 2),
            "with_s": round(after, 2),
            "ratio": round(after / before, 2),
            "slowest_without_s": round(max(without), 2),
            "slowest_with_s": round(max(with_it), 2),
            "intervals_waiting": status.waiting,
            "load": round(max(load), 1),
        }


@contextmanager
def judging(spark: SparkSession, bootstrap: str) -> Iterator[Judging]:
    """Windows that are full, and a JVM that is warm."""
    rehearsal = Rehearsal(bootstrap, PARTITIONS, 1)
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            {name: Cluster(name, (bootstrap,)) for name in rehearsal.names},
            {name: Consumer(name, name, (bootstrap,), offsets_topic=t) for name, t in rehearsal.topics.items()},
            pipeline=Pipeline(max_records=50_000_000, data_dir=Path(folder)),
        )
        with ClusterSamplers(targets(config), 2) as watch:
            rehearsal.commit(INTERVALS)
            made = Judging(config, rehearsal, watch, spark)
            for _ in range(WARM_UP):
                made.cycle_s()
            yield made


if __name__ == "__main__":
    main()

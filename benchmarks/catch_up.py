"""Catch-up: commits of a real broker's topic to the published snapshot, in commits per second.

python -m benchmarks.catch_up [--commits 5000000] [--groups 2000] [--repeats 9]
"""

import argparse
import logging
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.conditions import cpu_s, peak_mib, show, workers_cpu_s, workers_mib
from benchmarks.load import PARTITIONS_PER_GROUP, commits, make_topic, produce
from warren.app import SAMPLE_TIMEOUT_S, targets
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.demo.broker import Kafka
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.kafka.sampler import ClusterSamplers
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import SparkEngine
from warren.snapshot.store import Store
from warren.spark.session import start_session
from warren.spark.supervised import SupervisedSpark

OFFSETS_TOPIC = "bench-offsets"


def main() -> None:
    """Fill a topic once, then read it from its start again and again with one warm Spark session."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=5_000_000)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    logging.basicConfig(level="WARNING")
    with tempfile.TemporaryDirectory() as folder, Kafka(fast_start=False, memory="1g") as kafka:
        rounds = options.commits // (options.groups * PARTITIONS_PER_GROUP)
        make_topic(kafka.bootstrap, OFFSETS_TOPIC, 50)
        sent = produce(kafka.bootstrap, OFFSETS_TOPIC, commits(range(options.groups), range(rounds), 500, 50))
        print(f"{sent:,} commits of {options.groups * PARTITIONS_PER_GROUP:,} partitions in the topic", flush=True)
        show("catch_up", measure(kafka.bootstrap, kafka.pid, Path(folder), sent, options.repeats))


def measure(bootstrap: str, broker: int, folder: Path, sent: int, repeats: int) -> list[dict[str, object]]:
    """The rate of each repeat; the first is cold, and the JVM is warm after about half of them."""
    cluster = Cluster("bench", (bootstrap,))
    consumer = Consumer("bench", "bench", (bootstrap,), offsets_topic=OFFSETS_TOPIC)
    config = Config({"bench": cluster}, {"bench": consumer}, pipeline=Pipeline(max_records=sent + 1))
    rows: list[dict[str, object]] = []
    rates = []
    partitions = 0
    with ClusterSamplers(targets(config), 1) as watch:
        watch.sample(SAMPLE_TIMEOUT_S)
        spark = start_session("local[*]", fetch_jars(SPARK_CONNECTOR), java_home())
        for repeat in range(repeats):
            root = folder / f"run-{repeat}"
            cycles = Cycles(
                config,
                SparkEngine(config, SupervisedSpark(lambda: spark)),
                Store(root),
                lambda: watch.sample(SAMPLE_TIMEOUT_S),
                lambda _: None,
            )
            jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
            used = cpu_s(jvm), workers_cpu_s(), cpu_s(broker)
            began = time.monotonic()
            manifest = cycles.run_once()
            took = time.monotonic() - began
            used = cpu_s(jvm) - used[0], workers_cpu_s() - used[1], cpu_s(broker) - used[2]
            rates.append(sent / took)
            partitions = sum(bucket.partition_rows for bucket in manifest.buckets)
            rows.append({"run": "cold" if repeat == 0 else f"warm {repeat}", "seconds": round(took, 2),
                         "commits_per_s": round(sent / took), "partitions": partitions,
                         "cpu_s": "jvm {:.1f}, workers {:.1f}, broker {:.1f}".format(*used)})  # fmt: skip
            shutil.rmtree(root)
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        memory = f"peak: JVM {peak_mib(jvm)} MiB, workers {workers_mib()} MiB"
        middle = statistics.median(rates[len(rates) // 2 :])
        rows.append({"run": "median, second half", "seconds": round(sent / middle, 2), "commits_per_s": round(middle),
                     "partitions": partitions, "cpu_s": memory})  # fmt: skip
        spark.stop()
    return rows


if __name__ == "__main__":
    main()

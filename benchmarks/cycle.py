"""A full cycle (read, merge, judge, publish) by the number of partitions and of clusters.

    python -m benchmarks.cycle [--partitions 10000,100000,1000000] [--clusters 1,20,50] [--cycles 10]

Each cycle reads one new commit of every partition from a real broker. Windows are full (10 slots), owners are known,
and each cycle adds a sample to the head history. Heads are made up: no broker here holds a million partitions. The
clusters are offsets topics of one broker. The first cycles warm up the JVM and are not counted.
"""

import argparse
import logging
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.conditions import cpu_s, peak_mib, show, workers_cpu_s, workers_mib
from benchmarks.load import (
    PARTITIONS_PER_GROUP,
    base_offset,
    commits,
    group_name,
    make_topic,
    produce,
    topic_name,
)
from warren.app import SAMPLE_TIMEOUT_S, targets
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.demo.broker import Kafka
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import OWNERS, ClusterSample, Topic, to_table
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import SparkEngine
from warren.snapshot.store import Store
from warren.spark.session import start_session
from warren.spark.supervised import SupervisedSpark

INTERVALS = 10
WARM_UP = 15


def main() -> None:
    """One row for each size at one cluster, then one for each number of clusters at 100,000 partitions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", default="10000,100000,1000000")
    parser.add_argument("--clusters", default="1,20,50")
    parser.add_argument("--cycles", type=int, default=10)
    options = parser.parse_args()
    logging.basicConfig(level="WARNING")
    sizes = [(int(size), 1) for size in options.partitions.split(",") if size]
    sizes += [(100_000, int(count)) for count in options.clusters.split(",") if count and int(count) > 1]
    rows = []
    spark = start_session("local[*]", fetch_jars(SPARK_CONNECTOR), java_home())
    with Kafka(fast_start=False, memory="1g") as kafka:
        for partitions, clusters in sizes:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(spark, kafka.bootstrap, Path(folder), partitions, clusters, options.cycles))
            print(rows[-1], flush=True)
    show("cycle", rows)
    spark.stop()


class Rehearsal:
    """A broker's offsets topics with commits of made-up groups, and heads to go with them."""

    def __init__(self, bootstrap: str, partitions: int, clusters: int) -> None:
        self.bootstrap = bootstrap
        self.groups = partitions // PARTITIONS_PER_GROUP // clusters
        self.names = [f"c{number:02d}" for number in range(clusters)]
        self.rounds = 0
        self.is_new = True
        stem = f"offsets-{partitions}-{clusters}"
        self.topics = {name: f"{stem}-{name}" for name in self.names}
        for topic in self.topics.values():
            make_topic(bootstrap, topic, 50 if clusters == 1 else 4)

    def commit(self, rounds: int) -> None:
        """Every partition of every group commits so many times."""
        offsets_partitions = 50 if len(self.names) == 1 else 4
        now_ms = time.time_ns() // 1_000_000
        for topic in self.topics.values():
            turn = range(self.rounds, self.rounds + rounds)
            # Cycles follow each other at once, so commits are made just before they are read.
            every_ms = 10_000 if rounds > 1 else 100
            start_ms = now_ms - rounds * every_ms
            records = commits(range(self.groups), turn, 500, offsets_partitions, start_ms, every_ms)
            produce(self.bootstrap, topic, records)
        self.rounds += rounds

    def owners(self) -> pa.Table:
        """Each group has ten members on ten hosts."""
        groups = np.repeat(np.arange(self.groups), PARTITIONS_PER_GROUP).tolist()
        partitions = np.tile(np.arange(PARTITIONS_PER_GROUP), self.groups).tolist()
        members = [(group * 10 + partition % 10) for group, partition in zip(groups, partitions, strict=True)]
        hosts = [f"/10.{member >> 16 & 255}.{member >> 8 & 255}.{member & 255}" for member in members]
        return to_table(
            OWNERS,
            [
                (group_name(group), topic_name(group), partition, host, f"billing-{member}")
                for group, partition, host, member in zip(groups, partitions, hosts, members, strict=True)
            ],
        )

    def with_heads(self, samples: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
        """The broker's own answer about the offsets topics, with heads for the topics of the groups."""
        owners = self.owners() if self.is_new else None
        self.is_new = False
        names = sorted({topic_name(group) for group in range(self.groups)})
        topics = tuple(Topic(name, name, PARTITIONS_PER_GROUP) for name in names)
        count = len(names) * PARTITIONS_PER_GROUP
        base = [base_offset(4 * topic, p) for topic in range(len(names)) for p in range(PARTITIONS_PER_GROUP)]
        heads = np.array(base, dtype=np.int64) + self.rounds * 500
        return {
            name: ClusterSample(
                name,
                ends_at_ms=sample.ends_at_ms,
                ends=sample.ends,
                offsets_topic_ids=sample.offsets_topic_ids,
                heads_at_ms=sample.heads_at_ms,
                topics=topics,
                heads=heads,
                log_starts=np.zeros(count, dtype=np.int64),
                owners=owners,
                error=sample.error,
            )
            for name, sample in samples.items()
        }


def measure(
    spark: SparkSession, bootstrap: str, folder: Path, partitions: int, clusters: int, cycles: int
) -> dict[str, object]:
    """Fill the windows, then time cycles in which every partition commits once."""
    rehearsal = Rehearsal(bootstrap, partitions, clusters)
    config = Config(
        {name: Cluster(name, (bootstrap,)) for name in rehearsal.names},
        {name: Consumer(name, name, (bootstrap,), offsets_topic=t) for name, t in rehearsal.topics.items()},
        pipeline=Pipeline(max_records=50_000_000),
    )
    taken: list[dict[str, int]] = []
    with ClusterSamplers(targets(config), 2) as watch:
        looked: dict[str, ClusterSample] = {}
        runner = Cycles(
            config,
            SparkEngine(config, SupervisedSpark(lambda: spark)),
            Store(folder / "data"),
            lambda: looked,
            lambda _: None,
        )
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        used_s = 0.0
        rehearsal.commit(INTERVALS)
        for number in range(cycles + WARM_UP):
            looked = rehearsal.with_heads(watch.sample(SAMPLE_TIMEOUT_S))
            before_s = cpu_s(jvm) + workers_cpu_s() + time.process_time()
            manifest = runner.run_once()
            if number >= WARM_UP:
                taken.append({**manifest.cycle_ms, "all": sum(runner.timing.values())})
                used_s += cpu_s(jvm) + workers_cpu_s() + time.process_time() - before_s
            rehearsal.commit(1)
    shutil.rmtree(folder / "data")
    return {
        "partitions": partitions,
        "clusters": clusters,
        "commits_read": partitions,
        "cycle_s": round(statistics.median(t["all"] for t in taken) / 1000, 2),
        "best_s": round(min(t["all"] for t in taken) / 1000, 2),
        "cpu_s": round(used_s / cycles, 2),
        "judged": sum(bucket.partition_rows for bucket in runner.manifest.buckets),
        "state_mb": round(sum(f.size for b in runner.manifest.buckets for f in (b.partitions, b.groups)) / 1e6, 1),
        "jvm_mib": peak_mib(jvm),
        "workers_mib": workers_mib(),
    }


if __name__ == "__main__":
    main()

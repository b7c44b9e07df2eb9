"""Cycles on a real Spark and Kafka, of which one cluster cannot be read."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.kafka import commit
from warren.app import targets
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample, PartitionEnds
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import SparkEngine
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.store import Store
from warren.spark.supervised import SupervisedSpark

TOPIC, GROUP = "engine", "engine-group"
NO_SUCH_PARTITION = 999


def with_no_such_partition(samples: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
    """Samples that send the reader of one cluster to a partition that does not exist."""
    (topic, ends) = next(iter(samples["bad"].ends.items()))
    ends = {**ends, NO_SUCH_PARTITION: PartitionEnds(0, 5, 5)}
    return {**samples, "bad": replace(samples["bad"], ends={topic: ends})}


@pytest.mark.timeout(300)
def test_a_cluster_that_cannot_be_read_is_left_out_and_the_others_are_published(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    create_topics(kafka.bootstrap, {TOPIC: 1})
    servers, names = (kafka.bootstrap,), ("bad", "good", "well")
    config = Config(
        {name: Cluster(name, servers) for name in names},
        {name: Consumer(name, name, servers, group_allowlist=f"^{GROUP}$") for name in names},
        pipeline=Pipeline(buckets=2),
    )
    with ClusterSamplers(targets(config), 1) as samplers:
        cycles = Cycles(
            config,
            SparkEngine(config, SupervisedSpark(lambda: spark)),
            Store(tmp_path),
            lambda: with_no_such_partition(samplers.sample(30.0)),
            lambda cluster: samplers.committed(cluster, 30.0),
        )
        error, offset, deadline = None, 0, time.monotonic() + 120
        while error is None and time.monotonic() < deadline:
            offset += 1
            commit(kafka.bootstrap, GROUP, TOPIC, {0: offset})
            manifest = cycles.run_once()
            rows = newest_snapshot(tmp_path).partitions().to_pylist()
            assert {row["cluster"]: row["offsets"][-1] for row in rows} == {"good": offset, "well": offset}
            assert manifest.unknown_clusters() == ["bad"]
            error = manifest.clusters["bad"].error
        assert error is not None
        assert error.startswith("its offsets topic could not be read: "), error

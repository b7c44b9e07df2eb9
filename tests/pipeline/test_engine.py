"""Cycles on a real Spark and Kafka, of which one cluster cannot be read, and one cannot be decoded."""

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
UNDECODABLE = "("
"""A filter of groups, unchecked, with which the records of a cluster cannot be decoded."""


def with_no_such_partition(samples: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
    """Samples that send the reader of one cluster to a partition that does not exist."""
    (topic, ends) = next(iter(samples["bad"].ends.items()))
    ends = {**ends, NO_SUCH_PARTITION: PartitionEnds(0, 5, 5)}
    return {**samples, "bad": replace(samples["bad"], ends={topic: ends})}


@pytest.mark.timeout(300)
def test_clusters_that_cannot_be_read_or_decoded_are_left_out_and_the_others_are_published(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    create_topics(kafka.bootstrap, {TOPIC: 1})
    servers, names = (kafka.bootstrap,), ("bad", "good", "odd", "well")
    groups = {**dict.fromkeys(names, f"^{GROUP}$"), "odd": UNDECODABLE}
    config = Config(
        {name: Cluster(name, servers) for name in names},
        {name: Consumer(name, name, servers, group_allowlist=groups[name]) for name in names},
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
        errors: dict[str, str | None] = {}
        offset, deadline = 0, time.monotonic() + 120
        while not (errors.get("bad") and errors.get("odd")) and time.monotonic() < deadline:
            offset += 1
            commit(kafka.bootstrap, GROUP, TOPIC, {0: offset})
            manifest = cycles.run_once()
            rows = newest_snapshot(tmp_path).partitions().to_pylist()
            assert {row["cluster"]: row["offsets"][-1] for row in rows} == {"good": offset, "well": offset}
            assert manifest.unknown_clusters() == ["bad", "odd"]
            errors |= {name: state.error for name, state in manifest.clusters.items() if state.error}
        assert str(errors.get("bad")).startswith("its offsets topic could not be read: "), errors
        assert str(errors.get("odd")).startswith("its records cannot be decoded: "), errors

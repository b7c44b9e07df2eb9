"""Spark's Kafka source on an offsets topic, from one offset to another."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.config import Config, Consumer


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of one partition to read, from `start` up to but excluding `end`."""

    start: int
    end: int


def read_commits(
    spark: SparkSession,
    source: int,
    cluster: str,
    options: Mapping[str, str],
    topic: str,
    ranges: Mapping[int, OffsetRange],
    extra_columns: Sequence[str] = (),
) -> DataFrame:
    """The records of an offsets topic in some ranges; `source` is a constant column that tells several topics apart."""
    # Spark finds the consumers of the last cycle by group id, topic and partition. Topics and partitions are the same
    # in all clusters, so each cluster needs a group id of its own.
    group = {"kafka.group.id": f"warren-reader-{cluster}"}
    reader = spark.read.format("kafka").options(**{**_READ, **group, **options})
    return (
        reader.option("assign", json.dumps({topic: sorted(ranges)}))
        .option("startingOffsets", json.dumps({topic: {str(p): s.start for p, s in ranges.items()}}))
        .option("endingOffsets", json.dumps({topic: {str(p): s.end for p, s in ranges.items()}}))
        .load()
        .select(f.lit(source).alias("source"), "partition", "offset", "key", "value", *extra_columns)
    )


_READ = {
    # Aborted transactional commits do not count; ranges end at the last stable offset, so nothing waits for open ones.
    "kafka.isolation.level": "read_committed",
    # A compacted topic has gaps by nature.
    "failOnDataLoss": "false",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "20000",
    # A cluster that goes down while it is read must not make the others wait long.
    "kafkaConsumer.pollTimeoutMs": "10000",
    "kafka.default.api.timeout.ms": "10000",
    "kafka.request.timeout.ms": "8000",
}


def offsets_topics(config: Config) -> dict[tuple[str, str], list[Consumer]]:
    """Every offsets topic to read, with the consumer sections that name it."""
    topics: dict[tuple[str, str], list[Consumer]] = {}
    for consumer in config.consumers.values():
        topics.setdefault((consumer.cluster, consumer.offsets_topic), []).append(consumer)
    return topics


def starts_latest(consumer: Consumer) -> bool:
    """Whether a first start skips the commits that are already in the topic."""
    # A backfill from the earliest commit is the same as a start at the earliest; see decision 4.
    return consumer.start_latest and not consumer.backfill_earliest

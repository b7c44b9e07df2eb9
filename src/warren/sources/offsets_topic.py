"""Spark's Kafka source on an offsets topic, from one offset to another."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.config import Config, Consumer


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of one partition to read: start included, end not."""

    start: int
    end: int


def read_commits(
    spark: SparkSession,
    number: int,
    cluster: str,
    options: Mapping[str, str],
    topic: str,
    spans: Mapping[int, OffsetRange],
    more: Sequence[str] = (),
) -> DataFrame:
    """The records of some spans of an offsets topic; `number` tells the source among several, `more` other columns."""
    # The consumers of one cycle are used again by the next only if the group id stays the same. Spark finds them by it
    # and by topic and partition, which are the same in all clusters.
    own = {"kafka.group.id": f"warren-reader-{cluster}"}
    reader = spark.read.format("kafka").options(**{**_READ, **own, **options})
    return (
        reader.option("assign", json.dumps({topic: sorted(spans)}))
        .option("startingOffsets", json.dumps({topic: {str(p): s.start for p, s in spans.items()}}))
        .option("endingOffsets", json.dumps({topic: {str(p): s.end for p, s in spans.items()}}))
        .load()
        .select(f.lit(number).alias("source"), "partition", "offset", "key", "value", *more)
    )


_READ = {
    # Aborted transactional commits do not count; spans end at the last stable offset, so nothing waits for open ones.
    "kafka.isolation.level": "read_committed",
    # A compacted topic has gaps by nature.
    "failOnDataLoss": "false",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "20000",
    # A cluster that goes away while it is read is given up on before the others have waited long.
    "kafkaConsumer.pollTimeoutMs": "10000",
    "kafka.default.api.timeout.ms": "10000",
    "kafka.request.timeout.ms": "8000",
}


def offsets_topics(config: Config) -> dict[tuple[str, str], list[Consumer]]:
    """Every offsets topic to read, once, however many consumer sections name it."""
    found: dict[tuple[str, str], list[Consumer]] = {}
    for consumer in config.consumers.values():
        found.setdefault((consumer.cluster, consumer.offsets_topic), []).append(consumer)
    return found


def starts_latest(consumer: Consumer) -> bool:
    """Whether a first start leaves out the commits that are there already."""
    # Filling up from the earliest commit is what a start at the earliest does anyway, in order and in one go.
    return consumer.start_latest and not consumer.backfill_earliest

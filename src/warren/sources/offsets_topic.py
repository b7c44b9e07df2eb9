"""Spark's Kafka source on an offsets topic, from one offset to another."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.config import Config, Consumer
from warren.config.kafka import Connection
from warren.kafka.broker_versions import ask_versions
from warren.kafka.options import to_librdkafka, to_spark_options


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of one partition to read, from `start` up to but excluding `end`."""

    start: int
    end: int


def read_commits(
    spark: SparkSession,
    source: int,
    cluster: str,
    connection: Connection,
    topic: str,
    ranges: Mapping[int, OffsetRange],
    extra_columns: Sequence[str] = (),
    *,
    has_transactions: bool = True,
) -> DataFrame:
    """The records of an offsets topic in some ranges; `source` is a constant column that tells several topics apart."""
    options = reader_options(cluster, topic, connection, has_transactions=has_transactions)
    reader = spark.read.format("kafka").options(**options)
    return (
        reader.option("assign", json.dumps({topic: sorted(ranges)}))
        .option("startingOffsets", json.dumps({topic: {str(p): s.start for p, s in ranges.items()}}))
        .option("endingOffsets", json.dumps({topic: {str(p): s.end for p, s in ranges.items()}}))
        .load()
        .select(f.lit(source).alias("source"), "partition", "offset", "key", "value", *extra_columns)
    )


def reader_options(
    cluster: str, topic: str, connection: Connection, *, has_transactions: bool = True
) -> dict[str, str]:
    """The options of Spark's Kafka source on an offsets topic; they hold secrets, and are made for each use."""
    options = to_spark_options(connection)
    if not has_transactions:
        options["kafka.isolation.level"] = "read_uncommitted"
    return {**_READ, "kafka.group.id": _reader_groups.group_of(cluster, topic, options), **options}


def has_transactions(connection: Connection) -> bool:
    """Whether brokers know transactions, as those since Kafka 0.11; asks one of them, and is true if none tells."""
    versions = ask_versions(to_librdkafka(connection), connection.servers)
    return versions is None or versions.has_transactions


class ReaderGroups:
    """The group ids of Spark's consumers, by which, and by topic and partition, Spark finds those of the last cycle.

    Topics and partitions are the same in all clusters, so each cluster needs a group id of its own. Spark never gives
    a consumer other options, so changed options need another group id too: a number counts the changes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str], tuple[Mapping[str, str], int]] = {}

    def group_of(self, cluster: str, topic: str, options: Mapping[str, str]) -> str:
        """The group id to read an offsets topic with these options."""
        with self._lock:
            last, changes = self._last.get((cluster, topic), (options, 0))
            changes += options != last
            self._last[cluster, topic] = options, changes
        return f"warren-reader-{cluster}" + (f"-{changes}" if changes else "")


# Of this process, as the consumers are of its JVM.
_reader_groups = ReaderGroups()

_READ = {
    # Aborted transactional commits do not count; ranges end at the last stable offset, so nothing waits for open ones.
    "kafka.isolation.level": "read_committed",
    # A compacted topic has gaps by nature.
    "failOnDataLoss": "false",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "20000",
    # A cluster that goes down while it is read must not keep its tasks for long. A cold JVM needs some seconds itself.
    "kafkaConsumer.pollTimeoutMs": "20000",
    "kafka.default.api.timeout.ms": "20000",
    "kafka.request.timeout.ms": "15000",
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

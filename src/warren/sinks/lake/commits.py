"""Every commit, decoded: the offsets topics once more, between the places that two snapshots had been read to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.config import Config
from warren.domain.matching import GroupFilter, is_wanted, matches_globs
from warren.kafka.options import to_spark_options
from warren.kafka.records.commits import RecordKind, decode_commits, decode_keys
from warren.kafka.records.rejects import Reject
from warren.sinks.lake.progress import Stretch
from warren.sinks.lake.tables import Scope
from warren.sources.offsets_topic import OffsetRange, offsets_topics, read_commits

Batches = Iterable[pa.RecordBatch]

_OUT = pa.schema(
    [
        ("at_ms", pa.int64()),
        ("cluster", pa.string()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("is_tombstone", pa.bool_()),
        ("source", pa.string()),
        ("source_partition", pa.int32()),
        ("source_offset", pa.int64()),
    ]
)
_OUT_DDL = (
    "at_ms long, cluster string, group string, topic string, partition int, offset long, is_tombstone boolean, "
    "source string, source_partition int, source_offset long"
)


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """An offsets topic: how Spark reads it, and which groups are wanted from it."""

    cluster: str
    topic: str
    options: Mapping[str, str]
    filters: tuple[GroupFilter, ...]
    storage: GroupFilter


def offsets_topics_of(config: Config) -> tuple[OffsetsTopic, ...]:
    """The offsets topics that a configuration has consumers for."""
    storage = GroupFilter(config.storage.group_allowlist, config.storage.group_denylist)
    return tuple(
        OffsetsTopic(
            cluster,
            topic,
            to_spark_options(consumers[0], config.profile_of(consumers[0])),
            tuple(GroupFilter(consumer.group_allowlist, consumer.group_denylist) for consumer in consumers),
            storage,
        )
        for (cluster, topic), consumers in offsets_topics(config).items()
    )


def commits(
    spark: SparkSession, stretches: Sequence[Stretch], sources: Sequence[OffsetsTopic], scope: Scope
) -> DataFrame | None:
    """A row a commit; None when there is nothing to read."""
    scans = []
    for number, source in enumerate(sources):
        spans = {
            one.partition: OffsetRange(one.start, one.end)
            for one in stretches
            if (one.cluster, one.topic) == (source.cluster, source.topic)
        }
        if spans:
            options = source.options
            scans.append(
                read_commits(spark, number, source.cluster, options, source.topic, spans, extra_columns=("timestamp",))
            )
    if not scans:
        return None
    tasks = 2 * spark.sparkContext.defaultParallelism
    rows = reduce(DataFrame.unionByName, scans).coalesce(tasks).mapInArrow(decoded(sources, scope), _OUT_DDL)
    return rows.select(f.timestamp_millis("at_ms").alias("time"), *_OUT.names[1:])


def decoded(sources: Sequence[OffsetsTopic], scope: Scope) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Decodes raw records of offsets topics; what is no commit, or is broken, is left out."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _decoded(batch, sources, scope).to_batches()

    return run


def _decoded(batch: pa.RecordBatch, sources: Sequence[OffsetsTopic], scope: Scope) -> pa.Table:
    keys = decode_keys(_binary(batch["key"]))
    rows = np.flatnonzero(keys.kind == RecordKind.COMMIT)
    values = decode_commits(_binary(batch["value"]).take(pa.array(rows)))
    is_good = values.reject == Reject.NONE
    rows, offset, time_ms = rows[is_good], values.offset[is_good], values.time_ms[is_good]
    is_tombstone = values.is_tombstone[is_good]
    number = np.asarray(batch["source"])[rows]
    recorded_ms = np.asarray(batch["timestamp"].cast(pa.timestamp("us")).cast(pa.int64()))[rows] // 1000
    at = pa.array(rows)
    table = pa.table(
        {
            "at_ms": np.where(is_tombstone, recorded_ms, time_ms),
            "cluster": pa.array([source.cluster for source in sources]).take(pa.array(number)),
            "group": keys.group.take(at),
            "topic": keys.topic.take(at),
            "partition": keys.partition[rows],
            "offset": pc.if_else(pa.array(is_tombstone), None, pa.array(offset)),
            "is_tombstone": is_tombstone,
            "source": pa.array([source.topic for source in sources]).take(pa.array(number)),
            "source_partition": batch["partition"].take(at),
            "source_offset": batch["offset"].take(at),
        },
        schema=_OUT,
    )
    return table.filter(pa.array(_is_wanted(table, number, sources, scope)))


def _is_wanted(table: pa.Table, number: np.ndarray, sources: Sequence[OffsetsTopic], scope: Scope) -> np.ndarray:
    cluster, group, topic = (table[name].combine_chunks() for name in ("cluster", "group", "topic"))
    wanted = (
        matches_globs(cluster, *scope.clusters)
        & matches_globs(group, *scope.groups)
        & matches_globs(topic, *scope.topics)
    )
    for at in np.unique(number):
        source, own = sources[at], number == at
        wanted[own] &= is_wanted(group.filter(pa.array(own)), source.filters, source.storage)
    return wanted


def _binary(column: pa.Array) -> pa.BinaryArray:
    return column.cast(pa.binary())

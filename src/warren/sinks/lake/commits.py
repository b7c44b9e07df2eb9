"""The commits table: offsets topics read again, between the positions of two snapshots, and decoded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from warren.config import Config
from warren.config.kafka import Connection
from warren.config.sinks import SinkFilters
from warren.domain.matching import GroupFilter, is_wanted
from warren.kafka.records.commits import RecordKind, decode_commits, decode_keys
from warren.kafka.records.rejects import Reject
from warren.sinks.filters import matches_filters
from warren.sinks.lake.progress import CommitRange
from warren.sources.offsets_topic import OffsetRange, has_transactions, offsets_topics, read_commits

_COMMITS = pa.schema(
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


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """An offsets topic: how Spark reads it, and which groups are wanted from it."""

    cluster: str
    topic: str
    filters: tuple[GroupFilter, ...]
    storage: GroupFilter
    connection: Connection | None = None
    """How to read it; only the driver has it, as it holds secrets."""


def offsets_topics_of(config: Config) -> tuple[OffsetsTopic, ...]:
    """The offsets topics that a configuration has consumers for."""
    storage = GroupFilter(config.storage.group_allowlist, config.storage.group_denylist)
    return tuple(
        OffsetsTopic(
            cluster,
            topic,
            tuple(GroupFilter(consumer.group_allowlist, consumer.group_denylist) for consumer in consumers),
            storage,
            config.connection_of(consumers[0]),
        )
        for (cluster, topic), consumers in offsets_topics(config).items()
    )


def commits(
    spark: SparkSession, ranges: Sequence[CommitRange], sources: Sequence[OffsetsTopic], wanted: SinkFilters
) -> DataFrame | None:
    """One row per commit; None when there is nothing to read."""
    scans = []
    for index, source in enumerate(sources):
        offsets = {
            each.partition: OffsetRange(each.start, each.end)
            for each in ranges
            if (each.cluster, each.topic) == (source.cluster, source.topic)
        }
        if offsets:
            assert source.connection is not None
            topic, is_new = (source.cluster, source.connection, source.topic), has_transactions(source.connection)
            scans.append(read_commits(spark, index, *topic, offsets, ("timestamp",), has_transactions=is_new))
    if not scans:
        return None
    public = [replace(source, connection=None) for source in sources]
    tasks = 2 * spark.sparkContext.defaultParallelism
    rows = (
        reduce(DataFrame.unionByName, scans)
        .coalesce(tasks)
        .mapInArrow(partial(decode, sources=public, wanted=wanted), from_arrow_schema(_COMMITS))
    )
    return rows.select(f.timestamp_millis("at_ms").alias("time"), *_COMMITS.names[1:])


def decode(
    batches: Iterable[pa.RecordBatch], sources: Sequence[OffsetsTopic], wanted: SinkFilters
) -> Iterator[pa.RecordBatch]:
    """Decode raw records of offsets topics; other records and rejects are left out."""
    for batch in batches:
        yield from _decode(batch, sources, wanted).to_batches()


def _decode(batch: pa.RecordBatch, sources: Sequence[OffsetsTopic], wanted: SinkFilters) -> pa.Table:
    keys = decode_keys(batch["key"].cast(pa.binary()))
    rows = np.flatnonzero(keys.kind == RecordKind.COMMIT)
    values = decode_commits(batch["value"].cast(pa.binary()).take(pa.array(rows)))
    is_valid = values.reject == Reject.NONE
    rows, is_tombstone = rows[is_valid], values.is_tombstone[is_valid]
    at = pa.array(rows)
    source = batch["source"].take(at)
    recorded_ms = np.asarray(batch["timestamp"].cast(pa.timestamp("us")).cast(pa.int64()).take(at)) // 1000
    table = pa.table(
        {
            "at_ms": np.where(is_tombstone, recorded_ms, values.time_ms[is_valid]),
            "cluster": pa.array([source.cluster for source in sources]).take(source),
            "group": keys.group.take(at),
            "topic": keys.topic.take(at),
            "partition": keys.partition[rows],
            "offset": pc.if_else(pa.array(is_tombstone), None, pa.array(values.offset[is_valid])),
            "is_tombstone": is_tombstone,
            "source": pa.array([source.topic for source in sources]).take(source),
            "source_partition": batch["partition"].take(at),
            "source_offset": batch["offset"].take(at),
        },
        schema=_COMMITS,
    )
    is_kept = matches_filters(table, wanted)
    for index in np.unique(source):
        is_own = np.asarray(source) == index
        group, topic = table["group"].filter(pa.array(is_own)).combine_chunks(), sources[index]
        is_kept[is_own] &= is_wanted(group, topic.filters, topic.storage)
    return table.filter(pa.array(is_kept))

"""The tables of the lake, read from the files of snapshots: their columns, the same in all formats."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.domain.matching import glob_regex
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.sinks.filters import SinkFilter
from warren.sinks.lake.spool import GROUPS, HEADS, LAYOUT, PARTITIONS, Sample
from warren.sinks.points import partitions_of

PARTITIONED_BY = ("date", "cluster")

_HEADS_OUT = "at_ms long, cluster string, topic string, partition int, head long, log_start long"


class LakeTable(StrEnum):
    """The tables of a lake."""

    GROUPS = "groups"
    PARTITIONS = "partitions"
    TOPICS = "topics"
    COMMITS = "commits"

    @property
    def order(self) -> tuple[str, ...]:
        """The sort order within a file, which makes files small and a group quick to find.

        It begins with the partition columns: Spark sorts by them to write, and would drop any other order.
        """
        return {
            LakeTable.GROUPS: (*PARTITIONED_BY, "group", "time"),
            LakeTable.PARTITIONS: (*PARTITIONED_BY, "group", "topic", "partition", "time"),
            LakeTable.TOPICS: (*PARTITIONED_BY, "topic", "partition", "time"),
            LakeTable.COMMITS: (*PARTITIONED_BY, "group", "topic", "partition", "time"),
        }[self]


def groups(
    spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], wanted: SinkFilter
) -> DataFrame:
    """One row per group and interval."""
    rows = _judged(_read(spark, samples, folder, GROUPS), spark, samples)
    rows = rows.where(_matches("cluster", *wanted.clusters) & _matches("group", *wanted.groups))
    return rows.select(
        time_of("at_ms").alias("time"),
        "cluster",
        "group",
        name_of("status", Status).alias("status"),
        name_of("worst_status", Status).alias("worst_status"),
        time_of("since_ms").alias("since"),
        "complete",
        "partitions",
        f.col("totallag").alias("total_lag"),
        f.greatest("maxlag", f.lit(0)).alias("max_lag"),
        *(f.col(f"count_{word}").alias(f"{word}_partitions") for word in ("ok", "warn", "stop", "stall", "rewind")),
        time_of("newest_commit_ms").alias("newest_commit"),
    )


def partitions(
    spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], wanted: SinkFilter
) -> DataFrame:
    """One row per group, partition and interval."""
    rows = _judged(_read(spark, samples, folder, PARTITIONS), spark, samples)
    is_match = (
        _matches("cluster", *wanted.clusters) & _matches("group", *wanted.groups) & _matches("topic", *wanted.topics)
    )
    return rows.where(is_match).select(
        time_of("at_ms").alias("time"),
        "cluster",
        "group",
        "topic",
        "partition",
        name_of("status", Status).alias("status"),
        f.lower(name_of("reason", Reason)).alias("reason"),
        time_of("since_ms").alias("since"),
        "complete",
        _known("current_lag").alias("lag"),
        _known("committed_offset").alias("offset"),
        time_of("end_ms").alias("committed_at"),
        _known("head").alias("head"),
        _known("log_start").alias("log_start"),
        f.when(f.col("owner") != "", f.col("owner")).alias("owner"),
        f.when(f.col("client_id") != "", f.col("client_id")).alias("client_id"),
    )


def topics(
    spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], wanted: SinkFilter
) -> DataFrame:
    """One row per partition of a topic and interval: where its log begins and ends."""
    folders = [
        (sample.at_ms, str(folder(sample.at_ms))) for sample in samples if (folder(sample.at_ms) / HEADS).exists()
    ]
    tasks = max(min(len(folders), 2 * spark.sparkContext.defaultParallelism), 1)
    listed = spark.createDataFrame(folders, "at_ms long, folder string").repartition(tasks)
    rows = _judged(listed.mapInArrow(heads_in(wanted), _HEADS_OUT), spark, samples)
    return rows.select(
        time_of("at_ms").alias("time"), "cluster", "topic", "partition", "head", _known("log_start").alias("log_start")
    )


def heads_in(wanted: SinkFilter) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads the heads in some folders, one file at a time."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at_ms, folder in zip(*(batch[name].to_pylist() for name in ("at_ms", "folder")), strict=True):
                yield from _heads(at_ms, Path(folder), wanted).to_batches(max_chunksize=200_000)

    return run


def _heads(at_ms: int, folder: Path, wanted: SinkFilter) -> pa.Table:
    layout, heads = (pa.ipc.open_file(pa.memory_map(str(folder / name))).read_all() for name in (LAYOUT, HEADS))
    clusters, topics = layout["cluster"].combine_chunks(), layout["topic"].combine_chunks()
    rows = np.flatnonzero(wanted.matches(clusters, topics=topics))
    topic, partition, row = partitions_of(layout, rows)
    is_known = np.asarray(heads["head"])[row] != UNKNOWN
    row, topic, partition = row[is_known], topic[is_known], partition[is_known]
    return pa.table(
        {
            "at_ms": np.full(row.size, at_ms, dtype=np.int64),
            "cluster": clusters.take(pa.array(topic)),
            "topic": topics.take(pa.array(topic)),
            "partition": partition.astype(np.int32),
            "head": np.asarray(heads["head"])[row],
            "log_start": np.asarray(heads["log_start"])[row],
        }
    )


def finished(rows: DataFrame, table: LakeTable, host: str, tags: Mapping[str, str]) -> DataFrame:
    """Rows with host, tags and date, sorted, in few files per day and cluster."""
    tag_map = f.create_map(*(f.lit(text) for tag in sorted(tags.items()) for text in tag)).cast("map<string,string>")
    whole = rows.withColumns({"host": f.lit(host), "tags": tag_map, "date": f.to_date("time")})
    return whole.hint("rebalance", *PARTITIONED_BY).sortWithinPartitions(*table.order)


def _read(spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], kind: str) -> DataFrame:
    """The files of one kind of some snapshots, with the time of their interval."""
    paths = [local_path(path) for sample in samples for path in sorted(folder(sample.at_ms).glob(f"{kind}-*.parquet"))]
    if not paths:
        return spark.createDataFrame([], _EMPTY[kind])
    rows = spark.read.schema(_EMPTY[kind].removeprefix("at_ms long, ")).parquet(*paths)
    at_ms = f.regexp_extract("_metadata.file_path", r"/(\d+)/[^/]+$", 1).cast("long")
    return rows.withColumn("at_ms", at_ms)


_EMPTY = {
    GROUPS: "at_ms long, cluster string, group string, status tinyint, worst_status tinyint, since_ms long, "
    "complete float, totallag long, maxlag long, partitions int, count_ok int, count_warn int, count_stop int, "
    "count_stall int, count_rewind int, newest_commit_ms long",
    PARTITIONS: "at_ms long, cluster string, group string, topic string, partition int, owner string, "
    "client_id string, status tinyint, reason tinyint, since_ms long, complete float, current_lag long, "
    "committed_offset long, head long, log_start long, end_ms long",
}
"""The columns that are read from the files of a snapshot."""


def plain_path(path: str) -> str:
    """A path with the characters escaped that Spark would take for a glob."""
    return re.sub(r"([*?\[\]{}\\^])", r"\\\1", path)


def local_path(path: Path) -> str:
    """A local path, whatever Spark's default file system is."""
    return f"file://{plain_path(str(path.absolute()))}"


def _judged(rows: DataFrame, spark: SparkSession, samples: Sequence[Sample]) -> DataFrame:
    """Only the rows of clusters that were judged at that time."""
    pairs = [(sample.at_ms, cluster) for sample in samples for cluster in sample.clusters]
    judged = spark.createDataFrame(pairs, "at_ms long, cluster string")
    return rows.join(f.broadcast(judged), ["at_ms", "cluster"], "left_semi")


def _matches(column: str, include: Sequence[str], exclude: Sequence[str]) -> Column:
    is_match = f.lit(True)
    if include:
        is_match = is_match & f.col(column).rlike("|".join(map(glob_regex, include)))
    if exclude:
        is_match = is_match & ~f.col(column).rlike("|".join(map(glob_regex, exclude)))
    return is_match


def time_of(column: str) -> Column:
    """Milliseconds since the epoch as a timestamp."""
    return f.when(f.col(column) > 0, f.timestamp_millis(column))


def _known(column: str) -> Column:
    return f.when(f.col(column) != UNKNOWN, f.col(column))


def name_of(column: str, enum: type[IntEnum]) -> Column:
    """A number of an enum as its name."""
    names = f.array(*(f.lit(member.name) for member in enum))
    return f.element_at(names, f.col(column).cast("int") + 1)

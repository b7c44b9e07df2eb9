"""The tables of the lake, from the files of snapshots: what each column means, once for all formats."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.config.sinks import LakeSink
from warren.domain.matching import glob_regex, matches_globs
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.sinks.lake.samples import GROUPS, HEADS, LAYOUT, PARTITIONS, Sample
from warren.sinks.points import partitions_of

PARTITIONED_BY = ("date", "cluster")

_HEADS_OUT = "at_ms long, cluster string, topic string, partition int, head long, log_start long"


class Table(StrEnum):
    """What the lake holds."""

    GROUPS = "groups"
    PARTITIONS = "partitions"
    TOPICS = "topics"
    COMMITS = "commits"

    @property
    def order(self) -> tuple[str, ...]:
        """By what its rows are sorted within a file, so that it is small and a group is found fast.

        It begins with what tables are partitioned by: Spark sorts by that to write, and would drop any other order.
        """
        return {
            Table.GROUPS: (*PARTITIONED_BY, "group", "time"),
            Table.PARTITIONS: (*PARTITIONED_BY, "group", "topic", "partition", "time"),
            Table.TOPICS: (*PARTITIONED_BY, "topic", "partition", "time"),
            Table.COMMITS: (*PARTITIONED_BY, "group", "topic", "partition", "time"),
        }[self]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which of a cluster's groups and topics are wanted."""

    clusters: tuple[tuple[str, ...], tuple[str, ...]]
    groups: tuple[tuple[str, ...], tuple[str, ...]]
    topics: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, sink: LakeSink) -> "Scope":
        """What a sink says."""
        return cls(
            (sink.clusters_include, sink.clusters_exclude),
            (sink.groups_include, sink.groups_exclude),
            (sink.topics_include, sink.topics_exclude),
        )


def groups(spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], scope: Scope) -> DataFrame:
    """A row a group and interval."""
    rows = _judged(_read(spark, samples, folder, GROUPS), spark, samples)
    rows = rows.where(_fits("cluster", *scope.clusters) & _fits("group", *scope.groups))
    return rows.select(
        time_of("at_ms").alias("time"),
        "cluster",
        "group",
        word_of("status", Status).alias("status"),
        word_of("worst_status", Status).alias("worst_status"),
        time_of("since_ms").alias("since"),
        "complete",
        "partitions",
        f.col("totallag").alias("total_lag"),
        f.greatest("maxlag", f.lit(0)).alias("max_lag"),
        *(f.col(f"count_{word}").alias(f"{word}_partitions") for word in ("ok", "warn", "stop", "stall", "rewind")),
        time_of("newest_commit_ms").alias("newest_commit"),
    )


def partitions(
    spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], scope: Scope
) -> DataFrame:
    """A row a partition of a group and interval."""
    rows = _judged(_read(spark, samples, folder, PARTITIONS), spark, samples)
    is_wanted = _fits("cluster", *scope.clusters) & _fits("group", *scope.groups) & _fits("topic", *scope.topics)
    return rows.where(is_wanted).select(
        time_of("at_ms").alias("time"),
        "cluster",
        "group",
        "topic",
        "partition",
        word_of("status", Status).alias("status"),
        f.lower(word_of("reason", Reason)).alias("reason"),
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


def topics(spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], scope: Scope) -> DataFrame:
    """A row a partition of a topic and interval: where its log begins and ends."""
    held = [(sample.at_ms, str(folder(sample.at_ms))) for sample in samples if (folder(sample.at_ms) / HEADS).exists()]
    tasks = max(min(len(held), 2 * spark.sparkContext.defaultParallelism), 1)
    listed = spark.createDataFrame(held, "at_ms long, folder string").repartition(tasks)
    rows = _judged(listed.mapInArrow(heads_in(scope), _HEADS_OUT), spark, samples)
    return rows.select(
        time_of("at_ms").alias("time"), "cluster", "topic", "partition", "head", _known("log_start").alias("log_start")
    )


def heads_in(scope: Scope) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads the heads that folders hold, a whole file at a time."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at_ms, folder in zip(*(batch[name].to_pylist() for name in ("at_ms", "folder")), strict=True):
                yield from _heads(at_ms, Path(folder), scope).to_batches(max_chunksize=200_000)

    return run


def _heads(at_ms: int, folder: Path, scope: Scope) -> pa.Table:
    layout, heads = (pa.ipc.open_file(pa.memory_map(str(folder / name))).read_all() for name in (LAYOUT, HEADS))
    clusters, topics = layout["cluster"].combine_chunks(), layout["topic"].combine_chunks()
    kept = np.flatnonzero(matches_globs(clusters, *scope.clusters) & matches_globs(topics, *scope.topics))
    topic, partition, row = partitions_of(layout, kept)
    is_there = np.asarray(heads["head"])[row] != UNKNOWN
    row, topic, partition = row[is_there], topic[is_there], partition[is_there]
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


def finished(rows: DataFrame, table: Table, host: str, tags: Mapping[str, str]) -> DataFrame:
    """Rows with whom they come from and the day they belong to, few files a day and cluster, sorted."""
    said = f.create_map(*(f.lit(text) for tag in sorted(tags.items()) for text in tag)).cast("map<string,string>")
    whole = rows.withColumns({"host": f.lit(host), "tags": said, "date": f.to_date("time")})
    return whole.hint("rebalance", *PARTITIONED_BY).sortWithinPartitions(*table.order)


def _read(spark: SparkSession, samples: Sequence[Sample], folder: Callable[[int], Path], kind: str) -> DataFrame:
    """Files of one kind of some snapshots, with the interval that each is of."""
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
"""The columns of a snapshot's files that are wanted here."""


def plain_path(path: str) -> str:
    """A path as itself, where Spark would take some of its signs for a pattern."""
    return re.sub(r"([*?\[\]{}\\^])", r"\\\1", path)


def local_path(path: Path) -> str:
    """A file of this machine, wherever Spark's own default is."""
    return f"file://{plain_path(str(path.absolute()))}"


def _judged(rows: DataFrame, spark: SparkSession, samples: Sequence[Sample]) -> DataFrame:
    """Only rows of clusters that could be judged then: what is known of the others is of before."""
    known = [(sample.at_ms, cluster) for sample in samples for cluster in sample.clusters]
    judged = spark.createDataFrame(known, "at_ms long, cluster string")
    return rows.join(f.broadcast(judged), ["at_ms", "cluster"], "left_semi")


def _fits(column: str, include: Sequence[str], exclude: Sequence[str]) -> Column:
    fitting = f.lit(True)
    if include:
        fitting = fitting & f.col(column).rlike("|".join(map(glob_regex, include)))
    if exclude:
        fitting = fitting & ~f.col(column).rlike("|".join(map(glob_regex, exclude)))
    return fitting


def time_of(column: str) -> Column:
    """Milliseconds as a time."""
    return f.when(f.col(column) > 0, f.timestamp_millis(column))


def _known(column: str) -> Column:
    return f.when(f.col(column) != UNKNOWN, f.col(column))


def word_of(column: str, words: type[IntEnum]) -> Column:
    """A number as its word."""
    named = f.array(*(f.lit(word.name) for word in words))
    return f.element_at(named, f.col(column).cast("int") + 1)

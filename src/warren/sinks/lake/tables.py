"""The tables of the lake, read from the files of snapshots: their columns, the same in all formats."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from warren.config.sinks import SinkFilters
from warren.domain.matching import glob_regex
from warren.domain.rates import NEVER_S
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.sinks.filters import matches_filters
from warren.sinks.lake.spool import HEADS, LAYOUT, Sample
from warren.sinks.points import partitions_of
from warren.snapshot.schemas import GROUPS, PARTITIONS, RATES

PARTITIONED_BY = ("date", "cluster")

Folder = Callable[[int], Path]
"""The folder of an interval in the spool."""

_HEADS = pa.schema(
    [
        ("at_ms", pa.int64()),
        ("cluster", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("head", pa.int64()),
        ("log_start", pa.int64()),
    ]
)


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
        names = {LakeTable.GROUPS: ("group",), LakeTable.TOPICS: ("topic", "partition")}
        return *PARTITIONED_BY, *names.get(self, ("group", "topic", "partition")), "time"


_SCHEMAS = {LakeTable.GROUPS: GROUPS, LakeTable.PARTITIONS: PARTITIONS}


def rows_of(
    table: LakeTable, spark: SparkSession, samples: Sequence[Sample], folder: Folder, wanted: SinkFilters
) -> DataFrame:
    """The rows of a table in some samples, one per interval of each group, partition of a group, or partition."""
    rows = (_read_topics if table is LakeTable.TOPICS else _read_files)(table, spark, samples, folder, wanted)
    # Only of clusters and groups that were judged at that time.
    if table is LakeTable.GROUPS:
        rows = rows.where(~_is_unknown())
    elif table is LakeTable.PARTITIONS:
        unknown = _read_files(LakeTable.GROUPS, spark, samples, folder, wanted).where(_is_unknown())
        rows = rows.join(unknown.select("at_ms", "cluster", "group"), ["at_ms", "cluster", "group"], "left_anti")
    pairs = [(sample.at_ms, cluster) for sample in samples for cluster in sample.clusters]
    judged = f.broadcast(spark.createDataFrame(pairs, "at_ms long, cluster string"))
    rows = rows.join(judged, ["at_ms", "cluster"], "left_semi")
    return rows.select(time_of("at_ms").alias("time"), "cluster", *_columns(table))


def _columns(table: LakeTable) -> tuple[Column | str, ...]:
    if table is LakeTable.TOPICS:
        return "topic", "partition", "head", _unless("log_start", UNKNOWN)
    if table is LakeTable.GROUPS:
        return (
            "group",
            name_of("status", Status),
            name_of("worst_status", Status),
            time_of("since_ms").alias("since"),
            "complete",
            "partitions",
            f.col("totallag").alias("total_lag"),
            f.greatest("maxlag", f.lit(0)).alias("max_lag"),
            *(f.col(f"count_{word}").alias(f"{word}_partitions") for word in ("ok", "warn", "stop", "stall", "rewind")),
            time_of("newest_commit_ms").alias("newest_commit"),
            *_time_lag(),
        )
    return (
        "group",
        "topic",
        "partition",
        name_of("status", Status),
        f.lower(name_of("reason", Reason)).alias("reason"),
        time_of("since_ms").alias("since"),
        "complete",
        _unless("current_lag", UNKNOWN).alias("lag"),
        _unless("committed_offset", UNKNOWN).alias("offset"),
        time_of("end_ms").alias("committed_at"),
        *(_unless(name, UNKNOWN) for name in ("head", "log_start")),
        *(_unless(name, "") for name in ("owner", "client_id")),
        *_time_lag(),
    )


def _time_lag() -> tuple[Column, ...]:
    """Lag in time; what is unknown is null, as is the time of what does not happen."""
    method = f.when(f.col("behind_method") != UNKNOWN, f.lower(name_of("behind_method", TimeLagMethod)))
    catch_up = f.col("catch_up_low_s")
    return (
        _finite("seconds_behind"),
        method.alias("seconds_behind_method"),
        _finite("catch_up_low_s").alias("catch_up_seconds"),
        _finite("catch_up_high_s").alias("catch_up_seconds_at_most"),
        f.when(catch_up != UNKNOWN, catch_up == NEVER_S).alias("is_falling_behind"),
        _finite("retention_left_s").alias("retention_left_seconds"),
        _unless("lost", UNKNOWN).alias("lost_messages"),
        *(_finite(name) for name in RATES),
        _finite("oldest_unread_age_s").alias("oldest_unread_age_seconds"),
    )


def _finite(column: str) -> Column:
    return f.when((f.col(column) != UNKNOWN) & (f.col(column) != NEVER_S), f.col(column)).alias(column)


def _read_topics(
    _: LakeTable, spark: SparkSession, samples: Sequence[Sample], folder: Folder, wanted: SinkFilters
) -> DataFrame:
    folders = [(s.at_ms, str(folder(s.at_ms))) for s in samples if (folder(s.at_ms) / HEADS).exists()]
    tasks = max(min(len(folders), 2 * spark.sparkContext.defaultParallelism), 1)
    listed = spark.createDataFrame(folders, "at_ms long, folder string").repartition(tasks)
    return listed.mapInArrow(partial(_read_heads, wanted=wanted), from_arrow_schema(_HEADS))


def _read_heads(batches: Iterable[pa.RecordBatch], wanted: SinkFilters) -> Iterator[pa.RecordBatch]:
    """The heads in some folders, one file at a time."""
    for batch in batches:
        for row in batch.to_pylist():
            yield from _heads(row["at_ms"], Path(row["folder"]), wanted).to_batches(max_chunksize=200_000)


def _heads(at_ms: int, folder: Path, wanted: SinkFilters) -> pa.Table:
    layout, heads = (pa.ipc.open_file(pa.memory_map(str(folder / name))).read_all() for name in (LAYOUT, HEADS))
    layout = layout.filter(pa.array(matches_filters(layout, wanted)))
    topic, partition, row = partitions_of(layout)
    names, heads = layout.take(pa.array(topic)), heads.take(pa.array(row))
    times = np.full(row.size, at_ms)
    columns = [times, names["cluster"], names["topic"], partition, heads["head"], heads["log_start"]]
    return pa.table(columns, schema=_HEADS).filter(pc.field("head") != UNKNOWN)


def finished(rows: DataFrame, table: LakeTable, host: str, tags: Mapping[str, str]) -> DataFrame:
    """Rows with host, tags and date, sorted, in few files per day and cluster."""
    tag_map = f.create_map(*(f.lit(text) for tag in sorted(tags.items()) for text in tag)).cast("map<string,string>")
    whole = rows.withColumns({"host": f.lit(host), "tags": tag_map, "date": f.to_date("time")})
    return whole.hint("rebalance", *PARTITIONED_BY).sortWithinPartitions(*table.order)


def _read_files(
    table: LakeTable, spark: SparkSession, samples: Sequence[Sample], folder: Folder, wanted: SinkFilters
) -> DataFrame:
    """The wanted rows of a table in the files of some snapshots, with the time of their interval."""
    schema = from_arrow_schema(_SCHEMAS[table])
    paths = [local_path(path) for sample in samples for path in sorted(folder(sample.at_ms).glob(f"{table}-*.parquet"))]
    if paths:
        at_ms = f.regexp_extract("_metadata.file_path", r"/(\d+)/[^/]+$", 1)
        rows = spark.read.schema(schema).parquet(*paths).withColumn("at_ms", at_ms.cast("long"))
    else:
        rows = spark.createDataFrame([], schema.add("at_ms", "long"))
    for column, (include, exclude) in wanted.items():
        if include and column in rows.columns:
            rows = rows.where(f.col(column).rlike("|".join(map(glob_regex, include))))
        if exclude and column in rows.columns:
            rows = rows.where(~f.col(column).rlike("|".join(map(glob_regex, exclude))))
    return rows


def _is_unknown() -> Column:
    """Whether a group was unknown; the column is null in files from before it existed."""
    return f.coalesce("unknown_since_ms", f.lit(UNKNOWN)) != UNKNOWN


def plain_path(path: str) -> str:
    """A path with the characters escaped that Spark would take for a glob."""
    return re.sub(r"([*?\[\]{}\\^])", r"\\\1", path)


def local_path(path: Path) -> str:
    """A local path, whatever Spark's default file system is."""
    return f"file://{plain_path(str(path.absolute()))}"


def time_of(column: str) -> Column:
    """Milliseconds since the epoch as a timestamp."""
    return f.when(f.col(column) > 0, f.timestamp_millis(column))


def _unless(column: str, missing: int | str) -> Column:
    return f.when(f.col(column) != missing, f.col(column)).alias(column)


def name_of(column: str, enum: type[IntEnum]) -> Column:
    """A number of an enum as its name."""
    names = f.array(*(f.lit(member.name) for member in enum))
    return f.element_at(names, f.col(column).cast("int") + (1 - min(enum))).alias(column)

"""The whole way of a commit through Spark, in one screen.

    offsets topics ─► raw records ─► decoded, the needed ─► to their bucket ─► judged with the state before ─► files

Each arrow is a step below. A task never sees more than its own share, and what comes back to the driver is one line a
bucket: the names of the files it wrote and some counts.
"""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.pipeline.compact import to_pieces
from warren.pipeline.judge import judge_buckets
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import JUDGED, PIECES


def flow(spark: SparkSession, scans: Sequence[DataFrame], extra: pa.Table, plan: CyclePlan) -> DataFrame:
    """One cycle: raw records of every source, and the driver's own pieces, to one judged row a bucket."""
    pieces = spark.createDataFrame(extra, schema=PIECES)
    if scans:
        pieces = pieces.unionByName(
            reduce(DataFrame.unionByName, scans)
            .coalesce(2 * spark.sparkContext.defaultParallelism)
            .mapInArrow(to_pieces(plan), PIECES)
        )
    return pieces.repartition(plan.buckets, "slot").mapInArrow(judge_buckets(plan), JUDGED)


def bucket_slots(spark: SparkSession, buckets: int) -> tuple[int, ...]:
    """For each bucket a number that Spark's hash partitioning sends to the partition of that bucket."""
    partition = f.pmod(f.hash(f.col("id").cast("int")), f.lit(buckets))
    found = (
        spark.range(buckets * 64)
        .select(partition.alias("bucket"), f.col("id").cast("int").alias("slot"))
        .groupBy("bucket")
        .agg(f.min("slot").alias("slot"))
        .collect()
    )
    slots = {row.bucket: row.slot for row in found}
    return tuple(slots[bucket] for bucket in range(buckets))

"""The whole way of a commit through Spark, in one screen.

    offsets topics ─► raw records ─► decoded, the needed ─► to their bucket ─► judged with the state before ─► files

Each arrow is a step below. A task never sees more than its own share, and what comes back to the driver is one line a
bucket: the names of the files it wrote and some counts.
"""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from warren.pipeline.decode import to_pieces
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


def bucket_slots(buckets: int) -> tuple[int, ...]:
    """For each bucket the smallest number that Spark's hash partitioning sends to the partition of that bucket."""
    slots: dict[int, int] = {}
    number = 0
    while len(slots) < buckets:
        slots.setdefault(spark_hash(number) % buckets, number)
        number += 1
    return tuple(slots[bucket] for bucket in range(buckets))


def spark_hash(number: int) -> int:
    """Spark's hash of an int (Murmur3, seed 42), worked out here: to ask Spark is a whole job at every start."""
    mixed = _rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = _rotated(42 ^ (mixed & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    mixed = (mixed ^ 4) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


def _rotated(number: int, bits: int) -> int:
    number &= 0xFFFFFFFF
    return (number << bits | number >> 32 - bits) & 0xFFFFFFFF

"""What the flow knows of Spark is what Spark does."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from warren.pipeline.shuffle import bucket_slots, spark_hash


def test_the_hash_of_a_number_is_sparks(spark: SparkSession) -> None:
    rows = spark.range(200).select(f.col("id"), f.hash(f.col("id").cast("int")).alias("hash")).collect()
    assert {row.id: row.hash for row in rows} == {number: spark_hash(number) for number in range(200)}


@pytest.mark.parametrize("buckets", [1, 2, 8, 100])
def test_every_bucket_has_a_partition_of_its_own(spark: SparkSession, buckets: int) -> None:
    slots = bucket_slots(buckets)
    frame = spark.createDataFrame([(slot,) for slot in slots], "slot int").repartition(buckets, "slot")
    placed = frame.select("slot", f.spark_partition_id().alias("partition")).collect()
    assert {row.slot: row.partition for row in placed} == {slot: bucket for bucket, slot in enumerate(slots)}

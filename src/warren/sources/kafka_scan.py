"""Spark's Kafka source without its planning, for ranges of offsets that are known already.

While a batch query is planned, Spark asks the brokers of every topic for its partitions and offsets, one topic after
the other, and waits for brokers that are down. A streaming query plans a batch between two offsets that it knows, and
asks nobody. So topics are planned here by the methods with which Spark itself runs a streaming query, and their
partitions become those of one RDD: the driver connects to no broker, and no plan shows the options of a client.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.sources.offsets_topic import OffsetRange
from warren.spark.jvm import java_class
from warren.spark.session import escape_property

_COLUMNS = ("partition", "offset", "key", "value")
_RECORDS_PER_TASK = 100_000
_CONNECTOR = "org.apache.spark.sql.kafka010"
_RDD = "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD"


@dataclass(frozen=True, slots=True)
class TopicScan:
    """The records to read of one topic, with these options of Spark's Kafka source."""

    topic: str
    options: Mapping[str, str]
    ranges: Mapping[int, OffsetRange]

    @property
    def records(self) -> int:
        """How many records there are at most."""
        return sum(range_.end - range_.start for range_ in self.ranges.values())


def scan_topics(spark: SparkSession, scans: Sequence[TopicScan], tasks: int) -> tuple[DataFrame, list[int]]:
    """The records of some topics, and for each Spark partition the index of its scan.

    There are about `tasks` Spark partitions if there are fewer topics; a long topic has up to `tasks` by itself. The
    column `task` is the Spark partition of a record. Each Spark partition has records of one scan only.
    """
    provider = java_class(spark, f"{_CONNECTOR}.KafkaSourceProvider")()
    to_sequence = java_class(spark, "scala.collection.immutable.ArraySeq").unsafeWrapArray
    groups: list[Any] = []
    scan_of_task: list[int] = []
    factory = None
    for index, scan in enumerate(scans):
        options = _options(spark, {**scan.options, "subscribe": scan.topic})
        # The location of checkpoints is only the start of a group id, and the options have one.
        stream = provider.getTable(options).newScanBuilder(options).build().toMicroBatchStream("")
        start = {str(partition): range_.start for partition, range_ in scan.ranges.items()}
        end = {str(partition): range_.end for partition, range_ in scan.ranges.items()}
        offsets = [stream.deserializeOffset(json.dumps({scan.topic: each})) for each in (start, end)]
        partitions = to_sequence(stream.planInputPartitions(*offsets))
        own = min(max(scan.records // _RECORDS_PER_TASK, tasks // len(scans), 1), tasks)
        per_task = -(-len(scan.ranges) // own)
        groups.append(partitions.grouped(per_task).toSeq())
        scan_of_task += [index] * -(-len(scan.ranges) // per_task)
        factory = factory or stream.createReaderFactory()
    no_metrics = java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap({})
    tasks_of_all = reduce(lambda left, right: left.concat(right), groups)
    rdd = java_class(spark, _RDD)(spark.sparkContext._jsc.sc(), tasks_of_all, factory, False, no_metrics)
    schema = java_class(spark, f"{_CONNECTOR}.KafkaRecordToRowConverter").kafkaSchema(False)
    rows = DataFrame(spark._jsparkSession.internalCreateDataFrame(rdd, schema, False), spark)
    return rows.select(f.spark_partition_id().alias("task"), *_COLUMNS), scan_of_task


def _options(spark: SparkSession, options: Mapping[str, str]) -> Any:  # noqa: ANN401 - a Java object
    """Options as Spark's sources take them; as one text, because each put into a map is a call of the JVM."""
    properties = java_class(spark, "java.util.Properties")()
    text = "".join(f"{escape_property(key)}={escape_property(value)}\n" for key, value in options.items())
    properties.load(java_class(spark, "java.io.StringReader")(text))
    return java_class(spark, "org.apache.spark.sql.util.CaseInsensitiveStringMap")(properties)

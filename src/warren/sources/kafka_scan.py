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

_COLUMNS = ("partition", "offset", "key", "value")
_RECORDS_PER_TASK = 100_000


@dataclass(frozen=True, slots=True)
class TopicScan:
    """The records to read of one topic, with these options of Spark's Kafka source."""

    topic: str
    options: Mapping[str, str]
    ranges: Mapping[int, OffsetRange]


def scan_topics(spark: SparkSession, scans: Sequence[TopicScan], tasks: int) -> tuple[DataFrame, list[int]]:
    """The records of some topics, and for each Spark partition the index of its scan.

    There are about `tasks` Spark partitions if there are fewer topics; a long topic has up to `tasks` by itself. The
    column `task` is the Spark partition of a record. Each Spark partition has records of one scan only.
    """
    jvm: Any = spark.sparkContext._jvm
    kafka = jvm.org.apache.spark.sql.kafka010
    groups: list[Any] = []
    scan_of_task: list[int] = []
    factory = None
    for index, scan in enumerate(scans):
        options = jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap({**scan.options, "subscribe": scan.topic})
        # The location of checkpoints is only the start of a group id, and the options have one.
        stream = kafka.KafkaSourceProvider().getTable(options).newScanBuilder(options).build().toMicroBatchStream("")
        start = {str(partition): range_.start for partition, range_ in scan.ranges.items()}
        end = {str(partition): range_.end for partition, range_ in scan.ranges.items()}
        offsets = [stream.deserializeOffset(json.dumps({scan.topic: each})) for each in (start, end)]
        partitions = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(stream.planInputPartitions(*offsets))
        records = sum(range_.end - range_.start for range_ in scan.ranges.values())
        own = min(max(records // _RECORDS_PER_TASK, tasks // len(scans), 1), tasks)
        per_task = -(-len(scan.ranges) // own)
        groups.append(partitions.grouped(per_task).toSeq())
        scan_of_task += [index] * -(-len(scan.ranges) // per_task)
        factory = stream.createReaderFactory()
    execution = jvm.org.apache.spark.sql.execution.datasources.v2
    no_metrics = jvm.PythonUtils.toScalaMap({})
    tasks_of_all = reduce(lambda left, right: left.concat(right), groups)
    rdd = execution.DataSourceRDD(spark.sparkContext._jsc.sc(), tasks_of_all, factory, False, no_metrics)
    schema = kafka.KafkaRecordToRowConverter.kafkaSchema(False)
    rows = DataFrame(spark._jsparkSession.internalCreateDataFrame(rdd, schema, False), spark)
    return rows.select(f.spark_partition_id().alias("task"), *_COLUMNS), scan_of_task

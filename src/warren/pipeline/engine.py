"""Runs the flow of a cycle on Spark."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from warren.config import Config
from warren.kafka.options import to_spark_options
from warren.pipeline.bucket_result import BucketResult, decode_result
from warren.pipeline.flow import flow
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.query import QueryNotStarted, run_query
from warren.sources.offsets_topic import offsets_topics, read_commits

T = TypeVar("T")

KeepWaiting = Callable[[], bool]
"""Whether to go on waiting for a query whose first task has not started yet."""


class FlowFailed(Exception):  # noqa: N818 - says what happened
    """Spark could not run a cycle or read an offsets topic; the message is the innermost cause."""


class SparkEngine:
    """Runs cycles on a Spark session."""

    def __init__(self, config: Config, spark: SparkSession) -> None:
        self._config = config
        self._consumers = offsets_topics(config)
        self._spark = spark

    def run(
        self, reads: Sequence[TopicRead], tables: pa.Table, plan: CyclePlan, keep_waiting: KeepWaiting
    ) -> list[BucketResult]:
        """Read, judge and write all buckets; gives their results in the order of the buckets."""
        scans = [self._scan(source, read) for source, read in enumerate(reads) if read.ranges]
        rows = self._query(flow(self._spark, scans, tables, plan).collect, keep_waiting)
        return [decode_result(bytes(row.result)) for row in sorted(rows, key=lambda row: int(row.bucket))]

    def probe(self, read: TopicRead, keep_waiting: KeepWaiting) -> None:
        """Read the ranges of one offsets topic and nothing else; raises FlowFailed if that is impossible."""
        if read.ranges:
            writer = self._scan(0, read).select("offset").write.format("noop").mode("overwrite")
            self._query(writer.save, keep_waiting)

    def _scan(self, source: int, read: TopicRead) -> DataFrame:
        consumer = self._consumers[read.cluster, read.topic][0]
        options = to_spark_options(consumer, self._config.profile_of(consumer))
        return read_commits(self._spark, source, read.cluster, options, read.topic, read.ranges)

    def _query(self, action: Callable[[], T], keep_waiting: KeepWaiting) -> T:
        try:
            return run_query(self._spark, action, keep_waiting)
        except (PySparkException, Py4JError, QueryNotStarted) as error:
            raise FlowFailed(_root_cause(error)) from error


def _root_cause(error: Exception) -> str:
    """The innermost cause of an error of Spark, in one line."""
    lines = str(error).splitlines()
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", ": org.apache.kafka"))]
    return (causes[-1] if causes else " ".join(lines[:2]))[:300]

"""Runs the flow of a cycle on Spark."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from warren.config import Config
from warren.kafka.options import to_spark_options
from warren.pipeline.bucket_result import BucketResult, decode_result
from warren.pipeline.flow import flow, read_tables
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.query import QueryNotStarted, run_query
from warren.pipeline.schemas import ADDRESSED
from warren.sources.offsets_topic import offsets_topics, read_commits
from warren.spark.supervised import SparkDied, SupervisedSpark

T = TypeVar("T")

log = logging.getLogger(__name__)

LOST_WORKER = "Python worker exited unexpectedly"
MAX_LOST_WORKERS = 4
"""How often a query may lose a worker: each task that was given a dead one has to fail before there are new ones."""

KeepWaiting = Callable[[], bool]
"""Whether to go on waiting for a query whose first task has not started yet."""


class FlowFailed(Exception):  # noqa: N818 - says what happened
    """A cycle could not be run, or an offsets topic not be read; the message is the innermost cause.

    `clusters` are those at fault, each with its error, as far as they are known.
    """

    def __init__(self, message: str, clusters: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.clusters = clusters or {}


class Engine(Protocol):
    """What runs the flow of a cycle: Spark, or a test without it."""

    def run(
        self, reads: Sequence[TopicRead], tables: pa.Table, plan: CyclePlan, keep_waiting: KeepWaiting
    ) -> list[BucketResult]:
        """Read, judge and write all buckets; gives their results in the order of the buckets."""

    def read(self, cluster: str, reads: Sequence[TopicRead], plan: CyclePlan, keep_waiting: KeepWaiting) -> pa.Table:
        """Only read and decode, of one cluster; gives what `run` takes as its tables, raises FlowFailed."""


class SparkEngine:
    """Runs cycles on a Spark session."""

    def __init__(self, config: Config, spark: SupervisedSpark) -> None:
        self._config = config
        self._consumers = offsets_topics(config)
        self._spark = spark

    def run(
        self, reads: Sequence[TopicRead], tables: pa.Table, plan: CyclePlan, keep_waiting: KeepWaiting
    ) -> list[BucketResult]:
        """Read, judge and write all buckets; gives their results in the order of the buckets."""

        def judged(spark: SparkSession) -> list[Row]:
            scans = [self._scan(spark, source, read) for source, read in enumerate(reads) if read.ranges]
            return run_query(spark, flow(spark, scans, tables, plan).collect, keep_waiting)

        rows = self._query(judged)
        return [decode_result(bytes(row.result)) for row in sorted(rows, key=lambda row: int(row.bucket))]

    def read(self, cluster: str, reads: Sequence[TopicRead], plan: CyclePlan, keep_waiting: KeepWaiting) -> pa.Table:
        """Only read and decode, of one cluster; gives what `run` takes as its tables."""

        def tables(spark: SparkSession) -> pa.Table:
            own = [(source, read) for source, read in enumerate(reads) if read.cluster == cluster and read.ranges]
            scans = [self._scan(spark, source, read) for source, read in own]
            return run_query(spark, read_tables(scans, plan).toArrow, keep_waiting)

        return self._query(tables).cast(ADDRESSED)

    def _scan(self, spark: SparkSession, source: int, read: TopicRead) -> DataFrame:
        consumer = self._consumers[read.cluster, read.topic][0]
        options = to_spark_options(consumer, self._config.profile_of(consumer))
        return read_commits(spark, source, read.cluster, options, read.topic, read.ranges)

    def _query(self, query: Callable[[SparkSession], T]) -> T:
        """Run a query; one that lost a Python worker runs again, as Spark on one machine repeats no task."""
        lost_workers = 0
        while True:
            try:
                return self._spark.run(query)
            except (PySparkException, Py4JError, QueryNotStarted, SparkDied) as error:
                if LOST_WORKER not in str(error) or lost_workers == MAX_LOST_WORKERS:
                    raise FlowFailed(_root_cause(error)) from error
                lost_workers += 1
                log.warning("a Python worker of Spark has died; the query runs again")


def _root_cause(error: Exception) -> str:
    """The innermost cause of an error of Spark, in one line: what Python raised, or the last cause that Java names."""
    lines = str(error).splitlines()
    tracebacks = [number for number, line in enumerate(lines) if line.startswith("Traceback")]
    raised = [line for line in lines[tracebacks[-1] + 1 :] if line[:1].strip()] if tracebacks else []
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", ": org.apache.kafka"))]
    return next(iter([*raised[:1], *causes[-1:]]), " ".join(lines[:2]).strip())[:300]

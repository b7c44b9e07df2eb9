"""Runs a cycle on Spark: each cluster is read by a job of its own, and one job decodes and judges all of them."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from warren.config import Config
from warren.errors import WarrenError
from warren.pipeline.bucket_result import BucketResult, decode_result
from warren.pipeline.flow import decode_tables, judge_tables
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan
from warren.pipeline.schemas import ADDRESSED
from warren.pipeline.spark_read import ReadRows, SparkRead, root_cause
from warren.sources.kafka_scan import TopicScan, scan_topics
from warren.sources.offsets_topic import offsets_topics, reader_options
from warren.spark.supervised import SparkDied, SupervisedSpark

T = TypeVar("T")
Decode = Callable[[DataFrame], DataFrame]

log = logging.getLogger(__name__)

_PROJECTIONS = "spark.sql.codegen.factoryMode"
_SHORT_READ = 100_000
"""Up to how many records generating code to convert them takes longer than converting them without; see `_start`."""
NO_TRANSACTIONS = "does not support LIST_OFFSETS with version in range [2,"
"""What Java's client says when it is to read committed records of brokers before 0.11."""
LOST_WORKER = "Python worker exited unexpectedly"
MAX_LOST_WORKERS = 4
"""How often a query may lose a worker: each task that was given a dead one has to fail before there are new ones."""


class FlowFailed(Exception):  # noqa: N818 - says what happened
    """A cycle could not be run; the message is the innermost cause.

    `clusters` are those at fault, each with its error, as far as they are known. `has_lost_reads` says that all that
    was read is gone, because Spark's JVM has died.
    """

    def __init__(
        self, message: str, clusters: Mapping[str, str] | None = None, *, has_lost_reads: bool = False
    ) -> None:
        super().__init__(message)
        self.clusters = clusters or {}
        self.has_lost_reads = has_lost_reads


class ClusterRead(Protocol):
    """The read of one cluster's offsets topics, under way or ended; what it has read stays until it is released.

    `error` says why it has failed, if it has.
    """

    error: str | None

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended, at the latest after so long; raises FlowFailed if it is lost."""

    def release(self) -> None:
        """Cancel it, if it is under way, and forget what it has read."""


class FailedRead:
    """A read that could not be started."""

    def __init__(self, error: str) -> None:
        self.error: str | None = error

    def wait(self, timeout_s: float) -> bool:
        """It has ended."""
        return True

    def release(self) -> None:
        """There is nothing to forget."""


class Engine(Protocol):
    """What runs the two halves of a cycle: Spark, or a test without it."""

    def read(self, reads: Sequence[TopicRead], plan: CyclePlan) -> dict[str, ClusterRead]:
        """Start to read and decode the clusters of these topics; topics are in the order of the plan's sources."""

    def wait(self, waiting: Callable[[], None]) -> None:
        """Call what waits for reads; raises FlowFailed if they are lost meanwhile."""

    def judge(self, reads: Sequence[ClusterRead], tables: pa.Table, plan: CyclePlan) -> list[BucketResult]:
        """Judge and write all buckets from what was read and these tables; results are in the order of the buckets."""


class DecodedRead(SparkRead):
    """A read of one cluster, with how its records are decoded: by the plan by which they were read."""

    def __init__(self, cluster: str, decode: Decode, rows: ReadRows, tasks: Sequence[int]) -> None:
        super().__init__(rows, tasks)
        self.cluster, self.decode = cluster, decode


class SparkEngine:
    """Runs cycles on a Spark session."""

    def __init__(self, config: Config, spark: SupervisedSpark) -> None:
        self._config = config
        self._consumers = offsets_topics(config)
        self._spark = spark
        self._last_reads: dict[str, ClusterRead] = {}
        self._without_transactions: set[str] = set()
        """The clusters whose brokers are too old to know transactions."""

    def read(self, reads: Sequence[TopicRead], plan: CyclePlan) -> dict[str, ClusterRead]:
        """Start to read and decode the clusters of these topics, each by a job of its own."""
        self._notice_old_brokers()
        started = self._start_reads(reads, plan)
        self._last_reads |= started
        return started

    def _notice_old_brokers(self) -> None:
        """Read the clusters without transactions that could not be read with them: Kafka has them since 0.11."""
        for cluster, read in self._last_reads.items():
            if NO_TRANSACTIONS in (read.error or "") and cluster not in self._without_transactions:
                log.warning("%s: its brokers are older than Kafka 0.11; they have no transactions", cluster)
                self._without_transactions.add(cluster)

    def _start_reads(self, reads: Sequence[TopicRead], plan: CyclePlan) -> dict[str, ClusterRead]:
        scans: dict[str, list[tuple[int, TopicScan]]] = {}
        failed: dict[str, ClusterRead] = {}
        for source, read in enumerate(reads):
            if read.ranges:
                try:
                    scans.setdefault(read.cluster, []).append((source, self._scan(read)))
                except WarrenError as error:
                    failed[read.cluster] = FailedRead(str(error))
        scans = {cluster: own for cluster, own in scans.items() if cluster not in failed}
        return {**failed, **(self._query(lambda spark: _start(spark, scans, plan)) if scans else {})}

    def wait(self, waiting: Callable[[], None]) -> None:
        """Call what waits for reads, under supervision: it ends if the JVM dies, and a JVM that hangs is killed."""
        self._query(lambda _: waiting())

    def judge(self, reads: Sequence[ClusterRead], tables: pa.Table, plan: CyclePlan) -> list[BucketResult]:
        """Decode what was read, judge and write all buckets; gives their results in the order of the buckets."""
        own = [read for read in reads if isinstance(read, DecodedRead)]

        def judged(spark: SparkSession) -> list[Row]:
            cores = spark.sparkContext.defaultParallelism
            given = spark.createDataFrame(tables, schema=from_arrow_schema(ADDRESSED))
            return judge_tables(reduce(DataFrame.unionAll, [given, *_decoded(own, 2 * cores)]), plan, cores).collect()

        try:
            rows = self._query(judged)
        except FlowFailed as error:
            if error.has_lost_reads:
                raise
            raise FlowFailed(str(error), self._find_undecodable(own)) from error
        return [decode_result(bytes(row.result)) for row in sorted(rows, key=lambda row: int(row.bucket))]

    def _find_undecodable(self, reads: Sequence["DecodedRead"]) -> dict[str, str]:
        """The clusters whose records cannot be decoded, each with its error."""
        failures = {}
        for read in reads:
            try:
                self._query(partial(_count_decoded, read))
            except FlowFailed as error:
                if error.has_lost_reads:
                    raise
                failures[read.cluster] = f"its records cannot be decoded: {error}"
        return failures

    def _scan(self, read: TopicRead) -> TopicScan:
        consumer = self._consumers[read.cluster, read.topic][0]
        has_transactions = read.cluster not in self._without_transactions
        connection = self._config.connection_of(consumer)
        options = reader_options(read.cluster, read.topic, connection, has_transactions=has_transactions)
        return TopicScan(read.topic, options, read.ranges)

    def _query(self, query: Callable[[SparkSession], T]) -> T:
        """Run a query; one that lost a Python worker runs again, as Spark on one machine repeats no task."""
        lost_workers = 0
        while True:
            try:
                return self._spark.run(query)
            except SparkDied as error:
                raise FlowFailed(str(error), has_lost_reads=True) from error
            except (PySparkException, Py4JError) as error:
                if LOST_WORKER not in str(error) or lost_workers == MAX_LOST_WORKERS:
                    raise FlowFailed(root_cause(error)) from error
                lost_workers += 1
                log.warning("a Python worker of Spark has died; the query runs again")


def _start(
    spark: SparkSession, scans: Mapping[str, Sequence[tuple[int, TopicScan]]], plan: CyclePlan
) -> dict[str, ClusterRead]:
    """Start one job per cluster on its Spark partitions of one DataFrame, whose rows are kept where they are made."""
    numbered = [(cluster, *each) for cluster, own in scans.items() for each in own]
    records, scan_of_task = scan_topics(
        spark, [scan for _, _, scan in numbered], 2 * spark.sparkContext.defaultParallelism
    )
    source_of_task = [numbered[index][1] for index in scan_of_task]
    decode = partial(decode_tables, source_of_task=source_of_task, plan=plan)
    rows = ReadRows(records)
    tasks: dict[str, list[int]] = {}
    for task, index in enumerate(scan_of_task):
        tasks.setdefault(numbered[index][0], []).append(task)
    started: dict[str, ClusterRead] = {}
    for cluster, own in tasks.items():
        # Spark generates the code that converts records once for every offsets partition, though it compiles it once.
        is_short = sum(scan.records for _, scan in scans[cluster]) <= _SHORT_READ
        spark.sparkContext.setLocalProperty(_PROJECTIONS, "NO_CODEGEN" if is_short else None)  # type: ignore[arg-type]
        started[cluster] = DecodedRead(cluster, decode, rows, own)
    spark.sparkContext.setLocalProperty(_PROJECTIONS, None)  # type: ignore[arg-type]
    return started


def _count_decoded(read: DecodedRead, _: SparkSession) -> int:
    """Decode what was read of one cluster."""
    return sum(tables.count() for tables in _decoded([read], 1))


def _decoded(reads: Iterable[DecodedRead], tasks: int) -> list[DataFrame]:
    """What was read, decoded in so many tasks; clusters that were read together are decoded together."""
    together: dict[ReadRows, list[DecodedRead]] = {}
    for read in reads:
        together.setdefault(read.rows, []).append(read)
    return [
        own[0].decode(rows.batches(task for read in own for task in read.tasks).coalesce(tasks))
        for rows, own in together.items()
    ]

"""The read of one cluster as a job of Spark that runs in the background; its rows stay on the executors."""

import contextlib
import logging
import re
import time
from collections.abc import Collection, Sequence
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from warren.kafka.client_errors import explain

log = logging.getLogger(__name__)

_JAVA_CLIENT = re.compile(r"org\.apache\.kafka\.common|javax\.(net\.ssl|security)")
LOST_WORKER = "Python worker exited unexpectedly"
MAX_LOST_WORKERS = 4
"""How often a query may lose a worker: each task that was given a dead one has to fail before there are new ones."""
_POLL_S = 0.01


class ReadRows:
    """The rows of a DataFrame, kept on the executors where they are made until all reads that share it are released."""

    def __init__(self, rows: DataFrame) -> None:
        self._frame = rows
        self._rdd: Any = rows._jdf.javaRDD()
        self._rdd.persist(rows.sparkSession.sparkContext._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK))
        self._readers: set[SparkRead] = set()

    def partitions(self, tasks: Collection[int]) -> Any:  # noqa: ANN401 - a JavaRDD
        """Some of the Spark partitions."""
        jvm: Any = self._frame.sparkSession.sparkContext._jvm
        # A set of Scala is also the function that tells its members.
        numbers = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.HashSet(list(tasks))).toSet()
        return jvm.org.apache.spark.rdd.PartitionPruningRDD.create(self._rdd.rdd(), numbers).toJavaRDD()

    def frame(self, tasks: Collection[int]) -> DataFrame:
        """The rows of some of the Spark partitions; those that were read before are not read again."""
        spark = self._frame.sparkSession
        rows = spark._jsparkSession.createDataFrame(self.partitions(tasks), self._frame._jdf.schema())
        return DataFrame(rows, spark)

    def add(self, reader: "SparkRead") -> None:
        """Keep the rows until this one is removed."""
        self._readers.add(reader)

    def remove(self, reader: "SparkRead") -> None:
        """The rows are forgotten when nobody needs them any more."""
        self._readers.discard(reader)
        if not self._readers:
            self._rdd.unpersist(False)


class SparkRead:
    """A job that makes some Spark partitions of rows that it shares with other reads."""

    def __init__(self, rows: ReadRows, tasks: Sequence[int]) -> None:
        self.rows, self.tasks = rows, tasks
        self.error: str | None = None
        self._lost_workers = 0
        self._is_done = False
        rows.add(self)
        self._partitions = rows.partitions(tasks)
        self._job = self._partitions.countAsync()

    def wait(self, timeout_s: float) -> bool:
        """Whether the job has ended, at the latest after so long."""
        deadline = time.monotonic() + timeout_s
        while not self._is_done and not self._job.isDone():
            # A call that waits in the JVM would end with an exception, which takes py4j far longer.
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        if self._is_done:
            return True
        try:
            self._job.get()
        except (Py4JJavaError, PySparkException) as error:
            if LOST_WORKER in str(error) and self._lost_workers < MAX_LOST_WORKERS:
                log.warning("a Python worker of Spark has died; the cluster is read again")
                self._lost_workers += 1
                self._job = self._partitions.countAsync()
                return False
            self.error = root_cause(error)
        self._is_done = True
        return True

    def release(self) -> None:
        """Cancel the job, if it is under way, and forget what it has read."""
        # If the JVM is gone there is nothing to cancel or to forget.
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            if not self._is_done:
                self._job.cancel(True)
            self.rows.remove(self)


def root_cause(error: Exception) -> str:
    """The innermost cause of an error of Spark, in one line: what Python raised, or the last cause that Java names."""
    text = str(error)
    if _JAVA_CLIENT.search(text) and (sentence := explain(text)):
        return sentence
    lines = text.splitlines()
    tracebacks = [number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    raised = [line for line in lines[tracebacks[-1] + 1 :] if line[:1].strip()] if tracebacks else []
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", ": org.apache.kafka"))]
    return next(iter([*raised[:1], *causes[-1:]]), " ".join(lines[:2]).strip())[:300]

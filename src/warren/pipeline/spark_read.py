"""The read of one cluster as a job of Spark that runs in the background; its rows stay on the executors."""

import contextlib
import re
import time
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from warren.kafka.client_errors import explain
from warren.spark.jvm import java_class

_JAVA_CLIENT = re.compile(r"org\.apache\.kafka\.common|javax\.(net\.ssl|security)")
_POLL_S = 0.01


class ReadRows:
    """The rows of a DataFrame as Arrow batches, kept on the executors where they are made.

    They are forgotten when all reads that share them are released.
    """

    def __init__(self, rows: DataFrame) -> None:
        self._spark = rows.sparkSession
        # Batches are arrays of bytes: kept as they are, nothing has to be serialized.
        level = self._spark.sparkContext._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK_DESER)
        self._rdd: Any = rows._jdf.toArrowBatchRdd().persist(level)
        self._readers: set[SparkRead] = set()

    def partitions(self, tasks: Iterable[int]) -> Any:  # noqa: ANN401 - an RDD of Java
        """Some of the Spark partitions."""
        to_range = java_class(self._spark, "scala.collection.immutable.Range$Exclusive")
        # A set of Scala is also the function that tells its members.
        numbers = reduce(lambda a, b: a.concat(b), [to_range(*run, 1).toSet() for run in _runs(tasks)])
        return java_class(self._spark, "org.apache.spark.rdd.PartitionPruningRDD").create(self._rdd, numbers)

    def batches(self, tasks: Iterable[int]) -> DataFrame:
        """The rows of some of the Spark partitions, in Arrow batches, each one binary value; nothing is read again."""
        binary = java_class(self._spark, "org.apache.spark.sql.Encoders").BINARY()
        batches = self._spark._jsparkSession.createDataset(self.partitions(tasks), binary)
        return DataFrame(batches.toDF(), self._spark)

    def add(self, reader: "SparkRead") -> None:
        """Keep the rows until this one is removed."""
        self._readers.add(reader)

    def remove(self, reader: "SparkRead") -> None:
        """The rows are forgotten when nobody needs them any more."""
        self._readers.discard(reader)
        if not self._readers:
            self._rdd.unpersist(False)


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as ranges, each from its first number up to but excluding its end."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


class SparkRead:
    """A job that makes some Spark partitions of rows that it shares with other reads."""

    def __init__(self, rows: ReadRows, tasks: Sequence[int]) -> None:
        self.rows, self.tasks = rows, tasks
        self.error: str | None = None
        self._is_done = False
        rows.add(self)
        self._job = rows.partitions(tasks).toJavaRDD().countAsync()

    def wait(self, timeout_s: float) -> bool:
        """Whether the job has ended, at the latest after so long."""
        deadline = time.monotonic() + timeout_s
        while not self._is_done and not self._job.isDone():
            # A call that waits in the JVM would end with an exception, which takes py4j far longer.
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        if not self._is_done:
            try:
                self._job.get()
            except (Py4JJavaError, PySparkException) as error:
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

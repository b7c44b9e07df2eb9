"""Reads as background jobs on a real Spark: one that fails leaves the others as they are, and nothing is read twice."""

import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from warren.pipeline.shuffle import join_batches
from warren.pipeline.spark_read import ReadRows, SparkRead, root_cause

FROM_JAVA = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted
\tat a.b
Caused by: java.io.IOException: one
\tat c.d
Caused by: org.apache.kafka.TimeoutException: two
"""
FROM_JOB = """An error occurred while calling o2.get.
: java.util.concurrent.ExecutionException: org.apache.spark.SparkException: Job aborted
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "y", line 2
ValueError: poison

\tat a.b
"""
FROM_PYTHON = """
  An exception was thrown from the Python worker.
Traceback (most recent call last):
  File "x", line 1
KeyError: 7

Traceback (most recent call last):
  File "y", line 2
IndexError: index 3 is out of bounds

JVM stacktrace:
org.apache.spark.PythonException
"""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("no query", "no query"),
        (FROM_JAVA, "Caused by: org.apache.kafka.TimeoutException: two"),
        (FROM_PYTHON, "IndexError: index 3 is out of bounds"),
        (FROM_JOB, "ValueError: poison"),
    ],
)
def test_the_root_cause_is_one_line(error: str, cause: str) -> None:
    assert root_cause(Exception(error)) == cause


def ended(read: SparkRead) -> bool:
    deadline = time.monotonic() + 240
    while not read.wait(1.0):
        assert time.monotonic() < deadline
    return True


@pytest.mark.timeout(600)
def test_what_has_been_read_is_not_read_again_when_another_read_fails(spark: SparkSession, tmp_path: Path) -> None:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            (number,) = batch["id"].to_pylist()
            with (tmp_path / str(number)).open("a") as file:
                file.write("read\n")
            if number == 2:
                raise ValueError("poison")
            if number == 3:
                time.sleep(600)
            yield batch

    rows = ReadRows(spark.range(0, 4, 1, 4).mapInArrow(read, "id long"))
    good, bad, slow = (SparkRead(rows, tasks) for tasks in ([0, 1], [2], [3]))
    assert ended(good)
    assert ended(bad)
    assert not slow.wait(0.0)
    assert (good.error, bad.error) == (None, "ValueError: poison")
    for _ in range(2):
        values = pa.table({"batch": [row.value for row in rows.batches(good.tasks).collect()]})
        batches = join_batches(values.to_batches(), pa.schema([("id", pa.int64())]))
        assert [batch["id"].to_pylist() for batch in batches] == [[0, 1]], "joined into one batch"
    times = {path.name: path.read_text().count("read") for path in tmp_path.iterdir()}
    assert (times["0"], times["1"]) == (1, 1)
    persisted = spark.sparkContext._jsc.sc().getPersistentRDDs
    before = persisted().size()
    for each in (good, bad):
        each.release()
    assert persisted().size() == before, "one read is still under way"
    slow.release()
    assert persisted().size() == before - 1
    assert spark.range(5).count() == 5

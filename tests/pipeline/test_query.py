"""Queries that are given up when their cluster goes away before they begin; on a real Spark."""

import threading
import time

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from warren.pipeline import query
from warren.pipeline.query import QueryNotStarted, run_query


@pytest.fixture(autouse=True)
def _ask_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "CHECK_EVERY_S", 0.05)


def test_a_query_gives_its_result(spark: SparkSession) -> None:
    assert run_query(spark, spark.range(10).count, lambda: True) == 10


def test_what_fails_in_a_query_is_raised(spark: SparkSession) -> None:
    fails = spark.range(1).select(f.raise_error(f.lit("no such luck")))
    with pytest.raises(PySparkException, match="no such luck"):
        run_query(spark, fails.collect, lambda: True)


def test_a_query_that_has_begun_is_waited_for_whatever_becomes_of_its_clusters(spark: SparkSession) -> None:
    slow = spark.range(1).select(f.expr("java_method('java.lang.Thread', 'sleep', 8000L)"))
    # Asked before it begins the cluster is there, afterwards it would not be.
    began = time.monotonic()
    assert len(run_query(spark, slow.collect, lambda: time.monotonic() - began < 5)) == 1


def test_a_query_that_does_not_begin_is_given_up_when_it_is_not_worth_waiting(spark: SparkSession) -> None:
    goes_on = threading.Event()
    outcome: list[int | Exception] = []

    def planned_too_late() -> int:
        goes_on.wait(30)
        try:
            outcome.append(spark.range(10).count())
        except Exception as error:
            outcome.append(error)
            raise
        return 0

    answers = iter([True, True, False])
    with pytest.raises(QueryNotStarted):
        run_query(spark, planned_too_late, lambda: next(answers))
    goes_on.set()
    until = time.monotonic() + 30
    while not outcome and time.monotonic() < until:
        time.sleep(0.05)
    assert isinstance(outcome[0], Exception), "what was given up must not run when its cluster is back"
    assert run_query(spark, spark.range(3).count, lambda: True) == 3

"""Spark queries on clusters that may go down: planning a Kafka scan waits until its cluster answers."""

import contextlib
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.sql import SparkSession

T = TypeVar("T")

CHECK_EVERY_S = 3.0
"""How often to check whether the clusters of a query still answer, until its first task starts."""


class QueryNotStarted(Exception):  # noqa: N818 - says what happened
    """A query was cancelled before its first task, because a cluster it reads from went down."""


def run_query(spark: SparkSession, action: Callable[[], T], keep_waiting: Callable[[], bool]) -> T:
    """Run an action of Spark; until its first task starts, `keep_waiting` decides whether to wait for it."""
    context = spark.sparkContext
    group = f"warren-{uuid.uuid4().hex}"
    outcome: Future[T] = Future()
    ended = threading.Event()

    def run() -> None:
        try:
            context.setJobGroup(group, "Warren cycle")
            outcome.set_result(action())
        except Exception as error:  # noqa: BLE001 - raised again where the result is taken
            outcome.set_exception(error)
        finally:
            ended.set()

    # A daemon: planning that waits for a dead cluster cannot be interrupted, and must not delay the exit of Warren.
    InheritableThread(target=run, name="query", daemon=True).start()
    while not ended.wait(CHECK_EVERY_S):
        if context.statusTracker().getJobIdsForGroup(group):
            ended.wait()
        elif not keep_waiting():
            with contextlib.suppress(Py4JError):
                # Otherwise the query would still start when the cluster comes back.
                context._jsc.sc().cancelJobGroupAndFutureJobs(group)
            raise QueryNotStarted("a cluster went down before it could be read")
    return outcome.result()

"""Queries on clusters that may go away: Spark plans a Kafka scan once its cluster answers, however long that takes."""

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

ASK_EVERY_S = 3.0
"""How long a query may take to begin before somebody is asked whether its clusters are still there."""


class NeverBegan(Exception):  # noqa: N818 - reads as what it is
    """A query was given up before its first task, as a cluster it reads from has gone away."""


def run_query(spark: SparkSession, action: Callable[[], T], is_worth_waiting: Callable[[], bool]) -> T:
    """Run an action of Spark; while it has not begun, `is_worth_waiting` says whether to go on waiting for it."""
    context = spark.sparkContext
    group = f"warren-{uuid.uuid4().hex}"
    outcome: Future[T] = Future()
    ended = threading.Event()

    def run() -> None:
        try:
            context.setJobGroup(group, "a cycle of Warren")
            outcome.set_result(action())
        except Exception as error:  # noqa: BLE001 - it is raised where the result is taken
            outcome.set_exception(error)
        finally:
            ended.set()

    # A daemon: planning that waits for a dead cluster cannot be interrupted, and must not hold up the end of Warren.
    InheritableThread(target=run, name="query", daemon=True).start()
    while not ended.wait(ASK_EVERY_S):
        if context.statusTracker().getJobIdsForGroup(group):
            ended.wait()
        elif not is_worth_waiting():
            with contextlib.suppress(Py4JError):
                # Should the cluster come back, the query would begin after all.
                context._jsc.sc().cancelJobGroupAndFutureJobs(group)
            raise NeverBegan("a cluster went away before it could be read")
    return outcome.result()

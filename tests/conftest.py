"""What tests of several folders share: one real Kafka and one Spark session for the whole run."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from warren.demo.broker import Kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How fast an example runs on a busy machine says nothing about whether it is right.
settings.register_profile("warren", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("warren")

# A test does not run for long enough to gain from code that is compiled well, and two cores compile it slowly.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1"

SLOWEST = (
    "tests/sinks/lake/test_worker.py",
    "tests/test_readme.py",
    "tests/browser/test_dashboard.py",
    "tests/spark/test_supervised.py",
    "tests/sources/test_offsets_topic_errors.py",
    "tests/sinks/lake",
    "tests/deploy",
    "tests/pipeline/test_engine.py",
    "tests/browser",
    "tests/sources",
    "tests/sinks",
    "tests/demo",
    "tests/notify",
)
"""Files and folders of which each takes a worker a minute or so; it takes the others in between."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slowest files come first, so that at the end no worker has much to do while the other has nothing."""

    def place(item: pytest.Item) -> int:
        return next((n for n, path in enumerate(SLOWEST) if item.nodeid.startswith(path)), len(SLOWEST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A real Kafka of one broker; tests share it, so each uses topic and group names of its own."""
    with Kafka() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A Spark session as `warren run` makes it, small enough for a test machine."""
    # Late, so that tests without Spark do not pay for its import.
    from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
    from warren.spark.session import start_session

    session = start_session("local[2]", fetch_jars(SPARK_CONNECTOR), java_home(), driver_memory="2g")
    yield session
    session.stop()

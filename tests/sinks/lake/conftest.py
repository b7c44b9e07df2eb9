"""The Spark of the run, for lakes."""

import pytest
from pyspark.sql import SparkSession

from tests.kit.lakes import lake_session_of


@pytest.fixture(scope="session")
def lake_spark(spark: SparkSession) -> SparkSession:
    """The session of the run, with a lake's settings for queries."""
    return lake_session_of(spark)

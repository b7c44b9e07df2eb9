"""Classes of Spark's JVM."""

from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:  # noqa: ANN401 - whatever the class offers
    """A class by its full name; by way of its packages, py4j asks the JVM whether each of them is a class."""
    return JavaClass(name, spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]

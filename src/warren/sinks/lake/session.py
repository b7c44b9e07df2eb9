"""The Spark session of a lake, with what its format needs."""

from pyspark.sql import SparkSession

from warren.config.sinks import LakeSink
from warren.java import Jars, fetch_jars, java_home, spark_jars
from warren.sinks.lake.transactional import conf_of
from warren.spark.session import start_session

CONF = {
    "spark.app.name": "warren-lake",
    "spark.sql.session.timeZone": "UTC",
    # Jobs are large and rare, and adaptive execution makes files of a good size.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "64",
    "spark.shuffle.compress": "true",
    # The number of tasks that list files; the default is ten thousand.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    # Names of clusters stay text even if they look like numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.maxRecordsPerFile": "10000000",
}


def lake_session(sink: LakeSink, *, with_msk: bool = False) -> SparkSession:
    """The session that writes or reads a lake; it may read commits with credentials of AWS."""
    jars = spark_jars(with_msk=with_msk)
    if sink.packages:
        # pyspark ships these.
        shipped = ("org.scala-lang", "org.slf4j", "org.apache.spark")
        jars += fetch_jars(Jars(", ".join(sink.packages), f"lake-{sink.format}", "some MB", sink.packages, shipped))
    return start_session(sink.master, jars, java_home(), sink.driver_memory, {**CONF, **conf_of(sink)})

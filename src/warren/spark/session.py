"""The Spark session, set up for short cycles."""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
DEFAULTS = {
    "spark.app.name": "warren",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A cycle is one small job: planning it again half-way costs more than it gains.
    "spark.sql.adaptive.enabled": "false",
    # Whole columns at a time, bounded by rows: a bound by bytes makes Spark measure all its vectors at every row, which
    # is a third of what reading costs the JVM.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The newer way asks an admin client, which hides internal topics, and the offsets topic is one.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # By default Kafka (which is absent here) is read by the older way, which turns every row into objects and back.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    "spark.shuffle.compress": "false",
    "spark.cleaner.periodicGC.interval": "10min",
    # Workers keep the memory of one task for the next: fresh pages cost them as much as the work itself.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    # One session is all there is: throughput matters, pauses of some ms do not.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}


def start_session(
    master: str,
    jars: Sequence[Path],
    java_home: Path,
    driver_memory: str = "4g",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session with the Kafka connector on its class path and this interpreter as its Python."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master)
    settings = {
        **DEFAULTS,
        "spark.driver.memory": driver_memory,
        "spark.jars": ",".join(str(jar) for jar in jars),
    }
    conf = conf or {}
    # A JVM that runs already reads no file any more.
    shown = conf if SparkContext._gateway is not None else {}
    for key, value in {**{key: value for key, value in settings.items() if key not in conf}, **shown}.items():
        builder = builder.config(key, value)
    with _unseen(conf):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _unseen(conf: Mapping[str, str]) -> Iterator[None]:
    """Hand settings to the JVM that starts meanwhile in a file of our own: on its command line all could read them."""
    with tempfile.NamedTemporaryFile("w", prefix="warren-spark-", suffix=".conf", encoding="utf-8") as file:
        file.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items())
        file.flush()
        before = os.environ.get(SUBMIT_ARGUMENTS, "pyspark-shell")
        arguments = f"--load-spark-defaults --properties-file {shlex.quote(file.name)} {before}"
        os.environ[SUBMIT_ARGUMENTS] = arguments
        try:
            yield
        finally:
            os.environ[SUBMIT_ARGUMENTS] = before


def _escaped(text: str) -> str:
    """Text as a file of Java's properties has it."""
    return re.sub(r"([\\:=#! ])", r"\\\1", text).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")

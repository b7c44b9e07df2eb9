"""The Spark session, set up for short cycles."""

import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from warren.java import class_archive, class_archive_options

log = logging.getLogger(__name__)

WAITING_TASKS = 4
SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SECRETS = "(?i)secret|password|token|credential|jaas|keystore"
DEFAULTS = {
    "spark.app.name": "warren",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A cycle is one small job: adaptive planning costs more than it gains.
    "spark.sql.adaptive.enabled": "false",
    # Records become Arrow batches by their number. Those batches go to Python as one value each: by their size.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**26),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The newer lookup uses an admin client, which hides internal topics such as the offsets topic.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # The default list has Kafka in it, whose V1 source converts every row to objects and back.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    # Spark keeps a consumer per offsets partition; one that is pushed out connects again in the next cycle.
    "spark.kafka.consumer.cache.capacity": "1024",
    "spark.shuffle.compress": "false",
    # One file per task instead of one for each bucket too.
    "spark.shuffle.sort.bypassMergeThreshold": "1",
    "spark.cleaner.periodicGC.interval": "10min",
    # What the UI and the event log do not show of settings and options.
    "spark.redaction.regex": f"{_SECRETS}|access[.]?key",
    "spark.sql.redaction.options.regex": f"{_SECRETS}|url",
    # Workers keep the memory of one task for the next: page faults cost as much as the work itself.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    # Throughput matters, pauses of some milliseconds do not.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}
END_TIMEOUT_S = 120.0


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
    slots, parallelism = local_slots(master)
    shared = class_archive_options(spark_archive())
    builder = SparkSession.builder.master(slots)
    settings = {
        **DEFAULTS,
        **parallelism,
        # Options of the user replace those above and are added to these.
        **({"spark.driver.defaultJavaOptions": shlex.join(shared)} if shared else {}),
        "spark.driver.memory": driver_memory,
        "spark.jars": ",".join(str(jar) for jar in jars),
    }
    conf = conf or {}
    # A JVM that is already running does not read the properties file.
    late = conf if SparkContext._gateway is not None else {}
    for key, value in {**{key: value for key, value in settings.items() if key not in conf}, **late}.items():
        builder = builder.config(key, value)
    with _properties_file(conf):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not log.isEnabledFor(logging.DEBUG):
        _silence_failed_tasks(spark)
    return spark


def local_slots(master: str) -> tuple[str, dict[str, str]]:
    """A local master with more slots than cores, so that tasks that wait for slow brokers hold up no others.

    The default parallelism stays the number of cores, as tasks that compute gain nothing from more.
    """
    local = re.fullmatch(r"local\[(\*|\d+)\]", master)
    if not local:
        return master, {}
    cores = (os.cpu_count() or 1) if local[1] == "*" else int(local[1])
    return f"local[{cores + WAITING_TASKS}]", {"spark.default.parallelism": str(cores)}


def spark_archive() -> Path:
    """Where the class-data archive of Spark's JVM is; it is specific to one Java and one installation of pyspark."""
    jars = Path(pyspark.__file__).with_name("jars")
    # A JVM ignores an archive of jars that were installed again.
    return class_archive("spark", f"{jars} {pyspark.__version__} {jars.stat().st_mtime_ns}")


def end_session(session: SparkSession) -> None:
    """Stop a session and wait until its JVM has ended by itself."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    session.stop()
    gateway.shutdown()
    # The JVM ends when its standard input does.
    gateway.proc.communicate(timeout=END_TIMEOUT_S)


def abandon_session(session: SparkSession) -> int:
    """Forget a session that is of no use, so that the next one starts a JVM of its own; gives the exit code."""
    context = session.sparkContext
    gateway = SparkContext._gateway
    assert gateway is not None
    # What is left of them in this process would wait for the JVM, or keep threads and sockets.
    gateway.proc.kill()
    for close in (context._accumulatorServer.shutdown, gateway.shutdown):
        with suppress(Exception):
            close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    return int(gateway.proc.wait())


@contextmanager
def _properties_file(conf: Mapping[str, str]) -> Iterator[None]:
    """Pass settings to the JVM that starts meanwhile in a private file: its command line is visible to every user."""
    with tempfile.NamedTemporaryFile("w", prefix="warren-spark-", suffix=".conf", encoding="utf-8") as file:
        file.writelines(f"{escape_property(key)}={escape_property(value)}\n" for key, value in conf.items())
        file.flush()
        before = os.environ.get(SUBMIT_ARGUMENTS, "pyspark-shell")
        arguments = f"--load-spark-defaults --properties-file {shlex.quote(file.name)} {before}"
        os.environ[SUBMIT_ARGUMENTS] = arguments
        try:
            yield
        finally:
            os.environ[SUBMIT_ARGUMENTS] = before


def escape_property(text: str) -> str:
    """Text as a Java properties file needs it."""
    return re.sub(r"([\\:=#! ])", r"\\\1", text).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _silence_failed_tasks(spark: SparkSession) -> None:
    """The error of a task or client reaches whoever runs the query; a line at every attempt is for debugging."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for name in ("spark.executor.Executor", "spark.scheduler.TaskSetManager", "kafka"):
        log4j.core.config.Configurator.setLevel(f"org.apache.{name}", log4j.Level.OFF)

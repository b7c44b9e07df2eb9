"""The lake in a table format with transactions (Delta, Iceberg): a job is one commit per table."""

import datetime as dt
from collections.abc import Iterator

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from warren.config.sinks import LakeSink
from warren.sinks.lake.tables import PARTITIONED_BY, LakeTable

CATALOG, DATABASE = "lake", "kafka"
"""The catalog and database of an Iceberg lake that is given by its path."""

FORMAT_CONF = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "4",
    },
    "iceberg": {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
}
"""The Spark settings that a format needs."""


def conf_of(sink: LakeSink) -> dict[str, str]:
    """The Spark settings of a sink: those of its format, and its own `spark-conf`, which take precedence."""
    settings = dict(FORMAT_CONF.get(sink.format, {}))
    if sink.format == "iceberg" and sink.path:
        settings |= {
            f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
            f"spark.sql.catalog.{CATALOG}.type": "hadoop",
            f"spark.sql.catalog.{CATALOG}.warehouse": sink.path,
        }
    return {**settings, **sink.spark_conf}


class TransactionalTables:
    """Tables of a format with transactions, below a path or in a database of a catalog."""

    def __init__(self, spark: SparkSession, sink: LakeSink) -> None:
        self._spark = spark
        self._format = sink.format
        self._path = (sink.path or "").rstrip("/")
        self._database = sink.database
        if sink.format == "iceberg" and sink.path:
            self._database = f"{CATALOG}.{DATABASE}"

    def clean_up(self, except_job: str = "") -> None:
        """Nothing to do: a job leaves nothing behind."""

    def append(self, table: LakeTable, rows: DataFrame, job: str, *, is_retry: bool = False) -> None:
        """Write rows of a job, unless it is a retry and they are in the table already."""
        written = self.read(table) if is_retry else None
        if written is not None and not written.where(f.col("job") == job).isEmpty():
            return
        marked = rows.withColumn("job", f.lit(job))
        if self._database is None:
            writer = marked.write.format(self._format).mode("append").partitionBy(*PARTITIONED_BY)
            # A table that an earlier version of Warren created lacks columns.
            writer.option("mergeSchema", "true").save(f"{self._path}/{table}")
            return
        self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._database}")
        if self._spark.catalog.tableExists(self.name(table)):
            self._add_columns(table, marked)
            marked.writeTo(self.name(table)).append()
        else:
            new = marked.writeTo(self.name(table)).using(self._format)
            new.partitionedBy(*(f.col(name) for name in PARTITIONED_BY)).create()

    def _add_columns(self, table: LakeTable, rows: DataFrame) -> None:
        """Add the columns of rows that a table lacks because an earlier version of Warren created it."""
        existing = self._spark.table(self.name(table)).columns
        missing = [f"{name} {type_}" for name, type_ in rows.dtypes if name not in existing]
        if missing:
            self._spark.sql(f"ALTER TABLE {self.name(table)} ADD COLUMNS ({', '.join(missing)})")

    def tidy(self, today: dt.date, keep_days: int) -> None:
        """Merge small files by the means of the format, and remove days that are too old."""
        for table in LakeTable:
            if self.read(table) is None:
                continue
            for statement in self._maintenance(table, today, keep_days):
                self._spark.sql(statement)

    def read(self, table: LakeTable) -> DataFrame | None:
        """A whole table; None when nothing was written yet."""
        try:
            if self._database is None:
                return self._spark.read.format(self._format).load(f"{self._path}/{table}")
            return self._spark.table(self.name(table))
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise

    def name(self, table: LakeTable) -> str:
        """The name of a table in SQL."""
        if self._database is None:
            return f"{self._format}.`{self._path}/{table}`"
        return f"{self._database}.{table}"

    def _maintenance(self, table: LakeTable, today: dt.date, keep_days: int) -> Iterator[str]:
        name = self.name(table)
        if keep_days:
            oldest = today - dt.timedelta(days=keep_days)
            yield f"DELETE FROM {name} WHERE date < DATE'{oldest.isoformat()}'"  # noqa: S608 - names from the configuration
        if self._format == "delta":
            recent = today - dt.timedelta(days=1)
            yield f"OPTIMIZE {name} WHERE date >= DATE'{recent.isoformat()}'"
            yield f"VACUUM {name}"
        elif self._format == "iceberg" and self._database is not None:
            catalog, _, rest = self._database.partition(".")
            yield f"CALL {catalog}.system.rewrite_data_files(table => '{rest}.{table}')"
            yield f"CALL {catalog}.system.expire_snapshots(table => '{rest}.{table}')"


_MISSING = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE")

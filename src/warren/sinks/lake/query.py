"""`warren history`: SQL queries on the lake or on the built-in history, run by Spark."""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from rich.console import Console

from warren.config import Config
from warren.config.sinks import LakeSink
from warren.domain.status import Status
from warren.errors import WarrenError
from warren.history.files import HistoryTable, history_files
from warren.report import print_rows
from warren.sinks.lake.session import lake_session
from warren.sinks.lake.tables import LakeTable, local_path, name_of, time_of
from warren.sinks.lake.worker import open_tables

_QUERY = re.compile(r"\s*(?:--.*\n\s*)*(select|with|values|show|describe|desc|explain|from)\b", re.IGNORECASE)


def run_query(config: Config, sql: str, sink: str | None, limit: int, as_format: str, output: Path | None) -> None:
    """Run a query, and print its rows or write them as Parquet files."""
    if not _QUERY.match(sql):
        raise WarrenError('only questions are answered, such as "SELECT * FROM groups LIMIT 10"')
    lake = lake_of(config, sink)
    # It would log a stack trace for a mistyped name.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    console = Console(stderr=True, highlight=False)
    with console.status("starting Spark ..."):
        spark = lake_session(lake or LakeSink("history", path="/", master="local[*]"))
    try:
        views = dict(lake_views(spark, lake)) if lake else dict(history_views(spark, config.pipeline.data_dir))
        for name, view in views.items():
            view.createOrReplaceTempView(name)
        try:
            answer = spark.sql(sql)
            if output is not None:
                answer.write.mode("errorifexists").parquet(f"file://{output.absolute()}")
                written = spark.read.parquet(local_path(output)).count()
                console.print(f"{written:,} rows are in {output}", soft_wrap=True)
                return
            with console.status("running the query ..."):
                rows = answer.limit(limit + 1).toArrow()
        except PySparkException as error:
            message = (str(error).splitlines() or ["the query failed"])[0]
            raise WarrenError(f"{message}\nthe tables are: {_list(views)}") from error
        print_rows(rows.slice(0, limit), as_format)
        if rows.num_rows > limit:
            console.print(f"only the first {limit:,} rows: more with --limit, or all with --output DIR", soft_wrap=True)
    finally:
        spark.stop()


def lake_of(config: Config, name: str | None) -> LakeSink | None:
    """The lake to query: the named one, or the only one; None for the built-in history."""
    lakes = {sink.name: sink for sink in config.sinks.values() if isinstance(sink, LakeSink)}
    if name is not None:
        if name not in lakes:
            raise WarrenError(f"--sink {name}: there is no [sink.{name}] of class lake; there are: {_list(lakes)}")
        return lakes[name]
    if len(lakes) > 1:
        raise WarrenError(f"there are several lakes: say which with --sink NAME, one of {_list(lakes)}")
    return next(iter(lakes.values()), None)


def lake_views(spark: SparkSession, sink: LakeSink) -> Iterator[tuple[str, DataFrame]]:
    """The tables of a lake that exist."""
    lake = open_tables(spark, sink, "", Path())
    for table in LakeTable:
        rows = lake.read(table)
        if rows is not None:
            yield table, rows


def history_views(spark: SparkSession, data_dir: Path) -> Iterator[tuple[str, DataFrame]]:
    """The built-in history, with columns as in a lake."""
    for table in HistoryTable:
        paths = [local_path(file.path) for file in history_files(data_dir, table)]
        if not paths:
            continue
        keys = [name for name in ("cluster", "group", "time_ms") if name in table.schema.names]
        named = {
            "worst_status": name_of("worst_status", Status),
            "time": time_of("time_ms"),
            "total_lag": f.col("totallag"),
        }
        if table is HistoryTable.GROUPS:
            named |= {"status": name_of("status", Status), "since": time_of("since_ms"), "max_lag": f.col("maxlag")}
        # Spark would take the columns of one of the files; older ones lack those that were added since.
        files = spark.read.schema(from_arrow_schema(table.schema)).parquet(*paths)
        rows = files.dropDuplicates(keys).withColumns(named)
        yield table, rows.withColumn("date", f.to_date("time")).drop("time_ms", "since_ms", "totallag", "maxlag")


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none yet"

"""`warren history`: questions in SQL about the past, answered by Spark from the lake or from Warren's own history."""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console

from warren.config import Config
from warren.config.sinks import LakeSink
from warren.domain.status import Status
from warren.errors import WarrenError
from warren.history.files import HistoryTable, history_files
from warren.report import print_rows
from warren.sinks.lake.session import lake_session
from warren.sinks.lake.tables import Table, local_path, time_of, word_of
from warren.sinks.lake.worker import open_tables

_QUERY = re.compile(r"\s*(?:--.*\n\s*)*(select|with|values|show|describe|desc|explain|from)\b", re.IGNORECASE)


def run_query(config: Config, sql: str, sink: str | None, limit: int, as_format: str, output: Path | None) -> None:
    """Answer a question, on the screen or as Parquet files."""
    if not _QUERY.match(sql):
        raise WarrenError('only questions are answered, such as "SELECT * FROM groups LIMIT 10"')
    lake = lake_of(config, sink)
    # It would print the whole trace of a mistyped name, of which we say what is needed.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    notes = Console(stderr=True, highlight=False)
    with notes.status("starting Spark ..."):
        spark = lake_session(lake or LakeSink("history", path="/", master="local[*]"))
    try:
        views = dict(lake_views(spark, lake)) if lake else dict(own_views(spark, config.pipeline.data_dir))
        for name, rows in views.items():
            rows.createOrReplaceTempView(name)
        try:
            answer = spark.sql(sql)
            if output is not None:
                answer.write.mode("errorifexists").parquet(f"file://{output.absolute()}")
                written = spark.read.parquet(local_path(output)).count()
                notes.print(f"{written:,} rows are in {output}", soft_wrap=True)
                return
            with notes.status("Spark is looking ..."):
                found = answer.limit(limit + 1).toArrow()
        except PySparkException as error:
            raise WarrenError(_explained(error, views)) from error
        print_rows(found.slice(0, limit), as_format)
        if found.num_rows > limit:
            notes.print(f"only the first {limit:,} rows: more with --limit, or all with --output DIR", soft_wrap=True)
    finally:
        spark.stop()


def lake_of(config: Config, name: str | None) -> LakeSink | None:
    """The lake to ask: the one that is named, or the only one; None for Warren's own history."""
    lakes = {sink.name: sink for sink in config.sinks.values() if isinstance(sink, LakeSink)}
    if name is not None:
        if name not in lakes:
            raise WarrenError(f"--sink {name}: there is no [sink.{name}] of class lake; there are: {_listed(lakes)}")
        return lakes[name]
    if len(lakes) > 1:
        raise WarrenError(f"there are several lakes: say which with --sink NAME, one of {_listed(lakes)}")
    return next(iter(lakes.values()), None)


def lake_views(spark: SparkSession, sink: LakeSink) -> Iterator[tuple[str, DataFrame]]:
    """The tables of a lake that there are."""
    held = open_tables(spark, sink, "", Path())
    for table in Table:
        rows = held.read(table)
        if rows is not None:
            yield table, rows


def own_views(spark: SparkSession, data_dir: Path) -> Iterator[tuple[str, DataFrame]]:
    """Warren's own history, as tables of the same kind as a lake's."""
    for table in HistoryTable:
        paths = [local_path(file.path) for file in history_files(data_dir, table)]
        if not paths:
            continue
        rows = spark.read.parquet(*paths).dropDuplicates(
            [c for c in ("cluster", "group", "time_ms") if c in table.schema.names]
        )
        named = {
            "worst_status": word_of("worst_status", Status),
            "time": time_of("time_ms"),
            "total_lag": f.col("totallag"),
        }
        if table is HistoryTable.GROUPS:
            named |= {"status": word_of("status", Status), "since": time_of("since_ms"), "max_lag": f.col("maxlag")}
        yield (
            table,
            rows.withColumns(named)
            .withColumn("date", f.to_date("time"))
            .drop("time_ms", "since_ms", "totallag", "maxlag"),
        )


def _explained(error: PySparkException, views: Mapping[str, object]) -> str:
    what = (str(error).splitlines() or ["it failed"])[0]
    return f"{what}\nthe tables are: {_listed(views)}"


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none yet"

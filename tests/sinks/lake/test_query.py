"""`warren history`: which lake is asked, what Warren's own history shows, and how answers look."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.kit.servers import Town, server_config
from warren.cli import HISTORY_EXAMPLES
from warren.config.sinks import LakeSink, Sink
from warren.errors import WarrenError
from warren.history.files import HistoryTable, file_name, history_files
from warren.history.recent import HOUR_MS
from warren.history.write import HistoryWriter
from warren.report import print_rows
from warren.sinks.lake.query import history_views, lake_of, run_query
from warren.snapshot.reader import newest_snapshot


def test_which_lake_is_asked(tmp_path: Path) -> None:
    lakes = {name: LakeSink(name, path="/x") for name in ("a", "b")}
    other = {"s": Sink("s")}
    assert lake_of(server_config(tmp_path, sinks=other), None) is None
    assert lake_of(server_config(tmp_path, sinks={**other, "a": lakes["a"]}), None) is lakes["a"]
    both = server_config(tmp_path, sinks={**other, **lakes})
    assert lake_of(both, "b") is lakes["b"]
    with pytest.raises(WarrenError, match="one of a, b"):
        lake_of(both, None)
    with pytest.raises(WarrenError, match=r"no \[sink.s\] of class lake; there are: a, b"):
        lake_of(both, "s")


def test_only_questions_are_answered(tmp_path: Path) -> None:
    with pytest.raises(WarrenError, match="only questions"):
        run_query(server_config(tmp_path), "DROP TABLE groups", None, 10, "table", None)


def test_the_own_history_has_words_and_times(tmp_path: Path, spark: SparkSession) -> None:
    town = Town(tmp_path).grow()
    town.publish()
    manifest = newest_snapshot(tmp_path).manifest
    HistoryWriter(tmp_path, 30, 1.0).record(manifest)
    for file in history_files(tmp_path, HistoryTable.GROUPS):
        # A point of an hour ago, from before there was a time lag.
        earlier = pq.read_table(file.path).drop_columns("seconds_behind")
        earlier = earlier.set_column(0, "time_ms", pc.subtract(earlier["time_ms"], HOUR_MS))
        name = file_name(file.span, file.bucket, file.buckets, file.from_ms - HOUR_MS, file.to_ms - HOUR_MS)
        pq.write_table(earlier, file.path.with_name(name))
    views = dict(history_views(spark, tmp_path))
    assert set(views) == {"groups", "clusters"}
    past, *stalled = views["groups"].where("cluster = 'one' AND group = 'stalled'").orderBy("time").collect()
    assert [(row["status"], row["worst_status"]) for row in stalled] == [("ERR", "STALL")]
    assert (past["seconds_behind"], stalled[0]["seconds_behind"]) == (None, 9.0)
    assert stalled[0]["time"].timestamp() * 1000 == manifest.now_ms
    assert stalled[0]["total_lag"] > stalled[0]["max_lag"] > 0
    assert {row["cluster"] for row in views["clusters"].collect()} == {"one", "two"}


def test_the_questions_of_the_help_are_answered(tmp_path: Path, spark: SparkSession) -> None:
    town = Town(tmp_path).grow()
    town.publish()
    HistoryWriter(tmp_path, 30, 1.0).record(newest_snapshot(tmp_path).manifest)
    session = spark.newSession()
    for name, rows in history_views(session, tmp_path):
        rows.createOrReplaceTempView(name)
    questions = re.findall(r'warren history "([^"]+)"', HISTORY_EXAMPLES)
    of_groups = [sql for sql in questions if "FROM groups" in sql]
    assert len(of_groups) == len(questions) - 1 == 2
    answers = [
        session.sql(sql.replace("'local'", "'one'").replace("'orders'", "'slow'")).collect() for sql in of_groups
    ]
    assert len(answers[0]) == 1
    assert answers[1][0]["share"] == 1.0


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("json", ['{"group": "a,b", "lag": 1234, "is": true}', '{"group": "é", "lag": null, "is": false}']),
        ("csv", ["group,lag,is", '"a,b",1234,True', "é,,False"]),
    ],
)
def test_answers_for_programs(form: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(pa.table({"group": ["a,b", "é"], "lag": [1234, None], "is": [True, False]}), form)
    assert capsys.readouterr().out.splitlines() == lines


def test_columns_of_the_same_name(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array([2])], names=["time", "group", "time"])
    print_rows(rows, "csv")
    assert capsys.readouterr().out.splitlines() == ["time,group,time", "1,a,2"]
    with pytest.raises(WarrenError, match="several columns are named time: rename them"):
        print_rows(rows, "json")


def test_an_answer_for_eyes(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(pa.table({"group": ["[red]x"], "lag": [1234567]}), "table")
    shown = capsys.readouterr().out
    assert "[red]x" in shown
    assert "1,234,567" in shown

"""A lake of each format beside a running Warren on a real Kafka, through kill -9, asked by `warren history`."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit.kafka import commit
from tests.kit.lakes import ask
from tests.kit.warrens import WarrenRun, sections_for, wait_for
from warren.delivery.sink_status import SinkStatus, read_status
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics, fill_topic

pytestmark = pytest.mark.timeout(900)

PACKAGES = {
    "parquet": [],
    "delta": ["io.delta:delta-spark_2.13:4.0.0"],
    "iceberg": ["org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"],
}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_snapshots_and_commits_are_there_once_though_warren_is_killed(kind: str, kafka: Kafka, tmp_path: Path) -> None:
    topic, group = f"lake-{kind}", f"lake-group-{kind}"
    create_topics(kafka.bootstrap, {topic: 2})
    fill_topic(kafka.bootstrap, topic, 1000)
    sections = sections_for({"local": kafka.bootstrap})
    sections["sink.lake"] = {
        "class-name": "lake",
        "path": str(tmp_path / "lake"),
        "format": kind,
        "interval": 1,
        "write-interval": 4,
        "commits": True,
        "groups-include": [group],
        "topics-include": [topic],
        **({"packages": PACKAGES[kind]} if PACKAGES[kind] else {}),
    }
    run = WarrenRun(tmp_path, sections)

    def status() -> SinkStatus | None:
        return read_status(run.data, "lake")

    def written(after_ms: int = 0) -> int | None:
        held = status()
        return held.delivered_ms if held and held.delivered_ms and held.delivered_ms > after_ms else None

    made: list[int] = []

    def commit_some(count: int) -> None:
        for _ in range(count):
            made.append(10 + 10 * len(made))
            commit(kafka.bootstrap, group, topic, {0: made[-1], 1: made[-1] + 1})

    commit_some(1)
    with run:
        first = wait_for(written, "a first job")
        commit_some(5)
        second = wait_for(lambda: written(first), "a second one")
        commit_some(5)
        run.kill()
        run.start()
        commit_some(5)
        third = wait_for(lambda: written(second), "one after the kill")
        commit_some(1)
        committed_ms = time.time_ns() // 1_000_000
        wait_for(lambda: written(max(third, committed_ms + 5000)), "the last commits are in")
        assert run.stop() == 0
    offsets = ask(tmp_path, "SELECT partition, offset, source_offset FROM commits ORDER BY partition, source_offset")
    of_first = [row["offset"] for row in offsets if row["partition"] == 0]
    assert of_first == made[-len(of_first) :]
    assert len(of_first) >= len(made) - 1, "all but, perhaps, those before the first snapshot"
    rows = ask(
        tmp_path,
        "SELECT count(*) AS rows, count(DISTINCT time, group) AS once, min(status) AS status, max(total_lag) AS lag "
        "FROM groups",
    )
    assert rows[0]["rows"] == rows[0]["once"] > 8
    assert rows[0]["lag"] > 0
    heads = ask(tmp_path, "SELECT topic, max(head) AS head FROM topics GROUP BY topic")
    assert heads == [{"topic": topic, "head": 1000}]


APPEND_TWICE = """
import sys
from warren.config.sinks import LakeSink
from warren.sinks.lake.session import lake_session
from warren.sinks.lake.tables import LakeTable
from warren.sinks.lake.transactional import TransactionalTables

sink = LakeSink("l", path=sys.argv[1], format=sys.argv[2], packages=tuple(sys.argv[3:]))
spark = lake_session(sink)
tables = TransactionalTables(spark, sink)
jobs = {
    "earlier": "",
    "now": ", 41.5D AS seconds_behind, true AS is_falling_behind",
    "later": ", 0D AS seconds_behind, false AS is_falling_behind",
}
for job, columns in jobs.items():
    rows = spark.sql(f"SELECT 'g' AS group{columns}, map('a', 'b') AS tags, DATE'2026-01-01' AS date, 'c' AS cluster")
    tables.append(LakeTable.GROUPS, rows, job)
known = tables.read(LakeTable.GROUPS).select("job", "seconds_behind", "is_falling_behind")
print(*known.orderBy("job").toJSON().collect(), sep="\\n")
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_of_an_earlier_version_gets_the_columns_that_it_lacks(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", APPEND_TWICE, str(tmp_path / "lake"), kind, *PACKAGES[kind]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [
        {"job": "earlier"},
        {"job": "later", "seconds_behind": 0.0, "is_falling_behind": False},
        {"job": "now", "seconds_behind": 41.5, "is_falling_behind": True},
    ]

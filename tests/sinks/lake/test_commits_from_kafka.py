"""Every commit of a real Kafka in the lake, once, between one job and the next; asked by `warren history`."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.config.written import loaded
from tests.kit.demos import readme_blocks
from tests.kit.kafka import commit
from tests.kit.lakes import Lake, ask, interrupted_job, minutes, read_to_the_end
from tests.kit.sink_workers import deliver_next
from tests.kit.warrens import sections_for, to_toml
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics, fill_topic
from warren.sinks.lake.commits import offsets_topics_of
from warren.sinks.lake.query import lake_views
from warren.sinks.lake.tables import LakeTable

OFFSETS = "__consumer_offsets"


def test_commits_between_two_jobs_are_there_once(
    kafka: Kafka, tmp_path: Path, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(kafka.bootstrap, {"lake-commits": 2})
    fill_topic(kafka.bootstrap, "lake-commits", 100)
    text = to_toml(sections_for({"one": kafka.bootstrap}))
    config = loaded(tmp_path, text)
    settings: dict[str, Any] = {
        "groups_include": ("lake-*",),
        "detail": "topic",
        "commits": True,
        "write_interval": 60.0,
    }
    lake = Lake(tmp_path, lake_spark, offsets_topics_of(config), **settings)
    commit(kafka.bootstrap, "lake-a", "lake-commits", {0: 1})
    first, second, third = minutes(lake, 3)
    lake.sample(first, clusters=read_to_the_end(kafka.bootstrap))
    assert deliver_next(lake.worker)
    assert not (lake.path / LakeTable.COMMITS).exists(), "commits begin with the first job"
    for offset in (2, 3):
        commit(kafka.bootstrap, "lake-a", "lake-commits", {0: offset, 1: 10 * offset})
    commit(kafka.bootstrap, "other", "lake-commits", {0: 50})
    lake.sample(second, clusters=read_to_the_end(kafka.bootstrap))
    with interrupted_job("written", monkeypatch):
        deliver_next(lake.worker)
    lake.restart()
    assert deliver_next(lake.worker)
    commit(kafka.bootstrap, "lake-b", "lake-commits", {1: 99})
    lake.sample(third, clusters=read_to_the_end(kafka.bootstrap))
    assert deliver_next(lake.worker)

    (tmp_path / "burrow.toml").write_text(f'{text}\n[sink.l]\nclass-name = "lake"\npath = "{lake.path}"\n')
    found = ask(
        tmp_path, "SELECT group, partition, offset, cluster, source FROM commits ORDER BY group, partition, offset"
    )
    assert [(row["group"], row["partition"], row["offset"]) for row in found] == [
        ("lake-a", 0, 2),
        ("lake-a", 0, 3),
        ("lake-a", 1, 20),
        ("lake-a", 1, 30),
        ("lake-b", 1, 99),
    ]
    assert {(row["cluster"], row["source"]) for row in found} == {("one", OFFSETS)}

    for name, rows in lake_views(lake_spark, lake.sink):
        rows.createOrReplaceTempView(name)
    [question] = readme_blocks("sql", "docs/lake.md")
    assert lake_spark.sql(question).columns == ["time", "group", "partition", "lag"]

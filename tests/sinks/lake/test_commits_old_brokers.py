"""The commits of brokers that know no transactions, before and after an upgrade."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.config.written import loaded
from tests.kit.kafka import commit
from tests.kit.lakes import Lake, minutes, read_to_the_end
from tests.kit.old_kafka import OldKafka
from tests.kit.sink_workers import deliver_next
from tests.kit.warrens import sections_for, to_toml
from warren.demo.workload.topics import create_topics
from warren.sinks.lake.commits import offsets_topics_of
from warren.sinks.lake.tables import LakeTable


def test_every_commit_is_there_once_on_brokers_without_transactions_and_ids(
    tmp_path: Path, lake_spark: SparkSession
) -> None:
    with OldKafka(version="0.10.2") as kafka:
        create_topics(kafka.bootstrap, {"orders": 1}, replicas=1)
        config = loaded(tmp_path, to_toml(sections_for({"one": kafka.bootstrap})))
        sources = offsets_topics_of(config)
        lake = Lake(tmp_path, lake_spark, sources, detail="group", commits=True, write_interval=60.0)
        # Since 2.8 the offsets topic has an id; the third sample is as after an upgrade.
        for offset, (at_ms, topic_id) in enumerate(zip(minutes(lake, 4), ("", "", "id", "id"), strict=True)):
            commit(kafka.bootstrap, "billing", "orders", {0: offset})
            lake.sample(at_ms, clusters=read_to_the_end(kafka.bootstrap, topic_id))
            assert deliver_next(lake.worker)
    offsets = sorted(row["offset"] for row in lake.rows(LakeTable.COMMITS) if row["group"] == "billing")
    assert offsets == [1, 2, 3], "commits begin with the first job"

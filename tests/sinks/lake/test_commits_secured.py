"""The commits of a cluster with TLS, SCRAM and ACLs in the lake."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.config.written import loaded
from tests.kit.kafka import commit
from tests.kit.lakes import Lake, minutes, read_to_the_end
from tests.kit.rights import documented_rights
from tests.kit.secret_search import SecretSearch, pieces_of_text
from tests.kit.secured import SCRAM, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.sink_workers import deliver_next
from tests.kit.warrens import to_toml
from warren.demo.workload.topics import create_topics
from warren.sinks.lake.commits import offsets_topics_of
from warren.sinks.lake.tables import LakeTable


def test_commits_of_a_secured_cluster_are_in_the_lake_and_its_secrets_are_not(
    tmp_path: Path, lake_spark: SparkSession
) -> None:
    with SecuredKafka(tmp_path / "kafka") as kafka:
        kafka.grant(USERS[SCRAM], documented_rights("To watch a cluster"))
        create_topics(kafka.bootstrap, {"orders": 2})
        (home := tmp_path / "home").mkdir()
        (home / "secret").write_text(kafka.passwords[USERS[SCRAM]])
        password = {SCRAM: f"file:{home / 'secret'}"}
        config = loaded(home, to_toml(secured_sections(kafka, {"one": SCRAM}, passwords=password)))
        data = tmp_path / "data"
        lake = Lake(data, lake_spark, offsets_topics_of(config), commits=True, write_interval=60.0)
        commit(kafka.bootstrap, "billing", "orders", {0: 1})
        first, second = minutes(lake, 2)
        lake.sample(first, clusters=read_to_the_end(kafka.bootstrap))
        assert deliver_next(lake.worker)
        commit(kafka.bootstrap, "billing", "orders", {0: 2, 1: 20})
        lake.sample(second, clusters=read_to_the_end(kafka.bootstrap))
        assert deliver_next(lake.worker)
        rows = lake.rows(LakeTable.COMMITS)
        assert {(row["group"], row["partition"], row["offset"]) for row in rows} == {
            ("billing", 0, 2),
            ("billing", 1, 20),
        }
        search = SecretSearch({"the password": pieces_of_text(kafka.passwords[USERS[SCRAM]])})
        search.search_folder(data)
        search.search("the lake's session", repr(lake_spark.sparkContext.getConf().getAll()).encode())
        assert search.looked_at > 10
        assert not search.found

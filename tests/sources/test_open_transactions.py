"""The transactional ids of open transactions, on a real Kafka."""

import time
import uuid

import pytest
from confluent_kafka import TopicPartition
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.kit.kafka import commit, open_transaction
from tests.kit.warrens import wait_for
from warren.config import Cluster, Config
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.kafka.admin import LATEST, READ_COMMITTED, READ_UNCOMMITTED, Admin
from warren.kafka.samples import Partition
from warren.kafka.topics import to_offsets
from warren.sources.open_transactions import MAX_ID_CHARS, find_transactional_ids

OFFSETS_TOPIC = "__consumer_offsets"
UNIQUE = uuid.uuid4().hex
HOSTILE = f"{UNIQUE} <b>\n\u202e\"'${{x}} \N{PILE OF POO}"


def held_back(bootstrap: str) -> dict[Partition, int]:
    """The last stable offsets of the offsets partitions that open transactions hold back."""
    admin, deadline = Admin({"bootstrap.servers": bootstrap}), time.monotonic() + 30
    partitions = range(admin.describe_topics([OFFSETS_TOPIC], deadline).topics[OFFSETS_TOPIC].leaders.size)
    request = [TopicPartition(OFFSETS_TOPIC, partition, LATEST) for partition in partitions]
    stable_ends, ends = (
        to_offsets(request, admin.list_offsets(request, isolation, deadline), deadline).tolist()
        for isolation in (READ_COMMITTED, READ_UNCOMMITTED)
    )
    return {(OFFSETS_TOPIC, at): stable_ends[at] for at in partitions if stable_ends[at] < ends[at]}


def config_of(*servers: str) -> Config:
    return Config({"c": Cluster("c", servers)}, {})


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    create_topics(kafka.bootstrap, {f"held-{UNIQUE}": 1})
    commit(kafka.bootstrap, "held-other", f"held-{UNIQUE}", {0: 0})
    return f"held-{UNIQUE}"


@pytest.mark.parametrize(
    "transactional_id",
    [f"orders-tx-{UNIQUE}", HOSTILE, "x" * (MAX_ID_CHARS + 1)],
    ids=["plain", "hostile", "too long"],
)
def test_the_transaction_that_holds_back_a_partition_is_named(
    kafka: Kafka, spark: SparkSession, topic: str, transactional_id: str
) -> None:
    config, group = config_of(kafka.bootstrap), f"held-{uuid.uuid4().hex}"
    wait_for(lambda: not held_back(kafka.bootstrap), "no transaction of another test is open")
    with open_transaction(kafka.bootstrap, transactional_id, group, topic):
        stable_ends = wait_for(lambda: held_back(kafka.bootstrap), "an offsets partition is held back")
        # A later transaction on the same partition does not hold it back.
        with open_transaction(kafka.bootstrap, f"later-{uuid.uuid4().hex}", group, topic):
            ids = find_transactional_ids(config, "c", stable_ends)
            assert list(ids.values()) == [transactional_id[:MAX_ID_CHARS]]
            assert ids.keys() == stable_ends.keys()
            elsewhere = {at: offset + 1_000 for at, offset in stable_ends.items()}
            assert find_transactional_ids(config, "c", elsewhere) == {}, "no transaction begins there"
    wait_for(lambda: not held_back(kafka.bootstrap), "the transaction is over")
    assert find_transactional_ids(config, "c", stable_ends) == {}


def test_a_partition_that_does_not_exist_has_no_transaction(kafka: Kafka, spark: SparkSession, topic: str) -> None:
    transactional_id, config = f"beside-{UNIQUE}", config_of(kafka.bootstrap)
    wait_for(lambda: not held_back(kafka.bootstrap), "no transaction of another test is open")
    with open_transaction(kafka.bootstrap, transactional_id, f"beside-{UNIQUE}", topic):
        stable_ends = wait_for(lambda: held_back(kafka.bootstrap), "an offsets partition is held back")
        ids = find_transactional_ids(config, "c", {(f"missing-{UNIQUE}", 0): 0, **stable_ends})
        assert list(ids.items()) == [(next(iter(stable_ends)), transactional_id)], "the others still have theirs"


@pytest.mark.parametrize("server", ["127.0.0.1:1", "no port"])
def test_brokers_that_do_not_answer_name_nothing(spark: SparkSession, server: str) -> None:
    assert find_transactional_ids(config_of(server), "c", {(OFFSETS_TOPIC, 0): 0}) == {}


def test_nothing_is_named_while_spark_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_jvm", None)
    assert find_transactional_ids(config_of("127.0.0.1:1"), "c", {(OFFSETS_TOPIC, 0): 0}) == {}

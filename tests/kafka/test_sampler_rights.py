"""Samples of a real cluster with ACLs, whose topics Warren may no longer see."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Producer

from tests.config.written import loaded
from tests.kit.kafka import commit
from tests.kit.rights import Right
from tests.kit.secured import SCRAM, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.warrens import to_toml, wait_for
from warren.config.kafka import Connection
from warren.demo.workload.topics import create_topics
from warren.kafka import topic_configs
from warren.kafka.admin import AdminOf
from warren.kafka.record_times import RecordTimes
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample, SampleQuestions, SamplingTarget, Topic
from warren.kafka.topic_configs import TopicConfigs
from warren.kafka.topics import PartitionLayout

USER = USERS[SCRAM]
TOPICS = ("orders", "payments", "points")
Asked = Callable[[Sequence[str]], ClusterSample]


def describe(topic: str) -> Right:
    return Right("Describe", "topic", topic)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """Topics that Warren may see, each by a right of its own, one of them written by Warren."""
    with SecuredKafka(tmp_path_factory.mktemp("kafka")) as kafka:
        kafka.grant(USER, [Right("Read", "topic", "__consumer_offsets"), *map(describe, TOPICS)])
        create_topics(kafka.bootstrap, dict.fromkeys(TOPICS, 1))
        commit(kafka.bootstrap, "billing", "orders", {0: 0})
        yield kafka


@pytest.fixture
def connection(tmp_path: Path, kafka: SecuredKafka) -> Connection:
    config = loaded(tmp_path, to_toml(secured_sections(kafka, {"main": SCRAM})))
    return config.connection_of(config.clusters["main"])


@pytest.fixture
def asked(connection: Connection) -> Iterator[Callable[[Sequence[str]], ClusterSample]]:
    """Samples, each asked for topics that the requester misses."""
    target = SamplingTarget("main", connection, topic_refresh_s=0.2, own_topics=frozenset({"points"}))
    with ClusterSamplers([target], processes=1) as samplers:

        def asked(missing: Sequence[str]) -> ClusterSample:
            samplers.ask({"main": SampleQuestions(missing_topics=missing)})
            return samplers.sample(10.0)["main"]

        wait_for(lambda: set(TOPICS) <= names(asked(())), "the topics are seen")
        yield asked


def test_records_that_may_not_be_read_are_looked_up_and_the_right_is_named_once(
    kafka: SecuredKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made_ms = [time.time_ns() // 1_000_000 - age_ms for age_ms in (7_200_000, 3_600_000)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for time_ms in made_ms:
        producer.produce("payments", b"x", partition=0, timestamp=time_ms)
    assert producer.flush(30) == 0
    config = loaded(tmp_path, to_toml(secured_sections(kafka, {"main": SCRAM})))
    connection = config.connection_of(config.clusters["main"])
    layout = PartitionLayout((Topic("payments", "its id", 1),), np.zeros(1, np.int64), np.zeros(1, np.int32))

    def times_are_known(times: RecordTimes) -> bool:
        unread = [("payments", 0, offset) for offset in (0, 1)]
        known = times.known(SampleQuestions(unread_offsets=unread, unread_records=unread), layout, np.array([2]))
        return [each[3:] for each in sorted(known)] == [(time_ms, 0, False) for time_ms in made_ms]

    right = "Warren is not allowed to read the topic payments: grant Read on it to Warren's user"
    refused, granted = (RecordTimes("main", AdminOf(connection), connection) for _ in range(2))
    wait_for(lambda: times_are_known(refused), "the times are known by the brokers' index")
    assert caplog.text.count(right) == 1
    kafka.grant(USER, [Right("Read", "topic", "payments")])
    try:
        wait_for(lambda: times_are_known(granted), "the times are known by the records")
    finally:
        kafka.revoke(USER, [Right("Read", "topic", "payments")])
    assert caplog.text.count(right) == 1
    for times in (refused, granted):
        times.close()


def names(sample: ClusterSample) -> set[str]:
    return {topic.name for topic in sample.topics}


def test_a_topic_that_may_no_longer_be_seen_is_hidden_and_the_others_go_on(kafka: SecuredKafka, asked: Asked) -> None:
    kafka.revoke(USER, [describe("orders")])
    wait_for(lambda: "orders" not in names(asked(())), "it is not listed")
    sample = asked(["orders", "payments", "never-was"])
    assert (sample.error, sample.hidden_topics) == (None, ("orders", "never-was")), "nobody says whether they exist"
    assert sample.heads.size == sum(topic.partitions for topic in sample.topics)
    assert {"payments", "points"} <= names(sample)
    kafka.grant(USER, [describe("orders")])
    wait_for(lambda: "orders" in names(asked(["orders"])), "it is seen again")
    assert asked(["orders"]).hidden_topics == ()


def test_without_a_right_on_any_topic_but_its_own_warren_names_it_in_every_sample(
    kafka: SecuredKafka, asked: Asked
) -> None:
    kafka.revoke(USER, [describe("orders"), describe("payments")])
    hidden = "Warren is not allowed to see the topic orders and 1 other: grant Describe on them to Warren's user"
    wait_for(lambda: asked(["orders", "payments"]).error == hidden, "the right is named")
    for _ in range(5):
        assert asked(["orders", "payments"]).error == hidden
    kafka.grant(USER, [describe("orders")])
    wait_for(lambda: asked(["orders", "payments"]).error is None, "it goes on by itself")
    assert asked(["orders", "payments"]).hidden_topics == ("payments",)
    kafka.grant(USER, [describe("payments")])
    wait_for(lambda: "payments" in names(asked(["payments"])), "all topics are seen again")


def test_a_topic_that_is_deleted_is_absent(kafka: SecuredKafka, asked: Asked) -> None:
    create_topics(kafka.bootstrap, {"short-lived": 1})
    kafka.grant(USER, [describe("short-lived")])
    wait_for(lambda: "short-lived" in names(asked(())), "it is seen")
    assert asked(["short-lived"]).absent_topics == ()
    admin = kafka.admin()
    admin.delete_topics(["short-lived"])["short-lived"].result(30)
    wait_for(lambda: "short-lived" not in names(asked(())), "it is not listed")
    assert asked(["short-lived"]).absent_topics == ("short-lived",)


def test_without_the_right_to_describe_configurations_nothing_is_missing_but_them(
    kafka: SecuredKafka, connection: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topic_configs, "RETRY_S", 0.0)
    monkeypatch.setattr(topic_configs, "REFRESH_S", 0.0)
    caplog.set_level(logging.DEBUG, topic_configs.__name__)
    layout = PartitionLayout((Topic("orders", "1", 1), Topic("payments", "2", 1)), np.arange(2), np.zeros(2, np.int32))
    configs = TopicConfigs("main", AdminOf(connection))

    def described() -> set[str]:
        return set(configs.known(["orders", "payments"], layout)["topic"].to_pylist())

    wait_for(lambda: described() or caplog.messages, "the brokers have answered")
    for _ in range(20):
        assert described() == set()
    right = Right("DescribeConfigs", "topic", "orders")
    kafka.grant(USER, [right])
    wait_for(lambda: described() == {"orders"}, "it is seen as soon as there is the right")
    [message] = caplog.messages
    assert "grant DescribeConfigs on topics to Warren's user" in message
    kafka.revoke(USER, [right])

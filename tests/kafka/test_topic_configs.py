"""Configurations of topics, asked from a real broker beside the samples."""

import logging

import numpy as np
import pytest
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.kit.warrens import wait_for
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import admin
from warren.kafka import topic_configs
from warren.kafka.admin import AdminOf
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import SampleQuestions, SamplingTarget, Topic
from warren.kafka.topic_configs import TopicConfigs
from warren.kafka.topics import PartitionLayout

WEEK_MS = 604_800_000
Described = dict[str, tuple[int, ...]]
TOPICS: dict[str, tuple[dict[str, str], tuple[int, int, int, int]]] = {
    "configs-default": ({}, (0, 1, WEEK_MS, -1)),
    "configs-append-time": ({"message.timestamp.type": "LogAppendTime"}, (1, 1, WEEK_MS, -1)),
    "configs-short": ({"retention.ms": "60000", "retention.bytes": "1048576"}, (0, 1, 60_000, 1_048_576)),
    "configs-compacted": ({"cleanup.policy": "compact"}, (0, 0, WEEK_MS, -1)),
    "configs-both": ({"cleanup.policy": "compact,delete", "retention.ms": "-1"}, (0, 1, -1, -1)),
}
"""How topics are created, and their columns of TOPIC_CONFIGS."""
EXPECTED: Described = {name: expected for name, (_, expected) in TOPICS.items()}


@pytest.fixture(scope="module")
def bootstrap(kafka: Kafka) -> str:
    """A broker with these topics."""
    new_topics = [NewTopic(name, 1, 1, config=config) for name, (config, _) in TOPICS.items()]
    client = admin(kafka.bootstrap)
    for future in client.create_topics(new_topics).values():
        future.result(30)
    return kafka.bootstrap


def layout_of(*names: str) -> PartitionLayout:
    topics = tuple(Topic(name, f"id-{name}", 1) for name in sorted(names))
    return PartitionLayout(topics, np.arange(len(topics)), np.zeros(len(topics), np.int32))


def described(configs: TopicConfigs, *names: str) -> Described:
    return rows(configs.known(names, layout_of(*names)).to_pylist())


def rows(listed: list[dict[str, int]]) -> Described:
    return {str(topic): tuple(config) for topic, *config in (row.values() for row in listed)}


def test_a_sample_has_the_configurations_of_the_topics_in_question(bootstrap: str) -> None:
    with ClusterSamplers([SamplingTarget("local", Connection((bootstrap,)))], processes=1) as samplers:

        def sampled() -> Described:
            samplers.ask({"local": SampleQuestions(lagging_topics=[*TOPICS, "configs-missing"])})
            sample = samplers.sample(30.0)["local"]
            assert sample.error is None
            return rows(sample.topic_configs.to_pylist())

        assert sampled() == {}, "no sample waits for them"
        wait_for(lambda: sampled() == EXPECTED, "the topics are described")
        assert samplers.sample(30.0)["local"].topic_configs.num_rows == 0, "nobody asks any more"


def test_topics_are_described_in_batches_and_again_after_a_while(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_configs, "MAX_BATCH", 2)
    configs = TopicConfigs("local", AdminOf(Connection((bootstrap,))))
    seen = {0}

    def is_described() -> bool:
        found = described(configs, *TOPICS)
        seen.add(len(found))
        return found == EXPECTED

    wait_for(is_described, "all are described")
    assert seen == {0, 2, 4, 5}, "two per batch"

    resource = ConfigResource(
        ResourceType.TOPIC,
        "configs-default",
        incremental_configs=[ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)],
    )
    client = admin(bootstrap)
    client.incremental_alter_configs([resource])[resource].result(30)
    for _ in range(10):
        assert is_described(), "what is known is not asked again at once"
    monkeypatch.setattr(topic_configs, "REFRESH_S", 0.0)
    wait_for(lambda: described(configs, *TOPICS)["configs-default"] == (0, 1, 3_600_000, -1), "it is asked again")


def test_brokers_that_do_not_answer_are_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topic_configs, "_TIMEOUT_S", 0.2)
    caplog.set_level(logging.DEBUG, topic_configs.__name__)
    configs = TopicConfigs("gone", AdminOf(Connection(("127.0.0.1:1",))))
    assert described(configs, "t") == {}
    wait_for(lambda: not configs.is_busy, "the attempt has ended")
    assert described(configs, "t") == {}
    assert not configs.is_busy, "there is no second one"
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete", "retention.ms": "1"},
        {"message.timestamp.type": "CreateTime", "cleanup.policy": None, "retention.ms": "1", "retention.bytes": "1"},
        {"message.timestamp.type": "CreateTime", "cleanup.policy": "", "retention.ms": "x", "retention.bytes": "1"},
    ],
)
def test_a_configuration_that_is_not_all_there_is_unknown(entries: dict[str, str]) -> None:
    assert topic_configs.to_config(entries) is None

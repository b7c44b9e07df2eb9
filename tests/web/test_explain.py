"""Groups that commit to ZooKeeper: the API says where each commits, and how their ensemble is."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.plans import Commit, cluster_state
from tests.kit.servers import Client, Town, group_path, server_config, serving
from warren.config.kafka import StormConsumer, ZooKeeperConsumer
from warren.domain.offsets_logs import OffsetsLog, zookeeper_log_id
from warren.snapshot.manifest import Position, ZooKeeperSource
from warren.sources.zookeeper.layouts import ZnodeReject

SERVERS = ("127.0.0.1:2",)
SECTIONS = {
    "old": ZooKeeperConsumer("old", "one", SERVERS),
    "storm": StormConsumer("storm", "one", SERVERS, "/kafkastorm"),
}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Groups of both sections, one of which is also seen in Kafka; the ensemble of `storm` is away."""
    town = Town(tmp_path_factory.mktemp("zookeeper")).grow()
    town.now_ms += 1000
    away_ms = town.now_ms - 90_000
    logs = tuple(OffsetsLog(zookeeper_log_id(name), 0, town.now_ms, town.now_ms) for name in SECTIONS)
    one, *others = town.cycles.plan.clusters
    one = replace(one, logs=logs, zookeeper_logs=tuple(log.id for log in logs))
    commits = [
        Commit(group, "orders", 0, 1000, town.now_ms - 10, 1, log=zookeeper_log_id(section))
        for group, section in (("old-group", "old"), ("slow", "old"), ("spout", "storm"))
    ]
    town.cycles.cycle(town.now_ms, commits, clusters=(one, *others))
    away = Position(5, 5, 5, seen_until_ms=away_ms, away_from_ms=away_ms)
    sources = {
        "old": ZooKeeperSource("a", Position(5, 5, 5, seen_until_ms=town.now_ms), None, 20_000, 3, 123_456),
        "storm": ZooKeeperSource("b", away, "ZooKeeper at zk:1 cannot be reached"),
    }
    rejects = {"one": {ZnodeReject.BAD_OFFSET.value: 7}}
    town.publish(clusters={"one": cluster_state(zookeeper=sources), "two": cluster_state()}, rejects=rejects)
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(Path(town.data), zookeeper_consumers=SECTIONS)) as [client]:
        yield client


@pytest.mark.parametrize(
    ("group", "commits_to"),
    [("old-group", ["kafka_zk"]), ("spout", ["storm_zk"]), ("healthy", ["kafka"]), ("slow", ["kafka", "kafka_zk"])],
)
def test_a_group_says_where_it_commits(client: Client, group: str, commits_to: list[str]) -> None:
    explanation = client.json(group_path(group, "explain", "one"))["explanation"]
    assert explanation["commits_to"] == commits_to
    assert {partition["commits_to"] for partition in explanation["partitions"]} == set(commits_to)


def test_the_overview_says_how_the_ensembles_are(town: Town, client: Client) -> None:
    one, two = client.json("/v3/overview")["overview"]["clusters"]
    assert two["zookeeper"] == []
    assert one["zookeeper"] == [
        {
            "name": "old", "unknown_since": None, "error_message": None,
            "znodes": 20_000, "pending": 3, "requests": 123_456,
        },
        {
            "name": "storm", "unknown_since": town.now_ms - 90_000,
            "error_message": "ZooKeeper at zk:1 cannot be reached", "znodes": 0, "pending": 0, "requests": 0,
        },
    ]  # fmt: skip


def test_the_metrics_of_the_ensembles(client: Client) -> None:
    lines = client.ask("/metrics").text.splitlines()
    old, storm = ('{cluster="one",consumer="old"}', '{cluster="one",consumer="storm"}')
    for expected in (
        f"warren_zookeeper_up{old} 1",
        f"warren_zookeeper_up{storm} 0",
        f"warren_zookeeper_znodes{old} 20000",
        f"warren_zookeeper_znodes_pending{old} 3",
        f"warren_zookeeper_requests_total{old} 123456",
        f'warren_rejected_records_total{{cluster="one",reason="{ZnodeReject.BAD_OFFSET.value}"}} 7',
        f'warren_rejected_records_total{{cluster="one",reason="{ZnodeReject.BAD_NAME.value}"}} 0',
    ):
        assert expected in lines
    assert not [line for line in lines if ZnodeReject.BAD_NAME.value in line and 'cluster="two"' in line]

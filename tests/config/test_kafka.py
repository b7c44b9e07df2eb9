"""Consumer sections whose groups commit to ZooKeeper."""

from pathlib import Path

import pytest

from tests.config.written import CLUSTER, loaded, mistakes, warnings
from warren.config.kafka import StormConsumer, ZooKeeperConsumer
from warren.config.summary import summary
from warren.domain.matching import GroupFilter
from warren.sources.zookeeper.layouts import ConsumersLayout, StormLayout
from warren.sources.zookeeper.readers import read_targets

OLD = '[consumer.old]\nclass-name = "kafka_zk"\ncluster = "local"\nservers = ["zk:2181"]\n'
STORM = '[consumer.storm]\nclass-name = "storm_zk"\ncluster = "local"\nservers = ["zk:2181"]\n'


def test_the_keys_of_both_classes(tmp_path: Path) -> None:
    text = CLUSTER + OLD + 'zookeeper-path = "/kafka10/"\nusername = "u"\npassword = "p"\ngroup-denylist = "^test"\n'
    text += STORM + 'zookeeper-path = "/kafkastorm"\nzookeeper-timeout = 6\nzookeeper-rate = 200\ntls = "t"\n[tls.t]\n'
    config = loaded(tmp_path, text)
    old, storm = config.zookeeper_consumers.values()
    assert isinstance(old, ZooKeeperConsumer)
    assert isinstance(storm, StormConsumer)
    targets = read_targets(config)
    assert [target.layout for target in targets] == [ConsumersLayout("/kafka10/consumers"), StormLayout("/kafkastorm")]
    assert (targets[0].timeout_s, targets[0].max_rate, targets[0].tls) == (30, 1000, None)
    assert (targets[1].timeout_s, targets[1].max_rate, targets[1].tls) == (6, 200, config.tls["t"])
    assert targets[0].username == "u"
    assert targets[0].password is not None
    assert targets[0].password.reveal() == "p"
    assert targets[0].filter == GroupFilter(None, "^test")
    lines = list(summary(config))
    assert "  groups but not ^test, from /kafka10/ of ZooKeeper at zk:2181" in lines
    assert "  spouts of Storm, from /kafkastorm of ZooKeeper at zk:2181" in lines


def test_a_cluster_without_groups_in_kafka_is_no_mistake(tmp_path: Path) -> None:
    assert not warnings(tmp_path, CLUSTER + OLD)
    assert read_targets(loaded(tmp_path, CLUSTER + OLD))[0].layout.root == "/consumers"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OLD + 'zookeeper-path = "kafka10"', 'zookeeper-path = "kafka10": must be a path that begins with /'),
        (OLD + 'zookeeper-path = "/a//b"', 'zookeeper-path = "/a//b": must be a path that begins with /'),
        (OLD + 'zookeeper-path = "/a/../b"', 'zookeeper-path = "/a/../b": must be a path that begins with /'),
        (
            OLD + "zookeeper-rate = 0",
            "zookeeper-rate = 0: must be a whole number of requests per second from 10 to 100000",
        ),
        (OLD + 'username = "u"', "username needs password too"),
        (OLD + 'password = "p"', "password needs username too"),
        (OLD + 'tls = "t"', 'tls = "t": must be the name of a [tls.NAME] section'),
        (STORM, "zookeeper-path is missing: it is the root below which spouts keep their offsets"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, text: str, expected: str) -> None:
    (mistake,) = mistakes(tmp_path, CLUSTER + text)
    assert expected in mistake

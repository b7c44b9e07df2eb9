import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded
from warren.config.general import Logging
from warren.config.http import HttpServer
from warren.config.kafka import ClientProfile, Cluster, Consumer, ZooKeeperConsumer
from warren.config.load import Config, load, read
from warren.config.notifiers import ZooKeeper
from warren.config.pipeline import Evaluator, Pipeline, Storage

DATA = Path(__file__).parent / "data"


def test_the_file_of_a_first_try_with_one_broker_loads_unchanged() -> None:
    config = load(DATA / "one_broker")
    assert config == Config(
        clusters={
            "local": Cluster("local", ("localhost:9092",), client_profile="local", topic_refresh=120, offset_refresh=30)
        },
        consumers={
            "local": Consumer(
                "local",
                "local",
                ("localhost:9092",),
                client_profile="local",
                group_denylist="^(console-consumer-|python-kafka-consumer-|quick-).*$",
            )
        },
        storage=Storage(intervals=15, expire_group=604800, min_distance=1, name="default"),
        evaluator=Evaluator(),
        client_profiles={"local": ClientProfile(client_id="burrow-local", kafka_version="2.0.0", name="local")},
        pipeline=Pipeline(data_dir=DATA / "one_broker" / "warren-data"),
        zookeeper=ZooKeeper(("localhost:2181",)),
        http_servers={"default": HttpServer(":8000", name="default")},
    )
    assert config.profile_of(config.clusters["local"]).client_id == "burrow-local"
    assert read(DATA / "one_broker")[1].warnings == []


def test_the_file_of_a_three_broker_cluster_loads_unchanged() -> None:
    config = load(DATA / "three_brokers")
    servers = tuple(f"logis-dp-0{i}:9092" for i in (1, 2, 3))
    denylist = "^(console-consumer-|python-kafka-consumer-|quick-).*$"
    assert config.clusters == {
        "logis-dev": Cluster("logis-dev", servers, "logis-dev-client", topic_refresh=120, offset_refresh=30)
    }
    assert config.consumers == {
        "logis-dev": Consumer("logis-dev", "logis-dev", servers, "logis-dev-client", group_denylist=denylist)
    }
    assert config.storage.intervals == 15
    assert config.profile_of(config.consumers["logis-dev"]).client_id == "burrow-logis"
    findings = read(DATA / "three_brokers")[1]
    assert findings.warnings == []
    assert not [note for note in findings.notes if "logis-dev-zk" in note]
    assert config.zookeeper_consumers == {
        "logis-dev-zk": ZooKeeperConsumer(
            "logis-dev-zk",
            "logis-dev",
            tuple(f"logis-dp-0{i}:2181" for i in (1, 2, 3)),
            zookeeper_path="/kafka10",
            zookeeper_timeout=30,
            group_denylist=denylist,
        )
    }
    assert config.logging == Logging(
        Path("logs/burrow.log"), "info", 100, 30, 10, use_localtime=True, use_compression=True
    )


def test_missing_keys_have_burrows_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path, SMALLEST)
    cluster, consumer = config.clusters["local"], config.consumers["local"]
    assert (cluster.topic_refresh, cluster.offset_refresh, cluster.client_profile) == (60, 10, None)
    assert (consumer.offsets_topic, consumer.start_latest) == ("__consumer_offsets", False)
    assert (consumer.backfill_earliest, consumer.group_allowlist, consumer.group_denylist) == (
        False,
        None,
        None,
    )
    assert (config.storage.intervals, config.storage.expire_group, config.storage.min_distance) == (
        10,
        604800,
        0,
    )
    assert (config.evaluator.minimum_complete, config.evaluator.allowed_lag) == (0.0, 0)
    assert config.profile_of(cluster).client_id == "burrow-lagchecker"
    assert config.pipeline == Pipeline(
        trigger=10.0,
        master="local[*]",
        spark_conf={},
        data_dir=tmp_path / "warren-data",
        buckets=8,
        max_records=5_000_000,
        driver_memory="4g",
        history_days=30,
        history_step=10.0,
    )


def test_every_key_is_read(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        """
        [cluster."EU.west"]
        class-name = "kafka"
        servers = ["a:1", "10.0.0.1:2", "[fe80::1]:65535"]
        client-profile = "mine"
        topic-refresh = 1
        offset-refresh = 2
        groups-reaper-refresh = 3
        read-records = ["orders", "backfill-*"]
        [consumer.commits]
        class-name = "kafka"
        cluster = "EU.west"
        servers = ["a:1"]
        client-profile = "mine"
        offsets-topic = "offsets.of-mine"
        start-latest = true
        backfill-earliest = true
        group-allowlist = "^a"
        group-denylist = "b$"
        [client-profile.mine]
        client-id = "me"
        kafka-version = "3.9.0"
        dial-timeout = 4
        read-timeout = 5
        [storage.s]
        class-name = "inmemory"
        intervals = 6
        expire-group = 7
        min-distance = 8
        workers = 9
        queue-depth = 0
        group-whitelist = "x"
        group-blacklist = "y"
        [evaluator.e]
        class-name = "caching"
        minimum-complete = 1
        allowed-lag = 11
        expire-cache = 12
        [pipeline]
        trigger = 2
        master = "local[2]"
        data-dir = "/var/lib/warren"
        buckets = 13
        max-records = 14000
        driver-memory = "512m"
        history-days = 15
        history-step = 1.5
        [pipeline.spark-conf]
        spark.sql.shuffle.partitions = 4
        spark.ui.enabled = false
        "spark.app.name" = "w"
        """,
    )
    assert config == Config(
        clusters={
            "EU.west": Cluster(
                "EU.west", ("a:1", "10.0.0.1:2", "[fe80::1]:65535"), "mine", 1, 2, 3, ("orders", "backfill-*")
            )
        },
        consumers={
            "commits": Consumer("commits", "EU.west", ("a:1",), "mine", "offsets.of-mine", True, True, "^a", "b$")
        },
        client_profiles={"mine": ClientProfile("me", 4, 5, kafka_version="3.9.0", name="mine")},
        storage=Storage(6, 7, 8, "x", "y", 9, 0, name="s"),
        evaluator=Evaluator(1.0, 11, 12, name="e"),
        pipeline=Pipeline(
            trigger=2.0,
            master="local[2]",
            spark_conf={
                "spark.sql.shuffle.partitions": "4",
                "spark.ui.enabled": "false",
                "spark.app.name": "w",
            },
            data_dir=Path("/var/lib/warren"),
            buckets=13,
            max_records=14000,
            driver_memory="512m",
            history_days=15,
            history_step=1.5,
        ),
    )


def test_burrows_own_words_are_read_in_any_case_and_names_keep_theirs(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[Cluster.EU]\nClass-Name = "kafka"\nSERVERS = ["a:1"]')
    assert config.clusters == {"EU": Cluster("EU", ("a:1",))}


def test_a_file_written_on_windows_loads(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode()
    (tmp_path / "burrow.toml").write_bytes(content)
    assert list(load(tmp_path).clusters) == ["local"]


def test_a_relative_data_directory_is_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(tmp_path, SMALLEST + '[pipeline]\ndata-dir = "state"')
    monkeypatch.chdir(tmp_path.parent)
    assert load(Path(tmp_path.name)).pipeline.data_dir == tmp_path / "state"


def test_a_config_is_frozen_and_travels_to_other_processes(tmp_path: Path) -> None:
    config = loaded(tmp_path, SMALLEST + "[pipeline.spark-conf]\nspark.x = 1")
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(FrozenInstanceError):
        config.storage.intervals = 3  # type: ignore[misc]

import logging
import pickle
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.config import (
    ClientProfile,
    Cluster,
    Config,
    Consumer,
    Evaluator,
    HttpServer,
    Logging,
    Pipeline,
    Storage,
    ZooKeeper,
    ZooKeeperConsumer,
    load,
    read,
)
from warren.config.keys import keys_of
from warren.errors import ConfigError

DATA = Path(__file__).parent / "data"

CLUSTER = """
[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
"""
CONSUMER = """
[consumer.local]
class-name = "kafka"
cluster = "local"
servers = ["localhost:9092"]
"""
SMALLEST = CLUSTER + CONSUMER


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    return tmp_path


def loaded(config_dir: Path, text: str) -> Config:
    (config_dir / "burrow.toml").write_text(text, encoding="utf-8")
    return load(config_dir)


def mistakes(config_dir: Path, text: str) -> list[str]:
    """The mistakes of a file, without the directory in front."""
    with pytest.raises(ConfigError) as refusal:
        loaded(config_dir, text)
    return [mistake.removeprefix(f"{config_dir}/") for mistake in refusal.value.mistakes]


def warnings(config_dir: Path, text: str) -> list[str]:
    loaded(config_dir, text)
    return [warning.removeprefix(f"{config_dir}/") for warning in read(config_dir)[1].warnings]


def notes(config_dir: Path, text: str) -> list[str]:
    loaded(config_dir, text)
    return [note.removeprefix(f"{config_dir}/") for note in read(config_dir)[1].notes]


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


def test_the_file_of_a_three_broker_cluster_loads_unchanged_but_for_zookeeper_commits() -> None:
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
    zookeeper = [note for note in findings.notes if "commit to ZooKeeper" in note]
    assert len(zookeeper) == 1
    assert "burrow.toml:39: [consumer.logis-dev-zk] is accepted, and waits" in zookeeper[0]
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


def test_burrows_defaults_hold_for_all_that_is_not_said(config_dir: Path) -> None:
    config = loaded(config_dir, SMALLEST)
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
        data_dir=config_dir / "warren-data",
        buckets=8,
        max_records=5_000_000,
        driver_memory="4g",
    )


def test_every_key_is_read(config_dir: Path) -> None:
    config = loaded(
        config_dir,
        """
        [cluster."EU.west"]
        class-name = "kafka"
        servers = ["a:1", "10.0.0.1:2", "[fe80::1]:65535"]
        client-profile = "mine"
        topic-refresh = 1
        offset-refresh = 2
        groups-reaper-refresh = 3
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
        [pipeline.spark-conf]
        spark.sql.shuffle.partitions = 4
        spark.ui.enabled = false
        "spark.app.name" = "w"
        """,
    )
    assert config == Config(
        clusters={"EU.west": Cluster("EU.west", ("a:1", "10.0.0.1:2", "[fe80::1]:65535"), "mine", 1, 2, 3)},
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
        ),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["burrow.toml: has no [cluster.NAME] section: there must be at least one"]),
        (
            "[cluster.local]",
            [
                'burrow.toml:1: [cluster.local] class-name is missing: must be "kafka"',
                (
                    "burrow.toml:1: [cluster.local] servers is missing:"
                    ' must be a list of "host:port" strings, at least one'
                ),
            ],
        ),
        (
            CLUSTER + '[consumer.c]\nclass-name = "kafka"',
            [
                ("burrow.toml:5: [consumer.c] cluster is missing: must be the name of a [cluster.NAME] section"),
                ('burrow.toml:5: [consumer.c] servers is missing: must be a list of "host:port" strings, at least one'),
            ],
        ),
        (
            SMALLEST.replace('class-name = "kafka"\ncluster', 'class-name = "kafka2"\ncluster'),
            ['burrow.toml:7: [consumer.local] class-name = "kafka2": must be "kafka" or "kafka_zk"'],
        ),
        (
            SMALLEST.replace('cluster = "local"', 'cluster = "Local"'),
            [
                (
                    'burrow.toml:8: [consumer.local] cluster = "Local":'
                    " must be the name of a [cluster.NAME] section (local)"
                )
            ],
        ),
        (
            CLUSTER + 'client-profile = "x"',
            [
                (
                    'burrow.toml:5: [cluster.local] client-profile = "x":'
                    " must be the name of a [client-profile.NAME] section (there is none)"
                )
            ],
        ),
        (
            SMALLEST + '[storage.a]\nclass-name = "inmemory"\n[storage.b]\nclass-name = "inmemory"',
            ["burrow.toml:12: [storage.b] is one too many: there must be at most one [storage.NAME]"],
        ),
        (
            SMALLEST + '[evaluator.a]\nclass-name = "caching"\n[evaluator.b]\nclass-name = "caching"',
            ["burrow.toml:12: [evaluator.b] is one too many: there must be at most one [evaluator.NAME]"],
        ),
        (
            SMALLEST + 'group-whitelist = "a"\ngroup-allowlist = "a"',
            [
                (
                    "burrow.toml:11: [consumer.local] group-allowlist is another name of group-whitelist,"
                    " which is there too: keep one"
                )
            ],
        ),
        (
            SMALLEST + '[storage]\nclass-name = "inmemory"',
            [("burrow.toml:11: [storage] class-name must be in one section with a name, such as [storage.local]")],
        ),
        (
            SMALLEST + "[[evaluator.local]]",
            [("burrow.toml:10: [evaluator] local must be in one section with a name, such as [evaluator.local]")],
        ),
        ("storage = 1\n" + SMALLEST, ["burrow.toml:1: [storage] must be a section, not 1"]),
        (
            SMALLEST + '[storage.""]\nclass-name = "inmemory"',
            ['burrow.toml:10: [storage.""] must have a name of printable characters'],
        ),
        (
            SMALLEST + CLUSTER.replace("cluster", "Cluster"),
            ["burrow.toml:11: [Cluster.local] is there twice, also as [cluster.local]"],
        ),
    ],
)
def test_a_mistake_in_the_shape_of_the_file_is_told(config_dir: Path, text: str, expected: list[str]) -> None:
    assert mistakes(config_dir, text) == expected


def test_all_mistakes_are_told_at_once_with_their_lines(config_dir: Path) -> None:
    text = """
[client-profile.safe]
client-id = ""
tls = "certs"
[tls.certs]

[cluster.local]
class-name = "kafkaa"
servers = [
    "localhost:9092", # [consumer.commits]
    "localhost"
]
client-profile = "safe"
topic-refresh = "often"

[consumer.commits]
class-name = "kafka"
cluster = "lokal"
group-denylist = "("
client-profile = "save"

[storage.default]
intervals = 0

[pipeline]
trigger = 0
"""
    places = [re.match(r"burrow\.toml:(\d+): (\[\S+\] \S+)", mistake) for mistake in mistakes(config_dir, text)]
    assert {(int(place[1]), place[2]) for place in places if place} == {
        (3, "[client-profile.safe] client-id"),
        (4, "[client-profile.safe] tls"),
        (8, "[cluster.local] class-name"),
        (9, "[cluster.local] servers"),
        (14, "[cluster.local] topic-refresh"),
        (16, "[consumer.commits] servers"),
        (18, "[consumer.commits] cluster"),
        (19, "[consumer.commits] group-denylist"),
        (20, "[consumer.commits] client-profile"),
        (22, "[storage.default] class-name"),
        (23, "[storage.default] intervals"),
        (26, "[pipeline] trigger"),
    }
    assert len(places) == 12


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"[cluster.local\n", "must be TOML: "),
        (b"a = 1\na = 2\n", "must be TOML: "),
        (b"a = '\xff'", "must be UTF-8 text: "),
    ],
)
def test_a_file_that_cannot_be_read_is_a_mistake(config_dir: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (config_dir / "burrow.toml").write_bytes(content)
    with pytest.raises(ConfigError) as refusal:
        load(config_dir)
    (mistake,) = refusal.value.mistakes
    assert mistake.startswith(f"{config_dir}/burrow.toml: {expected}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            CLUSTER + "topic-refesh = 5\n" + CONSUMER,
            (
                "burrow.toml:5: [cluster.local] topic-refesh is no key of this section and is ignored;"
                " did you mean topic-refresh?"
            ),
        ),
        (
            SMALLEST + 'api_key = "hush"',
            "burrow.toml:10: [consumer.local] api_key is no key of this section and is ignored",
        ),
        (
            SMALLEST + "[pipelines]",
            "burrow.toml:10: [pipelines] is no section of ours and is ignored; did you mean pipeline?",
        ),
        (
            SMALLEST + "[cluster.local.eu]",
            (
                "burrow.toml:10: [cluster.local] eu is no key of this section and is ignored;"
                ' a name with a dot needs quotes: [cluster."local.eu"]'
            ),
        ),
        (
            CLUSTER,
            "burrow.toml:2: [cluster.local] has no [consumer.NAME] of class kafka, so no group will be seen",
        ),
        (
            SMALLEST + "backfill-earliest = true",
            (
                "burrow.toml:10: [consumer.local] backfill-earliest is without effect:"
                " start-latest is false, so all commits are read anyway"
            ),
        ),
    ],
)
def test_what_is_probably_not_meant_is_a_warning(config_dir: Path, text: str, expected: str) -> None:
    assert warnings(config_dir, text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[httpserver.x]\naddress = ":8000"',
            "[httpserver.x] is accepted, and waits: the HTTP API is not there yet",
        ),
        (
            '[notifier.x]\nclass-name = "null"\ntemplate-open = "/dev/null"',
            "[notifier.x] is accepted, and waits: nobody is notified yet",
        ),
        (
            '[consumer.zk]\nclass-name = "kafka_zk"\ncluster = "local"\nservers = ["zk:2181"]',
            "[consumer.zk] is accepted, and waits: groups that commit to ZooKeeper are not read yet",
        ),
        (
            '[storage.s]\nclass-name = "inmemory"\nworkers = 20',
            "[storage.s] workers is accepted, and without effect: Spark spreads the work",
        ),
        (
            '[client-profile.unused]\nsasl = "x"\n[sasl.x]',
            (
                '[client-profile.unused] sasl = "x": SASL lands in a later version;'
                " for now brokers are reached by PLAINTEXT only"
            ),
        ),
    ],
)
def test_what_lands_later_or_has_no_meaning_here_is_accepted_with_a_note(
    config_dir: Path, text: str, expected: str
) -> None:
    (note,) = notes(config_dir, SMALLEST + text)
    assert re.sub(r"^burrow\.toml:\d+: ", "", note) == expected


@pytest.mark.parametrize("key", ["tls", "sasl", "iam"])
def test_a_profile_in_use_that_asks_for_security_is_a_mistake(config_dir: Path, key: str) -> None:
    text = f'{SMALLEST}client-profile = "safe"\n[client-profile.safe]\n{key} = "x"\n[{key}.x]\n'
    (mistake,) = mistakes(config_dir, text)
    assert mistake.startswith(f'burrow.toml:12: [client-profile.safe] {key} = "x": ')
    assert "lands in a later version" in mistake


def test_burrows_own_words_are_read_in_any_case_and_names_keep_theirs(config_dir: Path) -> None:
    config = loaded(config_dir, '[Cluster.EU]\nClass-Name = "kafka"\nSERVERS = ["a:1"]')
    assert config.clusters == {"EU": Cluster("EU", ("a:1",))}


def test_a_file_written_on_windows_loads(config_dir: Path) -> None:
    content = b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode()
    (config_dir / "burrow.toml").write_bytes(content)
    assert list(load(config_dir).clusters) == ["local"]


def test_warnings_are_logged_and_never_show_the_value(config_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="warren.config"):
        loaded(config_dir, SMALLEST + 'passwort = "hush"\n[httpserver.x]')
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "passwort" in caplog.text
    assert "hush" not in caplog.text


def test_a_relative_data_directory_is_seen_from_the_file(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(config_dir, SMALLEST + '[pipeline]\ndata-dir = "state"')
    monkeypatch.chdir(config_dir.parent)
    assert load(Path(config_dir.name)).pipeline.data_dir == config_dir / "state"


def test_a_config_is_frozen_and_travels_to_other_processes(config_dir: Path) -> None:
    config = loaded(config_dir, SMALLEST + "[pipeline.spark-conf]\nspark.x = 1")
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(FrozenInstanceError):
        config.storage.intervals = 3  # type: ignore[misc]


TOML_VALUES = st.sampled_from(
    [
        '"x"',
        '""',
        "1",
        "-1",
        "0.5",
        "nan",
        "true",
        "[]",
        '["a:1"]',
        "[[1]]",
        "{}",
        "{a = 1}",
        "1979-05-27",
        '"""\n"""',
    ]
)
KEYS = st.sampled_from(
    sorted({name for section in (ClientProfile, Cluster, Consumer, Storage, Pipeline) for name in keys_of(section)})
)
HEADERS = st.sampled_from(
    ["cluster.local", "consumer.local", "storage.s", "evaluator.e", "client-profile.p", "pipeline", "cluster"]
)


@settings(deadline=None)  # a busy machine is no mistake
@given(file=st.dictionaries(HEADERS, st.dictionaries(KEYS, TOML_VALUES, max_size=6), max_size=5))
def test_no_file_is_more_than_mistakes(
    tmp_path_factory: pytest.TempPathFactory, file: dict[str, dict[str, str]]
) -> None:
    directory = tmp_path_factory.mktemp("config")
    tables = (
        f"[{header}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
        for header, table in file.items()
    )
    (directory / "burrow.toml").write_text("".join(tables))
    config, findings = read(directory)
    assert (config is None) == bool(findings.mistakes)
    assert all("\n" not in finding for finding in findings.mistakes + findings.warnings + findings.notes)


OUTWARD = """
[general]
pidfile = "burrow.pid"
stdout-logfile = "burrow.out"
access-control-allow-origin = "mysite.example.com"

[zookeeper]
servers = ["zk1:2181", "zk2:2181"]
timeout = 6
root-path = "/mypath/burrow"

[client-profile.myclient]
kafka-version = "0.10.2"
tls = "mytls"
sasl = "mysasl"

[tls.mytls]
certfile = "cert.pem"

[sasl.mysasl]
username = "me"
password = "hush"

[httpserver.mylistener]
address = ":8080"
timeout = 300
tls = "mytls"

[notifier.mynotify]
class-name = "http"
interval = 30
threshold = 3
group-whitelist = "^important-group-prefix.*$"
group-blacklist = "^not-this-group$"
extras = { key1 = "hush", key2 = 2, key3 = true }
send-close = true
template-open = "open.tmpl"
template-close = "close.tmpl"
url-open = "http://example.com/event"
method-close = "DELETE"

[notifier.mail]
class-name = "email"
template-open = "open.tmpl"
server = "mail.example.com"
port = 587
from = "warren@example.com"
to = "oncall@example.com"
auth-type = "plain"
"""


@pytest.fixture
def files(config_dir: Path) -> Path:
    for name in ("cert.pem", "open.tmpl", "close.tmpl"):
        (config_dir / name).write_text("")
    return config_dir


def test_sections_that_say_how_it_runs_and_whom_it_tells_are_read(files: Path) -> None:
    config = loaded(files, SMALLEST + OUTWARD)
    assert (config.general.stdout_logfile, config.general.access_control_allow_origin) == (
        Path("burrow.out"),
        "mysite.example.com",
    )
    assert config.zookeeper == ZooKeeper(("zk1:2181", "zk2:2181"), 6, "/mypath/burrow")
    assert config.http_servers == {"mylistener": HttpServer(":8080", 300, "mytls", "mylistener")}
    assert config.tls["mytls"].certfile == files / "cert.pem"
    notifier, mail = config.notifiers["mynotify"], config.notifiers["mail"]
    assert (notifier.template_open, notifier.template_close) == (files / "open.tmpl", files / "close.tmpl")
    assert (notifier.threshold, notifier.group_allowlist) == (3, "^important-group-prefix.*$")
    assert notifier.extras == {"key1": "hush", "key2": "2", "key3": "true"}
    assert (notifier.method_open, notifier.method_close, notifier.keepalive) == ("POST", "DELETE", 300)
    assert (mail.from_, mail.to, mail.port) == ("warren@example.com", "oncall@example.com", 587)
    assert read(files)[1].warnings == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('tls = "mytls"\nsasl', 'tls = "none"\nsasl', 'tls = "none": must be the name of a [tls.NAME] section (mytls)'),
        ('"cert.pem"', '"gone.pem"', 'certfile = "gone.pem": cannot be read: No such file or directory'),
        ('"close.tmpl"', '"."', 'template-close = ".": cannot be read: Is a directory'),
        ('template-close = "close.tmpl"\n', "", "template-close is missing: send-close needs it"),
        ('url-open = "http://example.com/event"\n', "", "url-open is missing: a notifier of class http needs it"),
        ('to = "oncall@example.com"\n', "", "to is missing: a notifier of class email needs it"),
        ('"http"', '"slak"', 'class-name = "slak": must be one of http, email, null'),
        ('address = ":8080"', 'address = ":http"', 'address = ":http": must be an address to listen on'),
        ('password = "hush"', 'password = ["hush"]', "password = (not shown): must be a string"),
        ('key1 = "hush"', 'key1 = ["hush"]', "extras = (not shown): must be a table of strings"),
    ],
)
def test_a_mistake_in_them_is_told_without_secrets(files: Path, before: str, after: str, expected: str) -> None:
    assert before in OUTWARD
    (mistake,) = mistakes(files, SMALLEST + OUTWARD.replace(before, after, 1))
    assert expected in mistake
    assert "hush" not in mistake

import json
from pathlib import Path
from typing import Any

import pytest

from warren.config.general import General
from warren.config.http import HttpServer
from warren.config.kafka import ClientProfile, Cluster, Consumer, ZooKeeperConsumer
from warren.config.load import Config
from warren.config.notifiers import Notifier, ZooKeeper
from warren.config.pipeline import Evaluator, Storage
from warren.config.secrets import Secret
from warren.config.security import Iam, Sasl, Tls
from warren.web.config import MODULES, main_config, module_detail, module_names

GOLDEN = Path(__file__).parent / "golden"
SERVERS = ("127.0.0.1:19092",)
# What Burrow was given when the golden answers were taken.
LAB = Config(
    clusters={"local": Cluster("local", SERVERS, "lab", topic_refresh=10, offset_refresh=2)},
    consumers={"local": Consumer("local", "local", SERVERS, "lab")},
    evaluator=Evaluator(expire_cache=1, name="default"),
    client_profiles={"lab": ClientProfile("burrow-lab", kafka_version="4.1.0", name="lab")},
    general=General(pidfile=Path("run/burrow-main.pid")),
    http_servers={"default": HttpServer("127.0.0.1:18000", name="default")},
)


def golden(name: str) -> dict[str, Any]:
    body = (GOLDEN / f"{name}.http").read_bytes().partition(b"\r\n\r\n")[2]
    found: dict[str, Any] = json.loads(body)
    return found


def in_order(answer: object) -> str:
    return json.dumps(answer)


def test_the_main_configuration_is_as_burrow_shows_it() -> None:
    expected = {name: golden("071_config")[name] for name in ("general", "logging", "zookeeper", "httpserver")}
    # Burrow shows a path as it was written, we as it was understood.
    expected["general"]["pidfile"] = expected["general"]["pidfile"].removeprefix("./")
    assert in_order(main_config(LAB)) == in_order(expected)


def test_without_a_section_the_http_server_on_a_free_port_is_listed() -> None:
    assert main_config(Config({}, {}))["httpserver"] == {"default": {"address": ":0", "tls": "", "timeout": 300}}


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("storage", "072_config_storage"),
        ("evaluator", "075_config_evaluator"),
        ("cluster", "078_config_cluster"),
        ("consumer", "081_config_consumer"),
        ("notifier", "084_config_notifier"),
    ],
)
def test_the_modules_have_the_names_that_burrow_gives(kind: str, file: str) -> None:
    assert module_names(LAB, kind) == golden(file)["modules"]


@pytest.mark.parametrize(
    ("kind", "name", "file"),
    [
        ("storage", "default", "073_config_storage_default"),
        ("evaluator", "default", "076_config_evaluator_default"),
        ("cluster", "local", "079_config_cluster_local"),
        ("cluster", "local", "004_cluster"),
        ("consumer", "local", "082_config_consumer_local"),
    ],
)
def test_a_module_is_as_burrow_shows_it(kind: str, name: str, file: str) -> None:
    assert in_order(module_detail(LAB, kind, name)) == in_order(golden(file)["module"])


@pytest.mark.parametrize("kind", MODULES)
def test_an_unknown_module_is_none(kind: str) -> None:
    assert module_detail(LAB, kind, "nosuch") is None
    assert module_detail(LAB, kind, "") is None


def test_missing_keys_show_burrows_defaults() -> None:
    config = Config({"b": Cluster("b", SERVERS), "a": Cluster("a", SERVERS)}, {})
    assert main_config(config)["httpserver"] == {"default": {"address": ":0", "tls": "", "timeout": 300}}
    assert [module_names(config, kind) for kind in MODULES] == [["default"], ["default"], ["a", "b"], [], []]
    assert module_detail(config, "evaluator", "default") == {"class-name": "caching", "expire-cache": 10}
    assert (module_detail(config, "cluster", "a") or {})["client-profile"] == {
        "name": "",
        "client-id": "burrow-lagchecker",
        "kafka-version": "2.8.0",
        "tls": None,
        "sasl": None,
    }


def test_existing_sections_are_shown() -> None:
    servers = {"b": HttpServer(":2", 30, "mine", name="b"), "a": HttpServer("", name="a")}
    answer = main_config(Config({}, {}, zookeeper=ZooKeeper(("zk:2181",)), http_servers=servers))
    assert answer["zookeeper"] == {"servers": ["zk:2181"], "timeout": 6, "root-path": "/burrow"}
    assert in_order(answer["httpserver"]) == in_order(
        {"a": {"address": "", "tls": "", "timeout": 300}, "b": {"address": ":2", "tls": "mine", "timeout": 30}}
    )


def test_keys_that_burrow_does_not_show_follow_if_they_are_set() -> None:
    profile = ClientProfile("me", 3, 4, tls="t", sasl="s", iam="i", name="p")
    config = Config(
        clusters={"c": Cluster("c", SERVERS, "p", groups_reaper_refresh=9)},
        consumers={"c": Consumer("c", "c", SERVERS, "p", "t", True, True, "^a", "b$")},
        storage=Storage(group_denylist="x", workers=3, name="s"),
        evaluator=Evaluator(0.5, 7, name="e"),
        client_profiles={"p": profile},
        tls={"t": Tls(Path("c.pem"), Path("k.pem"), Path("ca.pem"), noverify=True, name="t")},
        sasl={"s": Sasl("me", Secret("hush"), handshake_first=True, mechanism="PLAIN", name="s")},
        iam={"i": Iam("eu", "arn", name="i")},
    )
    shown_profile = {
        "name": "p",
        "client-id": "me",
        "kafka-version": "2.8.0",
        "tls": {"name": "t", "noverify": True, "certfile": "c.pem", "keyfile": "k.pem", "cafile": "ca.pem"},
        "sasl": {"name": "s", "handshake-first": True, "username": "me", "mechanism": "PLAIN"},
        "dial-timeout": 3,
        "read-timeout": 4,
        "iam": {"name": "i", "region": "eu", "role-arn": "arn"},
    }
    expected = {
        ("cluster", "c"): {
            "class-name": "kafka",
            "servers": list(SERVERS),
            "client-profile": shown_profile,
            "topic-refresh": 60,
            "offset-refresh": 10,
            "groups-reaper-refresh": 9,
        },
        ("consumer", "c"): {
            "class-name": "kafka",
            "cluster": "c",
            "servers": list(SERVERS),
            "group-allowlist": "^a",
            "zookeeper-path": "",
            "zookeeper-timeout": 0,
            "client-profile": shown_profile,
            "offsets-topic": "t",
            "start-latest": True,
            "backfill-earliest": True,
            "group-denylist": "b$",
        },
        ("storage", "s"): {
            "class-name": "inmemory",
            "intervals": 10,
            "min-distance": 0,
            "group-allowlist": "",
            "expire-group": 604800,
            "group-denylist": "x",
            "workers": 3,
        },
        ("evaluator", "e"): {"class-name": "caching", "expire-cache": 10, "minimum-complete": 0.5, "allowed-lag": 7},
    }
    for (kind, name), answer in expected.items():
        assert in_order(module_detail(config, kind, name)) == in_order(answer)


def test_a_consumer_of_zookeeper_is_one_of_the_consumers() -> None:
    zookeeper = ZooKeeperConsumer("zk", "local", ("zk:2181",), "/kafka", group_allowlist="^a", group_denylist="b$")
    config = Config({}, {"local": Consumer("local", "local", SERVERS)}, zookeeper_consumers={"zk": zookeeper})
    assert module_names(config, "consumer") == ["local", "zk"]
    assert in_order(module_detail(config, "consumer", "zk")) == in_order(
        {
            "class-name": "kafka_zk",
            "cluster": "local",
            "servers": ["zk:2181"],
            "group-allowlist": "^a",
            "zookeeper-path": "/kafka",
            "zookeeper-timeout": 30,
            "client-profile": {"name": "", "client-id": "", "kafka-version": "", "tls": None, "sasl": None},
            "offsets-topic": "",
            "start-latest": False,
            "group-denylist": "b$",
        }
    )


def test_each_class_of_notifier_has_its_own_keys() -> None:
    http = Notifier(
        "http",
        "http",
        Path("open.tmpl"),
        Path("close.tmpl"),
        send_interval=120,
        send_close=True,
        extras={"token": "hush", "app": "hush"},
        group_denylist="b$",
        url_open="https://hooks.example.com/services/hush",
        url_close="https://me:hush@example.com:8443/x?key=hush#hush",
        method_close="DELETE",
        username="me",
        password=Secret("hush"),
        headers={"X-Token": "hush"},
        noverify=True,
    )
    email = Notifier(
        "email",
        "email",
        Path("open.tmpl"),
        server="mail",
        port=587,
        from_="a@b.c",
        to="d@e.f",
        auth_type="plain",
        username="me",
        password=Secret("hush"),
        extra_ca=Path("ca.pem"),
    )
    config = Config({}, {}, notifiers={"http": http, "email": email, "null": Notifier("null", "null", Path("o"))})
    expected = {
        "http": {
            "class-name": "http",
            "group-allowlist": "",
            "interval": 60,
            "threshold": 2,
            "timeout": 5,
            "keepalive": 300,
            "url-open": "https://hooks.example.com",
            "url-close": "https://example.com:8443",
            "method-open": "POST",
            "method-close": "DELETE",
            "template-open": "open.tmpl",
            "template-close": "close.tmpl",
            "extra": {"app": "*****", "token": "*****"},
            "send-close": True,
            "extra-ca": "",
            "noverify": "true",
            "send-interval": 120,
            "group-denylist": "b$",
            "username": "me",
            "headers": {"X-Token": "*****"},
        },
        "email": {
            "class-name": "email",
            "group-allowlist": "",
            "interval": 60,
            "threshold": 2,
            "template-open": "open.tmpl",
            "template-close": "",
            "extra": {},
            "send-close": False,
            "server": "mail",
            "port": 587,
            "auth-type": "plain",
            "username": "me",
            "from": "a@b.c",
            "to": "d@e.f",
            "extra-ca": "ca.pem",
            "noverify": "",
        },
        "null": {
            "class-name": "null",
            "group-allowlist": "",
            "interval": 60,
            "threshold": 2,
            "template-open": "o",
            "template-close": "",
            "extra": {},
            "send-close": False,
        },
    }
    assert module_names(config, "notifier") == ["email", "http", "null"]
    for name, answer in expected.items():
        assert in_order(module_detail(config, "notifier", name)) == in_order(answer)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.slack.com/services/T0/B0/hush", "https://hooks.slack.com"),
        ("HTTP://example.com", "HTTP://example.com"),
        ("http://example.com:8080?hush", "http://example.com:8080"),
        ("http://[::1]:80/hush", "http://[::1]:80"),
        ("http://hush:hush@example.com/", "http://example.com"),
        ("http://me:hush/hush@example.com/", "*****"),
        ("http://me:hush@hush@example.com/", "*****"),
        ("http://hush:1/@example.com/", "*****"),
        ("http://hush?@example.com/", "*****"),
        ("http://{{.Extras.hush}}.example.com/", "*****"),
        ("hush.example.com/", "*****"),
        ("hush://example.com/", "*****"),
        ('{{ "hush" }}', "*****"),
        (None, ""),
    ],
)
def test_only_scheme_and_host_of_a_url_are_shown(url: str | None, shown: str) -> None:
    notifier = Notifier("n", "http", Path("o"), url_open=url, url_close=url)
    answer = module_detail(Config({}, {}, notifiers={"n": notifier}), "notifier", "n") or {}
    assert (answer["url-open"], answer["url-close"]) == (shown, shown)

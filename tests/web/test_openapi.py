"""The server against its own OpenAPI description: requests are made from it, and answers are checked by it."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection, not_a_server_error, positive_data_acceptance

from tests.kit.incidents import incident, notification
from tests.kit.servers import Client, Town, server_config, serving
from tests.web.test_burrow_golden import ALL, TEXTS
from warren.config.findings import Findings
from warren.config.kafka import ClientProfile, Consumer, ZooKeeperConsumer
from warren.config.load import Config
from warren.config.notifiers import Notifier, ZooKeeper
from warren.config.pipeline import Evaluator, Storage
from warren.config.secrets import Secret
from warren.config.security import Iam, Sasl, Tls
from warren.config.sinks import InfluxSink
from warren.incidents.silences import Silence
from warren.incidents.store.operator_actions import write_action
from warren.incidents.store.store import IncidentStore
from warren.reload import Reloads

REAL = {"asset": "icon.svg", "cluster": "one", "consumer": "billing/eu", "topic": "orders", "name": "one"} | {
    "incident": "known",
    "silence": "known",
}
KINDS = ("storage", "evaluator", "cluster", "consumer", "notifier")
CLUSTER, CONSUMER = "/v3/kafka/{cluster}", "/v3/kafka/{cluster}/consumer/{consumer}"
OPERATIONS = [
    "GET /",
    "GET /assets/{asset}",
    "GET /v3/overview",
    "GET /v3/groups",
    "GET /v3/history",
    "GET /v3/incidents",
    "GET /v3/incidents/{incident}",
    *(f"{method} /v3/incidents/{{incident}}/acknowledge" for method in ("POST", "DELETE")),
    *("GET /v3/silences", "POST /v3/silences", "DELETE /v3/silences/{silence}", "GET /v3/notifiers"),
    "GET /v3/sinks",
    "GET /v3/kafka/{cluster}/topic/{topic}/detail",
    *(f"GET {path}" for path in ("/burrow/admin", "/burrow/admin/ready", "/metrics", "/openapi.json", "/docs")),
    *("GET /v3/kafka", f"GET {CLUSTER}", f"GET {CLUSTER}/lag", f"GET {CLUSTER}/topic", f"GET {CLUSTER}/consumer"),
    f"GET {CLUSTER}/history",
    *(f"GET {CLUSTER}/topic/{{topic}}", f"GET {CLUSTER}/topic/{{topic}}/consumers"),
    *(f"GET {CONSUMER}{what}" for what in ("", "/status", "/lag", "/explain", "/history")),
    *(f"DELETE {CONSUMER}", f"DELETE {CONSUMER}/topic/{{topic}}"),
    *("GET /v3/config", "GET /v3/admin/loglevel", "POST /v3/admin/loglevel", "POST /v3/admin/reload"),
    *(f"GET /v3/config/{kind}" for kind in KINDS),
    *(f"GET /v3/config/{kind}/{{name}}" for kind in KINDS),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    town = Town(tmp_path_factory.mktemp("schema")).grow()
    town.publish()
    with closing(IncidentStore(town.data)) as book:
        book.write([incident("known", "stalled")], [notification(1, "known")])
    write_action(town.data, Silence("known", "*", "*", 1, 2**53, "ann", "a release"))
    with serving(server_config(town.data)) as [client], reloading(server_config(town.data)):
        yield client


@contextmanager
def reloading(config: Config) -> Iterator[None]:
    """Carry out the reloads that are requested, without a pipeline."""
    reloads, stop = Reloads(config, lambda: (config, Findings(Path())), lambda _: None), threading.Event()

    def run() -> None:
        while not stop.wait(0.01):
            reloads.run_if_asked()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def described(client: Client) -> Any:
    return schemathesis.openapi.from_url(f"{client.url}/openapi.json")


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


def test_every_operation_is_described(client: Client) -> None:
    paths = client.json("/openapi.json")["paths"]
    assert sorted(f"{method.upper()} {path}" for path in paths for method in paths[path]) == sorted(OPERATIONS)


def check_operation(described: Any, session: requests.Session, operation: str, mode: GenerationMode) -> None:
    method, path = operation.split()
    # A server that is not ready answers 503, and an empty parameter counts as none.
    excluded: list[Any] = [not_a_server_error] if path == "/burrow/admin/ready" else []
    excluded += [negative_data_rejection] if path.endswith("}/lag") else []
    # The schema cannot say that `until` must be in the future.
    excluded += [positive_data_acceptance] if operation == "POST /v3/silences" else []

    @settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=described[path][method].as_strategy(generation_mode=mode), is_real=st.booleans())
    def ask(case: "schemathesis.Case[Any]", is_real: bool) -> None:
        if is_real:
            case.path_parameters = {name: REAL[name] for name in case.path_parameters or {}}
        answer = case.call_and_validate(session=session, excluded_checks=excluded)
        assert answer.status_code < 500 or (path == "/burrow/admin/ready" and answer.status_code == 503)

    ask()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_answers_as_described(described: Any, session: requests.Session, operation: str) -> None:
    check_operation(described, session, operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize(
    "operation",
    # A reload has nothing that could be invalid.
    [f"GET {CLUSTER}/lag", *(each for each in OPERATIONS if each.startswith("POST") and not each.endswith("reload"))],
)
def test_invalid_requests_are_rejected(described: Any, session: requests.Session, operation: str) -> None:
    check_operation(described, session, operation, GenerationMode.NEGATIVE)


def test_the_description_refers_to_nothing_outside(client: Client) -> None:
    got = client.ask("/openapi.json")
    assert got.json["openapi"] == "3.1.0"
    assert not re.findall(r"https?://", got.text)
    assert [ref for ref in re.findall(r'"\$ref":"([^"]*)"', got.text) if not ref.startswith("#/components/")] == []


def closed(schema: Any) -> Any:
    """The same schema, in which objects must not have properties that are not described."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: closed(item) for name, item in schema.items()}
    return {"additionalProperties": False, **copy} if isinstance(copy.get("properties"), dict) else copy


class Description:
    """The OpenAPI description, to check answers with."""

    def __init__(self, document: Any) -> None:
        self._document = closed(document)

    def check(self, path: str, status: int, answer: Any, method: str = "get") -> None:
        responses = self._document["paths"][path][method]["responses"]
        response = responses.get(str(status)) or responses[f"{status // 100}XX"]
        schema = response["content"]["application/json"]["schema"] | {"components": self._document["components"]}
        jsonschema_rs.Draft202012Validator(schema).validate(answer)

    def path_of(self, url: str) -> str:
        """The described path that a requested one belongs to; literal segments win over names."""
        parts = url.split("/")
        paths = [path.split("/") for path in self._document["paths"] if path.count("/") == len(parts) - 1]
        fitting = [
            path
            for path in paths
            if all(name == part or name.startswith("{") for name, part in zip(path, parts, strict=True))
        ]
        return "/".join(min(fitting, key=lambda path: sum(name.startswith("{") for name in path)))


def everything_set(data: Path) -> Config:
    """A configuration with sections of every kind, and keys that Burrow does not show."""
    servers = ("127.0.0.1:1",)
    base = server_config(data)
    profile = ClientProfile(tls="t", sasl="s", iam="i", dial_timeout=3, kafka_version="2.0", name="p")
    notifiers = {
        "http": Notifier("http", "http", url_open="http://x/token", headers={"a": "b"}, noverify=True, send_once=True),
        "email": Notifier(
            "email", "email", server="x", port=25, from_="a", to="b", extra_ca=Path("ca"), password=Secret("p")
        ),
        "slack": Notifier("slack", "slack", noverify=True, channel="#c", storm_groups=3, group_denylist="x"),
    }
    return replace(
        base,
        clusters={name: replace(cluster, client_profile="p") for name, cluster in base.clusters.items()},
        consumers={"one": Consumer("one", "one", servers, "p", backfill_earliest=True, group_denylist="x")},
        zookeeper_consumers={"old": ZooKeeperConsumer("old", "one", servers, "/x")},
        client_profiles={"p": profile},
        tls={"t": Tls(Path("c"), name="t")},
        sasl={"s": Sasl("user", Secret("password"), mechanism="PLAIN", name="s")},
        iam={"i": Iam("eu", "arn", name="i")},
        storage=Storage(workers=3, queue_depth=4, group_denylist="x", name="one"),
        evaluator=Evaluator(0.5, 10, name="one"),
        zookeeper=ZooKeeper(("z:2181",)),
        notifiers=notifiers,
        sinks={"influx": InfluxSink("influx", urls=("http://x",))},
    )


QUERIES = {
    f"{CLUSTER}/lag": ("", "?partitions=all", "?limit=1"),
    f"{CONSUMER}/explain": ("", "?topic=orders&partition=2"),
    "/v3/groups": ("", "?topic=orders"),
}
JSON_PATHS = [
    operation.split()[1]
    for operation in OPERATIONS
    if operation.startswith("GET /v3/") and not operation.endswith("{name}")
]
SECTIONS = {
    "storage": ("one",),
    "evaluator": ("one",),
    "cluster": ("one",),
    "consumer": ("one", "old"),
    "notifier": ("http", "email", "slack"),
}


@pytest.fixture(scope="module", params=["nothing judged", "judged"])
def complete(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server with a configuration of every kind, before the first snapshot and after it."""
    town = Town(tmp_path_factory.mktemp("complete"))
    if request.param == "judged":
        town.grow().publish()
        with closing(IncidentStore(town.data)) as store:
            store.write([incident("known", "stalled")], [notification(1, "known")])
        write_action(town.data, Silence("known", "*", "*", 1, 2**53, "ann", "a release"))
    with serving(everything_set(town.data)) as [client]:
        yield client


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("group", ["stalled", "blind", "billing/eu", "nobody"])
def test_answers_have_exactly_the_described_fields(complete: Client, path: str, group: str) -> None:
    description = Description(complete.json("/openapi.json"))
    names = REAL | {"consumer": group}
    for query in QUERIES.get(path, ("",)):
        got = complete.ask(path.format(**{name: quote(value, safe="") for name, value in names.items()}) + query)
        description.check(path, got.status, got.json)


def test_an_undescribed_field_is_noticed(client: Client) -> None:
    description = Description(client.json("/openapi.json"))
    answer = client.json("/v3/overview")
    answer["overview"]["worst"][0]["new"] = 1
    with pytest.raises(jsonschema_rs.ValidationError, match="'new' was unexpected"):
        description.check("/v3/overview", 200, answer)


@pytest.mark.parametrize("kind", SECTIONS)
def test_sections_have_exactly_the_described_fields(complete: Client, kind: str) -> None:
    description = Description(complete.json("/openapi.json"))
    for name in SECTIONS[kind]:
        description.check(f"/v3/config/{kind}/{{name}}", 200, complete.json(f"/v3/config/{kind}/{name}"))


@pytest.mark.parametrize("name", [name for name in ALL if name not in {*TEXTS, "090_metrics"} and "post" not in name])
def test_burrows_answers_fit_the_description(client: Client, name: str) -> None:
    description, burrow = Description(client.json("/openapi.json")), ALL[name]
    path = description.path_of(burrow.json["request"]["url"])
    description.check(path, burrow.status, burrow.json)

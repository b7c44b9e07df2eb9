"""The server against its own description, asked by a machine that has nothing but that; and the page made of it."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection, not_a_server_error, positive_data_acceptance

from tests.kit.incidents import incident, letter
from tests.kit.servers import Client, Town, server_config, serving
from warren.incidents.silences import Silence, write_action
from warren.incidents.store.writer import IncidentStore, StoreUpdate

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
    *("GET /v3/config", "GET /v3/admin/loglevel", "POST /v3/admin/loglevel"),
    *(f"GET /v3/config/{kind}" for kind in KINDS),
    *(f"GET /v3/config/{kind}/{{name}}" for kind in KINDS),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    town = Town(tmp_path_factory.mktemp("schema")).grow()
    town.publish()
    with closing(IncidentStore(town.data)) as book:
        book.write(StoreUpdate([incident("known", "stalled")], [letter(1, "known")]))
    write_action(town.data, Silence("known", "*", "*", 1, 2**53, "ann", "a release"))
    with serving(server_config(town.data)) as [client]:
        yield client


@pytest.fixture(scope="module")
def described(client: Client) -> Any:
    return schemathesis.openapi.from_url(f"{client.url}/openapi.json")


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


def test_everything_is_described(client: Client) -> None:
    paths = client.json("/openapi.json")["paths"]
    assert sorted(f"{method.upper()} {path}" for path in paths for method in paths[path]) == sorted(OPERATIONS)


def keep_its_word(described: Any, session: requests.Session, operation: str, mode: GenerationMode) -> None:
    method, path = operation.split()
    # That it is not ready is no fault of the server's, and a blank parameter is as good as none.
    excluded: list[Any] = [not_a_server_error] if path == "/burrow/admin/ready" else []
    excluded += [negative_data_rejection] if path.endswith("}/lag") else []
    # No description can say which moments are still to come.
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
def test_every_operation_keeps_its_word(described: Any, session: requests.Session, operation: str) -> None:
    keep_its_word(described, session, operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize("operation", [f"GET {CLUSTER}/lag", *(one for one in OPERATIONS if one.startswith("POST"))])
def test_what_is_not_allowed_does_no_harm(described: Any, session: requests.Session, operation: str) -> None:
    keep_its_word(described, session, operation, GenerationMode.NEGATIVE)


def test_the_page_has_nothing_from_elsewhere(client: Client) -> None:
    got = client.ask("/docs")
    assert (got.status, got.type) == (200, "text/html; charset=utf-8")
    assert "<script" in got.text
    assert not re.findall(r"(?i)https?:|(?:src|href|url)\W+//|@import", got.text)
    assert [ref for ref in re.findall(r'(?:href|src)="([^"]*)"', got.text) if ref != "openapi.json"] == []
    assert got.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_the_description_points_nowhere_else(client: Client) -> None:
    got = client.ask("/openapi.json")
    assert got.json["openapi"] == "3.1.0"
    assert not re.findall(r"https?://", got.text)
    assert [ref for ref in re.findall(r'"\$ref":"([^"]*)"', got.text) if not ref.startswith("#/components/")] == []

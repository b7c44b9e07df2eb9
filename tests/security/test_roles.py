"""Requests made from the OpenAPI description, in three roles: none fails, and none does what its role may not."""

import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.incidents import incident
from tests.kit.servers import Client, Town, server_config, serving
from tests.web.test_openapi import OPERATIONS, REAL, reloading
from warren.config.auth import Auth, parse_entries
from warren.incidents.silences import Silence
from warren.incidents.store.operator_actions import write_action
from warren.incidents.store.store import IncidentStore

CREDENTIALS = {
    "anonymous": {},
    "read": {"Authorization": "Bearer spoon"},
    "admin": {"Authorization": "Basic " + base64.b64encode(b"root:pass").decode()},
}
KNOWN = REAL | {"consumer": "slow"}
PUBLIC = ("GET /burrow/admin", "GET /burrow/admin/ready")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    town = Town(tmp_path_factory.mktemp("roles")).grow()
    town.publish()
    with closing(IncidentStore(town.data)) as store:
        store.write([incident("known", "stalled")], [])
    write_action(town.data, Silence("known", "*", "*", 1, 2**53, "ann", "a release"))
    entries, _ = parse_entries(b"read token spoon\nadmin basic root:pass")
    config = server_config(town.data, auth=Auth(Path("auth"), entries))
    with serving(config) as [client], reloading(config):
        yield client


@pytest.fixture(scope="module")
def described(client: Client) -> Any:
    return schemathesis.openapi.from_url(f"{client.url}/openapi.json", headers=CREDENTIALS["read"])


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.mark.parametrize("role", CREDENTIALS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_role_does_what_it_may(described: Any, session: requests.Session, operation: str, role: str) -> None:
    method, path = operation.split()
    is_change = method != "GET"

    @settings(max_examples=4, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=described[path][method].as_strategy(), is_real=st.booleans())
    def ask(case: "schemathesis.Case[Any]", is_real: bool) -> None:
        if is_real:
            case.path_parameters = {name: KNOWN[name] for name in case.path_parameters or {}}
        if case.headers:
            case.headers.pop("Authorization", None)
        answer = case.call(session=session, headers=CREDENTIALS[role], allow_redirects=False)
        status, where = answer.status_code, (answer.status_code, answer.request.url)
        if operation in PUBLIC:
            assert status in (200, 503), where
        elif role == "anonymous":
            # A name may be `..`, and the path then another one.
            assert status in ((401,) if is_real else (308, 400, 401, 404, 405)), where
        elif role == "read" and is_change:
            assert status in ((403,) if is_real else (308, 400, 403, 404, 405)), where
        else:
            assert status not in (401, 403), where
            assert status < 500, where

    ask()

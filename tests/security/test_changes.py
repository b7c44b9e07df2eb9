"""Who may change something: web pages of other origins, clients elsewhere, and groups that do not exist."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.config.written import SMALLEST
from tests.kit.incidents import incident
from tests.kit.servers import Client, Got, Town, group_path, new_api, server_config, serving, within
from warren.cli import main
from warren.config import General, HttpServer
from warren.config.auth import Auth
from warren.config.exposure import check_exposure
from warren.config.findings import Findings
from warren.incidents.silences import Silence
from warren.incidents.store.operator_actions import read_silences, write_action
from warren.incidents.store.store import IncidentStore
from warren.snapshot import requests
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.web.asgi import App

EXTERNAL = "https://warren.example:8443/lag"
JSON = {"Content-Type": "application/json"}
SILENCE = json.dumps({"group": "x", "hours": 1, "by": "ann", "why": "a release"}).encode()
BURROWS = (
    ("DELETE", group_path("slow"), b""),
    ("DELETE", group_path("slow", "topic/orders"), b""),
    ("POST", "/v3/admin/loglevel", b'{"level":"info"}'),
)
OWN = (
    ("POST", "/v3/silences", SILENCE),
    ("DELETE", "/v3/silences/known", b""),
    ("POST", "/v3/incidents/known/acknowledge", b'{"by":"ann"}'),
    ("DELETE", "/v3/incidents/known/acknowledge", b""),
    ("POST", "/v3/admin/reload", b""),
)
Change = tuple[str, str, bytes]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("changes")).grow()
    town.publish()
    with closing(IncidentStore(town.data)) as store:
        store.write([incident("known", "stalled")], [])
    write_action(town.data, Silence("known", "*", "*", 1, 2**53, "ann", "a release"))
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    """A server on all interfaces, as Burrow's `:8000`."""
    servers = {"all": HttpServer(":0", name="all")}
    with serving(server_config(town.data, http_servers=servers, general=General(external_url=EXTERNAL))) as [client]:
        yield client


@pytest.fixture(autouse=True)
def _nothing_pending(town: Town) -> Iterator[None]:
    yield
    queue = RequestQueue(town.data)
    queue.remove([request.id for request in queue.pending()])


def port_of(client: Client) -> str:
    return client.url.rpartition(":")[2]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:PORT"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "cross-site"},
        # Names that were made to lead here.
        {"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"},
        {"Host": "evil.example:PORT", "Sec-Fetch-Site": "same-origin"},
        {"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT", "Sec-Fetch-Site": "same-origin"},
        {"Host": "localhost.evil.example:PORT", "Origin": "http://localhost.evil.example:PORT"},
        {"Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"},
        {"Host": "192.0.2.77:PORT", "Origin": "http://192.0.2.77:PORT"},
        {"Host": "", "Sec-Fetch-Site": "same-origin"},
        {"Host": "[::1", "Origin": "http://[::1"},
        {"Origin": "https://warren.example"},
    ],
    ids=str,
)
def test_pages_of_other_origins_change_nothing(client: Client, town: Town, headers: Mapping[str, str]) -> None:
    sent = {name: value.replace("PORT", port_of(client)) for name, value in headers.items()}
    for method, path, body in (*BURROWS, *OWN):
        for content_type in ("application/json", "text/plain"):
            got = client.ask(path, method, body or None, {**sent, "Content-Type": content_type})
            assert (got.status, got.json["error"]) == (403, True), (method, path)
            assert "external-url" in got.json["message"]
    assert RequestQueue(town.data).pending() == []
    assert [silence.id for silence in read_silences(town.data, 2)] == ["known"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:PORT"},
        {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Host": "localhost:PORT", "Origin": "http://localhost:PORT"},
        {"Host": "LocalHost:9000", "Origin": "http://localhost:9000"},
        {"Host": "[::1]:PORT", "Origin": "http://[::1]:PORT"},
        # A proxy that keeps the name, and one that does not.
        {"Host": "warren.example:8443", "Origin": "https://warren.example:8443"},
        {"Origin": "https://warren.example:8443", "Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
def test_warrens_own_page_may_change_something(client: Client, town: Town, headers: Mapping[str, str]) -> None:
    sent = {name: value.replace("PORT", port_of(client)) for name, value in headers.items()}
    got = client.ask(group_path("slow", "topic/orders"), "DELETE", None, sent)
    assert (got.status, got.json["message"]) == (200, "consumer group removed")
    assert len(RequestQueue(town.data).pending()) == 1


@pytest.mark.parametrize("host", ["evil.example", "telegraf-knows-me-as", "192.0.2.77:80", ""])
def test_reads_are_never_refused_by_host_or_origin(client: Client, host: str) -> None:
    for path in ("/v3/kafka", "/metrics", group_path("slow", "lag"), group_path("slow"), "/v3/silences"):
        got = client.ask(path, headers={"Host": host, "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"})
        assert got.status == 200


@pytest.mark.parametrize("change", BURROWS, ids=str)
def test_other_clients_may_change_what_burrow_lets_them(client: Client, change: Change) -> None:
    method, path, body = change
    # As curl sends it.
    got = client.ask(path, method, body or None, {"Host": "any", "Content-Type": "application/x-www-form-urlencoded"})
    assert got.status == 200


def asked(town: Town, change: Change, client: str, headers: Mapping[str, str], **config: Any) -> Got:
    """What a client at an address is answered, by the application itself."""
    method, path, body = change
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    every = {"content-type": "application/json", "host": "warren:8000", **headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in every.items()],
        "client": (client, 40_000),
        "server": ("192.0.2.1", 8000),
    }
    api = new_api(server_config(town.data, **config))
    api.follower.poll()
    asyncio.run(App(api)(scope, receive, send))
    return Got(sent[0]["status"], None, sent[1]["body"])  # type: ignore[arg-type]


ELSEWHERE = ("203.0.113.9", "2001:db8::1", "::ffff:203.0.113.9", "10.0.0.1", "fe80::1", "0.0.0.0")
LOCAL = ("127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1")
LOCAL_NAME = {"host": "localhost:8000"}


@pytest.mark.parametrize("change", OWN[:-1], ids=str)
@pytest.mark.parametrize("address", ELSEWHERE)
def test_without_auth_warrens_own_changes_are_for_this_machine(town: Town, change: Change, address: str) -> None:
    got = asked(town, change, address, LOCAL_NAME)
    assert (got.status, got.json["error"]) == (403, True)
    assert all(words in got.json["message"] for words in ("[auth]", "Warren's own machine", "open = true"))
    assert asked(town, BURROWS[0], address, {}).status == 200
    assert asked(town, ("GET", "/v3/silences", b""), address, {}).status == 200


def test_a_reload_is_for_this_machine_too(town: Town) -> None:
    assert asked(town, OWN[-1], ELSEWHERE[0], LOCAL_NAME).status == 403
    assert RequestQueue(town.data).pending() == []


@pytest.mark.parametrize("address", LOCAL)
def test_clients_on_this_machine_may(town: Town, address: str) -> None:
    assert asked(town, OWN[2], address, LOCAL_NAME).status == 200
    assert asked(town, OWN[2], address, {"host": "127.0.0.1"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": "203.0.113.9"},
        {"forwarded": "for=203.0.113.9"},
        {"x-real-ip": "203.0.113.9"},
        {"via": "1.1 proxy"},
        {"host": "warren.example"},
        {"origin": "https://warren.example:8443"},
    ],
    ids=str,
)
def test_clients_of_a_proxy_on_this_machine_are_elsewhere(town: Town, headers: Mapping[str, str]) -> None:
    general = General(external_url=EXTERNAL)
    assert asked(town, OWN[2], "127.0.0.1", {**LOCAL_NAME, **headers}, general=general).status == 403


def test_open_lets_everyone(town: Town) -> None:
    assert asked(town, OWN[2], ELSEWHERE[0], {}, auth=Auth(open_=True)).status == 200
    assert asked(town, ("GET", "/v3/silences", b""), ELSEWHERE[0], {}, auth=Auth(open_=True)).status == 200
    other = {"origin": "http://evil.example"}
    assert asked(town, OWN[2], ELSEWHERE[0], other, auth=Auth(open_=True)).status == 403


# Deletions


def test_deletions_of_unknown_groups_keep_nothing(client: Client, town: Town) -> None:
    known = client.ask(group_path("nobody"), "DELETE")
    for number in range(100):
        got = client.ask(group_path(f"{number}-" + "x" * 16_000), "DELETE")
        assert (got.status, got.json["message"]) == (known.status, known.json["message"])
        assert client.ask(group_path("slow", f"topic/{number}-{'x' * 16_000}"), "DELETE").status == 200
    assert client.ask(group_path("slow", "topic/audit"), "DELETE").status == 200, "it exists, but not in this group"
    assert RequestQueue(town.data).pending() == []


def test_the_later_of_two_deletions_counts(client: Client, town: Town) -> None:
    for _ in range(3):
        assert client.ask(group_path("blind"), "DELETE").status == 200
    [last] = RequestQueue(town.data).pending()
    assert client.ask(group_path("blind"), "DELETE").status == 200
    [later] = RequestQueue(town.data).pending()
    assert later.subject == last.subject
    assert later.asked_at_ms > last.asked_at_ms


def test_a_group_that_the_next_snapshot_has_is_not_deleted_before(client: Client, town: Town) -> None:
    assert client.ask(group_path("newcomer"), "DELETE").status == 200
    town.turn([(0, "newcomer", "orders", 0, 1)])
    town.publish()
    within(lambda: client.ask(group_path("newcomer", "lag")).status == 200, "it is there")
    assert client.ask(group_path("newcomer"), "DELETE").status == 200
    assert client.ask(group_path("newcomer", "lag")).status == 404


@pytest.mark.parametrize(("count", "length"), [(requests.MAX_PENDING, 10), (200, 32_000)])
def test_pending_deletions_are_bounded(client: Client, town: Town, count: int, length: int) -> None:
    folder = town.data / "requests"
    folder.mkdir(exist_ok=True)
    within(lambda: client.ask(group_path("slow", "lag")).status == 200, "no test before has deleted it")
    for number in range(count):
        waiting = PipelineRequest(str(number), RequestKind.DELETE, 1, "one", f"{number:0{length}d}")
        (folder / f"{number}.json").write_text(json.dumps({**requests_fields(waiting)}))
    got = client.ask(group_path("slow"), "DELETE")
    assert (got.status, got.headers["Retry-After"]) == (503, "10")
    assert got.json["message"] == "too many requests wait for the pipeline; try again after its next cycle"
    assert client.ask(group_path("slow", "lag")).status == 200
    assert client.ask("/v3/admin/loglevel", "POST", b'{"level":"info"}').status == 503
    RequestQueue(town.data).remove(["0"])
    if length == 10:
        assert client.ask(group_path("slow"), "DELETE").status == 200


def requests_fields(request: PipelineRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


def test_log_levels_do_not_pile_up(client: Client, town: Town) -> None:
    for level in ("debug", "warn", "info"):
        assert client.ask("/v3/admin/loglevel", "POST", json.dumps({"level": level}).encode()).status == 200
    assert [request.level for request in RequestQueue(town.data).pending()] == ["info"]


# What is said about it


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[httpserver.x]\naddress = "127.0.0.1:8000"', []),
        ('[httpserver.x]\naddress = "[::1]:8000"\n[httpserver.y]\naddress = "localhost:8001"', []),
        ('[httpserver.x]\naddress = ":8000"', ["[httpserver.x] without [auth] everyone who reaches it"]),
        (
            '[httpserver.x]\naddress = "127.0.0.1:1"\n[httpserver.y]\naddress = "10.0.0.1:1"',
            ["[httpserver.y] without [auth] everyone who reaches it (10.0.0.1, port 1) may delete groups"],
        ),
        ("", ["has no [httpserver.NAME] section", "without [auth] everyone who reaches it (all interfaces, a free"]),
        ("[auth]\nopen = true", ["has no [httpserver.NAME] section"]),
        ('[auth]\nopen = true\n[httpserver.x]\naddress = ":8000"', []),
        (
            '[general]\nexternal-url = "https://warren.example"\n[httpserver.x]\naddress = "127.0.0.1:8000"',
            ["[general] external-url seems to be a proxy on this machine"],
        ),
    ],
)
def test_check_and_the_log_say_what_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: list[str]
) -> None:
    (tmp_path / "burrow.toml").write_text(f"{SMALLEST}{text}")
    main(["check", "--config-dir", str(tmp_path)])
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == len(expected), warnings
    for warning, words in zip(warnings, expected, strict=True):
        assert words in warning
    assert main(["check", "--strict", "--config-dir", str(tmp_path)]) == 0, "as Burrow has it is no mistake"


def test_an_open_server_is_a_note(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    check_exposure(replace(server_config(tmp_path), auth=Auth(open_=True)), findings)
    assert findings.risks == []
    assert findings.notes == [f"{tmp_path}: [auth] open = true: everyone who reaches Warren may change everything"]


# Pages


@pytest.mark.parametrize("path", ["/", "/docs", "//docs", "/v3/kafka/"])
def test_no_page_can_be_framed(client: Client, path: str) -> None:
    got = client.ask(path)
    assert got.type == "text/html; charset=utf-8"
    assert "frame-ancestors 'none'" in got.headers["Content-Security-Policy"]
    assert "default-src 'none'" in got.headers["Content-Security-Policy"]


# Patterns


def test_patterns_of_silences_have_few_stars(client: Client) -> None:
    for field in ("cluster", "group"):
        body = {"group": "x", "hours": 1, "by": "ann", "why": "a release"}
        got = client.ask("/v3/silences", "POST", json.dumps(body | {field: "*a" * 21}).encode(), JSON)
        assert (got.status, f"{field} may have at most 20 *" in got.json["message"]) == (400, True)
        got = client.ask("/v3/silences", "POST", json.dumps(body | {field: "*a" * 20}).encode(), JSON)
        assert got.status == 200

"""Acknowledgements and silences over HTTP."""

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.kit.incidents import incident, notification
from tests.kit.servers import Client, Got, new_api, server_config, serving
from warren.config import Notifier, Route
from warren.config.auth import Auth, parse_entries
from warren.errors import RequestError
from warren.incidents.model import Event
from warren.incidents.silences import MAX_SILENCE_MS
from warren.incidents.store.database import open_database, transaction
from warren.incidents.store.operator_actions import current_actions, store_actions, unshared_actions
from warren.incidents.store.store import IncidentStore
from warren.web.go_json import dumps
from warren.web.http import Request
from warren.web.silences import create_silence

JSON = {"Content-Type": "application/json"}
HOUR_MS = 3_600_000
ODD = "группа \u202e<b>"
IN_HAND = "/v3/incidents/open/acknowledge"
GONE = object()


def basic(words: str) -> str:
    return "Basic " + b64encode(words.encode()).decode()


def now() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("wishes")
    entries = [incident("open", "pay-1"), incident("odd", ODD, "two"), incident("closed", "pay-2", closed_ms=2000)]
    letters = [
        notification(1000, "open", event=Event.OPEN, sent_ms=1500, channel="#pay"),
        notification(1000, "open", "mail", event=Event.OPEN, given_up_ms=1600, attempts=1, last_error="refused: 404"),
        notification(61_000, "open", attempts=3, last_error="the receiver does not answer"),
    ]
    with closing(IncidentStore(data)) as book:
        book.write(entries, letters)
    return data


ROUTES = (
    Route("without a team", group="pay-*"),
    Route("pay", group="pay-*", team="payments"),
    Route("rest", cluster="one", team="platform"),
)


@pytest.fixture(scope="module")
def guarded(data: Path) -> Iterator[Client]:
    entries, _ = parse_entries(b"read token spoon\nadmin basic root:secret\nadmin token fork")
    notifiers = {"hook": Notifier("hook", "http"), "mail": Notifier("mail", "email"), "idle": Notifier("idle", "null")}
    config = server_config(data, auth=Auth(Path("auth"), entries), routes=ROUTES, notifiers=notifiers)
    with serving(config) as [client]:
        yield client


@pytest.fixture
def admin(guarded: Client) -> Client:
    return guarded.known_as("Bearer fork")


def post(client: Client, path: str, body: object, **headers: str) -> Got:
    return client.ask(path, "POST", json.dumps(body).encode(), JSON | headers)


def wanted(**changes: Any) -> dict[str, Any]:
    """A good silence with something changed, or left out."""
    whole = {"hours": 4, "by": "ann", "why": "a release"} | changes
    return {name: value for name, value in whole.items() if value is not GONE}


def silence(client: Client, **changes: Any) -> Any:
    """A silence that is taken as it is wanted."""
    got = post(client, "/v3/silences", wanted(**changes))
    assert got.status == 200, got.text
    return got.json["silence"]


def end_all(client: Client) -> None:
    for one in client.json("/v3/silences")["silences"]:
        assert client.ask(f"/v3/silences/{one['id']}", "DELETE").status == 200


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def by_id(client: Client, what: str) -> dict[str, Any]:
    return {one["id"]: one[what] for one in client.json("/v3/incidents")["incidents"]}


def test_an_incident_is_acknowledged_again_and_the_acknowledgement_withdrawn(admin: Client, data: Path) -> None:
    before = now_ms()
    got = post(admin, IN_HAND, {"by": " ann ", "why": "I look"})
    assert (got.status, got.json["message"]) == (200, "incident acknowledged")
    held = got.json["incident"]["acknowledged"]
    assert before <= held["time"] <= now_ms()
    assert (held["by"], held["why"]) == ("ann", "I look")
    assert by_id(admin, "acknowledged") == {"open": held, "odd": None, "closed": None}
    assert post(admin, IN_HAND, {"by": "bob"}).json["incident"]["acknowledged"]["by"] == "bob"
    with closing(open_database(data)) as book:
        assert [(one.by, one.why) for one in current_actions(book, 0).acknowledgements.values()] == [("bob", "")]
        with transaction(book):
            store_actions(book, unshared_actions(book), is_shared=True)
        for _ in range(2):
            got = admin.ask(IN_HAND, "DELETE")
            assert (got.status, got.json["incident"]["acknowledged"]) == (200, None)
        [withdrawn] = unshared_actions(book)
    assert (withdrawn.by, withdrawn.withdrawn_ms is not None) == ("bob", True)  # type: ignore[union-attr]
    assert by_id(admin, "acknowledged")["open"] is None


@pytest.mark.parametrize(("name", "status"), [("nobody", 404), ("closed", 409), ("OPEN", 404), ("op%65n%2F", 404)])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_only_an_open_incident_can_be_acknowledged(admin: Client, name: str, status: int, method: str) -> None:
    got = admin.ask(f"/v3/incidents/{name}/acknowledge", method, b'{"by": "ann"}', JSON)
    assert (got.status, got.json["error"]) == (status, True)


def test_the_authenticated_user_is_the_default_author(guarded: Client) -> None:
    root = guarded.known_as(basic("root:secret"))
    assert post(root, IN_HAND, {}).json["incident"]["acknowledged"]["by"] == "root"
    assert post(root, IN_HAND, {"by": "ann"}).json["incident"]["acknowledged"]["by"] == "ann"
    got = post(root, "/v3/silences", {"hours": 1, "why": "a release"})
    assert got.json["silence"]["by"] == "root"
    end_all(root)
    root.ask(IN_HAND, "DELETE")


def test_a_silence_is_listed_until_it_is_ended(admin: Client) -> None:
    before = now_ms()
    made = silence(admin, cluster="o*", group="pay-?")
    assert before + 4 * HOUR_MS <= made["until"] <= now_ms() + 4 * HOUR_MS
    assert before <= made["from"] <= now_ms()
    held = {name: made[name] for name in ("cluster", "group", "by", "why")}
    assert held == {"cluster": "o*", "group": "pay-?", "by": "ann", "why": "a release"}
    assert admin.json("/v3/silences")["silences"] == [made]
    assert by_id(admin, "silenced") == {"open": True, "odd": False, "closed": True}
    assert admin.json("/v3/incidents/open")["incident"]["silenced"] is True
    got = admin.ask(f"/v3/silences/{made['id']}", "DELETE")
    assert (got.status, got.json["message"]) == (200, "silence ended")
    assert admin.json("/v3/silences")["silences"] == []
    assert set(by_id(admin, "silenced").values()) == {False}
    assert admin.ask(f"/v3/silences/{made['id']}", "DELETE").status == 404


def test_a_silence_matches_everything_by_default_or_any_name(admin: Client) -> None:
    until = now_ms() + MAX_SILENCE_MS - 60_000
    every = silence(admin, hours=GONE, until=until)
    assert (every["cluster"], every["group"], every["until"]) == ("*", "*", until)
    assert set(by_id(admin, "silenced").values()) == {True}
    end_all(admin)
    silence(admin, group=ODD)
    assert by_id(admin, "silenced") == {"open": False, "odd": True, "closed": False}
    end_all(admin)


def test_metrics_show_silences_and_leadership(admin: Client, data: Path) -> None:
    def lines() -> list[str]:
        text = admin.ask("/metrics").text.splitlines()
        return [line for line in text if line.startswith(("warren_silences_active ", "warren_notifier_active "))]

    assert lines() == ["warren_notifier_active 0", "warren_silences_active 0"]
    silence(admin)
    for state, is_active in (("alone", 1), ("standby", 0), ("active", 1), ("away", 0)):
        with closing(open_database(data)) as book:
            book.execute("INSERT OR REPLACE INTO duty VALUES (1, ?, 7, 'the lock is lost', ?, '{}', 0)", (state, now()))
        assert lines() == [f"warren_notifier_active {is_active}", "warren_silences_active 1"]
    end_all(admin)
    notifying = {"state": "away", "why": "the lock is lost"}
    assert admin.json("/v3/overview")["overview"]["notifying"] == notifying
    assert admin.json("/v3/notifiers")["duty"] == notifying | {"since": 7}


def test_readers_see_the_notifications_of_an_incident(guarded: Client) -> None:
    reader = guarded.known_as("Bearer spoon")
    found = reader.json("/v3/incidents/open")["incident"]
    trouble = "the receiver does not answer"
    sent, refused, waiting = found["messages"]
    assert sent == {
        "notifier": "hook", "event": "open", "due": 1000, "sent": 1500, "given_up": None, "attempts": 0, "trouble": "",
        "why": "it is due", "channel": "#pay",
    }  # fmt: skip
    assert refused == sent | {
        "notifier": "mail", "sent": None, "given_up": 1600, "attempts": 1, "trouble": "refused: 404", "channel": "",
    }  # fmt: skip
    assert waiting == sent | {
        "event": "reminder", "due": 61_000, "sent": None, "attempts": 3, "trouble": trouble, "channel": "",
    }  # fmt: skip
    assert found["message_count"] == 3
    assert reader.json("/v3/incidents/odd")["incident"]["messages"] == []
    none = {"waiting": 0, "sent": 0, "given_up": 0, "last_sent": None, "trouble": ""}
    assert reader.json("/v3/notifiers")["notifiers"] == [
        {
            "name": "hook",
            "class": "http",
            "waiting": 1,
            "sent": 1,
            "given_up": 0,
            "last_sent": 1500,
            "trouble": trouble,
        },
        {"name": "idle", "class": "null"} | none,
        {"name": "mail", "class": "email"} | none | {"given_up": 1},
    ]


def test_a_team_is_that_of_the_first_route_that_has_one(guarded: Client) -> None:
    assert by_id(guarded.known_as("Bearer spoon"), "team") == {"open": "payments", "closed": "payments", "odd": ""}


YEAR_FROM_NOW = now_ms() + MAX_SILENCE_MS


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"by": GONE}, "by"),
        ({"by": None}, "by"),
        ({"by": ""}, "by"),
        ({"by": "  "}, "by"),
        ({"by": "a" * 101}, "by"),
        ({"by": "a\nb"}, "by"),
        ({"by": "\x1b[31m"}, "by"),
        ({"by": "a\u2028b"}, "by"),
        ({"by": ["ann"]}, "by"),
        ({"why": GONE}, "why"),
        ({"why": "\t"}, "why"),
        ({"why": "w" * 501}, "why"),
        ({"why": "a\x7f"}, "why"),
        ({"why": 7}, "why"),
        ({"cluster": ""}, "cluster"),
        ({"cluster": None}, "cluster"),
        ({"group": "g" * 501}, "group"),
        ({"group": "a\0b"}, "group"),
        ({"group": {}}, "group"),
        ({"hours": 0}, "hours"),
        ({"hours": -1}, "hours"),
        ({"hours": 8761}, "hours"),
        ({"hours": 1.5}, "hours"),
        ({"hours": "4"}, "hours"),
        ({"hours": True}, "hours"),
        ({"hours": 1e308}, "hours"),
        ({"hours": None}, "hours"),
        ({"hours": GONE}, "until"),
        ({"until": YEAR_FROM_NOW - HOUR_MS}, "either"),
        ({"hours": GONE, "until": 1000}, "until"),
        ({"hours": GONE, "until": YEAR_FROM_NOW + HOUR_MS}, "until"),
        ({"hours": GONE, "until": 10**30}, "until"),
        ({"minutes": 5}, "minutes"),
    ],
)
def test_an_invalid_silence_is_refused_with_the_reason(admin: Client, change: Any, field: str) -> None:
    got = post(admin, "/v3/silences", wanted(**change))
    assert (got.status, got.json["error"]) == (400, True)
    assert field in got.json["message"]
    assert admin.json("/v3/silences")["silences"] == []


@pytest.mark.parametrize("field", ["by", "why"])
def test_a_missing_field_is_named(admin: Client, field: str) -> None:
    assert post(admin, "/v3/silences", wanted(**{field: GONE})).json["message"] == f"`{field}` is missing"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"x"', b"NaN", b"\xff", b'{"by": "\\ud800"}', b"[" * 9999]
)
@pytest.mark.parametrize("path", ["/v3/silences", IN_HAND])
def test_a_body_that_is_not_a_json_object_is_refused(admin: Client, path: str, body: bytes) -> None:
    got = admin.ask(path, "POST", body, JSON)
    assert (got.status, got.json["error"]) == (400, True)
    assert "body" in got.json["message"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "text/plain; application/json"}, 415),
        ({"Content-Type": "application/jsonp"}, 415),
        ({"Content-Type": "Application/JSON ; charset=utf-8"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/v3/silences", IN_HAND])
def test_content_types_that_a_foreign_form_can_send_are_refused(
    admin: Client, path: str, kind: Any, status: int
) -> None:
    body = wanted() if path == "/v3/silences" else {"by": "ann"}
    assert admin.ask(path, "POST", json.dumps(body).encode(), kind).status == status
    end_all(admin)
    admin.ask(IN_HAND, "DELETE")


def test_a_large_body_is_refused(admin: Client) -> None:
    assert post(admin, "/v3/silences", wanted(why="w" * 100_000)).status == 413


def test_only_admins_acknowledge_and_silence(guarded: Client, admin: Client) -> None:
    made = silence(admin)
    reader = guarded.known_as("Bearer spoon")
    for method, path, body in (
        ("POST", IN_HAND, {"by": "eve"}),
        ("DELETE", IN_HAND, None),
        ("POST", "/v3/silences", wanted()),
        ("DELETE", f"/v3/silences/{made['id']}", None),
    ):
        sent = json.dumps(body).encode() if body else None
        assert [one.ask(path, method, sent, JSON).status for one in (guarded, reader)] == [401, 403]
    assert reader.json("/v3/silences")["silences"] == [made]
    assert reader.json("/v3/incidents/open")["incident"]["acknowledged"] is None
    for path in ("/v3/silences", "/v3/incidents/open", "/v3/notifiers"):
        assert guarded.ask(path).status == 401
    end_all(admin)


def test_silences_work_without_a_store(tmp_path: Path) -> None:
    with serving(server_config(tmp_path)) as [client]:
        assert client.ask("/v3/incidents/any").status == 404
        assert client.json("/v3/silences")["silences"] == []
        assert client.json("/v3/notifiers")["duty"] == {"state": "unknown", "since": None, "why": ""}
        made = silence(client, hours=1.0)
        assert client.json("/v3/silences")["silences"] == [made]


def test_a_locked_store_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.incidents.store.database.WAIT_S", 0.01)
    api, headers = new_api(server_config(tmp_path)), {"content-type": "application/json"}
    with (
        closing(open_database(tmp_path)) as book,
        transaction(book),
        pytest.raises(RequestError, match="locked") as refusal,
    ):
        create_silence(api, Request("/v3/silences", {}, {}, headers, dumps(wanted())))
    assert refusal.value.status == 503

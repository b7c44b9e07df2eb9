"""Routing of paths, with names of every kind in them, and the answers to unknown paths."""

import json
import platform
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.servers import ODD_NAMES, Client, Town, group_path, server_config, serving
from warren.config import General
from warren.errors import RequestError
from warren.snapshot.requests import RequestKind, RequestQueue
from warren.snapshot.time_lag import TimeLag
from warren.web.http import Router, normalize_path, split_path

ORIGIN = "https://dashboards.example"
PATHS = (
    ["/burrow/admin", "/burrow/admin/ready", "/metrics", "/openapi.json", "/docs", "/v3/kafka", "/v3/kafka/one"]
    + [f"/v3/kafka/one/{what}" for what in ("lag", "consumer", "topic", "topic/orders", "topic/orders/consumers")]
    + [group_path("stalled", what) for what in ("", "status", "lag", "explain")]
    + ["/v3/config", "/v3/config/cluster", "/v3/config/cluster/one", "/v3/config/storage", "/v3/admin/loglevel"]
)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("http")).grow()
    town.publish()
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    config = server_config(town.data, general=General(access_control_allow_origin=ORIGIN))
    with serving(config) as [client]:
        yield client


@pytest.mark.parametrize("path", PATHS)
def test_every_path_answers(client: Client, path: str) -> None:
    got = client.ask(path)
    assert got.status == 200
    assert got.headers["Date"]
    if got.type == "application/json" and path != "/openapi.json":
        assert got.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert got.json["error"] is False
        assert got.json["request"] == {"url": path, "host": platform.node()}


@pytest.mark.parametrize(
    "path", ["/x", "/v3", "/v4/kafka", "/burrow", "/v3/kafka/one/nothing", "/v3/config/nothing", "/v3/kafka/one/lag/x"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path(client: Client, method: str, path: str) -> None:
    got = client.ask(path, method)
    assert (got.status, got.type) == (404, "text/plain; charset=utf-8")
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.body == b'{"error":true,"message":"invalid request type","result":{}}\n'


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/v3/kafka", "GET, OPTIONS"),
        ("DELETE", "/v3/kafka/one", "GET, OPTIONS"),
        ("PUT", "/v3/kafka/one/consumer/g", "DELETE, GET, OPTIONS"),
        ("GET", "/v3/kafka/one/consumer/g/topic/t", "DELETE, OPTIONS"),
        ("DELETE", "/v3/admin/loglevel", "GET, OPTIONS, POST"),
        ("POST", "/metrics", "GET, OPTIONS"),
        ("PATCH", "/burrow/admin", "GET, OPTIONS"),
    ],
)
def test_an_unsupported_method(client: Client, method: str, path: str, allow: str) -> None:
    got = client.ask(path, method)
    assert (got.status, got.headers["Allow"], got.json["error"]) == (405, allow, True)
    # The answer to HEAD has no body, and nothing may follow it.
    head = client.ask(path, "HEAD")
    assert (head.status, head.headers["Allow"], head.body) == (405, allow, b"")
    options = client.ask(path, "OPTIONS")
    assert (options.status, options.headers["Allow"], options.body) == (200, allow, b"")
    assert (options.headers["Content-Type"], options.headers["Content-Length"]) == (None, "0")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/v3/kafka/", "/v3/kafka"),
        ("//v3/kafka", "/v3/kafka"),
        ("/v3//kafka///one", "/v3/kafka/one"),
        ("/v3/x/../kafka", "/v3/kafka"),
        ("/../../v3/./kafka/one/", "/v3/kafka/one"),
        ("/v3/kafka/one/lag/?status=ERR&limit=2", "/v3/kafka/one/lag?status=ERR&limit=2"),
        ("/v3/kafka/one/consumer/billing%2Feu/lag/", "/v3/kafka/one/consumer/billing%2Feu/lag"),
        ("//metrics", "/metrics"),
    ],
)
def test_an_unnormalized_path_is_redirected(client: Client, path: str, location: str) -> None:
    got = client.ask(path)
    assert (got.status, got.headers["Location"]) == (301, location)
    assert (got.type, got.headers["X-Content-Type-Options"]) == ("text/html; charset=utf-8", None)
    assert got.text == f'<a href="{location.replace("&", "&amp;")}">Moved Permanently</a>.\n\n'
    assert client.ask(location).status == 200


def test_a_redirect_never_leads_to_another_host(client: Client) -> None:
    assert client.ask("//elsewhere.example/v3/kafka").status == 404
    assert client.ask("//v3/kafka/one/consumer/x", "DELETE").status == 308


@pytest.mark.parametrize(("method", "status"), [("GET", 301), ("DELETE", 308), ("POST", 404), ("HEAD", 404)])
def test_only_methods_of_the_path_are_redirected(client: Client, method: str, status: int) -> None:
    got = client.ask("/v3/kafka/one/consumer/x/", method)
    assert got.status == status
    if status == 308:
        assert (got.headers["Content-Type"], got.headers["Content-Length"], got.body) == (None, "0", b"")


def test_a_redirect_escapes_what_it_repeats(client: Client) -> None:
    got = client.ask("/v3/kafka/?x=\"'<script>")
    assert b"/v3/kafka?x=&quot;&#x27;&lt;script&gt;" in got.body


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v3/kafka/one/consumer//lag", "consumer status returned"),
        ("/v3/kafka//consumer/healthy/status", "consumer status returned"),
        ("/v3/kafka//consumer/healthy", "cluster or consumer not found"),
        ("/v3/kafka//topic", "cluster not found"),
        ("/v3/kafka/one/topic//consumers", "consumers of topic returned"),
    ],
)
def test_a_name_may_be_empty(client: Client, path: str, message: str) -> None:
    got = client.ask(path)
    assert (got.status, got.json["message"]) == (200 if "topic//" in path else 404, message)
    if "status" in message:
        assert (got.json["error"], got.json["status"]["status"]) == (False, "NOTFOUND")
        assert "" in (got.json["status"]["group"], got.json["status"]["cluster"])


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_group_of_any_name(client: Client, name: str) -> None:
    for what in ("lag", "status"):
        got = client.ask(group_path(name, what))
        status = got.json["status"]
        assert (got.status, status["group"], status["cluster"], status["status"]) == (200, name, "one", "OK")
        assert got.json["request"]["url"] == f"/v3/kafka/one/consumer/{name}/{what}"
        assert not set(b"<>&") & set(got.body)
    assert client.json(group_path(name))["topics"]["orders"][2]["current-lag"] == 0
    assert client.json(group_path(name, "explain"))["explanation"]["group"] == name
    assert name in client.json("/v3/kafka/one/consumer")["consumers"]
    assert name in client.json("/v3/kafka/one/topic/orders/consumers")["consumers"]


def test_html_is_escaped_as_go_does_and_a_plus_is_a_plus(client: Client) -> None:
    assert rb'"group":"\u003cb\u003e\u0026' in client.ask(group_path("<b>&'", "lag")).body
    assert client.ask("/v3/kafka/one/consumer/a+b%20c/lag").status == 200
    assert client.ask("/v3/kafka/one/consumer/a%20b%20c/lag").status == 404


def test_clusters_have_groups_of_their_own(client: Client) -> None:
    assert client.json("/v3/kafka")["clusters"] == ["one", "two"]
    lags = [client.json(group_path("healthy", "lag", cluster))["status"] for cluster in ("one", "two")]
    assert [(lag["cluster"], lag["totallag"], lag["partition_count"]) for lag in lags] == [("one", 0, 3), ("two", 5, 3)]
    assert client.ask(group_path("stalled", "lag", "two")).status == 404
    assert "stalled" not in client.json("/v3/kafka/two/topic/orders/consumers")["consumers"]


def test_topics_and_their_heads(client: Client) -> None:
    assert client.json("/v3/kafka/one/topic")["topics"] == ["audit", "orders", "unread"]
    assert client.json("/v3/kafka/one/topic/orders")["offsets"] == [1090, 1090, 1090]
    # Burrow has no word for a head that is not known.
    assert client.json("/v3/kafka/one/topic/audit")["offsets"] == [1090, 0]
    assert client.json("/v3/kafka/one/topic/audit/consumers")["consumers"] == ["blind", "fresh"]
    assert client.json("/v3/kafka/one/topic/unread/consumers")["consumers"] == []
    assert client.json("/v3/kafka/one/topic/nobody/consumers")["consumers"] == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v3/kafka/none", "cluster module not found"),
        ("/v3/kafka/none/consumer", "cluster not found"),
        ("/v3/kafka/none/topic", "cluster not found"),
        ("/v3/kafka/none/lag", "cluster not found"),
        ("/v3/kafka/none/topic/orders", "cluster or topic not found"),
        ("/v3/kafka/one/topic/nobody", "cluster or topic not found"),
        ("/v3/kafka/none/topic/orders/consumers", "cluster not found"),
        ("/v3/kafka/none/consumer/healthy", "cluster or consumer not found"),
        ("/v3/kafka/one/consumer/nobody", "cluster or consumer not found"),
        ("/v3/kafka/one/consumer/nobody/explain", "cluster or consumer not found"),
        ("/v3/config/storage/none", "storage module not found"),
        ("/v3/config/cluster/none", "cluster module not found"),
    ],
)
def test_unknown_names(client: Client, path: str, message: str) -> None:
    got = client.ask(path)
    about = {"url": path, "host": platform.node()}
    assert (got.status, got.json) == (404, {"error": True, "message": message, "request": about})


@pytest.mark.parametrize("what", ["status", "lag"])
@pytest.mark.parametrize(("cluster", "group"), [("one", "nobody"), ("none", "healthy"), ("one", "<nobody>")])
def test_the_status_of_an_unknown_group(client: Client, cluster: str, group: str, what: str) -> None:
    got = client.ask(group_path(group, what, cluster))
    nothing: dict[str, Any] = {"partitions": [], "partition_count": 0, "maxlag": None, "totallag": 0}
    assert (got.status, got.json["error"]) == (404, False)
    status = got.json["status"]
    time_lag = {name: status.pop(name) for name in TimeLag.__struct_fields__ if name != "rates"}
    unknown = {"seconds_behind_method": "unknown", "is_falling_behind": False, "lost_messages": 0}
    assert time_lag == dict.fromkeys(time_lag) | unknown
    assert status == {"cluster": cluster, "group": group, "status": "NOTFOUND", "complete": 1, **nothing}


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("trace", "debug"),
        ("debug", "debug"),
        ("warning", "warn"),
        ("warn", "warn"),
        ("error", "error"),
        ("fatal", "fatal"),
        ("INFO", "info"),
    ],
)
def test_the_log_level(client: Client, town: Town, level: str, shown: str) -> None:
    got = client.ask("/v3/admin/loglevel", "POST", json.dumps({"level": level}).encode())
    assert (got.status, got.json["message"]) == (200, "set log level")
    assert client.json("/v3/admin/loglevel")["level"] == shown
    asked = RequestQueue(town.data).pending()[-1]
    assert (asked.kind, asked.level) == (RequestKind.LOGLEVEL, level.lower())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"not json", 400),
        (b'{"level":', 400),
        (b"[]", 400),
        (b'"debug"', 400),
        (b'{"level": 5}', 400),
        (b"\xff\xfe", 400),
        (b"[" * 50_000, 400),
        (b"{}", 404),
        (b'{"level": null}', 404),
        (b'{"level": "loud"}', 404),
        (b'{"level": "panic"}', 404),
        (b'{"level": ""}', 404),
        (b" \n", 400),
        (b"nul", 400),
        (b"true", 400),
        (b'\xef\xbb\xbf{"level": "debug"}', 400),
        (b'{"level": "debug",}', 400),
        (b'{"level": "debug"', 400),
        (b'{"level": NaN}', 400),
        (b'{"level": "de\x01bug"}', 400),
        (b"null", 404),
        (b"nullx", 404),
        (b'{"level": "\xff"}', 404),
        (b'{"level": "\\ud800"}', 404),
    ],
)
def test_an_invalid_log_level(client: Client, town: Town, body: bytes, status: int) -> None:
    before = client.json("/v3/admin/loglevel")["level"]
    held = RequestQueue(town.data).pending()
    got = client.ask("/v3/admin/loglevel", "POST", body)
    message = "could not decode message body" if status == 400 else "unknown log level"
    assert (got.status, got.json["error"], got.json["message"]) == (status, True, message)
    assert client.json("/v3/admin/loglevel")["level"] == before
    assert RequestQueue(town.data).pending() == held


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"level": "debug"} and more', "debug"),
        (b'{"level": "error"}{', "error"),
        (b' \n{"Level": "DEBUG"}', "debug"),
        (b'{"level": "info", "LEVEL": "warn"}', "warn"),
        (b'{"level": "error", "level": null}', "error"),
        (b'{"a": {"level": "x"}, "b": 1e999, "level": "info"}', "info"),
    ],
)
def test_a_log_level_is_read_as_go_reads_json(client: Client, body: bytes, shown: str) -> None:
    got = client.ask("/v3/admin/loglevel", "POST", body)
    assert (got.status, client.json("/v3/admin/loglevel")["level"]) == (200, shown)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1))
def test_names_come_out_of_a_path_as_they_went_in(names: list[str]) -> None:
    assert split_path("/" + "/".join(quote(name, safe="") for name in names)) == names


@given(st.text("/.%2a", max_size=12))
def test_a_normalized_path_stays_as_it_is(path: str) -> None:
    tidy = normalize_path("/" + path)
    assert normalize_path(tidy) == tidy
    assert not {"", ".", ".."} & set(tidy.split("/")[1:]) or tidy == "/"


@pytest.mark.parametrize("path", ["/%", "/a%2", "/%G0", "/%%", "/%ff", "/a/%c3"])
def test_invalid_escapes(path: str) -> None:
    with pytest.raises(RequestError):
        split_path(path)


def test_a_literal_segment_wins_over_a_name() -> None:
    router = Router(["/a/{x}", "/a/b", "/a/{x}/c"])
    assert list(map(router.find, (["a", "b"], ["a", "z"], ["a", "/"]))) == [
        ("/a/b", {}),
        ("/a/{x}", {"x": "z"}),
        ("/a/{x}", {"x": "/"}),
    ]
    assert router.find(["a"]) is router.find(["a", ""]) is router.find(["a", "z", "c", "d"]) is None

"""The server over the life of a data directory: empty, fresh, stale, broken; authentication; listeners."""

import base64
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.certificates import Authority
from tests.kit.plans import cluster_state
from tests.kit.servers import ODD_NAMES, Client, Town, group_path, server_config, serving, within
from warren.config import HttpServer
from warren.config.auth import Auth, parse_entries
from warren.config.secrets import Secret
from warren.config.security import Tls
from warren.errors import WarrenError
from warren.snapshot.manifest import Position, Source
from warren.snapshot.requests import RequestKind, RequestQueue
from warren.web.server import WebServer


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A data directory that tests add to, each by groups of its own."""
    town = Town(tmp_path_factory.mktemp("town")).grow()
    town.publish()
    return town


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that no test changes."""
    town = Town(tmp_path_factory.mktemp("grown")).grow()
    town.publish()
    return town.data


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        yield client


def test_before_the_first_snapshot_and_after_it(tmp_path: Path) -> None:
    with serving(server_config(tmp_path)) as [client]:
        assert client.ask("/burrow/admin").body == b"GOOD"
        assert client.json("/v3/kafka")["clusters"] == ["one", "two"]
        for what in ("consumer", "topic"):
            assert client.json(f"/v3/kafka/one/{what}")[f"{what}s"] == []
        assert client.json("/v3/kafka/one/topic/orders/consumers")["consumers"] == []
        assert client.json("/v3/kafka/one/lag")["groups"] == []
        assert client.json("/v3/kafka/one/lag")["cluster"]["status"] == "NOTFOUND"
        assert client.ask(group_path("healthy", "lag")).status == 404
        assert client.ask("/v3/kafka/one/topic/orders").status == 404
        assert b"warren_ready 0\n" in client.ask("/metrics").body
        assert client.ask(group_path("healthy"), "DELETE").status == 200
        not_yet = client.ask("/burrow/admin/ready")
        assert (not_yet.status, not_yet.type) == (503, "text/plain; charset=utf-8")
        assert not_yet.text.startswith("STARTING\nno snapshot yet")

        town = Town(tmp_path).grow()
        positions = {0: Position(266, 1500, 1500), 1: Position(7, 7, 7)}
        behind = cluster_state(is_catching_up=True, sources={"__consumer_offsets": Source("x", positions)})
        town.publish(clusters={"one": behind, "two": cluster_state()})
        within(lambda: "catching up" in client.ask("/burrow/admin/ready").text, "it tells that it catches up")
        got = client.ask("/burrow/admin/ready")
        expected = "STARTING\ncatching up with the offsets topics: 1,234 offsets left\n"
        assert (got.status, got.text) == (503, expected)

        town.turn([])
        town.publish()
        within(lambda: client.ask("/burrow/admin/ready").status == 200, "it is ready")
        assert client.ask("/burrow/admin/ready").body == b"READY"
        assert b"warren_ready 1\n" in client.ask("/metrics").body
        assert client.ask(group_path("stalled", "lag")).status == 200
        assert client.ask(group_path("healthy", "lag")).status == 200, (
            "it was deleted when nobody knew it, as in Burrow"
        )

        town.now_ms -= 3_570_000
        town.turn([])
        town.publish()
        within(lambda: client.ask("/burrow/admin/ready").status == 503, "it tells that it is stale")
        assert client.ask("/burrow/admin/ready").text.startswith("STARTING\nthe newest snapshot is 59 min old")
        assert client.ask(group_path("stalled", "lag")).status == 200, "old verdicts are better than none"


def test_a_new_snapshot_is_served_at_once(town: Town, client: Client) -> None:
    paths = (group_path("stalled", "lag"), group_path("stalled"), group_path("stalled", "explain"))
    first = [client.ask(path).body for path in paths]
    assert first == [client.ask(path).body for path in paths], "from the cache too"
    for turn in range(3):
        town.turn([(0, "stalled", "orders", 0, 900 + turn), (0, f"new-{turn}", "orders", 0, 1)])
        published = time.monotonic()
        town.publish()
        new = group_path(f"new-{turn}", "lag")
        within(lambda new=new: client.ask(new).status == 200, "the new snapshot")  # type: ignore[misc]
        assert time.monotonic() - published < 2
        for path, before in zip(paths, first, strict=True):
            assert client.ask(path).body != before
        end = client.json(paths[0])["status"]["partitions"][0]["end"]
        assert end["offset"] == 900 + turn


def test_a_broken_manifest_is_logged_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    town = Town(tmp_path).grow()
    town.publish()
    with serving(server_config(town.data)) as [client]:
        before = client.ask(group_path("stalled", "lag")).body
        town.turn([])
        broken = town.data / "manifests" / f"{town.cycles.plan.sequence:020d}.json"
        broken.write_bytes(b'{"format": 1, "sequence"')
        within(lambda: "cannot be read, using" in caplog.text, "the broken manifest is said")
        time.sleep(1)
        assert client.ask(group_path("stalled", "lag")).body == before
        # Once for the one that is good and once for the one that is not, however often it is looked at.
        assert caplog.text.count("indexed in") == 2
        town.turn([(0, "new", "orders", 0, 1)])
        town.publish()
        within(lambda: client.ask(group_path("new", "lag")).status == 200, "it goes on with the next good one")


def test_a_snapshot_without_its_files_keeps_the_one_before(town: Town, client: Client) -> None:
    before = client.ask(group_path("stalled", "lag")).body
    town.turn([(0, "short-lived", "orders", 0, 1)])
    paths = [town.cycles.store.path(bucket.partitions) for bucket in town.cycles.plan.state]
    held = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    town.publish()
    time.sleep(1)
    assert client.ask(group_path("stalled", "lag")).body == before
    assert client.ask("/metrics").status == 200
    for path, data in zip(paths, held, strict=True):
        path.write_bytes(data)
    within(lambda: client.ask(group_path("short-lived", "lag")).status == 200, "the files are back")


@pytest.mark.parametrize("name", ["stalled", ODD_NAMES[1], ODD_NAMES[5]])
def test_a_deleted_group_is_gone_at_once(town: Town, client: Client, name: str) -> None:
    shown = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert f'"{shown}"' in client.ask("/metrics").text
    others = set(client.json("/v3/kafka/one/consumer")["consumers"]) - {name}
    readers = set(client.json("/v3/kafka/one/topic/orders/consumers")["consumers"]) - {name}
    for what in ("", "lag", "status", "explain"):
        assert client.ask(group_path(name, what)).status == 200

    got = client.ask(group_path(name), "DELETE")
    assert (got.status, got.json["error"], got.json["message"]) == (200, False, "consumer group removed")

    for what in ("", "lag", "status", "explain"):
        assert client.ask(group_path(name, what)).status == 404
    assert set(client.json("/v3/kafka/one/consumer")["consumers"]) == others
    assert set(client.json("/v3/kafka/one/topic/orders/consumers")["consumers"]) == readers
    assert {group["group"] for group in client.json("/v3/kafka/one/lag")["groups"]} == others
    assert f'"{shown}"' not in client.ask("/metrics").text
    [request] = RequestQueue(town.data).pending()
    assert (request.kind, request.cluster, request.group, request.topic) == (RequestKind.DELETE, "one", name, None)
    assert abs(request.asked_at_ms - time.time() * 1000) < 60_000

    # The pipeline takes it up; then the group commits again.
    town.turn([(0, name, "orders", 0, 1)])
    town.publish(requests=(request,))
    within(lambda: client.ask(group_path(name, "lag")).status == 200, "it is back")
    RequestQueue(town.data).remove([request.id])


def test_deleting_one_topic_or_an_unknown_group(town: Town, client: Client) -> None:
    assert client.ask(group_path("fresh", "topic/audit"), "DELETE").status == 200
    [request] = RequestQueue(town.data).pending()
    assert (request.cluster, request.group, request.topic) == ("one", "fresh", "audit")
    assert client.ask(group_path("fresh", "lag")).status == 200
    for path in (group_path("healthy", "", "none"), group_path("healthy", "topic/orders", "none")):
        assert client.ask(path, "DELETE").json["message"] == "consumer group removed"
    assert RequestQueue(town.data).pending() == [request]
    assert client.ask(group_path("nobody"), "DELETE").status == 200
    assert client.ask(group_path("fresh", "topic/unread"), "DELETE").status == 200
    assert RequestQueue(town.data).pending() == [request]
    RequestQueue(town.data).remove([request.id])


READER, ADMIN = "Bearer spoon", "Basic " + base64.b64encode("root:pass wörd".encode()).decode()


@pytest.fixture(scope="module")
def guarded(grown: Path) -> Iterator[Client]:
    entries, mistakes = parse_entries("read token spoon\nadmin basic root:pass wörd".encode())
    assert not mistakes
    with serving(server_config(grown, auth=Auth(Path("auth"), entries))) as [client]:
        yield client


def test_only_authenticated_clients_are_answered(guarded: Client) -> None:
    paths = ["/v3/kafka", "/metrics", "/v3/config", "/docs", "/openapi.json", group_path("stalled", "lag")]
    wrong = ["Bearer fork", "Bearer", "Basic !", "spoon", "\xff"]
    for path in paths:
        for who in (ADMIN, READER, ADMIN):
            assert guarded.known_as(who).ask(path).status == 200
        # Not all of them on each path: failed logins are limited.
        strangers = [guarded, *map(guarded.known_as, [wrong.pop()] if wrong else [])]
        for stranger in strangers:
            got = stranger.ask(path)
            assert (got.status, got.json["error"], "stalled" in got.text.replace(path, "")) == (401, True, False)
            assert got.headers.get_all("WWW-Authenticate") == ['Basic realm="warren"', 'Bearer realm="warren"']
    for path in ("/burrow/admin", "/burrow/admin/ready"):
        assert guarded.ask(path).status == 200


def test_only_admins_change_anything(guarded: Client, grown: Path) -> None:
    changes = (("DELETE", group_path("slow")), ("DELETE", group_path("slow", "topic/orders")))
    for method, path in (*changes, ("POST", "/v3/admin/loglevel"), ("POST", "/v3/admin/reload")):
        statuses = [client.ask(path, method, b'{"level":"info"}').status for client in (guarded, reader(guarded))]
        assert statuses == [401, 403]
    assert RequestQueue(grown).pending() == []
    assert reader(guarded).ask("/v3/admin/loglevel").status == 200
    got = guarded.known_as(ADMIN).ask("/v3/admin/loglevel", "POST", b'{"level":"info"}')
    assert got.status == 200


def reader(client: Client) -> Client:
    return client.known_as(READER)


def test_several_listeners_one_of_them_with_tls(grown: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.0.0.1", key_password="hush").write(tmp_path, "own")
    tls = Tls(certificate, key, keypassword=Secret("hush"), name="own")
    servers = {
        "plain": HttpServer("127.0.0.1:0", name="plain"),
        "safe": HttpServer("127.0.0.1:0", tls="own", name="safe"),
        "other": HttpServer("[::1]:0" if socket.has_ipv6 and has_ipv6() else "127.0.0.1:0", name="other"),
    }
    config = server_config(grown, http_servers=servers, tls={"own": tls})
    with serving(config) as clients:
        plain, safe, other = clients
        trusting = Client(safe.url, ssl.create_default_context(cafile=authority.file))
        answers = [client.json("/v3/kafka/one/consumer") for client in (plain, trusting, other)]
        assert answers[0] == answers[1] == answers[2]
        assert [client.url.partition(":")[0] for client in clients] == ["http", "https", "http"]
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(safe.url, ssl.create_default_context()).ask("/v3/kafka")
        assert b"HTTP/" not in safe.tell(b"GET /burrow/admin HTTP/1.1\r\n\r\n")
        old = ssl.create_default_context(cafile=authority.file)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert Client(safe.url, old).ask("/burrow/admin").body == b"GOOD"


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def test_an_invalid_certificate_is_named(grown: Path, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    tls = {"own": Tls(tmp_path / "no.pem", tmp_path / "no.pem", name="own")}
    servers = {"safe": HttpServer("127.0.0.1:0", tls="own", name="safe")}
    server = WebServer(server_config(grown, http_servers=servers, tls=tls))
    with contextlib.closing(server), pytest.raises(WarrenError, match=r"\[tls.own\] certificate or key cannot be used"):
        server.urls()

"""Groups with slashes in their names, requested by the raw path as telegraf does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.servers import Client, Town, group_path, server_config, serving
from warren.config.auth import Auth, parse_entries
from warren.snapshot.requests import RequestQueue

GROUPS = ("a", "a/lag", "a/b", "a/b/lag", "team/lag", "team/topic/t", "deep/er/and/deeper", "odd name/é+%", "x//y")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("slashes"))
    town.turn([(0, name, "orders", 0, 1000) for name in GROUPS])
    town.publish()
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        yield client


@pytest.mark.parametrize(
    ("path", "group", "message"),
    [
        ("a/b/status", "a/b", "consumer status returned"),
        ("a/b/explain", "a/b", "consumer verdict explained"),
        ("deep/er/and/deeper/lag", "deep/er/and/deeper", "consumer status returned"),
        ("odd%20name/%C3%A9+%25/lag", "odd name/é+%", "consumer status returned"),
        ("odd%20name%2F%C3%A9+%25/lag", "odd name/é+%", "consumer status returned"),
        ("x//y/lag", "x//y", "consumer status returned"),
        ("team/lag/lag", "team/lag", "consumer status returned"),
        ("a/b/lag/lag", "a/b/lag", "consumer status returned"),
        # A route with a known group is that route.
        ("a/lag", "a", "consumer status returned"),
    ],
)
def test_a_raw_path_finds_the_group(client: Client, path: str, group: str, message: str) -> None:
    got = client.json(f"/v3/kafka/one/consumer/{path}")
    assert got["message"] == message
    assert got.get("status", got.get("explanation"))["group"] == group


@pytest.mark.parametrize("name", ["a/b", "a/b/lag", "team/lag", "team/topic/t", "deep/er/and/deeper", "x//y"])
def test_the_longest_known_name_wins(client: Client, name: str) -> None:
    got = client.json(f"/v3/kafka/one/consumer/{name}")
    assert got["message"] == "consumer detail returned"
    assert got["topics"] == client.json(group_path(name))["topics"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("a/nothing", 404),
        ("nobody/lag", 404),
        ("nobody/x/lag", 404),
        ("a/b/x/y/z", 404),
        ("a/topic/t", 405),
        ("a/b/topic/t", 405),
        ("/".join(["a"] * 4000), 404),
    ],
)
def test_what_is_no_group_stays_unknown(client: Client, path: str, status: int) -> None:
    assert client.ask(f"/v3/kafka/one/consumer/{path}").status == status
    assert client.ask(f"/v3/kafka/two/consumer/{path}").status == (405 if path == "a/topic/t" else 404)


def test_a_group_is_deleted_by_its_raw_path_but_never_instead_of_a_topic(tmp_path: Path) -> None:
    town = Town(tmp_path)
    town.turn([(0, name, "orders", 0, 1000) for name in GROUPS])
    town.publish()
    with serving(server_config(town.data)) as [client]:
        # It has no topic t, and is not the group team/topic/t.
        assert client.ask("/v3/kafka/one/consumer/team/topic/t", "DELETE").status == 200
        assert client.ask("/v3/kafka/one/consumer/a/topic/orders", "DELETE").status == 200
        assert client.ask("/v3/kafka/one/consumer/a/b", "DELETE").status == 200
        asked = [(request.group, request.topic) for request in RequestQueue(town.data).pending()]
        assert asked == [("a", "orders"), ("a/b", None)]


def test_clients_without_a_role_do_not_learn_which_groups_exist(town: Town) -> None:
    entries, _ = parse_entries(b"read token reader\n")
    paths = [f"/v3/kafka/one/consumer/{name}" for name in ("a/b", "b/a", "a/b/lag", "b/a/lag")]
    topics = [f"/v3/kafka/one/consumer/{name}" for name in ("team/topic/t", "team/topic/u")]
    with serving(server_config(town.data, auth=Auth(Path("auth"), entries))) as [client]:
        assert [client.ask(path).status for path in paths] == [401] * 4
        for method in ("GET", "OPTIONS", "HEAD"):
            one, other = (client.ask(path, method) for path in topics)
            assert (one.status, one.headers["Allow"]) == (other.status, other.headers["Allow"])
        reader = client.known_as("Bearer reader")
        assert [reader.ask(path).status for path in paths] == [200, 404, 200, 404]

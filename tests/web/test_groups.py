"""All groups of a cluster in one answer: filters, pages, and each group equal to its own answer."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.kit.plans import cluster_state
from tests.kit.servers import ODD_NAMES, Client, Town, group_path, server_config, serving

PLAIN = ["blind", "fresh", "healthy", "slow", "stalled"]
MANY = [f"many-{number:03d}" for number in range(401)]
LITERAL = ["a.b", "a+b", "a|b", "(a)", "[ab]", "^a$", "a\\b", "a b", "aab", "ab", "{2}", "a\nb"]
"""Names that mean something else to a regular expression."""
ROLL_UP = {"groups_by_status": {"OK": 23, "ERR": 1}, "partitions_by_status": {"OK": 24, "STALL": 1}, "totallag": 2072}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    town = Town(tmp_path_factory.mktemp("bulk")).grow()
    commits = [(0, name, "orders", 0, 1090) for name in LITERAL] + [(1, name, "orders", 0, 1) for name in MANY]
    town.turn(commits)
    two = cluster_state(**ROLL_UP, worst_status="ERR", unknown_since_ms=town.now_ms, error="no broker answers")
    town.publish(clusters={"one": cluster_state(), "two": two})
    with serving(server_config(town.data)) as [client]:
        yield client


def asked(client: Client, cluster: str = "one", **query: str) -> Any:
    return client.json(f"/v3/kafka/{cluster}/lag" + (f"?{urlencode(query)}" if query else ""))


def names_of(answer: Any) -> list[str]:
    return [group["group"] for group in answer["groups"]]


def test_without_parameters_all_groups_are_listed_by_name(client: Client) -> None:
    got = client.ask("/v3/kafka/one/lag")
    assert (got.type, got.headers["Transfer-Encoding"]) == ("application/json", "chunked")
    answer = got.json
    assert list(answer) == ["error", "message", "cluster", "total", "next", "groups", "request"]
    assert names_of(answer) == sorted([*PLAIN, *ODD_NAMES, *LITERAL])
    assert (answer["total"], answer["next"], answer["error"]) == (len(answer["groups"]), None, False)


@pytest.mark.parametrize("cluster", ["one", "two"])
@pytest.mark.parametrize(("partitions", "what"), [("all", "lag"), ("bad", "status"), (None, "status")])
def test_each_group_equals_its_own_answer(client: Client, cluster: str, partitions: str | None, what: str) -> None:
    query = {"partitions": partitions} if partitions else {}
    groups = asked(client, cluster, group="*" if cluster == "one" else "bulk*", **query)["groups"]
    assert len(groups) > 20
    for group in groups:
        assert group == client.json(group_path(group["group"], what, cluster))["status"]


@pytest.mark.parametrize(
    ("status", "names"),
    [
        ("ERR", ["stalled"]),
        ("err", ["stalled"]),
        ("WARN", ["slow"]),
        ("WARN,ERR", ["slow", "stalled"]),
        ("ERR,,WARN,ERR", ["slow", "stalled"]),
        ("OK", sorted({*PLAIN, *ODD_NAMES, *LITERAL} - {"slow", "stalled"})),
    ],
)
def test_by_status(client: Client, status: str, names: list[str]) -> None:
    answer = asked(client, status=status)
    assert (names_of(answer), answer["total"]) == (names, len(names))


COMMON = ("*", "s*", "*l*", "*ed", "s????", "?", "??", "a?b", "slow", "nobody", "S*", "*\n*", "groß*", "gro??", "*e*l*")
SPECIAL = ("a.*", "*+*", "*|*", "(*", "*)", "^*", "*$", "*\\*", "a *", ".*", "\\d", "(?i)SLOW")


@pytest.mark.parametrize("pattern", [*COMMON, *LITERAL, *SPECIAL])
def test_by_name_with_only_stars_and_question_marks_special(client: Client, pattern: str) -> None:
    every = {*PLAIN, *ODD_NAMES, *LITERAL}
    # To a shell's pattern a bracket is a set; to ours it is a bracket.
    fits = {name for name in every if fnmatchcase(name, pattern.replace("[", "[[]"))}
    assert names_of(asked(client, group=pattern)) == sorted(fits)


def test_several_names_and_a_status_at_once(client: Client) -> None:
    got = client.json("/v3/kafka/one/lag?group=s*&group=fresh&group=f*&status=OK,ERR")
    assert names_of(got) == ["fresh", 'say "hi"\\\nbye', "stalled"]


def test_an_answer_of_several_parts_is_one_document(client: Client) -> None:
    answer = asked(client, "two", group="many*", partitions="all")
    assert (names_of(answer), answer["total"]) == (MANY, len(MANY))
    assert asked(client, "two", group="many*", limit="200")["next"] == MANY[199]


@pytest.mark.parametrize("limit", [1, 2, 7, 24, 1000])
@pytest.mark.parametrize(
    ("cluster", "query"), [("two", {"group": "bulk*"}), ("two", {"group": "bulk-1?"}), ("one", {"status": "OK"})]
)
def test_pages_hold_each_group_once(client: Client, cluster: str, query: dict[str, str], limit: int) -> None:
    whole = asked(client, cluster, **query)["groups"]
    found: list[Any] = []
    more: dict[str, str] = {}
    while True:
        page = asked(client, cluster, limit=str(limit), **query, **more)
        assert page["total"] == len(whole) - len(found)
        assert len(page["groups"]) == min(limit, page["total"])
        found += page["groups"]
        if page["next"] is None:
            break
        assert page["next"] == found[-1]["group"]
        more = {"after": page["next"]}
    assert found == whole


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=many",
        "limit=1.5",
        "limit=1000001",
        "limit=" + "9" * 5000,
        "limit=%D9%A3",
        "status=BAD",
        "status=STALL",
        "status=NOTFOUND",
        "partitions=some",
        "partitions=",
        "unknown=1",
        "groups=a",
        "limit=5&Limit=5",
        "group=%zz%ff",
        "group=" + "*x" * 21,
    ],
)
def test_invalid_parameters(client: Client, query: str) -> None:
    got = client.ask(f"/v3/kafka/one/lag?{query}")
    assert (got.status, got.type, got.json["error"]) == (400, "application/json", True)
    assert len(got.json["message"]) < 200


def test_blank_parameters_filter_nothing(client: Client) -> None:
    assert asked(client, status="", limit="", after="")["total"] == asked(client)["total"]


def test_an_unknown_cluster(client: Client) -> None:
    got = client.ask("/v3/kafka/none/lag?status=ERR")
    assert (got.status, got.json["error"], got.json["message"]) == (404, True, "cluster not found")


def test_the_cluster_as_a_whole_comes_first(client: Client) -> None:
    cluster = asked(client, "two", group="nobody")["cluster"]
    assert (cluster["name"], cluster["status"], cluster["totallag"]) == ("two", "ERR", 2072)
    assert (cluster["groups"], cluster["partitions"]) == ({"OK": 23, "ERR": 1}, {"OK": 24, "STALL": 1})
    assert (cluster["error_message"], cluster["unknown_since"]) == ("no broker answers", cluster["judged_at"])
    assert cluster["catching_up"] is False

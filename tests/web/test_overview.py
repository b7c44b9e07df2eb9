"""The answers for the dashboard: the overview, all groups in columns, and a topic with its consumers."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.kit.plans import Commit, cluster_state
from tests.kit.servers import ODD_NAMES, Client, Town, group_path, server_config, serving, within
from warren.domain.windows import UNKNOWN
from warren.history.write import HistoryWriter
from warren.snapshot.manifest import Position, Source
from warren.snapshot.time_lag import to_time_lag

HOUR_MS = 3_600_000
PATIENT_MS = 600_000
"""A trigger so long that a snapshot is not old before the tests are over."""
STATES = {
    "one": cluster_state(groups_by_status={"OK": 14, "ERR": 3}, totallag=2_222, worst_status="ERR"),
    "two": cluster_state(groups_by_status={"OK": 24}, unknown_since_ms=1, error="no broker answers"),
}
COLUMNS = {
    "cluster",
    "group",
    "status",
    "totallag",
    "maxlag",
    "since",
    "unknown_since",
    "partitions",
    "growth",
    "spark",
    "seconds_behind",
    "seconds_behind_method",
    "oldest_unread_age_seconds",
    "catch_up_seconds",
    "catch_up_seconds_at_most",
    "is_falling_behind",
    "retention_left_seconds",
    "lost_messages",
}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town two hours old that has been looked at again a minute ago, a second ago and now."""
    town = Town(tmp_path_factory.mktemp("overview"))
    now_ms = town.now_ms + 10_000
    town.now_ms -= 2 * HOUR_MS
    town.grow()
    # Most of those of the cluster that is away had read everything.
    town.turn([(1, f"bulk-{number:02d}", "orders", number % 3, 1090) for number in range(23) if number % 3 != 1])
    writer = HistoryWriter(town.data, 30, 1.0)
    for seconds_ago, offset in ((60, 100), (1, 101)):
        town.now_ms = now_ms - (seconds_ago + 1) * 1000
        town.turn([(0, "late", "orders", 0, 1090), (0, "rising", "orders", 1, offset)])
        assert writer.record(town.cycles.manifest(clusters=STATES))
    town.now_ms = now_ms
    one = {"orders": [1150, 1150, 1150], "audit": [1150, UNKNOWN], "unread": [9]}
    two = {"orders": [1150, 1000, 1150], "audit": [1150, 7, 7], "unread": [9]}
    town.cycles.sample(now_ms, {"one": one, "two": two}, ids={"unread": "made again"})
    commits = [
        (0, "late", "orders", 0, 1000),
        (0, "late", "unread", 0, 8),
        (0, "rising", "orders", 1, 102),
        (0, "new", "orders", 0, 1150),
        (1, "late", "orders", 1, 1000),
    ]
    at_ms, order = now_ms - 10, 1_000_000
    town.cycles.cycle(now_ms, [Commit(g, t, p, o, at_ms, order, cluster) for cluster, g, t, p, o in commits])
    town.publish(clusters=STATES, trigger_ms=PATIENT_MS)
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        # What happened before is read after the first answer.
        within(lambda: client.json("/v3/groups")["groups"]["spark"][0] != "", "the recent past")
        yield client


@pytest.fixture(scope="module")
def seen(client: Client) -> Any:
    return client.json("/v3/overview")["overview"]


@pytest.fixture(scope="module")
def columns(client: Client) -> Any:
    return client.json("/v3/groups")["groups"]


def detail(client: Client, topic: str, cluster: str = "one") -> Any:
    return client.json(f"/v3/kafka/{cluster}/topic/{topic}/detail")["topic"]


def test_clusters_count_their_groups_by_status(town: Town, seen: Any) -> None:
    one, two = seen["clusters"]
    assert (one["name"], one["status"], one["totallag"], one["groups"]) == ("one", "ERR", 2_222, {"OK": 14, "ERR": 3})
    assert (two["name"], two["groups"], two["error_message"]) == ("two", {"OK": 24}, "no broker answers")
    assert (one["unknown_since"], two["unknown_since"]) == (None, 1)
    assert (seen["groups"], seen["partitions"]) == (len(town.cycles.groups()), len(town.cycles.partitions()))
    assert (seen["not_ready"], seen["judged_at"], seen["trigger_ms"]) == (None, town.now_ms, PATIENT_MS)
    assert seen["sequence"] == town.cycles.plan.sequence


def test_the_worst_groups_come_first_with_their_reason(town: Town, seen: Any) -> None:
    found = [(group["status"], group["group"], group["totallag"], group["growth"]) for group in seen["worst"]]
    assert found == [
        ("ERR", "stalled", 1947, 3.0),
        ("ERR", "fresh", 1299, 2.0),
        ("ERR", "slow", 301, 2.0),
        ("ERR", "late", 151, 2.52),
        ("WARN", "rising", 1048, 0.97),
    ]
    late = dict(seen["worst"][3])
    assert late.pop("time_lag") == msgspec.to_builtins(to_time_lag(town.cycles.groups()["one", "late"]))
    assert late == {
        "cluster": "one",
        "group": "late",
        "status": "ERR",
        "totallag": 151,
        "growth": 2.52,
        "since": town.now_ms,
        "unknown_since": None,
        "partition_status": "REWIND",
        "topic": "orders",
        "partition": 0,
        "reason": "the committed offset went back from 1,090 to 1,000 and has reached only 1,000 since; lag 150",
    }


def test_of_two_stalled_groups_the_one_that_is_behind_for_longer_comes_first(tmp_path: Path) -> None:
    town = Town(tmp_path)
    for turn in range(25):
        town.now_ms += 1000
        heads = {"busy": [9000 if turn > 12 else 1000], "idle": [4000 if turn > 2 else 1000]}
        town.cycles.sample(town.now_ms, {"one": heads})
        commits = [Commit(name, name, 0, 1000, town.now_ms - 10, 2 * turn + n) for n, name in enumerate(heads)]
        town.cycles.cycle(town.now_ms, commits)
    town.publish()
    with serving(server_config(town.data)) as [client]:
        worst = client.json("/v3/overview")["overview"]["worst"]
    assert [(group["group"], group["status"], group["totallag"]) for group in worst] == [
        ("idle", "ERR", 3000),
        ("busy", "ERR", 8000),
    ]


def test_changes_of_the_last_hour_newest_first_with_the_status_before(town: Town, seen: Any) -> None:
    found = [(group["group"], group["before"], group["status"]) for group in seen["changed"]]
    # stalled has been so for two hours, and new is well.
    assert found == [("late", "OK", "ERR"), ("rising", "OK", "WARN"), ("fresh", None, "ERR"), ("slow", None, "ERR")]
    assert [(town.now_ms - group["since"]) // 1000 for group in seen["changed"]] == [0, 0, 60, 60]
    assert {group["cluster"] for group in seen["changed"]} == {"one"}


def test_every_group_is_in_every_column(town: Town, columns: Any) -> None:
    rows = town.cycles.groups()
    assert {len(columns[name]) for name in COLUMNS} == {len(rows)}
    assert (columns["clusters"], columns["judged_at"]) == (["one", "two"], town.now_ms)
    names = [
        (columns["clusters"][place], group) for place, group in zip(columns["cluster"], columns["group"], strict=True)
    ]
    assert names == sorted(rows), "odd names are as they are"
    assert {name for cluster, name in names if cluster == "one"} > set(ODD_NAMES)
    for name, column in (("totallag", "totallag"), ("maxlag", "maxlag"), ("since", "since_ms")):
        assert columns[name] == [rows[group][column] for group in names]


def test_each_group_equals_its_own_answer(client: Client, columns: Any) -> None:
    for number in (columns["group"].index(name) for name in ("stalled", "fresh", "blind", "bulk-07", *ODD_NAMES)):
        name, cluster = columns["group"][number], columns["clusters"][columns["cluster"][number]]
        alone = client.json(group_path(name, "lag", cluster))["status"]
        assert (columns["status"][number], columns["totallag"][number]) == (alone["status"], alone["totallag"])
        assert columns["partitions"][number] == alone["partition_count"]


def test_the_recent_past_beside_each_group(columns: Any) -> None:
    def recent(group: str) -> tuple[float | None, str]:
        number = columns["group"].index(group)
        return columns["growth"][number], columns["spark"][number]

    assert recent("blind") == (0.0, "0" * 24)
    assert recent("late") == (2.52, "0" * 23 + "Z")
    assert recent("new") == (None, "-" * 23 + "0")
    assert recent("bulk-01") == (-1.5, "Z" * 23 + "0")


@pytest.mark.parametrize(
    ("topic", "names"), [("audit", ["blind", "fresh"]), ("unread", ["late"]), ("nothing", []), ("ord", [])]
)
def test_only_the_groups_of_a_topic(client: Client, topic: str, names: list[str]) -> None:
    found = client.json(f"/v3/groups?topic={topic}")["groups"]
    assert found["group"] == names
    assert {len(found[name]) for name in COLUMNS} == {len(names)}


def test_a_topic_of_two_clusters_has_the_groups_of_both(client: Client, columns: Any) -> None:
    found = client.json("/v3/groups?topic=orders")["groups"]
    place = {pair: number for number, pair in enumerate(zip(columns["cluster"], columns["group"], strict=True))}
    assert set(place) - set(zip(found["cluster"], found["group"], strict=True)) == {(0, "blind")}
    chosen = [place[pair] for pair in zip(found["cluster"], found["group"], strict=True)]
    for name in COLUMNS:
        assert found[name] == [columns[name][number] for number in chosen]


def test_groups_are_not_sent_again_to_clients_that_have_them(client: Client) -> None:
    first = client.ask("/v3/groups")
    assert (first.headers["Cache-Control"], first.headers["Vary"]) == ("no-cache", "Accept-Encoding")
    again = client.ask("/v3/groups", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    other = client.ask("/v3/groups?topic=audit", headers={"If-None-Match": first.headers["ETag"]})
    assert (other.status, other.headers["ETag"] != first.headers["ETag"]) == (200, True)
    assert client.ask("/v3/groups", headers={"If-None-Match": 'W/"another"'}).body == first.body


def test_groups_are_compressed_for_clients_that_accept_gzip(client: Client) -> None:
    plain, packed = client.ask("/v3/groups"), client.ask("/v3/groups", headers={"Accept-Encoding": "br, gzip"})
    assert (plain.headers["Content-Encoding"], packed.headers["Content-Encoding"]) == (None, "gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body)


def test_the_history_of_all_clusters_in_columns(town: Town, client: Client) -> None:
    found = client.json("/v3/history")["history"]
    assert found["cluster"] == ["one", "one", "two", "two"]
    assert [(town.now_ms - at_ms) // 1000 for at_ms in found["time_ms"]] == [60, 1, 60, 1]
    assert (found["totallag"], found["is_known"]) == ([2_222, 2_222, 0, 0], [True, True, False, False])
    assert (found["groups_ok"], found["groups_err"]) == ([14, 14, 24, 24], [3, 3, 0, 0])
    assert client.json("/v3/history?hours=24")["history"] == found
    assert client.ask("/v3/history?hours=0").status == 400


def test_a_topics_heads_and_their_rate_over_a_minute(client: Client) -> None:
    found = detail(client, "orders")
    assert found["rate"] == 3.0
    assert found["partitions"] == [{"partition": p, "head": 1150, "log_start": 0, "rate": 1.0} for p in range(3)]


@pytest.mark.parametrize(
    ("cluster", "topic", "heads", "rates", "rate"),
    [
        ("one", "audit", [1150, None], [1.0, None], 1.0),
        ("two", "orders", [1150, 1000, 1150], [1.0, None, 1.0], 2.0),
        ("two", "audit", [1150, 7, 7], [None] * 3, None),
        ("one", "unread", [9], [None], None),
    ],
    ids=["a head that is unknown", "a head that fell", "more partitions than before", "made again"],
)
def test_an_unknown_rate(
    client: Client, cluster: str, topic: str, heads: list[int], rates: list[float], rate: float | None
) -> None:
    found = detail(client, topic, cluster)
    assert [held["head"] for held in found["partitions"]] == heads
    assert [held["rate"] for held in found["partitions"]] == rates
    assert found["rate"] == rate


def test_a_topics_consumers_have_their_lag_there_largest_first(client: Client) -> None:
    consumers = detail(client, "orders")["consumers"]
    lags = [(-group["totallag"], group["group"]) for group in consumers]
    assert lags == sorted(lags)
    assert [group for _, group in lags[:3]] == ["stalled", "rising", "slow"]
    assert consumers[0]["lags"] == [[0, 650], [1, 649], [2, 648]]
    assert (consumers[2]["statuses"], consumers[2]["lags"]) == ({"OK": 1, "STOP": 1}, [[0, 241], [1, 60]])
    assert {group["group"] for group in consumers} > set(ODD_NAMES)
    fresh, blind = detail(client, "audit")["consumers"]
    assert (fresh["group"], fresh["totallag"]) == ("fresh", 1149), "of this topic alone"
    assert (blind["group"], blind["totallag"], blind["lags"]) == ("blind", 0, [[1, None]])
    assert detail(client, "audit", "two")["consumers"] == []


@pytest.mark.parametrize("path", ["one/topic/nothing", "nowhere/topic/orders", "one/topic/..%2Forders"])
def test_an_unknown_topic(client: Client, path: str) -> None:
    got = client.ask(f"/v3/kafka/{path}/detail")
    assert (got.status, got.json["message"]) == (404, "cluster or topic not found")


def test_one_partition_explained_with_its_window(client: Client) -> None:
    whole = client.json(group_path("late", "explain"))["explanation"]
    assert [(held["topic"], held["partition"]) for held in whole["partitions"]] == [("orders", 0), ("unread", 0)]
    assert not any("window" in held for held in whole["partitions"])
    only = client.json(group_path("late", "explain") + "?topic=orders&partition=0")["explanation"]
    [held] = only.pop("partitions")
    window = held.pop("window")
    assert [(slot["offset"], slot["lag"]) for slot in window] == [(1090, 0), (1090, 0), (1000, 149)]
    assert held == whole.pop("partitions")[0]
    assert only == whole


@pytest.mark.parametrize(
    ("query", "partitions"),
    [
        ("topic=orders", [0, 1, 2]),
        ("partition=1", [1]),
        ("topic=orders&partition=3", []),
        ("topic=orders&partition=999999999", []),
        ("topic=nothing", []),
        ("topic=orders&partition=", [0, 1, 2]),
    ],
)
def test_only_the_requested_partitions(client: Client, query: str, partitions: list[int]) -> None:
    found = client.json(group_path("stalled", "explain") + f"?{query}")["explanation"]
    assert [held["partition"] for held in found["partitions"]] == partitions
    assert found["totallag"] == 1947, "of the group as a whole"


@pytest.mark.parametrize("partition", ["x", "-1", "1.5", "1e3", "9" * 10, "\u00b2", " 1"])
def test_an_invalid_partition(client: Client, partition: str) -> None:
    got = client.ask(group_path("stalled", "explain") + f"?topic=orders&partition={quote(partition)}")
    assert (got.status, got.json["error"]) == (400, True)
    assert "partition must be a number" in got.json["message"]


def test_readiness_without_a_snapshot_while_catching_up_and_when_stale(tmp_path: Path) -> None:
    with serving(server_config(tmp_path)) as [server]:

        def seen() -> Any:
            return server.json("/v3/overview")["overview"]

        first = seen()
        assert first["not_ready"] == "no snapshot yet: the first cycle has not ended, or the pipeline does not run"
        assert (first["sequence"], first["judged_at"], first["groups"], first["backlog"]) == (None, None, 0, 0)
        assert (first["worst"], first["changed"], first["rejects"]) == ([], [], {})
        assert [(one["name"], one["status"]) for one in first["clusters"]] == [("one", "NOTFOUND"), ("two", "NOTFOUND")]
        nothing = server.ask("/v3/groups")
        assert all(nothing.json["groups"][name] == [] for name in COLUMNS)
        assert server.json("/v3/groups?topic=orders")["groups"]["group"] == []
        assert server.json("/v3/history")["history"]["time_ms"] == []
        assert server.ask("/v3/kafka/one/topic/orders/detail").status == 404
        assert server.ask(group_path("stalled", "explain") + "?partition=0").status == 404

        town = Town(tmp_path).grow()
        positions = {0: Position(266, 1500, 1500), 1: Position(9, 7, 7)}
        behind = cluster_state(is_catching_up=True, sources={"__consumer_offsets": Source("x", positions)})
        rejects = {"one": {"bad key": 2, "bad value": 3}}
        took = {"read": 5, "judge": 7}
        town.publish(clusters={**STATES, "one": behind}, trigger_ms=PATIENT_MS, cycle_ms=took, rejects=rejects)
        within(lambda: seen()["sequence"] is not None, "the first snapshot")
        second = seen()
        assert second["not_ready"] == "catching up with the offsets topics: 1,234 offsets left"
        assert (second["backlog"], second["cycle_ms"], second["rejects"]) == (1234, 12, {"one": 5})
        assert second["clusters"][0]["catching_up"] is True
        assert [group["growth"] for group in second["worst"]] == [None, None], "there is no past yet"
        some = server.ask("/v3/groups", headers={"If-None-Match": nothing.headers["ETag"]})
        assert (some.status, some.json["groups"]["spark"][0]) == (200, "")

        town.now_ms -= 602_000
        town.turn([])
        town.publish()
        within(lambda: seen()["sequence"] > second["sequence"], "the next snapshot")
        assert seen()["not_ready"] == "the newest snapshot is 10 min old: the pipeline is behind or does not run"
        more = server.ask("/v3/groups", headers={"If-None-Match": some.headers["ETag"]})
        assert (more.status, more.headers["ETag"] != some.headers["ETag"]) == (200, True)

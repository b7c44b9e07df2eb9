"""A group whose offsets partition cannot be read up to its end: every answer of Warren's own says so."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.plans import cluster_state
from tests.kit.servers import Client, Town, group_path, server_config, serving
from warren.history.write import HistoryWriter
from warren.snapshot.manifest import Position, Source

MINUTE = 60_000
HOSTILE_ID = 'tx</script>\n\x00\u202e"'


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """The group `stalled` commits to partition 1, which an open transaction holds back; partition 2 has no leader."""
    town = Town(tmp_path_factory.mktemp("unknown")).grow()
    began_ms = town.now_ms - 5 * MINUTE
    town.hold_back("stalled", since_ms=began_ms)
    source = Source("id", {
        0: Position(100, 100, 100, seen_until_ms=town.now_ms),
        1: Position(100, 100, 107, seen_until_ms=began_ms, stuck_since_ms=began_ms + 1000, held_by=HOSTILE_ID),
        2: Position(50, 50, 50, seen_until_ms=began_ms - MINUTE, away_from_ms=began_ms),
        3: Position(50, 50, 50, seen_until_ms=town.now_ms - 10_000, away_from_ms=town.now_ms - 9_000),
    })  # fmt: skip
    two = cluster_state(unknown_since_ms=7, error="no broker answers")
    states = {"one": cluster_state(sources={"__consumer_offsets": source}), "two": two}
    town.publish(clusters=states)
    HistoryWriter(town.data, 30, 1.0).record(town.cycles.manifest(now_ms=town.now_ms, clusters=states))
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        yield client


def since_ms(town: Town) -> int:
    return town.now_ms - 5 * MINUTE - 1000


def test_the_column_of_all_groups(town: Town, client: Client) -> None:
    columns = client.json("/v3/groups")["groups"]
    since = dict(zip(zip(columns["cluster"], columns["group"], strict=True), columns["unknown_since"], strict=True))
    assert since.pop((0, "stalled")) == since_ms(town)
    assert {(cluster, at) for (cluster, _), at in since.items()} == {(0, None), (1, 7)}


@pytest.mark.parametrize(("cluster", "group", "is_unknown"), [("one", "stalled", True), ("one", "slow", False)])
def test_the_explanation_of_a_verdict(town: Town, client: Client, cluster: str, group: str, is_unknown: bool) -> None:
    explanation = client.json(group_path(group, "explain", cluster))["explanation"]
    assert explanation["unknown_since"] == (since_ms(town) if is_unknown else None)
    assert {partition["head_at"] for partition in explanation["partitions"]} == {town.now_ms - 1000}


def test_the_overview_counts_unknown_groups_and_lists_why(town: Town, client: Client) -> None:
    overview: Any = client.json("/v3/overview")["overview"]
    one, two = overview["clusters"]
    assert (one["unknown_since"], one["unknown_groups"], two["unknown_groups"]) == (None, 1, 24)
    assert one["unread"] == [
        {
            "topic": "__consumer_offsets", "partition": 1, "since": since_ms(town),
            "held_by_transaction": True, "has_leader": True, "transactional_id": HOSTILE_ID,
        },
        {
            "topic": "__consumer_offsets", "partition": 2, "since": since_ms(town) - MINUTE,
            "held_by_transaction": False, "has_leader": False, "transactional_id": None,
        },
    ]  # fmt: skip
    unknown = {group["group"]: group["unknown_since"] for group in overview["worst"] if group["cluster"] == "one"}
    assert unknown == {"stalled": since_ms(town), "slow": None}


def test_the_history_of_a_group(client: Client) -> None:
    known = {}
    for cluster, group in (("one", "stalled"), ("one", "slow"), ("two", "healthy")):
        [point] = client.json(group_path(group, "history", cluster))["history"]
        known[cluster, group] = point["known"]
    assert known == {("one", "stalled"): False, ("one", "slow"): True, ("two", "healthy"): False}


def test_the_answers_of_burrow_are_as_ever(client: Client) -> None:
    for what in ("status", "lag"):
        status = client.json(group_path("stalled", what))["status"]
        assert (status["status"], "unknown_since" in status) == ("ERR", False)

"""Lag in time over HTTP: the same numbers of a group and of its partitions in every answer."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.kit.servers import Client, Town, group_path, server_config, serving
from warren.snapshot.time_lag import TimeLag, to_time_lag

KEYS = TimeLag.__struct_fields__[:-1]
"""The keys of a group's status; those of the rates are only in `time_lag`."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town after a minute in which `slow` was falling behind and `hurried` was catching up."""
    town = Town(tmp_path_factory.mktemp("time-lag")).grow()
    for turn in range(8):
        town.now_ms += 9_000
        commits = [(0, "slow", "orders", 0, 900 + 50 * turn), (0, "hurried", "orders", 1, 200 + 200 * turn)]
        town.turn(commits, head=1_100 + 100 * turn)
    town.publish()
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        yield client


def test_the_town_has_every_kind_of_time_lag(town: Town) -> None:
    slow, hurried, blind = (to_time_lag(town.cycles.groups()["one", name]) for name in ("slow", "hurried", "blind"))
    assert slow.is_falling_behind
    assert slow.seconds_behind is not None
    assert slow.seconds_behind > 10
    assert hurried.catch_up_seconds is not None
    assert hurried.catch_up_seconds > 5
    assert hurried.rates.consumed_1m == pytest.approx(20.0)
    assert (blind.seconds_behind, blind.seconds_behind_method, blind.catch_up_seconds) == (None, "unknown", None)


def test_columns_of_all_groups(town: Town, client: Client) -> None:
    columns = client.json("/v3/groups")["groups"]
    names = [
        (columns["clusters"][code], group) for code, group in zip(columns["cluster"], columns["group"], strict=True)
    ]
    for name in KEYS:
        assert columns[name] == [getattr(to_time_lag(town.cycles.groups()[group]), name) for group in names], name


@pytest.mark.parametrize("group", ["slow", "hurried", "blind", "stalled", "healthy"])
def test_a_group_and_its_partitions(town: Town, client: Client, group: str) -> None:
    expected: dict[str, Any] = msgspec.to_builtins(to_time_lag(town.cycles.groups()["one", group]))
    explanation = client.json(group_path(group, "explain"))["explanation"]
    assert explanation["time_lag"] == expected
    status = client.json(group_path(group, "lag"))["status"]
    assert {name: status[name] for name in KEYS} == {name: expected[name] for name in KEYS}
    assert list(status)[-len(KEYS) :] == list(KEYS), "Burrow's keys come first"
    listed = {(partition["topic"], partition["partition"]): partition for partition in status["partitions"]}
    for partition in explanation["partitions"]:
        name = partition["topic"], partition["partition"]
        stored = to_time_lag(town.cycles.partitions()["one", group, *name])
        assert partition["time_lag"] == msgspec.to_builtins(stored)
        for key in ("seconds_behind", "oldest_unread_age_seconds", "catch_up_seconds", "retention_left_seconds"):
            assert listed[name][key] == getattr(stored, key)
    [alone] = client.json(f"/v3/kafka/one/lag?group={group}&partitions=all")["groups"]
    assert alone == status


def test_partitions_without_a_commit_have_no_time_lag(client: Client) -> None:
    status = client.json(group_path("slow", "lag"))["status"]
    assert [partition["seconds_behind"] is None for partition in status["partitions"]] == [False, False, True]


def test_a_group_that_does_not_exist_has_no_time_lag(client: Client) -> None:
    status = client.ask(group_path("nobody", "lag")).json["status"]
    assert [status[name] for name in KEYS] == [None, "unknown", None, None, None, False, None, 0]


def test_the_consumers_of_a_topic(town: Town, client: Client) -> None:
    consumers = client.json("/v3/kafka/one/topic/audit/detail")["topic"]["consumers"]
    stored = town.cycles.partitions()["one", "fresh", "audit", 0]
    assert {consumer["group"]: consumer["seconds_behind"] for consumer in consumers} == {
        "blind": None,
        "fresh": to_time_lag(stored).seconds_behind,
    }

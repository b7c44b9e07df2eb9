"""The history of a group over HTTP."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.kit.servers import Client, Town, group_path, server_config, serving
from warren.history.write import HistoryWriter


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server on a town with two points of history, the older of them two hours old."""
    town = Town(tmp_path_factory.mktemp("history")).grow()
    town.publish()
    writer = HistoryWriter(town.data, 30, 10.0)
    for minutes_ago in (120, 0):
        writer.record(town.cycles.manifest(now_ms=town.now_ms - minutes_ago * 60_000))
    with serving(server_config(town.data)) as [found]:
        yield found


def test_points_of_the_last_hour_or_of_more(client: Client) -> None:
    [point] = client.json(group_path("stalled", "history"))["history"]
    assert (point["status"], point["worst"]) == ("ERR", "STALL")
    assert point["totallag"] >= point["maxlag"] > 0
    assert point["since"] <= point["time"]
    assert point["seconds_behind"] == client.json(group_path("stalled", "lag"))["status"]["seconds_behind"] > 0
    longer = client.json(group_path("stalled", "history") + "?hours=3")["history"]
    assert [later["time"] - longer[0]["time"] for later in longer] == [0, 120 * 60_000]


def test_a_cluster_over_time(client: Client) -> None:
    assert len(client.json("/v3/kafka/one/history")["history"]) == 1
    first, last = client.json("/v3/kafka/one/history?hours=3")["history"]
    assert first["time"] < last["time"]
    assert last.keys() == {"time", "status", "known", "totallag", "groups"}
    assert (last["known"], last["groups"].keys()) == (True, {"OK", "WARN", "ERR"})
    assert client.ask("/v3/kafka/nowhere/history").status == 404


def test_a_time_lag_that_is_unknown_is_null(client: Client) -> None:
    [point] = client.json(group_path("blind", "history"))["history"]
    assert point["seconds_behind"] is None


def test_names_with_special_characters(client: Client) -> None:
    assert len(client.json(group_path("billing/eu", "history"))["history"]) == 1


def test_an_unknown_group_has_no_history(client: Client) -> None:
    assert client.ask(group_path("nobody", "history")).status == 404
    assert client.ask(group_path("healthy", "history", "nowhere")).status == 404


@pytest.mark.parametrize("hours", ["0", "-1", "x", "1.5", "99999999999", "\u00b2"])
def test_invalid_hours(client: Client, hours: str) -> None:
    answer = client.ask(group_path("stalled", "history") + f"?hours={quote(hours)}")
    assert (answer.status, answer.json["error"]) == (400, True)
    assert "hours" in answer.json["message"]

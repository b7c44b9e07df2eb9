"""Incidents over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.servers import Client, Town, server_config, serving
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.store.store import IncidentStore


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town whose stalled group is put down, and whose slow one has recovered."""
    town = Town(tmp_path_factory.mktemp("incidents")).grow()
    book = IncidentStore(town.data)
    keeper = IncidentPipeline(book, town.cycles.store, 30)
    keeper.process(town.cycles.manifest(now_ms=town.now_ms))
    town.turn([(0, "slow", "orders", partition, 1090) for partition in (0, 1)])
    keeper.process(town.cycles.manifest(now_ms=town.now_ms))
    town.publish()
    book.close()
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        yield client


def names(client: Client, query: str = "") -> list[str]:
    return sorted(one["group"] for one in client.json(f"/v3/incidents{query}")["incidents"])


def test_an_incident_has_its_course_and_its_partitions(client: Client, town: Town) -> None:
    [stalled] = client.json("/v3/incidents?group=stalled")["incidents"]
    assert len(stalled.pop("id")) == 36
    assert [one["partition"] for one in stalled.pop("partitions")] == [0, 1, 2]
    opened = town.now_ms - 1000
    assert stalled == {
        "cluster": "one", "group": "stalled", "team": "", "opened": opened, "closed": None, "status": "ERR",
        "worst": "ERR", "acknowledged": None, "silenced": False, "changes": [{"time": opened, "status": "ERR"}],
        "partition_count": 3, "told": [], "lost_messages": 0,
    }  # fmt: skip
    [slow] = client.json("/v3/incidents?group=slow")["incidents"]
    assert (slow["status"], slow["worst"], slow["closed"]) == ("OK", "WARN", town.now_ms)


def test_metrics_count_open_incidents(client: Client) -> None:
    is_open = len(client.json("/v3/incidents?state=open&cluster=one")["incidents"])
    assert is_open
    assert f'warren_incidents_open{{cluster="one"}} {is_open}\n' in client.ask("/metrics").text


def test_they_are_filtered(client: Client) -> None:
    assert {"stalled", "slow"} <= set(names(client))
    assert "slow" not in names(client, "?state=open")
    assert names(client, "?state=closed") == ["slow"]
    assert names(client, "?cluster=two&state=closed") == []
    assert len(names(client, "?limit=1")) == 1
    assert names(client, "?before=1000") == []


@pytest.mark.parametrize("query", ["state=ajar", "limit=0", "limit=x", "before=-1", "limit=99999999999"])
def test_invalid_parameters_are_refused(client: Client, query: str) -> None:
    assert client.ask(f"/v3/incidents?{query}").status == 400


def test_without_a_store_there_are_none(tmp_path: Path) -> None:
    with serving(server_config(tmp_path)) as [client]:
        assert client.json("/v3/incidents")["incidents"] == []

"""Names in the API, in Prometheus' format and in requests to stores: read back as they are, and nothing else.

Their way into a real InfluxDB and into a lake is tested with these sinks.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.prometheus import promtool
from tests.kit.records import commit_key, group_key
from tests.kit.servers import Client, group_path, server_config, serving
from tests.security.names import NAMES, NOT_UTF8
from warren.kafka.records.commits import decode_keys
from warren.kafka.records.rejects import Reject
from warren.sinks.encode import bulk_request, telegraf_json
from warren.sinks.points import Points

AT_MS = 1_534_905_460_000
ALL = list(NAMES.values())
LABELS = re.compile(r'(\w+)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)')


@pytest.fixture(scope="module")
def client(hostile_data: Path) -> Iterator[Client]:
    with serving(server_config(hostile_data)) as [client]:
        yield client


def test_every_group_is_asked_for_by_its_name(client: Client) -> None:
    assert client.json("/v3/kafka/one/consumer")["consumers"] == sorted(ALL)
    for name in ALL:
        for what in ("status", "lag", "explain", ""):
            got = client.ask(group_path(name, what))
            assert got.status == 200, (name, what)
            assert got.type == "application/json"
            assert not re.search(rb"[<>\x00-\x1f]", got.body.rstrip(b"\n")), "a browser finds no markup in it"
        status = client.json(group_path(name, "lag"))["status"]
        assert (status["group"], status["status"]) == (name, "ERR")
        assert sorted((p["topic"], p["owner"], p["client_id"]) for p in status["partitions"]) == sorted(
            [("orders", name, name), (name, "", "")]
        )
        assert list(client.json(group_path(name))["topics"]) == sorted({name, "orders"})


def test_every_topic_is_asked_for_by_its_name(client: Client) -> None:
    for name in ALL:
        path = f"/v3/kafka/one/topic/{quote(name, safe='')}"
        assert client.json(path)["offsets"] == [1000], name
        assert client.json(f"{path}/consumers")["consumers"] == [name]


def test_the_bulk_answer_and_the_list_have_every_name(client: Client) -> None:
    groups = client.json("/v3/kafka/one/lag?partitions=all")["groups"]
    assert [group["group"] for group in groups] == sorted(ALL)
    for name in set(ALL) - {NAMES["very long"]}:
        pattern = quote(name.replace("*", "?"), safe="")
        found = client.json(f"/v3/kafka/one/lag?group={pattern}")["groups"]
        assert name in [group["group"] for group in found], name


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text"])
def test_prometheus_reads_every_name_back(client: Client, accept: str) -> None:
    body = client.ask("/metrics", headers={"Accept": accept}).body
    groups, topics = set(), set()
    for line in body.decode().split("\n"):
        if not line or line.startswith("# "):
            continue
        sample = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (?:[0-9.e+-]+|\+Inf)", line, re.DOTALL)
        assert sample, line[:200]
        labels = {name: unescaped(value) for name, value in LABELS.findall(sample[2] or "")}
        assert "".join(match[0] for match in LABELS.finditer(sample[2] or "")) == (sample[2] or ""), line[:200]
        groups |= {labels[name] for name in ("consumer_group", "group") if name in labels}
        topics |= {labels["topic"]} if "topic" in labels else set()
    assert groups == set(ALL)
    assert topics == {*ALL, "orders"}


def test_promtool_reads_every_name(client: Client) -> None:
    ended = promtool("check", "metrics", said=client.ask("/metrics").body)
    assert [line for line in (ended.stdout + ended.stderr).decode().splitlines() if "_total" not in line] == []


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)


def points_about_all() -> Points:
    """A point about each name."""
    count, names = len(ALL), pa.array(ALL, pa.string())
    return Points(
        "burrow_partition",
        {"cluster": pa.array(["c"] * count), "group": names, "topic": names},
        {"status": pa.array(["OK"] * count), "owner": names},
        {"lag": np.full(count, 7), "offset": np.arange(count)},
    )


def test_a_bulk_request_creates_one_document_per_name() -> None:
    lines = bytes(bulk_request("burrow", points_about_all(), {}, AT_MS)).split(b"\n")
    assert lines.pop() == b""
    actions, documents = [json.loads(line) for line in lines[::2]], [json.loads(line) for line in lines[1::2]]
    assert all(list(action) == ["create"] and action["create"]["_index"] == "burrow" for action in actions)
    assert all(re.fullmatch(r"[0-9-]+", action["create"]["_id"]) for action in actions)
    assert [document["tag"]["group"] for document in documents] == ALL
    assert [document["burrow_partition"]["owner"] for document in documents] == ALL
    messages = [json.loads(text) for text in telegraf_json(points_about_all(), {}, AT_MS).to_pylist()]
    assert [message["tags"]["topic"] for message in messages] == ALL


def test_bytes_that_are_no_text_are_rejects() -> None:
    keys = [key for raw in NOT_UTF8 for key in (commit_key(raw, "t", 0), commit_key("g", raw, 0), group_key(raw))]
    decoded = decode_keys(pa.array([commit_key("g", "t", 0), *keys], pa.binary()))
    assert decoded.reject.tolist() == [Reject.NONE, *[Reject.BAD_UTF8] * len(keys)]


def test_every_name_is_decoded_as_it_was_written() -> None:
    decoded = decode_keys(pa.array([commit_key(name, name, 0) for name in ALL], pa.binary()))
    assert decoded.group.to_pylist() == ALL
    assert decoded.topic.to_pylist() == ALL

"""Documents in a real Elasticsearch and a real OpenSearch: all of them, exact, and each once."""

import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from tests.kit.stores import SearchServer, deliver, deliver_through_a_kill, requests_for
from tests.sinks.test_encode import AT_MS, ODD, points
from warren.config.sinks import ElasticsearchSink, OpenSearchSink
from warren.domain.windows import UNKNOWN
from warren.errors import BusyError
from warren.sinks.elasticsearch import ElasticsearchWriter

TAGS = {"host": 'a "host"', "usage": "größe, 1=2\\"}
DAY_MS = 86_400_000
DAY, NEXT_DAY = "2018.08.22", "2018.08.23"
MANY = 8
"""Points of a request that is one of many."""


@contextmanager
def writing(search: SearchServer, name: str, **keys: Any) -> Iterator[ElasticsearchWriter]:
    """A writer to indices of a test's own."""
    sink = OpenSearchSink if search.name == "opensearch" else ElasticsearchSink
    given = {"urls": (search.url,), "index_name": f"{name}-%Y.%m.%d", "template_name": name, **keys}
    yield ElasticsearchWriter(sink(name, **given))


@pytest.mark.parametrize("is_packed", [True, False])
def test_every_name_is_read_back_and_found(search: SearchServer, is_packed: bool) -> None:
    name = f"names-{is_packed}".lower()
    with writing(search, name, enable_gzip=is_packed) as writer:
        deliver(writer, points(*ODD), TAGS, AT_MS)
    found = search.documents(f"{name}-{DAY}")
    assert sorted(found, key=lambda one: one["burrow_partition"]["offset"]) == [
        {
            "@timestamp": "2018-08-22T02:37:40.000Z",
            "measurement_name": "burrow_partition",
            "tag": {"cluster": "c", "group": group, "partition": "0", **TAGS},
            "burrow_partition": {"status": "OK", **({"owner": group} if group else {}), "lag": 7, "offset": place},
        }
        for place, group in enumerate(ODD)
    ]
    assert search.values(f"{name}-{DAY}", "tag.group") == dict.fromkeys(ODD, 1)
    assert search.values(f"{name}-{DAY}", "tag.usage") == {TAGS["usage"]: len(ODD)}


def test_numbers_are_exact_and_unknown_ones_are_left_out(search: SearchServer) -> None:
    lags = {"none": 0, "most": 2**53, "unknown": UNKNOWN}
    with writing(search, "numbers") as writer:
        for group, lag in lags.items():
            deliver(writer, points(group, lag=lag), {}, AT_MS)
    found = {one["tag"]["group"]: one["burrow_partition"].get("lag") for one in search.documents(f"numbers-{DAY}")}
    assert found == {"none": 0, "most": 2**53, "unknown": None}
    assert search.values(f"numbers-{DAY}", "burrow_partition.lag") == {0: 1, 2**53: 1}


@pytest.mark.parametrize("manage_template", [True, False])
def test_lag_in_time_is_a_decimal_number_whatever_comes_first(search: SearchServer, manage_template: bool) -> None:
    name = f"decimals-{manage_template}".lower()
    with writing(search, name, manage_template=manage_template) as writer:
        for place, seconds in enumerate((12.0, np.nan, 0.25)):
            deliver(writer, replace(points("g"), decimals={"seconds_behind": np.array([seconds])}), {}, AT_MS + place)
    assert search.values(f"{name}-{DAY}", "burrow_partition.seconds_behind") == {12.0: 1, 0.25: 1}


def test_indices_are_by_date_and_made_by_the_template(search: SearchServer) -> None:
    with writing(search, "dates") as writer:
        for at_ms in (AT_MS, AT_MS + DAY_MS):
            deliver(writer, points("g"), TAGS, at_ms)
    made = search.ask("GET", "/dates-*/_mapping")
    assert sorted(made) == [f"dates-{DAY}", f"dates-{NEXT_DAY}"]
    for index in made.values():
        fields = index["mappings"]["properties"]
        assert fields["@timestamp"]["type"] == "date"
        assert {one["type"] for one in fields["tag"]["properties"].values()} == {"keyword"}
        assert fields["burrow_partition"]["properties"]["lag"]["type"] == "long"
        assert fields["burrow_partition"]["properties"]["status"]["type"] == "keyword"
    [made_by] = search.ask("GET", "/_index_template/dates")["index_templates"]
    assert made_by["index_template"]["index_patterns"] == ["dates-*"]


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_comes_twice_is_there_once(
    search: SearchServer, is_stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    name, index = ("stream", "stream-of-lag") if is_stream else ("twice", f"twice-{DAY}")
    with writing(search, name, index_name=index, data_stream=is_stream) as writer:
        for _ in range(2):
            deliver(writer, points(*ODD), TAGS, AT_MS)
        deliver(writer, points(*ODD, "one more"), TAGS, AT_MS)
    assert search.values(index, "tag.group") == dict.fromkeys([*ODD, "one more"], 1)
    [kept_in] = search.ask("GET", f"/{index}/_mapping")
    assert kept_in.startswith(f".ds-{index}" if is_stream else index)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_documents_that_an_index_never_takes_are_lost_alone_and_told_of(
    search: SearchServer, caplog: pytest.LogCaptureFixture
) -> None:
    known = {"status": {"type": "keyword"}, "lag": {"type": "long"}, "offset": {"type": "long"}}
    fields = {
        "@timestamp": {"type": "date"},
        "measurement_name": {"type": "keyword"},
        "tag": {"type": "object", "dynamic": True},
        "burrow_partition": {"properties": known},
    }
    search.ask("PUT", f"/strict-{DAY}", {"mappings": {"dynamic": "strict", "properties": fields}})
    with writing(search, "strict") as writer:
        # The first one alone has no owner.
        deliver(writer, points("", "a", "b"), {}, AT_MS)
    assert [one["tag"]["group"] for one in search.documents(f"strict-{DAY}")] == [""]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "2 documents were refused" in record.getMessage()
    assert "owner" in record.getMessage()


def test_documents_of_an_index_that_is_blocked_wait_alone(
    search: SearchServer, caplog: pytest.LogCaptureFixture
) -> None:
    with writing(search, "blocked") as writer:
        deliver(writer, points("before"), {}, AT_MS)
        search.ask("PUT", f"/blocked-{DAY}/_settings", {"index.blocks.write": True})
        moments = [(points(*ODD), AT_MS), (points(*ODD), AT_MS + DAY_MS)]
        request = b"".join(bytes(one) for some, at_ms in moments for one in writer.encode(some, TAGS, at_ms))
        left = writer.deliver(gzip.compress(request), 2)
        assert left == b"".join(map(bytes, writer.encode(points(*ODD), TAGS, AT_MS)))
        assert len(search.documents(f"blocked-{NEXT_DAY}")) == len(ODD)
        search.ask("PUT", f"/blocked-{DAY}/_settings", {"index.blocks.write": False})
        assert writer.deliver(gzip.compress(left), 2) is None
    assert search.values("blocked-*", "tag.group") == {**dict.fromkeys(ODD, 2), "before": 1}
    assert not caplog.records


def test_documents_wait_for_an_index_that_is_not_made_by_itself(search: SearchServer) -> None:
    rule = "action.auto_create_index"
    with writing(search, "unmade") as writer:
        [request] = requests_for(writer, points("g"), {}, AT_MS)
        search.ask("PUT", "/_cluster/settings", {"persistent": {rule: "-unmade-*,+*"}})
        try:
            left = writer.deliver(request, 1)
        finally:
            search.ask("PUT", "/_cluster/settings", {"persistent": {rule: None}})
        assert left == gzip.decompress(request)
        assert writer.deliver(request, 1) is None
    assert len(search.documents(f"unmade-{DAY}")) == 1


def test_a_lifecycle_that_the_server_does_not_know_is_done_without(
    search: SearchServer, caplog: pytest.LogCaptureFixture
) -> None:
    with writing(search, "cycles", lifecycle="thirty-days") as writer:
        deliver(writer, points("g"), {}, AT_MS)
    assert search.values(f"cycles-{DAY}", "tag.group") == {"g": 1}
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "the server does not know the lifecycle policy" in record.getMessage()


@pytest.mark.parametrize(("overwrites", "replicas"), [(False, "0-4"), (True, "0-1")])
def test_a_template_that_is_there_stays_unless_told_otherwise(
    search: SearchServer, overwrites: bool, replicas: str
) -> None:
    name = f"kept-{overwrites}".lower()
    own = {"index_patterns": [f"{name}-*"], "template": {"settings": {"index.auto_expand_replicas": "0-4"}}}
    search.ask("PUT", f"/_index_template/{name}", own)
    with writing(search, name, overwrite_template=overwrites) as writer:
        deliver(writer, points("g"), {}, AT_MS)
    made = search.ask("GET", f"/{name}-{DAY}/_settings")[f"{name}-{DAY}"]["settings"]["index"]
    assert made["auto_expand_replicas"] == replicas


def test_documents_wait_while_the_template_is_refused(search: SearchServer) -> None:
    search.ask("PUT", "/_index_template/rival", {"index_patterns": ["rivals-*"], "priority": 500})
    with writing(search, "rivals") as writer:
        with pytest.raises(BusyError, match="the index template is refused"):
            deliver(writer, points("g"), {}, AT_MS)
        assert httpx.get(f"{search.url}/rivals-{DAY}").status_code == httpx.codes.NOT_FOUND
        search.ask("DELETE", "/_index_template/rival")
        deliver(writer, points("g"), {}, AT_MS)
    assert len(search.documents(f"rivals-{DAY}")) == 1


def test_tags_of_a_sink_do_not_hide_those_of_points(search: SearchServer) -> None:
    with writing(search, "hidden") as writer:
        deliver(writer, points("g"), {"cluster": "mine", "host": "h"}, AT_MS)
    [found] = search.documents(f"hidden-{DAY}")
    assert found["tag"] == {"cluster": "c", "group": "g", "partition": "0", "host": "h"}


# The last of all, as its server has to start once more.
def test_nothing_is_missing_and_nothing_is_twice_after_a_kill(search: SearchServer) -> None:
    names = [f"g{number}" for number in range(MANY)]
    with writing(search, "killed") as writer:

        def request_of(number: int) -> bytes:
            [request] = requests_for(writer, points(*names), TAGS, AT_MS + number)
            return request

        count, away = deliver_through_a_kill(writer, request_of, search)
    assert away > 0
    assert search.values(f"killed-{DAY}", "tag.group") == dict.fromkeys(names, count)
    assert set(search.values(f"killed-{DAY}", "@timestamp")) == {AT_MS + number for number in range(count)}

"""Points in a real InfluxDB, and in a VictoriaMetrics by the newer API: all of them, exact, and each once."""

import gzip
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from tests.kit.stores import InfluxDb, VictoriaMetrics, deliver, deliver_through_a_kill, requests_for
from tests.security.names import NAMES
from tests.sinks.test_encode import AT_MS, ODD, points
from warren.config.secrets import Secret
from warren.config.sinks import InfluxSink
from warren.domain.windows import UNKNOWN
from warren.errors import BusyError, RefusedError
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.points import Points

TAGS = {"host": 'a "host"', "usage": "größe, 1=2\\x"}
HOSTILE = [*ODD, "a\\,b", "a\\ b", "a\\=b", "\\", "\\\\", "\\\\,", ",", "=", " ", '"', "'", "a\r\nb", "#", "x" * 5000]
WIDE = "\uff3c"
AS_TAGS = {
    "end\\": f"end{WIDE}", "new\nline": "new\\nline", "tab\t": "tab\\t", "": None, "a\\,b": f"a{WIDE},b",
    "a\\ b": f"a{WIDE} b", "a\\=b": f"a{WIDE}=b", "\\": WIDE, "\\\\": f"\\{WIDE}", "\\\\,": f"\\{WIDE},",
    "a\r\nb": "a\\r\\nb",
}  # fmt: skip
"""What line protocol has no way to write."""
AS_WORDS = {"new\nline": "new\\nline", "": None, "a\r\nb": "a\\r\\nb"}

TOPIC = "infra.logis.metrics"
OWN = {"host": "h", "project_id": "p", "usage": "u"}


@contextmanager
def writing(url: str, database: str, **keys: Any) -> Iterator[InfluxWriter]:
    """A writer to a database of a test's own."""
    yield InfluxWriter(InfluxSink("influx", **{"urls": (url,), "database": database, **keys}))


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_every_name_is_read_back(influxdb: InfluxDb, encoding: str) -> None:
    database = f'names "{encoding}"'
    with writing(influxdb.url, database, content_encoding=encoding) as writer:
        deliver(writer, points(*HOSTILE), TAGS, AT_MS)
    found = influxdb.rows("SELECT * FROM burrow_partition", database)
    assert sorted(found, key=lambda row: row["offset"]) == [
        {
            "time": AT_MS,
            "cluster": "c",
            "group": AS_TAGS.get(name, name),
            "partition": "0",
            **TAGS,
            "status": "OK",
            "owner": AS_WORDS.get(name, name),
            "lag": 7,
            "offset": place,
        }
        for place, name in enumerate(HOSTILE)
    ]


def test_hostile_names_make_one_point_each_and_nothing_else(influxdb: InfluxDb) -> None:
    with writing(influxdb.url, "hostile") as writer:
        deliver(writer, points(*NAMES.values()), {"host": "h"}, AT_MS)
    assert influxdb.rows("SHOW MEASUREMENTS", "hostile") == [{"name": "burrow_partition"}]
    found = sorted(influxdb.rows("SELECT * FROM burrow_partition", "hostile"), key=lambda row: row["offset"])
    assert [row["offset"] for row in found] == list(range(len(NAMES)))
    for name, row in zip(NAMES.values(), found, strict=True):
        assert (row["cluster"], row["host"], row["status"], row["lag"]) == ("c", "h", "OK", 7)
        assert row["owner"] == name.replace("\n", "\\n").replace("\r", "\\r")
        # Line protocol has no way to write a backslash before some characters, nor line breaks and tabs.
        shown = re.sub(rf"\\[nrtfv]|[\\{WIDE}]", "", row["group"])
        assert shown == re.sub(r"[\\\n\r\t\f\v]", "", name)


def test_numbers_are_exact_and_unknown_ones_are_left_out(influxdb: InfluxDb) -> None:
    lags = {"none": 0, "much": 2**53, "more": 2**53 + 1, "unknown": UNKNOWN}
    with writing(influxdb.url, "numbers") as writer:
        for group, lag in lags.items():
            deliver(writer, points(group, lag=lag), {}, AT_MS)
    found = influxdb.rows('SELECT "group", "lag", "offset" FROM burrow_partition', "numbers")
    assert {row["group"]: row["lag"] for row in found} == {**lags, "unknown": None}


def test_lag_in_time_is_a_decimal_number_whatever_comes_first(influxdb: InfluxDb) -> None:
    seconds = {"whole": 12.0, "unknown": np.nan, "short": 0.25}
    with writing(influxdb.url, "decimals") as writer:
        for group, value in seconds.items():
            deliver(writer, replace(points(group), decimals={"seconds_behind": np.array([value])}), {}, AT_MS)
    found = influxdb.rows('SELECT "group", "seconds_behind", "lag" FROM burrow_partition', "decimals")
    assert {row["group"]: row["seconds_behind"] for row in found} == {**seconds, "unknown": None}


def test_what_comes_twice_is_the_same_point(influxdb: InfluxDb) -> None:
    with writing(influxdb.url, "twice") as writer:
        deliver(writer, points(*HOSTILE), TAGS, AT_MS)
        once = influxdb.rows("SELECT * FROM burrow_partition", "twice")
        deliver(writer, points(*HOSTILE), TAGS, AT_MS)
    assert influxdb.rows("SELECT * FROM burrow_partition", "twice") == once
    assert len(once) == len(HOSTILE)


def test_nothing_is_missing_and_nothing_is_twice_after_a_kill(influxdb: InfluxDb) -> None:
    names = [f"g{number}" for number in range(20)]
    with writing(influxdb.url, "killed") as writer:

        def request_of(number: int) -> bytes:
            [request] = requests_for(writer, points(*names), TAGS, AT_MS + number)
            return request

        count, away = deliver_through_a_kill(writer, request_of, influxdb)
    assert away > 0
    found = influxdb.rows('SELECT count("lag") FROM burrow_partition GROUP BY "group"', "killed")
    assert {row["group"]: row["count"] for row in found} == dict.fromkeys(names, count)


def test_a_database_that_is_dropped_is_made_again(influxdb: InfluxDb) -> None:
    with writing(influxdb.url, "dropped") as writer:
        deliver(writer, points("before"), {}, AT_MS)
        influxdb.rows('DROP DATABASE "dropped"')
        with pytest.raises(BusyError, match="404"):
            deliver(writer, points("after"), {}, AT_MS)
        deliver(writer, points("after"), {}, AT_MS)
    assert [row["group"] for row in influxdb.rows("SELECT * FROM burrow_partition", "dropped")] == ["after"]


def test_points_wait_for_the_retention_policy_that_is_asked_for(influxdb: InfluxDb) -> None:
    with writing(influxdb.url, "kept", retention_policy="long") as writer:
        with pytest.raises(BusyError, match="retention policy not found"):
            deliver(writer, points("g"), {}, AT_MS)
        influxdb.rows('CREATE RETENTION POLICY "long" ON "kept" DURATION INF REPLICATION 1')
        deliver(writer, points("g"), {}, AT_MS)
    assert len(influxdb.rows('SELECT * FROM "long".burrow_partition', "kept")) == 1
    assert not influxdb.rows("SELECT * FROM burrow_partition", "kept")


def test_a_request_is_refused_for_points_that_do_not_fit_and_the_others_are_kept(influxdb: InfluxDb) -> None:
    influxdb.rows('CREATE DATABASE "types"')
    other = f"burrow_partition,group=before lag=1.5 {AT_MS}000000"
    httpx.post(f"{influxdb.url}/write", params={"db": "types"}, content=other).raise_for_status()
    some = points("a", "b")
    mixed = replace(some, numbers={**some.numbers, "lag": np.array([7, UNKNOWN])})
    with writing(influxdb.url, "types") as writer, pytest.raises(RefusedError, match="field type conflict"):
        deliver(writer, mixed, {}, AT_MS)
    found = influxdb.rows("SELECT * FROM burrow_partition", "types")
    assert {row["group"] for row in found} == {"before", "b"}


def test_tags_of_a_sink_do_not_hide_those_of_points(influxdb: InfluxDb) -> None:
    with writing(influxdb.url, "hidden") as writer:
        deliver(writer, points("g"), {"cluster": "mine", "host": "h"}, AT_MS)
    [row] = influxdb.rows("SELECT * FROM burrow_partition", "hidden")
    assert (row["cluster"], row["host"]) == ("c", "h")


def test_the_next_server_is_asked_when_one_is_away(influxdb: InfluxDb) -> None:
    with writing(influxdb.url, "second", urls=("http://127.0.0.1:1", influxdb.url)) as writer:
        with pytest.raises(BusyError):
            deliver(writer, points("g"), {}, AT_MS)
        deliver(writer, points("g"), {}, AT_MS)
    assert len(influxdb.rows("SELECT * FROM burrow_partition", "second")) == 1


def test_who_may_only_write_writes_and_who_has_the_wrong_password_waits() -> None:
    root = ("root", "secret")
    with InfluxDb(has_users=True) as server:
        for statement in (
            "CREATE USER root WITH PASSWORD 'secret' WITH ALL PRIVILEGES",
            'CREATE DATABASE "lag"',
            "CREATE USER writer WITH PASSWORD 'pen'",
            'GRANT WRITE ON "lag" TO writer',
        ):
            server.rows(statement, user=root)
        with writing(server.url, "lag", username="writer", password=Secret("pencil")) as writer:
            for _ in range(2):
                with pytest.raises(BusyError, match="401"):
                    deliver(writer, points("wrong"), {}, AT_MS)
        with writing(server.url, "lag", username="writer", password=Secret("pen")) as writer:
            deliver(writer, points("right"), {}, AT_MS)
        assert [row["group"] for row in server.rows("SELECT * FROM burrow_partition", "lag", root)] == ["right"]


def test_points_are_written_to_a_bucket(victoriametrics: VictoriaMetrics) -> None:
    names = [name for name in ODD if "\\" not in name and name]
    keys = {"bucket": "lag", "organization": "o", "token": Secret("t")}
    at_ms = time.time_ns() // 1_000_000 // 10_000 * 10_000
    with writing(victoriametrics.url, "unused", **keys) as writer:
        for _ in range(2):
            deliver(writer, points(*names, lag=2**53), {"host": "h, 1"}, at_ms)
    found = victoriametrics.series("burrow_partition_lag")
    assert {one["metric"]["group"] for one in found} == {AS_TAGS.get(name, name) for name in names}
    for one in found:
        assert one["metric"]["host"] == "h, 1"
        assert (one["timestamps"], one["values"]) == ([at_ms], [2**53])


def test_a_server_without_databases_is_written_to_as_well(victoriametrics: VictoriaMetrics) -> None:
    with writing(victoriametrics.url, "telegraf") as writer:
        deliver(writer, points("v1"), {"of": "v1"}, AT_MS)
    [found] = victoriametrics.series('burrow_partition_lag{of="v1"}')
    assert (found["values"], found["timestamps"]) == ([7], [AT_MS])


def column(*texts: str) -> pa.StringArray:
    return pa.array(texts, pa.string())


def lag_of(minute: int, group: str, partition: int) -> int:
    """So large that it shows when a sum is not exact."""
    return 2**53 * partition + 10 * minute + len(group)


def some_minutes(influxdb: InfluxDb) -> list[int]:
    """Five minutes of two groups on two partitions of two topics, at times of now."""
    first_ms = (time.time_ns() // 60_000_000_000 - 6) * 60_000 + 10_000
    groups, topics, partitions = ("g", "other"), (TOPIC, "still"), (0, 1)
    each = [(group, topic, partition) for group in groups for topic in topics for partition in partitions]
    ends = [(topic, partition) for topic in topics for partition in partitions]
    moments = [first_ms + 60_000 * minute for minute in range(5)]
    with writing(influxdb.url, "telegraf") as writer:
        for minute, at_ms in enumerate(moments):
            group_points = Points(
                "burrow_group",
                {"cluster": column("c"), "group": column("g")},
                {"status": column("OK")},
                {"status_code": np.array([1]), "total_lag": np.array([100 + minute]), "lag": np.array([minute])},
            )
            partition_points = Points(
                "burrow_partition",
                {
                    "cluster": column(*("c" for _ in each)),
                    "group": column(*(group for group, _, _ in each)),
                    "topic": column(*(topic for _, topic, _ in each)),
                    "partition": column(*(str(partition) for _, _, partition in each)),
                },
                {"status": column(*("OK" for _ in each))},
                {
                    "lag": np.array([lag_of(minute, group, partition) for group, _, partition in each]),
                    "offset": np.array([1000 * partition + minute for _, _, partition in each]),
                },
            )
            # One topic gets 10 and 30 messages a minute, the other one none.
            heads = [1000 + (10 + 20 * partition) * minute * (topic == TOPIC) for topic, partition in ends]
            topic_points = Points(
                "burrow_topic",
                {
                    "cluster": column(*("c" for _ in ends)),
                    "topic": column(*(topic for topic, _ in ends)),
                    "partition": column(*(str(partition) for _, partition in ends)),
                },
                {},
                {"offset": np.array(heads)},
            )
            for some in (group_points, partition_points, topic_points):
                deliver(writer, some, OWN, at_ms)
    return moments


@pytest.fixture(scope="module")
def moments(influxdb: InfluxDb) -> list[int]:
    return some_minutes(influxdb)


COLUMNS = {
    "burrow_group": {"time", "cluster", "group", *OWN, "status", "status_code", "total_lag", "lag"},
    "burrow_partition": {"time", "cluster", "group", "topic", "partition", *OWN, "status", "lag", "offset"},
    "burrow_topic": {"time", "cluster", "topic", "partition", *OWN, "offset"},
}


def test_the_newest_of_a_group_are_found(influxdb: InfluxDb, moments: list[int]) -> None:
    found = influxdb.rows("select * from burrow_group order by time desc limit 5", "telegraf")
    assert [set(row) for row in found] == [COLUMNS["burrow_group"]] * 5
    assert [(row["time"], row["total_lag"], row["lag"]) for row in found] == [
        (at_ms, 100 + minute, minute) for minute, at_ms in reversed(list(enumerate(moments)))
    ]
    assert all((row["group"], row["usage"], row["project_id"]) == ("g", "u", "p") for row in found)


@pytest.mark.parametrize("measurement", ["burrow_partition", "burrow_topic"])
def test_the_newest_of_a_topic_are_found(influxdb: InfluxDb, moments: list[int], measurement: str) -> None:
    statement = f"select * from {measurement} where topic = 'infra.logis.metrics' order by time desc limit 5"
    found = influxdb.rows(statement, "telegraf")
    assert [set(row) for row in found] == [COLUMNS[measurement]] * 5
    assert {row["topic"] for row in found} == {TOPIC}
    for row in found:
        minute, partition = moments.index(row["time"]), int(row["partition"])
        if measurement == "burrow_topic":
            assert row["offset"] == 1000 + (10 + 20 * partition) * minute
        else:
            assert (row["lag"], row["offset"]) == (lag_of(minute, row["group"], partition), 1000 * partition + minute)


def test_the_rate_of_a_topic_is_right(influxdb: InfluxDb, moments: list[int]) -> None:
    found = influxdb.rows(
        'SELECT difference(mean("offset")) FROM "burrow_topic" WHERE time >= now() - 30m '
        'GROUP BY time(1m), "topic" fill(previous)',
        "telegraf",
    )
    rates = {(row["topic"], row["time"]): row["difference"] for row in found}
    for at_ms in moments[1:]:
        minute_ms = at_ms // 60_000 * 60_000
        assert (rates[TOPIC, minute_ms], rates["still", minute_ms]) == (20, 0)


def test_the_sum_over_partitions_is_exact(influxdb: InfluxDb, moments: list[int]) -> None:
    found = influxdb.rows(
        'SELECT sum("lag") FROM "burrow_partition" WHERE time >= now() - 30m '
        'GROUP BY time(2s), "group", "topic" fill(none)',
        "telegraf",
    )
    assert {(row["group"], row["topic"], row["time"]): row["sum"] for row in found} == {
        (group, topic, at_ms): lag_of(minute, group, 0) + lag_of(minute, group, 1)
        for minute, at_ms in enumerate(moments)
        for group in ("g", "other")
        for topic in (TOPIC, "still")
    }
    assert len(found) == len(moments) * 4


def test_a_request_holds_a_bounded_number_of_lines(influxdb: InfluxDb) -> None:
    names = [f"g{number}" for number in range(10_001)]
    with writing(influxdb.url, "many") as writer:
        requests = requests_for(writer, points(*names), {}, AT_MS)
        assert [gzip.decompress(one).count(b"\n") for one in requests] == [10_000, 1]
        for request in requests:
            writer.deliver(request, 1)
    [row] = influxdb.rows('SELECT count("lag") FROM burrow_partition', "many")
    assert row["count"] == len(names)

"""A snapshot as points: every number that of the snapshot, in telegraf's shape, and only of whom a sink wants."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.kit.plans import cluster_state
from tests.kit.servers import Town
from tests.kit.verdicts import Partitions, Verdicts
from warren.config.sinks import Sink
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.sinks.points import TELEGRAF_CODES, Points, points_of
from warren.snapshot.manifest import Position, Source
from warren.snapshot.reader import Snapshot
from warren.snapshot.schemas import RATES, Row

Rows = list[dict[str, Any]]
AT_MS = 2_000_000_000_000
NAME = "warren_cluster"
TIME_LAG = (
    "seconds_behind", "oldest_unread_age_seconds", "catch_up_seconds", "retention_left_seconds", "falling_behind",
    "lost_messages",
)  # fmt: skip
OK: Partitions = [(Status.OK, 3)]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("points")).grow()
    town.publish()
    return town


@pytest.fixture(scope="module")
def snapshot(town: Town) -> Snapshot:
    return Snapshot(town.cycles.store, town.cycles.store.newest())


def rows(points: list[Points], name: str) -> Rows:
    """Points of one measurement as dictionaries, without what is left out."""
    found: Rows = []
    for one in points:
        if one.name == name:
            columns = {**one.tags, **one.texts}
            for place in range(len(one)):
                row = {key: column[place].as_py() for key, column in columns.items()}
                row |= {key: int(column[place]) for key, column in one.numbers.items()}
                row = {key: value for key, value in row.items() if value not in ("", UNKNOWN)}
                decimals = {key: float(column[place]) for key, column in one.decimals.items()}
                found.append(row | {key: value for key, value in decimals.items() if not math.isnan(value)})
    return found


def time_lag(row: Row) -> dict[str, float]:
    """The fields of lag in time of a row of a snapshot, without what is unknown or never."""
    fields = {
        "seconds_behind": row["seconds_behind"],
        "oldest_unread_age_seconds": row["oldest_unread_age_s"],
        "catch_up_seconds": row["catch_up_low_s"],
        "retention_left_seconds": row["retention_left_s"],
        "falling_behind": UNKNOWN if row["catch_up_low_s"] == UNKNOWN else int(row["catch_up_low_s"] == math.inf),
        "lost_messages": row["lost"],
    }
    return {key: value for key, value in fields.items() if value not in (UNKNOWN, math.inf)}


def test_partitions_are_those_of_the_snapshot(snapshot: Snapshot) -> None:
    made = rows(points_of(snapshot, Sink("s"), AT_MS), "burrow_partition")
    held = snapshot.partitions().to_pylist()
    assert len(made) == len(held)
    expected = [
        {
            "cluster": row["cluster"],
            "group": row["group"],
            "topic": row["topic"],
            "partition": str(row["partition"]),
            "status": Status(row["status"]).name,
            "status_code": TELEGRAF_CODES.get(Status(row["status"]), 0),
            "burrow_code": row["status"],
            "reason": Reason(row["reason"]).name.lower(),
            "owner": row["owner"] or "",
            "client_id": row["client_id"] or "",
            "lag": row["current_lag"],
            "offset": row["end_offset"],
            "timestamp": row["end_ms"],
            **time_lag(row),
        }
        for row in held
    ]
    assert made == [{key: value for key, value in row.items() if value not in ("", UNKNOWN)} for row in expected]
    assert {"STALL", "WARN", "OK"} <= {row["status"] for row in made}


def test_groups_have_the_highest_and_the_sum_of_their_offsets_and_the_newest_commit(snapshot: Snapshot) -> None:
    points = points_of(snapshot, Sink("s"), AT_MS)
    partitions = rows(points, "burrow_partition")
    made = {(row["cluster"], row["group"]): row for row in rows(points, "burrow_group")}
    held = {(row["cluster"], row["group"]): row for row in snapshot.groups().to_pylist()}
    assert made.keys() == held.keys()
    for name, row in made.items():
        own = [one for one in partitions if (one["cluster"], one["group"]) == name]
        offsets = [one["offset"] for one in own if "offset" in one]
        assert row.get("offset") == max(offsets, default=None)
        assert row["total_offset"] == sum(offsets)
        assert row["timestamp"] == max(one["timestamp"] for one in own)
        assert row["partition_count"] == len(own) == held[name]["partitions"]
        assert row["total_lag"] == held[name]["totallag"]
        assert row["lag"] == max(held[name]["maxlag"], 0)
        assert row["status"] == Status(held[name]["status"]).name
        assert {key: value for key, value in row.items() if key in TIME_LAG} == time_lag(held[name])
        rates = {key: held[name][key] for key in RATES if held[name][key] != UNKNOWN}
        assert {key: value for key, value in row.items() if key in RATES} == rates
    assert {row["seconds_behind"] > 0 for row in made.values() if "seconds_behind" in row} == {True, False}


def test_lag_in_time_is_left_out_where_it_is_unknown_or_never(tmp_path: Path) -> None:
    published = Verdicts(tmp_path).publish(
        {"one": {"unknown": OK, "catches up": OK, "falls behind": OK}},
        time_lags={
            "catches up": {"seconds_behind": 41.5, "catch_up_low_s": 12.25, "catch_up_high_s": math.inf,
                           "retention_left_s": math.inf, "produced_1m": 0.0, "oldest_unread_age_s": 432_000.5},
            "falls behind": {"seconds_behind": 41.5, "catch_up_low_s": math.inf, "retention_left_s": 0, "lost": 7},
        },
    )  # fmt: skip
    made = {row["group"]: row for row in rows(points_of(published, Sink("s"), AT_MS), "burrow_group")}
    shown = {group: {key: row[key] for key in (*TIME_LAG, *RATES) if key in row} for group, row in made.items()}
    assert shown == {
        "unknown": {"lost_messages": 0},
        "catches up": {
            "seconds_behind": 41.5, "catch_up_seconds": 12.25, "falling_behind": 0, "lost_messages": 0,
            "produced_1m": 0.0, "oldest_unread_age_seconds": 432_000.5,
        },
        "falls behind": {
            "seconds_behind": 41.5, "retention_left_seconds": 0.0, "falling_behind": 1, "lost_messages": 7,
        },
    }  # fmt: skip


def test_topics_have_the_head_of_each_partition_that_is_known(snapshot: Snapshot) -> None:
    made = rows(points_of(snapshot, Sink("s"), AT_MS), "burrow_topic")
    heads = {(row["cluster"], row["topic"], row["partition"]): row["offset"] for row in made}
    assert heads["one", "orders", "2"] == 1090
    assert heads["two", "unread", "0"] == 7
    assert ("one", "audit", "1") not in heads, "nobody knows that one"
    assert len(made) == 2 * (3 + 1 + 1)


@pytest.mark.parametrize(
    ("sink", "measurements"),
    [
        (Sink("s", detail="group"), {"warren_cluster", "burrow_group"}),
        (Sink("s", detail="topic"), {"warren_cluster", "burrow_group", "burrow_topic"}),
        (Sink("s"), {"warren_cluster", "burrow_group", "burrow_topic", "burrow_partition"}),
        (Sink("s", clusters_include=("none",)), set()),
    ],
)
def test_detail_says_how_much(snapshot: Snapshot, sink: Sink, measurements: set[str]) -> None:
    assert {points.name for points in points_of(snapshot, sink, AT_MS)} == measurements


def test_filters_are_telegrafs_and_those_of_topics_leave_groups_alone(snapshot: Snapshot) -> None:
    sink = Sink("s", clusters_exclude=("t*",), groups_include=("{slow,fresh,stalled}",), topics_exclude=("aud?t",))
    points = points_of(snapshot, sink, AT_MS)
    assert {row["group"] for row in rows(points, "burrow_group")} == {"slow", "fresh", "stalled"}
    assert {row["cluster"] for points_ in points for row in rows([points_], points_.name)} == {"one"}
    assert {row["topic"] for row in rows(points, "burrow_partition")} == {"orders"}
    assert {row["topic"] for row in rows(points, "burrow_topic")} == {"orders", "unread"}
    all_topics = points_of(snapshot, Sink("s", clusters_include=("one",)), AT_MS)
    whole = {row["group"]: row for row in rows(all_topics, "burrow_group")}
    assert all(row == whole[row["group"]] for row in rows(points, "burrow_group")), "sums are over all topics"


def test_a_group_that_is_unknown_has_no_points_and_is_counted(tmp_path: Path) -> None:
    town = Town(tmp_path).grow()
    town.hold_back("stalled", since_ms=town.now_ms - 90_000)
    made = points_of(Snapshot(town.cycles.store, town.cycles.manifest()), Sink("s"), AT_MS)
    for name in ("burrow_group", "burrow_partition"):
        groups = {row["group"] for row in rows(made, name) if row["cluster"] == "one"}
        assert {"healthy", "slow"} <= groups
        assert "stalled" not in groups
    assert [row["groups_unknown"] for row in rows(made, NAME)] == [1, 0]
    states = {"one": cluster_state(), "two": cluster_state(unknown_since_ms=1)}
    away = points_of(Snapshot(town.cycles.store, town.cycles.manifest(clusters=states)), Sink("s"), AT_MS)
    assert [row["groups_unknown"] for row in rows(away, NAME)] == [1, 24]


def test_a_cluster_has_its_roll_up_and_the_health_of_the_pipeline(town: Town) -> None:
    source = Source("id", {0: Position(90, 100, 107, 0), 1: Position(5, 5, 5, 0)})
    state = cluster_state(
        sources={"__consumer_offsets": source},
        groups_by_status={"OK": 7, "ERR": 2},
        partitions_by_status={"OK": 20, "STALL": 3, "REWIND": 1},
        totallag=1234,
    )
    manifest = town.cycles.manifest(
        now_ms=AT_MS - 2500,
        clusters={"one": state, "two": cluster_state(is_catching_up=True)},
        cycle_ms={"read": 300, "judge": 700},
        rejects={"one": {"truncated": 3, "unknown key": 1}},
    )
    sink = Sink("s", clusters_exclude=("two",))
    assert rows(points_of(Snapshot(town.cycles.store, manifest), sink, AT_MS), "warren_cluster") == [
        {
            "cluster": "one", "judged": 1, "catching_up": 0, "backlog": 10, "held_by_transaction": 7, "rejected": 4,
            "groups_unknown": 0, "age_ms": 2500, "cycle_ms": 1000, "groups_ok": 7, "groups_warn": 0, "groups_err": 2,
            "partitions_ok": 20, "partitions_warn": 0, "partitions_stop": 0, "partitions_stall": 3,
            "partitions_rewind": 1, "total_lag": 1234,
        }
    ]  # fmt: skip
    [two] = rows(points_of(Snapshot(town.cycles.store, manifest), Sink("s", clusters_include=("two",)), AT_MS), NAME)
    assert (two["catching_up"], two["groups_ok"], two["rejected"]) == (1, 0, 0)


def test_a_cluster_that_is_away_has_only_the_point_that_says_so(town: Town) -> None:
    away = cluster_state(unknown_since_ms=1, error="timed out", groups_by_status={"OK": 7}, totallag=5)
    manifest = town.cycles.manifest(now_ms=town.now_ms, clusters={"one": away, "two": cluster_state()})
    points = points_of(Snapshot(town.cycles.store, manifest), Sink("s"), AT_MS)
    one, two = rows(points, NAME)
    assert (one["cluster"], one["judged"], one["error"]) == ("one", 0, "timed out")
    assert not {"groups_ok", "partitions_ok", "total_lag"} & one.keys(), "what is known of them is of before"
    assert (two["cluster"], two["judged"], two["total_lag"]) == ("two", 1, 0)
    assert {row["cluster"] for some in points for row in rows([some], some.name) if some.name != NAME} == {"two"}


def test_before_anything_is_known_there_are_only_clusters(tmp_path: Path) -> None:
    town = Town(tmp_path)
    town.publish()
    points = points_of(Snapshot(town.cycles.store, town.cycles.store.newest()), Sink("s"), AT_MS)
    assert [one.name for one in points] == [NAME]

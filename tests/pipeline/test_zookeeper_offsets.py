"""What a cycle takes of a reader's sample, and what the buckets make of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from warren.domain.offsets_logs import UNSEEN_MS, OffsetsLog, zookeeper_log_id
from warren.domain.status import Status
from warren.domain.windows import OLDEST_ORDER
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.schemas import TableKind
from warren.pipeline.zookeeper_offsets import SectionRead, plan_section_read
from warren.snapshot.manifest import Position, ZooKeeperSource
from warren.sources.zookeeper.samples import CHANGES, REJECTS, Ack, Seen, ZooKeeperSample

OFFSET_MS = 1_000_000
"""What makes steady times wall times."""
CUTOFF = 50_000 + OFFSET_MS
ZK = zookeeper_log_id("zk")
KEY = ("local", "g", "t", 0)


def change(version: int, observed_ms: int, zxid: int, *, group: str = "g", is_tombstone: int = 0) -> dict[str, Any]:
    return {
        "version": version, "observed_ms": observed_ms, "group": group, "topic": "t", "partition": 0,
        "offset": 10 * version, "time_ms": 7, "zxid": zxid, "is_tombstone": is_tombstone,
    }  # fmt: skip


def sample(*changes: dict[str, Any], listing: list[dict[str, Any]] | None = None, **others: Any) -> ZooKeeperSample:
    table = pa.Table.from_pylist(list(changes), schema=CHANGES)
    whole = None if listing is None else pa.Table.from_pylist(listing, schema=CHANGES)
    made = ZooKeeperSample("zk", "i", tree_id="a", is_listed=True, seen=Seen(100, 49_000), version=9, changes=table)
    return replace(made, listing=whole, **others)


def taken(before: ZooKeeperSource | None, given: ZooKeeperSample, **others: Any) -> SectionRead:
    return plan_section_read("local", before, given, CUTOFF, OFFSET_MS, CUTOFF + 1_000, **others)


def zxids(read: SectionRead) -> list[int]:
    return [int(order) for order in read.commits["order"].to_pylist()]


def test_all_is_taken_that_was_observed_before_the_heads_were_sampled() -> None:
    read = taken(
        None, sample(change(3, 40_000, 90), change(5, 50_000, 97), change(7, 50_001, 95), change(8, 50_002, 99))
    )
    assert zxids(read) == [90, 97]
    assert read.ack == Ack("i", 6)
    position = read.after.position
    assert position.next_offset == 95, "what is left is newer than the position"
    assert position.seen_until_ms == 49_000 + OFFSET_MS
    assert read.to_log(CUTOFF).read_from_ms == 0


def test_what_was_taken_before_does_not_count_again() -> None:
    known = ZooKeeperSource("a", Position(96, 96, 96, seen_until_ms=CUTOFF - 10_000))
    listing = [change(1, 10_000, 80, group="old"), change(2, 10_000, 97)]
    read = taken(known, sample(change(4, 20_000, 97), change(5, 21_000, 60, is_tombstone=1), listing=listing))
    assert zxids(read) == [97, 97, 60], "windows keep one of equal orders, and a deletion always counts"
    assert read.tables(0)[TableKind.LISTED_PARTITIONS]["group"].to_pylist() == ["old", "g"]
    assert read.to_log(CUTOFF).read_from_ms == CUTOFF - 10_000
    again = taken(known, sample(listing=listing), is_from_start=True)
    assert zxids(again) == [80, 97], "groups that are wanted only now have their last commit"


def test_a_root_that_was_created_again_starts_over() -> None:
    known = ZooKeeperSource("a", Position(500, 500, 500, seen_until_ms=CUTOFF - 10_000))
    read = taken(known, sample(change(1, 10_000, 3), tree_id="b", seen=Seen(4, 49_000)))
    assert (zxids(read), read.is_another_log, read.after.tree_id) == ([3], True, "b")
    assert read.after.position.next_offset == 5


def test_rejects_count_once() -> None:
    rows = [(1, 1, 50), (2, 1, 99), (3, 1, -1), (8, 60_000, 98)]
    rejects = pa.Table.from_pylist(
        [{"version": v, "observed_ms": at, "zxid": z, "reason": "bad", "sample": f"/{v}"} for v, at, z in rows],
        schema=REJECTS,
    )
    known = ZooKeeperSource("a", Position(96, 96, 96, seen_until_ms=CUTOFF - 10_000))
    read = taken(known, sample(change(7, 50_001, 97), rejects=rejects))
    assert read.tables(0)[TableKind.REJECTS].to_pylist() == [
        {"cluster": 0, "reason": "bad", "count": 2, "sample": "/2"}
    ]


@pytest.mark.parametrize(
    "given",
    [ZooKeeperSample("zk", error="ZooKeeper at a:1 cannot be reached"), ZooKeeperSample("zk", is_listed=False)],
    ids=["away", "not listed yet"],
)
def test_an_ensemble_that_is_away_is_unknown_since_it_was_seen(given: ZooKeeperSample) -> None:
    seen_ms = CUTOFF - UNSEEN_MS - 5_000
    known = ZooKeeperSource("a", Position(96, 96, 96, seen_until_ms=seen_ms))
    read = taken(known, given)
    log = read.to_log(CUTOFF)
    assert (log.unknown_since_ms, log.away_from_ms, log.away_to_ms) == (seen_ms, seen_ms, None)
    assert (read.ack, read.after.tree_id, read.after.position.next_offset) == (None, "a", 96)
    back = taken(read.after, sample())
    assert back.to_log(CUTOFF).unknown_since_ms is None
    assert back.after.position.away_to_ms == CUTOFF + 1_000


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path, clusters=(cluster(),)))


def cluster(**changes: Any) -> PlannedCluster:
    logs = tuple(OffsetsLog(log, 0, NOW + 10**6, NOW + 10**6) for log in (0, ZK))
    return replace(PlannedCluster("local", is_judged=True, logs=logs, zookeeper_logs=(ZK,)), **changes)


def in_kafka(order: int, time_ms: int, offset: int) -> Commit:
    return Commit("g", "t", 0, offset, time_ms, order)


def in_zookeeper(order: int, time_ms: int, offset: int | None, group: str = "g") -> Commit:
    return Commit(group, "t", 0, offset, time_ms, order, log=ZK)


def test_a_partition_follows_the_newer_commit_wherever_it_is_made(cycles: Rehearsal) -> None:
    for given in ([in_kafka(1, NOW, 10), in_zookeeper(900, NOW - 50, 5)], [in_zookeeper(900, NOW - 50, 5)]):
        row = cycles.cycle(NOW, given)[KEY]
        assert (row["offsets_log"], row["offsets"]) == (0, [10]), "a znode that was left behind does not count"
    row = cycles.cycle(NOW + 1, [in_zookeeper(901, NOW + 1_000, 20)])[KEY]
    assert (row["offsets_log"], row["offsets"], row["orders"]) == (ZK, [10, 20], [OLDEST_ORDER, 901])
    row = cycles.cycle(NOW + 2, [in_zookeeper(902, NOW + 2_000, 30), in_kafka(2, NOW + 3_000, 40)])[KEY]
    assert (row["offsets_log"], row["offsets"]) == (0, [10, 20, 40])
    row = cycles.cycle(NOW + 3, [in_zookeeper(903, NOW + 4_000, 45), in_kafka(3, NOW + 4_000, 50)])[KEY]
    assert (row["offsets_log"], row["offsets"]) == (0, [10, 20, 40, 50])


def test_a_change_that_is_given_twice_counts_once(cycles: Rehearsal) -> None:
    twice = [in_zookeeper(900, NOW, 5), in_zookeeper(900, NOW, 5)]
    cycles.cycle(NOW, twice)
    assert cycles.cycle(NOW + 1, [*twice, in_zookeeper(901, NOW + 9, 6)])[KEY]["offsets"] == [5, 6]


def test_a_znode_that_is_deleted_takes_its_partition_with_it_but_not_one_that_has_moved(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [in_zookeeper(900, NOW, 5), in_zookeeper(901, NOW, 5, group="other")])
    cycles.cycle(NOW + 1, [in_kafka(1, NOW + 100, 7)])
    found = cycles.cycle(NOW + 2, [in_zookeeper(900, NOW, None), in_zookeeper(901, NOW, None, group="other")])
    assert found.keys() == {KEY}
    assert found[KEY]["offsets"] == [5, 7]


def test_what_a_list_of_all_znodes_lacks_was_deleted_unseen(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [in_zookeeper(1, NOW, 5), in_zookeeper(2, NOW, 5, group="gone")])
    cycles.cycle(NOW, [Commit("kafka", "t", 0, 5, NOW, 1)])
    listed = [{"cluster": 0, "group": group, "topic": "t", "partition": 0, "log": ZK} for group in ("g", "never-seen")]
    found = cycles.cycle(NOW + 1, listed_partitions=listed, clusters=(cluster(listed_logs=(ZK,)),))
    assert {group for _, group, _, _ in found} == {"g", "kafka"}


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, {"g", "kafka"}),
        ({"is_restarted": True}, {"g"}),
        ({"zookeeper_logs": ()}, {"kafka"}),
        ({"logs": (OffsetsLog(ZK, 0, 0, 0, is_another_log=True),)}, {"kafka"}),
    ],
    ids=["as it was", "another offsets topic", "no section any more", "another root"],
)
def test_a_log_that_starts_over_takes_its_own_partitions_only(
    cycles: Rehearsal, changes: dict[str, Any], left: set[str]
) -> None:
    cycles.cycle(NOW, [in_zookeeper(1, NOW, 5), Commit("kafka", "t", 0, 5, NOW, 1)])
    found = cycles.cycle(NOW + 1, clusters=(cluster(**changes),))
    assert {group for _, group, _, _ in found} == left


def test_brokers_that_do_not_list_a_group_of_zookeeper_do_not_delete_it(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [in_zookeeper(1, NOW, 5), Commit("kafka", "t", 0, 5, NOW, 1)])
    deleted = [{"cluster": 0, "group": group, "is_deleted": True} for group in ("g", "kafka")]
    found = cycles.cycle(NOW + 1, listed=deleted, clusters=(cluster(listed_at_ms=NOW + 1),))
    assert {group for _, group, _, _ in found} == {"g"}
    assert cycles.results[0].unlisted_groups == ()


def test_owners_in_zookeeper_are_those_of_partitions_that_are_committed_there(cycles: Rehearsal) -> None:
    moved = Commit("moved", "t", 0, 5, NOW, 1)
    cycles.cycle(NOW, [in_zookeeper(1, NOW, 5), moved])
    owner = {"cluster": 0, "topic": "t", "partition": 0, "client_id": ""}
    cycles.cycle(NOW, owners=[{**owner, "group": "moved", "owner": "in-kafka", "log": -1}])
    cycles.cycle(
        NOW,
        owners=[
            {**owner, "group": "g", "owner": "in-zookeeper", "log": ZK},
            {"cluster": 0, "group": "moved", "log": ZK},
        ],
    )
    found = cycles.partitions()
    assert found[KEY]["owner"] == "in-zookeeper"
    assert found["local", "moved", "t", 0]["owner"] == "in-kafka"
    found = cycles.cycle(NOW, owners=[{"cluster": 0, "group": "g", "log": ZK}])
    assert found[KEY]["owner"] == ""


def test_groups_of_an_ensemble_that_is_away_are_unknown_and_not_stopped(cycles: Rehearsal) -> None:
    for minute in range(12):
        at_ms = NOW + minute * 60_000
        cycles.sample(at_ms, {"local": {"t": [1_000 + 100 * minute]}})
        cycles.cycle(at_ms, [in_zookeeper(minute + 1, at_ms - 1_000, 900)])
    last_ms = NOW + 11 * 60_000
    away = OffsetsLog(ZK, 0, 0, last_ms, unknown_since_ms=last_ms, away_from_ms=last_ms)
    later_ms = last_ms + 3_600_000
    cycles.sample(later_ms, {"local": {"t": [9_000]}})
    row = cycles.cycle(later_ms, clusters=(cluster(logs=(away,)),))[KEY]
    assert Status(row["status"]) == Status.STALL, "its last verdict stands"
    assert cycles.groups()["local", "g"]["unknown_since_ms"] == last_ms
    row = cycles.cycle(later_ms + 1, clusters=(cluster(logs=(replace(away, unknown_since_ms=None),)),))[KEY]
    assert Status(row["status"]) == Status.STALL, "the outage is not silence"

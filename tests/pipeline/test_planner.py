"""What a cycle is planned to do, from configuration, manifest and samples."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from tests.kit.plans import addressed_rows, manifest, plan
from warren.config import Cluster, Config, Consumer, Pipeline
from warren.config.pipeline import Evaluator, Storage
from warren.domain.clock_skew import MAX_COMMIT_DELAY_MS
from warren.domain.matching import GroupFilter
from warren.domain.offsets_logs import UNSEEN_MS, OffsetsLog
from warren.kafka.samples import COMMITTED, OWNERS, ClusterSample, PartitionEnds, Topic, to_table
from warren.pipeline.deletions import deletions_after_cycle, deletions_in_cycle
from warren.pipeline.next_manifest import UNKNOWN_CLUSTER
from warren.pipeline.offset_ranges import admit
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.planner import (
    Planner,
    driver_tables,
)
from warren.pipeline.schemas import TableKind
from warren.snapshot.manifest import ClusterState, Position, Source
from warren.snapshot.requests import PipelineRequest, RequestKind
from warren.sources.offsets_topic import OffsetRange, offsets_topics

NOW = 1_000_000


def consumer(name: str, cluster: str, **changes: object) -> Consumer:
    return Consumer(name, cluster, ("a:1",), **changes)  # type: ignore[arg-type]


def config(*consumers: Consumer, **changes: object) -> Config:
    names = {c.cluster for c in consumers}
    clusters = {name: Cluster(name, ("a:1",), offset_refresh=20) for name in names}
    return Config(clusters, {c.name: c for c in consumers}, **changes)  # type: ignore[arg-type]


def sample(cluster: str, topic_id: str = "id", topic: str = "__consumer_offsets", **changes: object) -> ClusterSample:
    ends = {topic: {0: PartitionEnds(5, 30, 30)}}
    return ClusterSample(cluster, ends=ends, offsets_topic_ids={topic: topic_id}, **changes)  # type: ignore[arg-type]


def read_to(offset: int, topic_id: str = "id") -> ClusterState:
    source = Source(topic_id, {0: Position(offset, offset, offset)})
    sources = {"__consumer_offsets": source}
    return replace(UNKNOWN_CLUSTER, sources=sources, looked_at_ms=NOW - 10, topics_at_ms=NOW - 20)


def test_a_cycle_runs_as_often_as_the_quickest_wants(tmp_path: Path) -> None:
    quick = config(consumer("x", "c"), pipeline=Pipeline(trigger=5))
    slow = config(consumer("x", "c"), pipeline=Pipeline(trigger=60))
    assert (Planner(quick, "").trigger_s, Planner(slow, "").trigger_s) == (5, 20)


def test_an_offsets_topic_is_read_once_for_all_sections_that_name_it() -> None:
    held = offsets_topics(config(consumer("x", "c"), consumer("y", "c"), consumer("z", "c", offsets_topic="other")))
    assert {place: [c.name for c in own] for place, own in held.items()} == {
        ("c", "__consumer_offsets"): ["x", "y"],
        ("c", "other"): ["z"],
    }


def test_a_start_at_the_latest_needs_all_sections_of_a_topic_to_want_it(tmp_path: Path) -> None:
    latest, earliest = consumer("x", "c", start_latest=True), consumer("y", "c")
    backfilled = consumer("z", "c", start_latest=True, backfill_earliest=True)
    for consumers, ranges in [
        ([latest], {}),
        ([latest, earliest], {0: OffsetRange(5, 30)}),
        ([backfilled], {0: OffsetRange(5, 30)}),
    ]:
        planner = Planner(config(*consumers), "")
        before = manifest(plan(tmp_path))
        (read,) = planner.reads(before, {"c": sample("c")}, NOW)
        assert read.ranges == ranges
        assert planner.needs_seeds(before, "c") == (not ranges)


def test_a_cluster_goes_on_where_it_was_and_one_that_is_away_is_left_alone(tmp_path: Path) -> None:
    planner = Planner(config(consumer("x", "a"), consumer("y", "b"), consumer("z", "c")), "")
    before = manifest(plan(tmp_path), clusters={"a": read_to(20), "b": read_to(20, "another"), "c": read_to(20)})
    reads = planner.reads(before, {"a": sample("a"), "b": sample("b")}, NOW)
    assert [(r.cluster, r.ranges, r.is_another_log) for r in reads] == [
        ("a", {0: OffsetRange(20, 30)}, False),
        ("b", {0: OffsetRange(5, 30)}, True),
    ]
    topics = {name: (Topic("old", "1", 1), Topic("new", "2", 1)) for name in "ab"}
    seen = {
        "a": sample("a", topics=(Topic("new", "3", 1),), topics_at_ms=NOW - 5, verified_tails=(("new", 0, 7),)),
        "b": sample("b", topics=topics["b"]),
    }
    lost = (("old", NOW - 5), ("new", NOW - 20))
    logs = (OffsetsLog(0, 0, 0, 0),)
    assert planner.clusters(before, seen, reads, topics, NOW) == (
        # Gone as the list says, made again after the list before it.
        PlannedCluster("a", True, False, 200_000, 120_000, lost, (("new", 0, 7),), logs, has_new_filters=True),
        PlannedCluster("b", True, True, 200_000, 120_000, logs=logs, has_new_filters=True),
        PlannedCluster("c", False, False, 200_000, 120_000, has_new_filters=True),
    )


def test_offsets_partitions_are_planned_with_their_times(tmp_path: Path) -> None:
    planner = Planner(config(consumer("x", "c"), consumer("y", "c", offsets_topic="z")), str(tmp_path))
    known = Position(30, 30, 30, seen_until_ms=NOW - 10_000, skew=(-70, -50))
    away = replace(known, seen_until_ms=NOW - UNSEEN_MS - 1)
    source = Source("id", {0: known, 1: away, 3: replace(known, away_from_ms=5, away_to_ms=NOW - 500)})
    state = replace(read_to(20), sources={"__consumer_offsets": source})
    before = manifest(plan(tmp_path), clusters={"c": state})
    seen = {"c": sample("c", ends_at_ms=(NOW - 100, NOW - 90))}
    seen["c"].ends["__consumer_offsets"][3] = PartitionEnds(5, 30, 30)
    seen["c"].ends["z"] = {2: PartitionEnds(5, 30, 30)}
    reads = admit(planner.reads(before, seen, NOW), 1_000)
    [planned] = planner.clusters(before, seen, reads, {"c": ()}, NOW)
    first, now, skew = NOW - 10_000, NOW - 100, (-60, 10)
    assert planned.logs == (
        OffsetsLog(0, first, NOW - 90, now, *skew),
        OffsetsLog(1, away.seen_until_ms, NOW - 90, away.seen_until_ms, *skew, away.seen_until_ms, NOW - 10),
        OffsetsLog(3, first, NOW - 90, now, *skew, None, 5, NOW - 500),
        OffsetsLog(2**20 + 2, 0, NOW - 90, now),
    )

    lost = replace(before, clusters={"c": replace(state, error="it was away")})
    reads = admit(planner.reads(lost, seen, NOW), 1_000)
    [planned] = planner.clusters(lost, seen, reads, {"c": ()}, NOW)
    assert [(log.away_from_ms, log.away_to_ms) for log in planned.logs] == [
        (NOW - 10, NOW), (NOW - 10, None), (5, NOW), (None, None),
    ]  # fmt: skip


READ = Position(20, 20, 25)
LOOKED = NOW + MAX_COMMIT_DELAY_MS + 1


@pytest.mark.parametrize(
    ("name", "changes", "is_over"),
    [
        ("all is read", {}, True),
        ("nothing is committed yet", {"sources": {"__consumer_offsets": Source("", {})}}, True),
        ("looked at when some may have been on their way", {"looked_at_ms": LOOKED - 1}, False),
        ("away", {"error": "no answer"}, False),
        ("an offsets topic that is new", {"sources": {}}, False),
        ("a backlog", {"sources": {"__consumer_offsets": Source("id", {0: READ, 1: Position(19, 20, 25)})}}, False),
        ("a home that is away", {"sources": {
            "__consumer_offsets": Source("id", {0: READ, 1: replace(READ, away_from_ms=5)}),
        }}, False),
        ("a home that is back", {"sources": {
            "__consumer_offsets": Source("id", {0: READ, 1: replace(READ, away_from_ms=5, away_to_ms=7)}),
        }}, True),
        ("a backlog of a topic that is nobody's any more", {"sources": {
            "__consumer_offsets": Source("id", {0: READ}), "old": Source("id", {0: Position(1, 20, 25)}),
        }}, True),
        ("seeds are still to come", {"seeded": False}, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_deletion_is_over(tmp_path: Path, name: str, changes: dict[str, object], is_over: bool) -> None:
    planner = Planner(config(consumer("x", "c", start_latest=True)), "")
    whole = {"sources": {"__consumer_offsets": Source("id", {0: READ})}, "looked_at_ms": LOOKED, "seeded": True}
    state = replace(UNKNOWN_CLUSTER, **(whole | changes))
    asked = PipelineRequest("1", RequestKind.DELETE, NOW, "c", "g")
    before = manifest(plan(tmp_path), now_ms=NOW, clusters={"c": state}, requests=(asked,))
    assert deletions_in_cycle(before, [], planner.config.clusters, NOW) == (asked,)
    assert deletions_after_cycle(planner, before, before, {"1"}) == (() if is_over else (asked,)), name
    assert deletions_after_cycle(planner, before, before, {"2"}) == (asked,), "its group is silent"
    assert deletions_after_cycle(planner, replace(before, requests=()), before, {"1"}) == (asked,), (
        "nobody knows of it yet"
    )
    long_after = replace(before, now_ms=NOW + planner.config.storage.expire_group * 1000 + 1)
    assert deletions_after_cycle(planner, before, long_after, set()) == (() if is_over else (asked,)), name


@pytest.mark.parametrize(("count", "length", "kept"), [(1_500, 5, 1_000), (60, 32_000, 31), (1_000, 5, 1_000)])
def test_only_the_newest_deletions_are_remembered(tmp_path: Path, count: int, length: int, kept: int) -> None:
    planner = Planner(config(consumer("x", "c", start_latest=True)), "")
    sources = {"__consumer_offsets": Source("id", {0: READ})}
    state = replace(UNKNOWN_CLUSTER, sources=sources, looked_at_ms=LOOKED, seeded=True)
    asked = tuple(
        PipelineRequest(str(number), RequestKind.DELETE, NOW - number, "c", f"{number:0{length}d}")
        for number in range(count)
    )
    before = manifest(plan(tmp_path), now_ms=NOW, clusters={"c": state}, requests=asked)
    assert deletions_after_cycle(planner, before, before, set()) == asked[:kept]
    behind = replace(before, clusters={"c": replace(state, error="no answer")})
    assert deletions_after_cycle(planner, before, behind, set()) == asked, "commits from before them may still come"


def test_a_deletion_of_a_cluster_that_is_no_longer_configured_is_over(tmp_path: Path) -> None:
    planner = Planner(config(consumer("x", "c")), "")
    before = manifest(
        plan(tmp_path), clusters={}, requests=(PipelineRequest("1", RequestKind.DELETE, NOW, "old", "g"),)
    )
    assert deletions_in_cycle(before, [], planner.config.clusters, NOW) == ()


def test_the_plan_carries_the_limits_and_filters_of_the_configuration(tmp_path: Path) -> None:
    settings = config(
        consumer("x", "c", group_denylist="^a"),
        consumer("y", "c", group_allowlist="^b"),
        storage=Storage(intervals=7, expire_group=60, min_distance=2, group_allowlist="^c"),
        evaluator=Evaluator(0.5, 9),
    )
    planner = Planner(settings, str(tmp_path))
    before = manifest(plan(tmp_path), now_ms=NOW - 4_000)
    reads = planner.reads(before, {"c": sample("c")}, NOW)
    made = planner.plan(before, NOW, (), reads, (), (3, 4))
    assert (made.root, made.sequence, made.slots) == (str(tmp_path), before.sequence + 1, (3, 4))
    assert (made.intervals, made.expire_ms, made.min_distance_ms) == (7, 60_000, 2_000)
    assert (made.limits.minimum_complete, made.limits.allowed_lag, made.elapsed_ms) == (0.5, 9, 4_000)
    assert made.sources[0].filters == (GroupFilter(None, "^a"), GroupFilter("^b", None))
    assert made.storage_filter == GroupFilter("^c", None)


def test_the_driver_calls_every_bucket_and_sends_owners_and_seeds_to_theirs(tmp_path: Path) -> None:
    made = plan(tmp_path, slots=(5, 6, 7))
    owners = to_table(OWNERS, [("g", "t", 3, "/10.0.0.1", "client")])
    seen = {"local": sample("local", owners=owners, consumer_groups=("g", "empty"), heads=np.zeros(0, np.int64))}
    seeds = {"local": to_table(COMMITTED, [("silent", "t", 0, 42)])}
    batches = driver_tables(made, seen, seeds, {})
    calls = batches.filter(pc.equal(batches["kind"], int(TableKind.NONE)))
    assert (calls["slot"].to_pylist(), calls["bucket"].to_pylist()) == ([5, 6, 7], [0, 1, 2])
    rest = addressed_rows(batches.filter(pc.not_equal(batches["kind"], int(TableKind.NONE))).to_batches())
    sent = [row for rows in rest[TableKind.OWNERS].values() for row in rows]
    assert sorted((row["group"], row["partition"], row["owner"]) for row in sent if row["owner"]) == [
        ("g", 3, "/10.0.0.1")
    ]
    assert {row["group"] for row in sent if not row["owner"]} == {"g", "empty"}, "a mark each: who has none loses them"
    assert [row["offset"] for rows in rest[TableKind.SEEDS].values() for row in rows] == [42]

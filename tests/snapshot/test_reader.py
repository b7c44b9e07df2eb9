"""Reading what was published: whole snapshots, the newest one, and every number behind a verdict."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.kit.plans import NOW, Commit, Rehearsal, cluster_state, plan
from warren.domain.offsets_logs import OffsetsLog
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.errors import CorruptSnapshot, NoSnapshot
from warren.pipeline.plan import PlannedCluster
from warren.snapshot.manifest import ClusterState, File
from warren.snapshot.reader import Snapshot, is_judged, newest_snapshot
from warren.snapshot.schemas import GROUPS, PARTITIONS

TRIGGER = 10_000


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """Two clusters, 30 groups of two partitions each, three cycles."""
    root = tmp_path_factory.mktemp("published")
    clusters = tuple(PlannedCluster(name, is_judged=True) for name in ("one", "two"))
    cycles = Rehearsal(root, plan(root, clusters=clusters, slots=(0, 1, 2)))
    for n in range(3):
        at = NOW + n * TRIGGER
        cycles.sample(at, {"one": {"t": [1_000, 1_000]}, "two": {"t": [UNKNOWN, 50]}})
        cycles.cycle(
            at,
            [
                Commit(f"group-{g}", "t", p, 100 + 10 * g, at - 10, n, cluster)
                for g in range(30)
                for p in (0, 1)
                for cluster in (0, 1)
            ],
        )
    cycles.store.publish(cycles.manifest())
    return cycles


@pytest.fixture
def snapshot(published: Rehearsal) -> Snapshot:
    return newest_snapshot(published.root)


def test_before_there_is_anything(tmp_path: Path) -> None:
    with pytest.raises(NoSnapshot):
        newest_snapshot(tmp_path)


def test_a_writers_first_claim_is_not_judged(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path))
    cycles.store.publish(cycles.manifest())
    claim = newest_snapshot(tmp_path)
    assert not claim.is_judged
    assert claim.groups().num_rows == claim.partitions().num_rows == claim.topics().num_rows == 0
    assert set(GROUPS.names) < set(claim.groups().column_names)
    assert claim.partitions().column_names == PARTITIONS.names
    assert claim.group("local", "g") is None


def test_all_groups_and_where_they_live(snapshot: Snapshot) -> None:
    groups = snapshot.groups().to_pylist()
    assert snapshot.is_judged
    assert sorted((g["cluster"], g["group"]) for g in groups) == sorted(
        (cluster, f"group-{n}") for cluster in ("one", "two") for n in range(30)
    )
    assert {g["bucket"] for g in groups} == {0, 1, 2}


def test_all_partitions_with_or_without_their_windows(snapshot: Snapshot) -> None:
    whole = snapshot.partitions()
    assert (whole.num_rows, whole.column_names) == (120, PARTITIONS.names)
    assert snapshot.partitions(["group", "current_lag"]).column_names == ["group", "current_lag"]


@pytest.mark.parametrize("number", [0, 7, 29])
def test_one_group_with_its_partitions(snapshot: Snapshot, number: int) -> None:
    found = snapshot.group("one", f"group-{number}")
    assert found is not None
    row, partitions = found
    assert (row["group"], row["partitions"]) == (f"group-{number}", 2)
    assert [(p["cluster"], p["group"], p["partition"]) for p in partitions.to_pylist()] == [
        ("one", f"group-{number}", 0),
        ("one", f"group-{number}", 1),
    ]
    assert partitions["offsets"].to_pylist() == [[100 + 10 * number] * 3] * 2


@pytest.mark.parametrize(("cluster", "group"), [("one", "nobody"), ("nowhere", "group-1"), ("one", ""), ("", "ü")])
def test_a_group_that_is_not_there(snapshot: Snapshot, cluster: str, group: str) -> None:
    assert snapshot.group(cluster, group) is None


def test_rows_are_found_across_row_groups(tmp_path: Path, snapshot: Snapshot) -> None:
    table = pa.table({"n": range(100)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=7)
    file = File(str(tmp_path / "x.parquet"), 0, "")
    for wanted in ([0], [99], range(5, 23), [50, 3, 50, 98, 6, 7]):
        assert snapshot._rows(file, wanted)["n"].to_pylist() == list(wanted)


def test_topics_and_their_heads(snapshot: Snapshot) -> None:
    assert [(t["cluster"], t["topic"], t["first_row"]) for t in snapshot.topics().to_pylist()] == [
        ("one", "t", 0),
        ("two", "t", 2),
    ]
    assert snapshot.heads()["head"].to_pylist() == [1_000, 1_000, UNKNOWN, 50]


def test_reasons_have_the_numbers_of_the_partition(snapshot: Snapshot) -> None:
    found = snapshot.group("one", "group-3")
    assert found is not None
    row = found[1].to_pylist()[0]
    assert (Status(row["status"]), Reason(row["reason"])) == (Status.STALL, Reason.STALLED)
    assert snapshot.reason(row) == "3 commits in 20 s, all at offset 130; lag 870"
    facts = snapshot.facts(row)
    assert (facts.current_lag, facts.now_ms, facts.lags) == (870, NOW + 2 * TRIGGER, [None, 870, 870])
    unknown = snapshot.group("two", "group-3")
    assert unknown is not None
    assert snapshot.reason(unknown[1].to_pylist()[0]) == "the head of this partition is not known yet"


def test_a_group_is_unknown_since_its_cluster_is_or_since_itself(tmp_path: Path) -> None:
    held = OffsetsLog(1, 0, NOW, NOW - 90_000, unknown_since_ms=NOW - 90_000)
    clusters = (PlannedCluster("one", is_judged=True, logs=(held,)), PlannedCluster("two", is_judged=True))
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=clusters))
    cycles.cycle(NOW, [Commit(f"log-{log}", "t", 0, 1, NOW, 0, cluster, log) for cluster in (0, 1) for log in (0, 1)])

    def unknown_since(**states: ClusterState) -> dict[tuple[str, str], int]:
        snapshot = Snapshot(cycles.store, cycles.manifest(clusters=states))
        groups = snapshot.groups()
        since = {(row["cluster"], row["group"]): row["unknown_since_ms"] for row in groups.to_pylist()}
        for name, at_ms in since.items():
            alone = snapshot.group(*name)
            assert alone is not None
            assert alone[0]["unknown_since_ms"] == at_ms
        assert is_judged(groups).tolist() == [at_ms == UNKNOWN for at_ms in since.values()]
        return since

    known = dict.fromkeys([("one", "log-0"), ("two", "log-0"), ("two", "log-1")], UNKNOWN)
    assert unknown_since(one=cluster_state(), two=cluster_state()) == {**known, ("one", "log-1"): NOW - 90_000}
    away = dict.fromkeys([("one", "log-0"), ("one", "log-1")], 5)
    assert unknown_since(one=cluster_state(unknown_since_ms=5), two=cluster_state()) == {**known, **away}


def test_a_head_that_could_not_be_sampled_since_says_of_when_it_is(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path))
    for n, head in enumerate([100, 100, UNKNOWN, UNKNOWN]):
        at = NOW + n * TRIGGER
        cycles.sample(at, {"local": {"t": [head, 100]}})
        cycles.cycle(at, [Commit("g", "t", partition, 100, at - 10, n) for partition in (0, 1)])
    without_leader, led = Snapshot(cycles.store, cycles.manifest()).partitions().to_pylist()
    snapshot = Snapshot(cycles.store, cycles.manifest())
    assert (without_leader["head_ms"], led["head_ms"]) == (NOW + TRIGGER, NOW + 3 * TRIGGER)
    assert snapshot.reason(led) == "caught up: lag is 0"
    age = "the head is of 20 s ago: no leader has answered since"
    assert snapshot.reason(without_leader) == f"caught up: lag is 0; {age}"
    away = Snapshot(cycles.store, cycles.manifest(clusters={"local": cluster_state(unknown_since_ms=NOW)}))
    assert away.facts(without_leader).head_age_ms is None, "nothing of the cluster is of now"


def test_the_worst_partition_of_each_group(snapshot: Snapshot) -> None:
    groups = snapshot.groups().to_pylist()
    for group, worst in zip(groups, snapshot.worst(groups), strict=True):
        assert (worst["cluster"], worst["group"]) == (group["cluster"], group["group"])
        assert worst["status"] == group["worst_status"]


def test_a_newer_snapshot_is_seen_and_an_older_one_stays_as_it_was(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path))
    cycles.cycle(NOW, [Commit("g", "t", 0, 5, NOW, 1)])
    cycles.store.publish(cycles.manifest())
    first = newest_snapshot(tmp_path)
    cycles.cycle(NOW + TRIGGER, [Commit("h", "t", 0, 5, NOW, 2)])
    assert newest_snapshot(tmp_path).groups().num_rows == 1, "nothing is seen before its manifest"
    cycles.store.publish(cycles.manifest())
    assert newest_snapshot(tmp_path).groups()["group"].to_pylist() == ["g", "h"]
    assert first.groups()["group"].to_pylist() == ["g"]


def test_a_snapshot_of_another_version_is_refused(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path))
    cycles.store.publish(replace(cycles.manifest(), format=99))
    with pytest.raises(CorruptSnapshot, match="format 99"):
        newest_snapshot(tmp_path)

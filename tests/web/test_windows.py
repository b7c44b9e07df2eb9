"""Windows as JSON against rows of the snapshot, one by one; details that are read, kept and dropped."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.kit.servers import Client, Town, group_path, server_config, serving
from warren.domain.windows import UNKNOWN
from warren.snapshot.reader import Snapshot, newest_snapshot
from warren.snapshot.status import Slot
from warren.web import details, status_json
from warren.web.api import IndexFollower
from warren.web.go_json import dumps
from warren.web.index import Index, build_index
from warren.web.status_json import group_status
from warren.web.windows import PartitionWindow, group_windows

FORMATS = Path(__file__).parents[1] / "snapshot" / "data"
GROUPS = [f"g{number:02d}" for number in range(12)]
TOPICS = ("orders", "audit", "gone", 'odd"<&>')


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Random commits: windows of every length, gaps, unknown heads, topics that do not exist."""
    town = Town(tmp_path_factory.mktemp("windows")).grow()
    choose = np.random.default_rng(7)
    for _ in range(14):
        commits = [
            (int(choose.integers(2)), str(choose.choice(GROUPS)), str(choose.choice(TOPICS)), int(partition), 900)
            for partition in choose.integers(0, 5, 40)
        ]
        # A cycle knows one commit of each partition.
        town.turn(list({commit[:4]: (*commit[:4], int(choose.integers(2000))) for commit in commits}.values()))
    town.publish()
    return town


def rows_one_by_one(snapshot: Snapshot, index: Index, cluster: str, group: str) -> dict[str, list[PartitionWindow]]:
    stored = snapshot.group(cluster, group)
    assert stored is not None
    no_window, topics = PartitionWindow([], "", "", 0), dict[str, list[PartitionWindow]]()
    for row in stored[1].to_pylist():
        in_topic = index.head_rows(cluster, row["topic"])
        listed = (in_topic.stop - in_topic.start) if in_topic else 0
        windows = topics.setdefault(row["topic"], [])
        missing = max(listed, row["partition"] + 1) - len(windows)
        windows.extend([no_window] * missing)
        windows[row["partition"]] = to_window(row, snapshot.manifest.intervals)
    return topics


def to_window(row: dict[str, Any], intervals: int) -> PartitionWindow:
    slots = [
        Slot(offset, at_ms, at_ms // 1000 * 1000, None if lag == UNKNOWN else lag)
        for offset, at_ms, lag in zip(row["offsets"], row["times_ms"], row["lags"], strict=True)
    ]
    padded = [*[None] * (intervals - len(slots)), *slots] if slots else []
    return PartitionWindow(padded, row["owner"] or "", row["client_id"] or "", max(row["current_lag"], 0))


def check_windows(snapshot: Snapshot, index: Index) -> set[int]:
    """Compare all groups; gives the numbers of slots that windows have."""
    counts = set()
    for cluster, groups in index.groups.items():
        for group, group_row in groups.items():
            expected = rows_one_by_one(snapshot, index, cluster, group)
            assert b"{" + group_windows(index, group_row) + b"}" == dumps(expected)
            windows = [window for topic in expected.values() for window in topic]
            counts |= {len([slot for slot in window.offsets if slot]) for window in windows}
    return counts


@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_the_bytes_are_those_of_the_rows_one_by_one(town: Town, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("warren.web.windows.WINDOWS_AT_ONCE", at_once)
    snapshot = newest_snapshot(town.data)
    counts = check_windows(snapshot, build_index(snapshot))
    assert {0, 1, 2, 10} <= counts


@pytest.mark.parametrize("data", sorted(FORMATS.iterdir()), ids=lambda path: path.name)
def test_so_are_those_of_older_snapshots(data: Path) -> None:
    snapshot = newest_snapshot(data)
    check_windows(snapshot, build_index(snapshot))


def test_a_group_may_be_in_several_row_groups(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, other = newest_snapshot(town.data), Town(tmp_path)
    for bucket in snapshot.manifest.buckets:
        for file in (
            bucket.partitions,
            bucket.groups,
            *(f for s in snapshot.manifest.heads for f in (s.heads, s.layout)),
        ):
            target = other.data / file.path
            target.write_bytes(snapshot.store.path(file).read_bytes())
        table = pq.read_table(other.data / bucket.partitions.path)
        pq.write_table(table, other.data / bucket.partitions.path, row_group_size=2)
    split = Snapshot(other.cycles.store, snapshot.manifest)
    assert any(split.row_groups(number).size > 3 for number in range(len(split.manifest.buckets)))
    # Only one of them fits at a time.
    monkeypatch.setattr(details, "MAX_BYTES", 1)
    check_windows(snapshot, build_index(split))


def test_groups_that_are_hidden_leave_gaps(town: Town) -> None:
    snapshot = newest_snapshot(town.data)
    hidden = {("one", GROUPS[0]), ("one", GROUPS[3]), ("two", "healthy")}
    index = build_index(snapshot, hidden)
    assert GROUPS[0] not in index.groups["one"]
    check_windows(snapshot, index)


def test_details_are_read_once_and_then_in_advance(town: Town) -> None:
    first = build_index(newest_snapshot(town.data))
    group_row = first.groups["one"]["slow"]
    assert not first.details.are_in_memory(group_row)
    first.details.of(group_row)
    assert first.details.are_in_memory(group_row)
    second = build_index(newest_snapshot(town.data))
    second.details.warm_up(first.details)
    assert second.details.are_in_memory(group_row)


def test_many_groups_at_once_are_the_groups_one_by_one(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_json, "ROWS_PER_PART", 7)
    index = build_index(newest_snapshot(town.data))
    rows = np.arange(len(index.group_names))
    for show_all in (False, True):
        for groups in (rows, rows[::3], rows[:1], rows[:0]):
            parts = list(index.status_json.parts(groups, show_all=show_all))
            alone = [group_status(index, int(row), show_all=show_all) for row in groups]
            assert b"".join(parts) == b",".join(alone)
            assert len(parts) > 3 or groups.size < 4


def test_a_group_for_which_there_is_no_room_is_answered_alike(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = build_index(newest_snapshot(town.data))
    monkeypatch.setattr(status_json, "MAX_BYTES", 0)
    full = build_index(newest_snapshot(town.data))
    for row in range(len(full.group_names)):
        for show_all in (False, True):
            assert group_status(full, row, show_all=show_all) == group_status(kept, row, show_all=show_all)


def test_the_memory_of_a_snapshot_is_returned_when_the_next_one_is_there(town: Town) -> None:
    follower = IndexFollower(town.data)
    assert follower.poll()
    group_status(follower.index, 0, show_all=True)
    group_windows(follower.index, 0)
    previous = weakref.ref(follower.index)
    gc.disable()
    try:
        follower._load(newest_snapshot(town.data))
        assert previous() is None
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def client(town: Town) -> Any:
    with serving(server_config(town.data)) as [client]:
        yield client


@pytest.mark.parametrize(
    "query", ["", "?topic=orders&partition=1", "?partition=1", "?topic=orders", "?topic=none", "?topic=&partition="]
)
def test_explanations_from_memory_equal_those_from_files(client: Client, query: str) -> None:
    path = group_path("slow", "explain") + query
    first = client.ask(path)
    assert first.status == 200
    assert first.json["request"]["url"] == group_path("slow", "explain")
    partitions = first.json["explanation"]["partitions"]
    assert ["window" in partition for partition in partitions] == ["partition=1" in query] * len(partitions)
    assert len(partitions) == (
        0 if "none" in query else 1 if "partition=1" in query else 0 if "topic=&" in query else 2
    )
    assert all(client.ask(path).body == first.body for _ in range(3))


def test_a_bad_partition_number_is_refused_the_same_way_from_memory(client: Client) -> None:
    client.ask(group_path("slow", "explain"))
    answers = [client.ask(group_path("slow", "explain") + "?partition=x") for _ in range(2)]
    assert [answer.status for answer in answers] == [400, 400]

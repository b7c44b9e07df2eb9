"""The JSON bytes of a group's status against its typed definition."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.kit.servers import Town
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.status import GroupStatus, PartitionStatus, read_group_results
from warren.snapshot.time_lag import TimeLag, to_time_lag
from warren.web.index import build_index
from warren.web.status_json import group_status, not_found

FORMATS = Path(__file__).parents[1] / "snapshot" / "data"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("status")).grow()
    town.publish()
    return town


def fields(data: bytes) -> Any:
    """JSON with the order of its fields."""
    return json.loads(data, object_pairs_hook=list)


def to_float32(partition: PartitionStatus | None) -> PartitionStatus | None:
    """The share as it is stored; the bytes have its shortest decimal form."""
    return partition and msgspec.structs.replace(partition, complete=float(np.float32(partition.complete)))


def sort(partitions: list[PartitionStatus]) -> list[PartitionStatus | None]:
    return [to_float32(item) for item in sorted(partitions, key=lambda item: (item.topic, item.partition))]


def test_the_bytes_have_the_fields_and_values_of_the_typed_status(town: Town) -> None:
    snapshot = newest_snapshot(town.data)
    index = build_index(snapshot)
    rows = snapshot.groups().to_pylist()
    results = read_group_results(snapshot.store, snapshot.manifest, rows)
    assert len(rows) > 10
    for row, result in zip(rows, (results[row["cluster"], row["group"]] for row in rows), strict=True):
        group_row = index.group_row(row["cluster"], row["group"])
        assert group_row is not None
        data = group_status(index, group_row, show_all=False)
        typed = msgspec.json.decode(data, type=GroupStatus)
        assert fields(data) == fields(msgspec.json.encode(typed))
        expected = result.status
        assert sort(typed.partitions) == sort(expected.partitions)
        assert to_float32(typed.maxlag) == to_float32(expected.maxlag)
        for name in ("totallag", "status", *TimeLag.__struct_fields__[:-1]):
            assert getattr(typed, name) == getattr(expected, name), name
        every = msgspec.json.decode(group_status(index, group_row, show_all=True), type=GroupStatus)
        assert len(every.partitions) == every.partition_count == typed.partition_count
        assert [item for item in every.partitions if item.status != "OK"] == typed.partitions


def test_time_lags_that_are_known_and_unknown_are_among_them(town: Town) -> None:
    partitions = town.cycles.partitions()
    index = build_index(newest_snapshot(town.data))
    found = {}
    for (cluster, group), row in town.cycles.groups().items():
        group_row = index.group_row(cluster, group)
        assert group_row is not None
        data = group_status(index, group_row, show_all=True)
        found[group] = msgspec.json.decode(data, type=GroupStatus)
        assert index.time_lag.at(group_row) == to_time_lag(row)
        for listed in found[group].partitions:
            stored = partitions.get((cluster, group, listed.topic, listed.partition))
            assert listed.seconds_behind == (stored and to_time_lag(stored).seconds_behind)
    assert (found["stalled"].seconds_behind, found["stalled"].seconds_behind_method) == (9.0, "at_least")
    assert found["blind"].seconds_behind is None
    assert found["<b>&'"].seconds_behind == 0.0


@pytest.mark.parametrize("data", sorted(FORMATS.iterdir()), ids=lambda path: path.name)
def test_snapshots_from_before_there_was_a_time_lag_have_none(data: Path) -> None:
    index = build_index(newest_snapshot(data))
    for group_row in range(len(index.group_names)):
        group = msgspec.json.decode(group_status(index, group_row, show_all=True), type=GroupStatus)
        assert (group.seconds_behind, group.seconds_behind_method, group.catch_up_seconds) == (None, "unknown", None)
        assert (group.is_falling_behind, group.retention_left_seconds, group.lost_messages) == (False, None, 0)
        assert {partition.seconds_behind for partition in group.partitions} == {None}


def test_a_group_that_does_not_exist_has_the_typed_status_too() -> None:
    data = not_found("one", "<gone>")
    typed = msgspec.json.decode(data, type=GroupStatus)
    assert fields(data) == fields(msgspec.json.encode(typed))
    assert (typed.cluster, typed.group, typed.status, typed.partitions) == ("one", "<gone>", "NOTFOUND", [])

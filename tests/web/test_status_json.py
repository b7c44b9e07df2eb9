"""The JSON bytes of a group's status against its typed definition."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.kit.servers import Town
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.status import GroupStatus, PartitionStatus, read_group_results
from warren.web.index import build_index
from warren.web.status_json import group_status, not_found


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
        assert (typed.totallag, typed.status) == (expected.totallag, expected.status)
        every = msgspec.json.decode(group_status(index, group_row, show_all=True), type=GroupStatus)
        assert len(every.partitions) == every.partition_count == typed.partition_count
        assert [item for item in every.partitions if item.status != "OK"] == typed.partitions


def test_a_group_that_does_not_exist_has_the_typed_status_too() -> None:
    data = not_found("one", "<gone>")
    typed = msgspec.json.decode(data, type=GroupStatus)
    assert fields(data) == fields(msgspec.json.encode(typed))
    assert (typed.cluster, typed.group, typed.status, typed.partitions) == ("one", "<gone>", "NOTFOUND", [])

"""The status of groups in Burrow's shape: its JSON, and how it is read from a snapshot."""

import msgspec
import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from warren.domain.status import Status
from warren.snapshot import status
from warren.snapshot.reader import Snapshot, newest_snapshot
from warren.snapshot.status import GroupStatus, PartitionStatus, Slot, missing_group, read_group_results

PARTITION = PartitionStatus(
    "t", 3, "/10.0.0.7", "c", "STOP", Slot(1, 1_000, 1_000, None), Slot(2, 2_345, 2_000, 7), 9, 0.5,
    60.5, 86_400.25, None, 7200.0,
)  # fmt: skip
SLOTS = (
    b'"start":{"offset":1,"timestamp":1000,"observedAt":1000,"lag":null},'
    b'"end":{"offset":2,"timestamp":2345,"observedAt":2000,"lag":7}'
)
BURROWS_PARTITION = (
    b'{"topic":"t","partition":3,"owner":"/10.0.0.7","client_id":"c","status":"STOP",%b,"current_lag":9,"complete":0.5'
    % SLOTS
)
PARTITION_JSON = BURROWS_PARTITION + (
    b',"seconds_behind":60.5,"oldest_unread_age_seconds":86400.25,"catch_up_seconds":null,'
    b'"retention_left_seconds":7200.0}'
)
BURROWS_GROUP = (
    b'{"cluster":"one","group":"g","status":"ERR","complete":1.0,"partitions":[%b],"partition_count":2,'
    b'"maxlag":%b,"totallag":9'
)
GROUP_JSON = (
    BURROWS_GROUP
    % (PARTITION_JSON, PARTITION_JSON)
    + b',"seconds_behind":60.5,"seconds_behind_method":"at_least","oldest_unread_age_seconds":90.0,'
    b'"catch_up_seconds":1.0,"catch_up_seconds_at_most":null,"is_falling_behind":true,'
    b'"retention_left_seconds":2.0,"lost_messages":3}'
)
NOTHING_KNOWN = (
    b',"seconds_behind":null,"seconds_behind_method":"unknown","oldest_unread_age_seconds":null,'
    b'"catch_up_seconds":null,"catch_up_seconds_at_most":null,"is_falling_behind":false,'
    b'"retention_left_seconds":null,"lost_messages":0}'
)


def test_the_json_of_a_status_is_the_one_that_is_stored() -> None:
    time_lag = (60.5, "at_least", 90.0, 1.0, None, True, 2.0, 3)
    group = GroupStatus("one", "g", "ERR", 1.0, [PARTITION], 2, PARTITION, 9, *time_lag)
    assert msgspec.json.encode(group) == GROUP_JSON
    assert msgspec.json.decode(GROUP_JSON, type=GroupStatus) == group


def test_a_status_that_was_stored_before_there_was_a_time_lag_has_none() -> None:
    partition = BURROWS_PARTITION + b"}"
    group = msgspec.json.decode(BURROWS_GROUP % (partition, partition) + b"}", type=GroupStatus)
    assert (group.seconds_behind, group.seconds_behind_method, group.lost_messages) == (None, "unknown", 0)
    assert [listed.seconds_behind for listed in group.partitions] == [None]


def test_the_json_of_a_missing_group() -> None:
    assert msgspec.json.encode(missing_group(("one", "g"))) == (
        b'{"cluster":"one","group":"g","status":"NOTFOUND","complete":1.0,"partitions":[],"partition_count":0,'
        b'"maxlag":null,"totallag":0' + NOTHING_KNOWN
    )


def test_the_schema_lists_statuses_in_the_order_of_severity() -> None:
    schema = msgspec.json.schema(status.StatusName)
    assert [Status[name] for name in schema["enum"]] == sorted(Status)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """One cluster; `stopped` has 30 partitions that stopped with a rising lag, `current` has none."""
    root = tmp_path_factory.mktemp("statuses")
    cycles = Rehearsal(root, plan(root, slots=(0,)))
    heads = {"local": {"t": [1_000 + partition for partition in range(30)]}}
    cycles.sample(NOW, heads)
    stopped = [Commit("stopped", "t", p, 100 + n, NOW + n * 1_000, n) for p in range(30) for n in range(10)]
    cycles.cycle(NOW + 9_000, [*stopped, Commit("current", "t", 0, 1_000, NOW + 9_000, 9)])
    cycles.sample(NOW + 60_000, heads)
    cycles.cycle(NOW + 60_000, [Commit("current", "t", 0, 1_000, NOW + 60_000, 60)])
    cycles.store.publish(cycles.manifest())
    return newest_snapshot(root)


def test_the_partitions_that_are_not_ok_are_listed_most_severe_first(snapshot: Snapshot) -> None:
    results = read_group_results(snapshot.store, snapshot.manifest, snapshot.groups().to_pylist())
    result = results["local", "stopped"]
    assert (result.status.status, result.bad_partitions, result.status.partition_count) == ("ERR", 30, 30)
    assert {partition.status for partition in result.status.partitions} == {"STOP"}
    assert [partition.partition for partition in result.status.partitions] == list(reversed(range(30)))
    assert list(result.lags) == [partition.current_lag for partition in result.status.partitions]
    assert result.status.maxlag == result.status.partitions[0]
    assert result.status.totallag == sum(partition.current_lag for partition in result.status.partitions)
    last = result.status.partitions[0].end
    assert last is not None
    assert (last.offset, last.timestamp, last.observed_at) == (109, NOW + 9_000, (NOW + 9_000) // 1000 * 1000)
    current = results["local", "current"]
    assert (current.status.status, current.status.partitions, current.bad_partitions) == ("OK", [], 0)


def test_a_storm_lists_fewer_partitions_per_group(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "MAX_PARTITIONS", 1)
    results = read_group_results(snapshot.store, snapshot.manifest, snapshot.groups().to_pylist())
    result = results["local", "stopped"]
    assert (len(result.status.partitions), len(result.lags)) == (status.MIN_PARTITIONS_PER_GROUP,) * 2
    assert result.bad_partitions == 30

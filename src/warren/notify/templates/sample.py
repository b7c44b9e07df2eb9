"""A letter that might be sent one day, to try templates and receivers with."""

from dataclasses import replace

from msgspec.structs import asdict

from warren.domain.status import Status
from warren.incidents.model import Event, Notification, StormGroup, StormStatus
from warren.snapshot.status import GroupStatus, PartitionStatus, Slot

SAMPLE_ID = "00000000-0000-4000-8000-000000000000"
STORM_COUNT, STORM_LISTED = 37, 20
_AT_MS = 1_767_225_600_000


def sample_notification(listener: str, event: Event, incident: str = SAMPLE_ID) -> Notification:
    """An invented group that stalls on one partition and falls behind on another; at its close it is well again."""
    is_close = event is Event.CLOSE
    bad = [_partition("payments", 3, Status.STALL, 45_000), _partition("orders", 0, Status.WARN, 1_200)]
    result = GroupStatus(
        cluster="sample-cluster",
        group="sample-group",
        status=(Status.OK if is_close else Status.ERR).name,
        complete=1.0,
        partitions=[] if is_close else bad,
        partition_count=12,
        maxlag=None if is_close else bad[0],
        totallag=0 if is_close else 46_200,
    )
    return Notification(
        f"{incident}/{listener}/{2 if is_close else 1}",
        listener,
        event,
        incident,
        2 if is_close else 1,
        "sample-cluster",
        "sample-group",
        _AT_MS,
        _AT_MS + 90_000,
        "this is a sample",
        result,
    )


def sample_storm(listener: str, event: Event, incident: str = SAMPLE_ID) -> Notification:
    """Many invented groups that turned bad together, of which the list is cut."""
    letter = sample_notification(listener, event, incident)
    group = f"{STORM_COUNT} groups"
    groups = [StormGroup(f"sample-group-{number}", "ERR", 46_200 - number, 2) for number in range(1, STORM_LISTED + 1)]
    storm = {"group": group, "totallag": 1_700_000, "partition_count": 12 * STORM_COUNT}
    result = StormStatus(**{**asdict(letter.result), **storm}, groups=groups, group_count=STORM_COUNT)
    return replace(letter, group=group, result=result)


def _partition(topic: str, partition: int, status: Status, lag: int) -> PartitionStatus:
    return PartitionStatus(
        topic=topic,
        partition=partition,
        owner="/10.0.0.7",
        client_id="sample-client-1",
        status=status.name,
        start=_slot(1_000, _AT_MS, lag - 100),
        end=_slot(1_000 if status is Status.STALL else 1_500, _AT_MS + 60_000, lag),
        current_lag=lag,
        complete=1.0,
    )


def _slot(offset: int, at_ms: int, lag: int) -> Slot:
    return Slot(offset, at_ms, at_ms, lag)

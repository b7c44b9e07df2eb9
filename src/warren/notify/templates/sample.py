"""Sample notifications, to try templates and receivers with."""

from msgspec.structs import asdict, replace

from warren.domain.status import Status
from warren.incidents.model import Event, Notification, StormGroup, StormStatus
from warren.snapshot.status import GroupStatus, PartitionStatus, Slot

SAMPLE_ID = "00000000-0000-4000-8000-000000000000"
STORM_COUNT, STORM_LISTED = 37, 20
_AT_MS = 1_767_225_600_000
_TIME_LAG = {
    "seconds_behind": 2460.0,
    "seconds_behind_method": "head_history",
    "catch_up_seconds": 720.0,
    "catch_up_seconds_at_most": 720.0,
    "retention_left_seconds": 10_800.0,
}


def sample_notification(notifier: str, event: Event, incident: str = SAMPLE_ID) -> Notification:
    """A group with one stalled and one slow partition, which is OK again at the close."""
    cluster, group = "sample-cluster", "sample-group"
    sequence = 2 if event is Event.CLOSE else 1
    bad = [_partition("payments", 3, Status.STALL, 45_000), _partition("orders", 0, Status.WARN, 1_200)]
    result = GroupStatus(
        cluster, group, Status.ERR.name, 1.0, bad, 12, maxlag=bad[0], totallag=46_200, lost_messages=1_234
    )
    if event is not Event.CLOSE:
        result = replace(result, **_TIME_LAG)
    else:
        result = replace(result, status=Status.OK.name, partitions=[], maxlag=None, totallag=0)
    return Notification(
        f"{incident}/{notifier}/{sequence}",
        notifier,
        event,
        incident,
        sequence,
        cluster,
        group,
        opened_ms=_AT_MS,
        due_ms=_AT_MS + 90_000,
        reason="this is a sample",
        result=result,
    )


def sample_storm(notifier: str, event: Event, incident: str = SAMPLE_ID) -> Notification:
    """Many groups that turned bad together, not all of them listed."""
    notification = sample_notification(notifier, event, incident)
    group = f"{STORM_COUNT} groups"
    groups = [
        StormGroup(f"sample-group-{index}", "ERR", 46_200 - index, 2, 2460.0) for index in range(1, STORM_LISTED + 1)
    ]
    totals = {"group": group, "totallag": 1_700_000, "partition_count": 12 * STORM_COUNT}
    result = StormStatus(**asdict(notification.result) | totals, groups=groups, group_count=STORM_COUNT)
    return replace(notification, group=group, result=result)


def _partition(topic: str, partition: int, status: Status, lag: int) -> PartitionStatus:
    end_offset, end_ms = 1_000 if status is Status.STALL else 1_500, _AT_MS + 60_000
    return PartitionStatus(
        topic,
        partition,
        owner="/10.0.0.7",
        client_id="sample-client-1",
        status=status.name,
        start=Slot(1_000, _AT_MS, _AT_MS, lag - 100),
        end=Slot(end_offset, end_ms, end_ms, lag),
        current_lag=lag,
        complete=1.0,
    )

"""Names from Kafka in notifications, rewritten for the receiver that would take some of them for markup."""

from collections.abc import Callable

from msgspec.structs import replace

from warren.incidents.model import Notification, StormStatus
from warren.snapshot.status import PartitionStatus


def with_names(notification: Notification, rewrite: Callable[[str], str]) -> Notification:
    """A notification with each of its groups, topics, owners and client ids rewritten."""

    def rewritten(partition: PartitionStatus) -> PartitionStatus:
        return replace(
            partition,
            topic=rewrite(partition.topic),
            owner=rewrite(partition.owner),
            client_id=rewrite(partition.client_id),
        )

    result = notification.result
    result = replace(
        result,
        group=rewrite(result.group),
        partitions=[rewritten(partition) for partition in result.partitions],
        maxlag=rewritten(result.maxlag) if result.maxlag else None,
    )
    if isinstance(result, StormStatus):
        result = replace(result, groups=[replace(group, group=rewrite(group.group)) for group in result.groups])
    return replace(notification, group=rewrite(notification.group), result=result)

"""Go templates, with the message that Burrow gives to them."""

from collections.abc import Mapping
from dataclasses import dataclass

import gotemplate
from gotemplate.burrow import KnownLag, Message, Offset, PartitionResult, Result, StatusConstant
from gotemplate.burrow_functions import HELPERS
from gotemplate.clock import Time
from warren.domain.status import Status
from warren.incidents.model import Notification
from warren.snapshot.status import GroupStatus, PartitionStatus, Slot


@dataclass(frozen=True, slots=True)
class GoTemplate:
    """A parsed Go template."""

    template: gotemplate.Template
    extras: Mapping[str, str]

    def render(self, notification: Notification) -> str:
        """Render a notification; a TemplateError says why it fails."""
        message = Message(
            Cluster=notification.cluster,
            Group=notification.group,
            ID=notification.incident,
            Start=Time(notification.opened_ms * 1_000_000),
            Extras=self.extras,
            Result=_result(notification.result),
        )
        return self.template.render(message)


def parse(text: str, name: str, extras: Mapping[str, str]) -> GoTemplate:
    """Parse a template; a TemplateError names the mistake and its line."""
    return GoTemplate(gotemplate.parse(text, name, HELPERS), extras)


def _result(group: GroupStatus) -> Result:
    return Result(
        Cluster=group.cluster,
        Group=group.group,
        Status=_status(group.status),
        Complete=group.complete,
        Partitions=tuple(map(_partition, group.partitions)),
        TotalPartitions=group.partition_count,
        Maxlag=None if group.maxlag is None else _partition(group.maxlag),
        TotalLag=group.totallag,
    )


def _partition(partition: PartitionStatus) -> PartitionResult:
    return PartitionResult(
        Topic=partition.topic,
        Partition=partition.partition,
        Owner=partition.owner,
        ClientID=partition.client_id,
        Status=_status(partition.status),
        Start=_offset(partition.start),
        End=_offset(partition.end),
        CurrentLag=partition.current_lag,
        Complete=partition.complete,
    )


def _offset(slot: Slot | None) -> Offset | None:
    if slot is None:
        return None
    lag = None if slot.lag is None else KnownLag(slot.lag)
    return Offset(Offset=slot.offset, Timestamp=slot.timestamp, ObservedTimestamp=slot.observed_at, Lag=lag)


def _status(name: str) -> StatusConstant:
    return StatusConstant(int(Status[name]))

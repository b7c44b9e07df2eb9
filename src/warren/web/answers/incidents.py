"""The answers about incidents, silences and notifiers."""

from typing import Annotated

from msgspec import Meta, Struct, field

from warren.incidents.model import Event
from warren.snapshot.status import StatusName, TimeMs


class IncidentAcknowledgement(Struct):
    """Who works on an incident."""

    time: TimeMs
    by: str
    why: str


class IncidentChange(Struct):
    """The status of an incident's group from a time on."""

    time: TimeMs
    status: StatusName


class IncidentNotifier(Struct):
    """A notifier that was used for an incident."""

    notifier: str
    messages: Annotated[int, Meta(description="Number of notifications")]
    last: TimeMs


class IncidentPartition(Struct):
    """A partition that is not OK."""

    topic: str
    partition: int
    status: StatusName
    lag: Annotated[int | None, Meta(description="null if unknown")]


class IncidentSummary(Struct):
    """A group in trouble, from its first bad verdict to its first good one."""

    id: str
    cluster: str
    group: str
    team: Annotated[str, Meta(description="The team that a route names; empty if none does")]
    opened: TimeMs
    closed: Annotated[int | None, Meta(description="Milliseconds since 1970; null while it is open")]
    status: StatusName
    worst: Annotated[StatusName, Meta(description="The most severe status so far")]
    acknowledged: IncidentAcknowledgement | None
    silenced: Annotated[bool, Meta(description="Whether a silence in force matches the group")]
    changes: list[IncidentChange]
    told: Annotated[list[IncidentNotifier], Meta(description="Notifications so far, by notifier")]
    partition_count: Annotated[int, Meta(description="Number of partitions that are not OK")]
    partitions: Annotated[list[IncidentPartition], Meta(description="The most severe of them")]


class IncidentMessage(Struct):
    """A notification about an incident."""

    notifier: str
    event: Event
    due: TimeMs
    sent: int | None
    given_up: int | None
    attempts: int
    trouble: Annotated[str, Meta(description="The last error; empty if there is none")]
    why: str
    channel: Annotated[str, Meta(description="The channel that a route names; empty if none does")]


class IncidentDetail(IncidentSummary):
    """An incident with its notifications."""

    message_count: int
    messages: Annotated[list[IncidentMessage], Meta(description="The last notifications, oldest first")]


class SilenceSummary(Struct):
    """No notifications for matching groups until a given time."""

    id: str
    cluster: Annotated[str, Meta(description="Pattern of cluster names")]
    group: Annotated[str, Meta(description="Pattern of group names")]
    begins: TimeMs = field(name="from")
    until: TimeMs
    by: str
    why: str


class NotifierSummary(Struct):
    """A notifier and its notifications of the last days."""

    name: str
    class_name: str = field(name="class")
    waiting: int
    sent: int
    given_up: Annotated[int, Meta(description="Notifications that were refused or became too old")]
    last_sent: int | None
    trouble: Annotated[str, Meta(description="Why the oldest waiting notification is not sent yet")]

"""The answers about incidents, silences and notifiers."""

from typing import Annotated

from msgspec import Meta, Struct

from warren.incidents.model import Event
from warren.snapshot.status import StatusName, TimeMs


class IncidentAcknowledgement(Struct, rename={"at_ms": "time"}):
    """Who works on an incident."""

    at_ms: TimeMs
    by: str
    why: str


class IncidentChange(Struct, rename={"at_ms": "time"}):
    """The status of an incident's group from a time on."""

    at_ms: TimeMs
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


class IncidentSummary(Struct, rename={"opened_ms": "opened", "closed_ms": "closed"}):
    """A group in trouble, from its first bad verdict to its first good one."""

    id: str
    cluster: str
    group: str
    team: Annotated[str, Meta(description="The team that a route names; empty if none does")]
    opened_ms: TimeMs
    closed_ms: Annotated[int | None, Meta(description="Milliseconds since 1970; null while it is open")]
    status: StatusName
    worst: Annotated[StatusName, Meta(description="The most severe status so far")]
    acknowledged: IncidentAcknowledgement | None
    silenced: Annotated[bool, Meta(description="Whether a silence in force matches the group")]
    changes: list[IncidentChange]
    told: Annotated[list[IncidentNotifier], Meta(description="Notifications so far, by notifier")]
    partition_count: Annotated[int, Meta(description="Number of partitions that are not OK")]
    partitions: Annotated[list[IncidentPartition], Meta(description="The most severe of them")]


class IncidentMessage(
    Struct,
    rename={"due_ms": "due", "sent_ms": "sent", "given_up_ms": "given_up", "last_error": "trouble", "reason": "why"},
):
    """A notification about an incident."""

    notifier: str
    event: Event
    due_ms: TimeMs
    sent_ms: int | None
    given_up_ms: int | None
    attempts: int
    last_error: Annotated[str, Meta(description="The last error; empty if there is none")]
    reason: str
    channel: Annotated[str, Meta(description="The channel that a route names; empty if none does")]


class IncidentDetail(IncidentSummary):
    """An incident with its notifications."""

    message_count: int
    messages: Annotated[list[IncidentMessage], Meta(description="The last notifications, oldest first")]


class SilenceSummary(Struct, rename={"from_ms": "from", "until_ms": "until"}):
    """No notifications for matching groups until a given time."""

    id: str
    cluster: Annotated[str, Meta(description="Pattern of cluster names")]
    group: Annotated[str, Meta(description="Pattern of group names")]
    from_ms: TimeMs
    until_ms: TimeMs
    by: str
    why: str


class NotifierSummary(Struct, rename={"class_name": "class", "last_sent_ms": "last_sent", "last_error": "trouble"}):
    """A notifier and its notifications of the last days."""

    name: str
    class_name: str
    waiting: int
    sent: int
    given_up: Annotated[int, Meta(description="Notifications that were refused or became too old")]
    last_sent_ms: int | None
    last_error: Annotated[str, Meta(description="Why the oldest waiting notification is not sent yet")]

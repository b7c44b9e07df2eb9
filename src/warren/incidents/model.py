"""The data model: incidents, and the notifications that notifiers get."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from msgspec import Meta, Struct
from msgspec.structs import replace

from warren.domain.status import Status
from warren.snapshot.status import GroupName, GroupStatus, StatusName, missing_group

MAX_TOKEN_CHARS = 500
MAX_CHANGES = 200
"""How many status changes of one incident are kept."""

# What other clients of Kafka write is checked against these bounds; Warren itself stays far below them.
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Time = Annotated[int, Meta(ge=0, le=2**53)]
Id = Annotated[str, Meta(min_length=1, max_length=100)]
Name = Annotated[str, Meta(max_length=32_767)]
"""A name of Kafka's protocol, or of the configuration."""
Text = Annotated[str, Meta(max_length=1_000_000)]


def to_columns(names: Sequence[GroupName]) -> tuple[pa.Array, pa.Array]:
    """The clusters and the groups of some names."""
    clusters, groups = zip(*names, strict=True) if names else ((), ())
    return pa.array(clusters, pa.string()), pa.array(groups, pa.string())


class Event(StrEnum):
    """What a notification reports."""

    OPEN = "open"
    WORSE = "worse"
    REMINDER = "reminder"
    CLOSE = "close"
    REPORT = "report"
    """The status of a group without an incident, for notifiers whose threshold is OK."""


class Notified(Struct, frozen=True, array_like=True):
    """What one notifier has been sent about one incident, storm or group; stored as a JSON array."""

    count: Count
    last_ms: Time
    worst: Status
    storm: Annotated[str, Meta(max_length=100)] = ""
    """The id of the storm that included it, if any."""


class StatusChange(Struct, frozen=True, array_like=True):
    """The status of a group from a time on; stored as a JSON array."""

    at_ms: Time
    status: Status


class BadPartition(Struct, frozen=True, array_like=True):
    """A partition that was not OK when its incident last changed; stored as a JSON array."""

    topic: Name
    partition: Count
    status: Status
    lag: Number | None


class Incident(Struct, frozen=True):
    """A group in trouble, from its first bad verdict to its first good one."""

    id: Id
    cluster: Name
    group: Name
    opened_ms: Time
    changes: Annotated[tuple[StatusChange, ...], Meta(min_length=1, max_length=MAX_CHANGES)]
    worst: Status
    notified: Mapping[Name, Notified] = {}
    """What each notifier has been sent, by the notifier's name."""
    closed_ms: Time | None = None
    partitions: tuple[BadPartition, ...] = ()
    """Its most severe partitions."""
    partition_count: Count = 0
    """How many partitions were not OK."""
    lost_messages: Count = 0
    """The most messages that were seen to be deleted before the group read them."""
    acknowledged_ms: int | None = None
    acknowledged_by: str = ""
    acknowledged_why: str = ""

    @property
    def name(self) -> GroupName:
        """The cluster and the group."""
        return self.cluster, self.group

    @property
    def status(self) -> Status:
        """The last known status of the group."""
        return self.changes[-1].status

    @property
    def notification_ids(self) -> list[str]:
        """The ids that its notifications are stored under: its own, and those of the storms that included it."""
        return sorted({self.id, *(notified.storm for notified in self.notified.values() if notified.storm)})

    def with_storms(self, storms: Mapping[str, str]) -> "Incident":
        """The incident, included in the storms that some notifiers are notified of."""
        included = {name: replace(self.notified[name], storm=storm) for name, storm in storms.items()}
        return replace(self, notified={**self.notified, **included})

    def with_status(self, status: Status, now_ms: int) -> "Incident":
        """The incident with another status; of very many changes the first and the last are kept."""
        changes = (*self.changes, StatusChange(now_ms, status))
        if len(changes) > MAX_CHANGES:
            changes = (*changes[: MAX_CHANGES // 2], *changes[-MAX_CHANGES // 2 :])
        return replace(self, changes=changes, worst=max(self.worst, status))

    def with_lost_messages(self, count: int) -> "Incident":
        """The incident after so many messages were seen to be lost."""
        return replace(self, lost_messages=max(self.lost_messages, count))


class StormKey(NamedTuple):
    """What the groups of a storm have in common."""

    cluster: str
    notifier: str
    channel: str


class Storm(Struct, frozen=True):
    """Groups of a cluster that a notifier is notified of as one."""

    id: Id
    notifier: Name
    cluster: Name
    channel: Name
    opened_ms: Time
    grown_ms: Time
    notified: Notified
    total: Count
    """How many groups have been part of it."""
    unreported: Count = 0
    """How many groups have joined since its last notification."""

    @property
    def key(self) -> StormKey:
        """What its groups have in common."""
        return StormKey(self.cluster, self.notifier, self.channel)


class StormGroup(Struct, frozen=True):
    """A group of a storm, as a notification lists it."""

    group: str
    status: StatusName
    totallag: int
    partitions: int
    """How many of its partitions are not OK."""
    seconds_behind: float | None = None


class StormStatus(GroupStatus, frozen=True, kw_only=True):
    """All groups of a storm as if they were one, and the most severe of them."""

    groups: list[StormGroup]
    group_count: int


NO_RESULT = missing_group(("", ""))
"""The result of a notification that was delivered or read without it; stored as {}."""


class Notification(Struct, frozen=True):
    """One message of one notifier. Its key stays the same however often it is sent."""

    key: Text
    notifier: Name
    event: Event
    incident: Annotated[str, Meta(max_length=100)]
    """The id of its incident or storm; empty for a report on a group that is OK."""
    sequence: Count
    """Its position among this notifier's notifications of this incident, which are sent in this order."""
    cluster: Name
    group: Name
    opened_ms: Time
    due_ms: Time
    reason: Text
    result: GroupStatus = NO_RESULT
    """The group as the API's `status` shows it, with the lost messages of its incident; for a storm a StormStatus."""
    team: Name = ""
    """The team that owns the group, by the routes."""
    channel: Name = ""
    """The channel to send to, by the routes; empty for the notifier's own."""
    attempts: Count = 0
    next_attempt_ms: Time = 0
    sent_ms: Time | None = None
    given_up_ms: Time | None = None
    last_error: Text = ""
    receipt: Text = ""
    """The receiver's own id of the message, which later notifications of the incident refer to."""

    @property
    def token(self) -> str:
        """The key as a header may have it: percent-encoded, and hashed if it is long, as names may have any form."""
        encoded = quote(self.key, safe="/")
        return encoded if len(encoded) <= MAX_TOKEN_CHARS else f"sha256/{sha256(self.key.encode()).hexdigest()}"

    @property
    def is_storm(self) -> bool:
        """Whether it is about many groups at once."""
        return isinstance(self.result, StormStatus)

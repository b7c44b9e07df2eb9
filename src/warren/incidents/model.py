"""The data model: incidents, and the notifications that notifiers get."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from warren.domain.status import Status
from warren.snapshot.status import GroupName, GroupStatus, StatusName, missing_group

MAX_TOKEN_CHARS = 500
MAX_CHANGES = 200
"""How many status changes of one incident are kept."""


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

    count: int
    last_ms: int
    worst: Status
    storm: str = ""
    """The id of the storm that included it, if any."""


class StatusChange(Struct, frozen=True, array_like=True):
    """The status of a group from a time on; stored as a JSON array."""

    at_ms: int
    status: Status


class BadPartition(Struct, frozen=True, array_like=True):
    """A partition that was not OK when its incident last changed; stored as a JSON array."""

    topic: str
    partition: int
    status: Status
    lag: int | None


class Incident(Struct, frozen=True):
    """A group in trouble, from its first bad verdict to its first good one."""

    id: str
    cluster: str
    group: str
    opened_ms: int
    changes: tuple[StatusChange, ...]
    worst: Status
    notified: Mapping[str, Notified] = {}
    """What each notifier has been sent, by the notifier's name."""
    closed_ms: int | None = None
    partitions: tuple[BadPartition, ...] = ()
    """Its most severe partitions."""
    partition_count: int = 0
    """How many partitions were not OK."""
    lost_messages: int = 0
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

    id: str
    notifier: str
    cluster: str
    channel: str
    opened_ms: int
    grown_ms: int
    notified: Notified
    total: int
    """How many groups have been part of it."""
    unreported: int = 0
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

    key: str
    notifier: str
    event: Event
    incident: str
    """The id of its incident or storm; empty for a report on a group that is OK."""
    sequence: int
    """Its position among this notifier's notifications of this incident, which are sent in this order."""
    cluster: str
    group: str
    opened_ms: int
    due_ms: int
    reason: str
    result: GroupStatus = NO_RESULT
    """The group as the API's `status` shows it, with the lost messages of its incident; for a storm a StormStatus."""
    team: str = ""
    """The team that owns the group, by the routes."""
    channel: str = ""
    """The channel to send to, by the routes; empty for the notifier's own."""
    attempts: int = 0
    next_attempt_ms: int = 0
    sent_ms: int | None = None
    given_up_ms: int | None = None
    last_error: str = ""
    receipt: str = ""
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

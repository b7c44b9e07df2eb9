"""The answers about groups and topics; Burrow's status of a group is in `warren.snapshot.status`."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from warren.snapshot.status import Complete, Slot, StatusName, TimeMs

Since = Annotated[int, Meta(description="When the status began, in milliseconds since 1970")]
UnknownSince = Annotated[int | None, Meta(description="Since when the cluster cannot be judged; null if it can")]
Growth = Annotated[float | None, Meta(description="Growth of the lag in messages per second; null if unknown")]
Head = Annotated[int | None, Meta(description="Log end offset; null if unknown")]
LogStart = Annotated[int | None, Meta(description="First offset of the log; null if unknown")]
Rate = Annotated[float | None, Meta(description="New messages per second; null if unknown")]
StatusCounts = dict[StatusName, int]


class PartitionWindow(Struct, rename={"current_lag": "current-lag"}):
    """The window of a group's commits to a partition."""

    offsets: Annotated[list[Slot | None], Meta(description="Oldest first; null where the window is not filled")]
    owner: str
    client_id: str
    current_lag: int


class NamedGroup(Struct):
    """A group and its status."""

    cluster: str
    group: str
    status: StatusName


class PartitionExplanation(Struct, rename={"since_ms": "since", "committed_offset": "committed"}):
    """A partition with the reason of its status."""

    topic: str
    partition: int
    owner: str
    client_id: str
    status: StatusName
    since_ms: Since
    reason: str
    committed_offset: Annotated[int | None, Meta(description="Last committed offset; null if none was seen")]
    head: Head
    log_start: LogStart
    current_lag: Annotated[int | None, Meta(description="Lag behind the head; null if unknown")]
    complete: Complete
    window: Annotated[list[Slot] | UnsetType, Meta(description="Only if one partition is requested")] = UNSET


class GroupExplanation(NamedGroup, rename={"since_ms": "since"}):
    """A group with the reason of the status of each partition."""

    since_ms: Since
    judged_at: TimeMs
    unknown_since: UnknownSince
    totallag: int
    partitions: list[PartitionExplanation]


class GroupHistoryPoint(Struct, rename={"time_ms": "time", "worst_status": "worst", "since_ms": "since"}):
    """A group at one time."""

    time_ms: TimeMs
    status: StatusName
    worst_status: Annotated[StatusName, Meta(description="The most severe status of its partitions")]
    since_ms: Since
    totallag: int
    maxlag: int


class GroupColumns(Struct):
    """Groups of all clusters; one list per column, one item per group."""

    sequence: Annotated[int | None, Meta(description="The snapshot's number")]
    judged_at: int | None
    clusters: Annotated[list[str], Meta(description="Names of the clusters")]
    cluster: Annotated[list[int], Meta(description="Positions in `clusters`")]
    group: list[str]
    status: list[StatusName]
    totallag: list[int]
    maxlag: list[int]
    since: list[Since]
    partitions: Annotated[list[int], Meta(description="Number of partitions")]
    growth: list[Growth]
    spark: Annotated[list[str], Meta(description="Lag of the last hour, one character from 0 to Z per point")]
    seconds: Annotated[list[float | None] | None, Meta(description="Reserved for the lag in seconds")]
    forecast: Annotated[list[float | None] | None, Meta(description="Reserved for the seconds until the lag is zero")]


class TopicPartition(Struct):
    """A partition of a topic."""

    partition: int
    head: Head
    log_start: LogStart
    rate: Rate


class TopicConsumer(NamedGroup):
    """A group that consumes a topic, with its status over all topics and its lag on this one."""

    totallag: int
    since: Since
    statuses: Annotated[StatusCounts, Meta(description="Number of this topic's partitions by status")]
    lags: Annotated[list[tuple[int, int | None]], Meta(description="Partitions with their lags; null if unknown")]


class TopicDetail(Struct):
    """A topic with its consumers."""

    cluster: str
    topic: str
    judged_at: TimeMs
    rate: Rate
    partitions: list[TopicPartition]
    consumers: list[TopicConsumer]

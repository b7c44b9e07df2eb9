"""The answers about clusters, and about the state of Warren itself."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from warren.snapshot.status import StatusName, TimeMs
from warren.web.answers.groups import Growth, NamedGroup, Since, StatusCounts, UnknownSince

GroupCounts = Annotated[StatusCounts, Meta(description="Number of groups by status")]
LEADERSHIP_STATES = ["alone", "active", "standby", "away", "stopped", "unknown"]
SinkStateName = Literal["starting", "well", "behind", "trouble"]
WorstStatus = Annotated[StatusName, Meta(description="The most severe status of its groups")]


_CLUSTER_NAMES = {"worst_status": "status", "groups_by_status": "groups", "partitions_by_status": "partitions"}
_STATE_NAMES = {"unknown_since_ms": "unknown_since", "error": "error_message", "is_catching_up": "catching_up"}


class ClusterSummary(Struct, rename=_CLUSTER_NAMES | _STATE_NAMES):
    """A cluster as a whole; fields that are not required are missing until it is judged for the first time."""

    name: str
    worst_status: WorstStatus
    totallag: int
    groups_by_status: GroupCounts
    partitions_by_status: Annotated[StatusCounts, Meta(description="Number of partitions by status")]
    unknown_since_ms: UnknownSince | UnsetType = UNSET
    error: Annotated[str | UnsetType | None, Meta(description="Why the cluster cannot be judged")] = UNSET
    is_catching_up: Annotated[bool | UnsetType, Meta(description="Whether old commits are still being read")] = UNSET
    judged_at: int | UnsetType | None = UNSET


class ClusterHistoryPoint(Struct, rename={"time_ms": "time", "worst_status": "status", "is_known": "known"}):
    """A cluster at one time."""

    time_ms: TimeMs
    worst_status: WorstStatus
    is_known: Annotated[bool, Meta(description="Whether the cluster could be judged")]
    totallag: int
    groups: GroupCounts


class ClusterHistoryColumns(Struct):
    """All clusters over time; one list per column, one item per cluster and time."""

    time_ms: list[TimeMs]
    cluster: list[str]
    worst_status: Annotated[list[int], Meta(description="Burrow's status numbers")]
    is_known: list[bool]
    totallag: list[int]
    groups_ok: list[int]
    groups_warn: list[int]
    groups_err: list[int]


class WorstGroup(NamedGroup):
    """A group that is not OK, with its most severe partition."""

    totallag: int
    growth: Growth
    since: Since
    partition_status: StatusName
    topic: str
    partition: int
    reason: str


class ChangedGroup(NamedGroup):
    """A group whose status has changed."""

    before: Annotated[StatusName | None, Meta(description="The status before; null if the group is new")]
    since: Since


class SinkSummary(Struct, rename={"class_name": "class", "delivered_ms": "delivered", "oldest_ms": "oldest"}):
    """A sink and its deliveries; one interval is one sample of all lags."""

    name: str
    class_name: str
    state: SinkStateName
    interval: Annotated[float, Meta(description="Seconds between samples")]
    points: Annotated[int, Meta(description="Points per interval")]
    delivered_ms: Annotated[int | None, Meta(description="Time of the last delivered interval")]
    waiting: Annotated[int, Meta(description="Intervals that are not delivered yet")]
    waiting_bytes: int
    oldest_ms: Annotated[int | None, Meta(description="Time of the oldest interval that is not delivered yet")]
    dropped: Annotated[int, Meta(description="Intervals dropped to make room, since the process started")]
    refused: Annotated[int, Meta(description="Requests that the server refused, since the process started")]
    trouble: Annotated[str, Meta(description="The last error; empty if there is none")]


class LeadershipSummary(Struct, kw_only=True, rename={"since_ms": "since"}):
    """Whether this Warren sends notifications: it does if it is `alone` or `active`."""

    state: Annotated[str, Meta(extra_json_schema={"enum": LEADERSHIP_STATES})]
    since_ms: int | UnsetType | None = UNSET
    why: str


class Overview(Struct):
    """All clusters at a glance."""

    now: TimeMs
    not_ready: Annotated[str | None, Meta(description="Why the verdicts are not current; null if they are")]
    sequence: Annotated[int | None, Meta(description="The snapshot's number")]
    judged_at: int | None
    trigger_ms: Annotated[int | None, Meta(description="How often a cycle runs")]
    cycle_ms: Annotated[int | None, Meta(description="How long the last cycle took")]
    backlog: Annotated[int, Meta(description="Records of the offsets topics that are not read yet")]
    rejects: Annotated[dict[str, int], Meta(description="Records that could not be decoded, by cluster")]
    groups: int
    partitions: int
    clusters: list[ClusterSummary]
    worst: list[WorstGroup]
    changed: Annotated[list[ChangedGroup], Meta(description="Changes of the last hour, newest first")]
    notifying: LeadershipSummary
    sinks: list[SinkSummary]

"""What one cycle is to do, fixed by the driver and sent to every task."""

from dataclasses import dataclass, field

from warren.domain.matching import GroupFilter
from warren.domain.offsets_outages import Outage
from warren.domain.rules import Limits
from warren.snapshot.manifest import Bucket, HeadSample
from warren.snapshot.requests import PipelineRequest


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """A cluster as the tasks see it in this cycle."""

    name: str
    is_judged: bool
    is_read_anew: bool = False
    skew_ms: int = 0
    ring_ms: int = 100_000
    lost_topics: tuple[tuple[str, int], ...] = ()
    """Topics that were deleted, made again or not, and when: commits from before count no more."""
    tails_known: tuple[tuple[str, int], ...] = ()
    heard_at_ms: int | None = None
    """When the ends were fixed up to which commits are read; None if now."""
    away: tuple[Outage, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """An offsets topic as the tasks see it: whose commits it holds and which groups are wanted from it."""

    cluster: int
    filters: tuple[GroupFilter, ...]


@dataclass(frozen=True, slots=True)
class CyclePlan:
    """Everything a task needs beside its data."""

    root: str
    sequence: int
    now_ms: int
    intervals: int
    min_distance_ms: int
    expire_ms: int
    limits: Limits
    clusters: tuple[PlannedCluster, ...]
    sources: tuple[PlannedSource, ...]
    slots: tuple[int, ...]
    state: tuple[Bucket, ...]
    heads: tuple[HeadSample, ...]
    elapsed_ms: int = 0
    storage_filter: GroupFilter = field(default_factory=GroupFilter)
    deletions: tuple[PipelineRequest, ...] = ()
    """Groups, or topics of groups, of which nothing counts that was committed before they were deleted."""

    @property
    def buckets(self) -> int:
        """How many buckets the state has."""
        return len(self.slots)

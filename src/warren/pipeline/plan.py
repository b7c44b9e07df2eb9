"""What one cycle reads and judges, decided by the driver and sent to every task."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Bools, Codes, Ints
from warren.domain.matching import GroupFilter, is_wanted
from warren.domain.offsets_logs import OffsetsLog, OffsetsLogs
from warren.domain.rules import Limits
from warren.kafka.samples import TOPIC_CONFIGS, RecordTime, VerifiedTail
from warren.snapshot.manifest import Bucket, HeadSample
from warren.snapshot.requests import PipelineRequest


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """A cluster as the tasks see it in this cycle."""

    name: str
    is_judged: bool
    is_restarted: bool = False
    """Whether its offsets topic is another log now, so that its windows start over."""
    recent_ms: int = 100_000
    """How far back a head counts as recent: as long as Burrow's ring of head samples."""
    max_gap_ms: int = 60_000
    """How far apart two samples may be for the head between them to be known."""
    deleted_topics: tuple[tuple[str, int], ...] = ()
    """Topics that were deleted, created again or not, and when: commits from before do not count."""
    verified_tails: tuple[VerifiedTail, ...] = ()
    """Partitions whose tail has been read, and the end of the data in it."""
    logs: tuple[OffsetsLog, ...] = ()
    """Its offsets partitions."""
    filters: tuple[GroupFilter, ...] = (GroupFilter(),)
    has_new_filters: bool = False
    """Whether groups that are known already have to pass the filters again."""
    topic_refresh_ms: int = 60_000
    """How old its list of topics may be."""
    read_records: tuple[str, ...] = ()
    """Globs of the topics whose first unread records are read."""
    listed_at_ms: int | None = None
    """When its brokers listed the groups that they know; None if they did not for this cycle."""
    zookeeper_logs: tuple[int, ...] = ()
    """The logs of all its consumer sections that commit to ZooKeeper."""
    listed_logs: tuple[int, ...] = ()
    """Those of them of which this cycle has a list of all partitions."""
    record_times: tuple[RecordTime, ...] = ()
    """When the records at some offsets were made."""
    topic_configs: pa.Table = field(default_factory=TOPIC_CONFIGS.empty_table)
    """How some topics are configured."""

    @property
    def restarted_zookeeper_logs(self) -> tuple[int, ...]:
        """The logs in ZooKeeper whose orders start over, so that their windows do."""
        return tuple(log.id for log in self.logs if log.is_another_log)

    def offsets_logs(self) -> OffsetsLogs:
        """Its offsets partitions, to be looked up."""
        return OffsetsLogs(self.logs)


def filters_text(storage: GroupFilter, filters: Sequence[GroupFilter]) -> str:
    """All filters of a cluster's groups in one text, to be compared with those of the last cycle."""
    return repr((storage, tuple(filters)))


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """An offsets topic as the tasks see it: its cluster (an index) and which groups are wanted from it.

    `first_log` is the id of its first offsets partition.
    """

    cluster: int
    filters: tuple[GroupFilter, ...]
    first_log: int = 0


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
    clock_step_ms: int = 0
    """How far our clock was set since the last cycle: the times of the state move with it."""
    storage_filter: GroupFilter = field(default_factory=GroupFilter)
    deletions: tuple[PipelineRequest, ...] = ()
    """Deleted groups, or topics of groups: commits from before their deletion do not count."""

    @property
    def buckets(self) -> int:
        """How many buckets the state has."""
        return len(self.slots)

    @property
    def source_clusters(self) -> Codes:
        """The cluster of each source."""
        return np.array([source.cluster for source in self.sources], dtype=np.int32)

    @property
    def source_logs(self) -> Codes:
        """The id of the first offsets partition of each source."""
        return np.array([source.first_log for source in self.sources], dtype=np.int32)

    def is_wanted(self, groups: pa.StringArray, index: Ints, source: Ints) -> Bools:
        """Whether the group of each row (an index into `groups`) is wanted from the row's source."""
        wanted = np.zeros(index.size, dtype=np.bool_)
        for number in np.unique(source):
            rows = source == number
            wanted[rows] = is_wanted(groups, self.sources[int(number)].filters, self.storage_filter)[index[rows]]
        return wanted

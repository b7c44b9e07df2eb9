"""The manifest: the commit point of a snapshot. It names every file of the snapshot, and appears last."""

from collections.abc import Iterator, Mapping

import msgspec

from warren.domain.offsets_logs import UNSEEN_MS
from warren.errors import CorruptSnapshot, UnknownFormat
from warren.snapshot.requests import PipelineRequest

FORMAT = 2


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the snapshot, by its path below the data directory."""

    path: str
    size: int
    checksum: str


class Bucket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One bucket of the state: its partitions and its groups."""

    partitions: File
    groups: File
    partition_rows: int
    group_rows: int


class HeadSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sample of the heads: its file, the layout of that file, and when each cluster was sampled (begin, end).

    One that is `by_record_time` was asked for later: where the logs ended then by the timestamps of their records.
    """

    heads: File
    layout: File
    taken_ms: Mapping[str, tuple[int, int]]
    by_record_time: bool = False

    @property
    def taken_at_ms(self) -> int:
        """When all clusters had been sampled."""
        return max((end for _, end in self.taken_ms.values()), default=0)


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far an offsets partition has been read, and where its log ended at that time.

    All commits that were made before `seen_until_ms` have been read; once `next_offset` reaches `awaited_end`, so have
    all that were made before `awaited_at_ms`. `skew` bounds how far the clock of its leader is ahead of ours.
    `away_from_ms` is set during an outage, and with `away_to_ms` for a while after it. `stuck_since_ms` is set while an
    open transaction holds it back, and `held_by` is the transactional id, if the brokers tell it.
    """

    next_offset: int
    stable_end: int
    end: int
    seen_until_ms: int = 0
    awaited_end: int | None = None
    awaited_at_ms: int | None = None
    skew: tuple[int, int] | None = None
    stuck_since_ms: int | None = None
    away_from_ms: int | None = None
    away_to_ms: int | None = None
    held_by: str | None = None

    @property
    def backlog(self) -> int:
        """Records that are committed but not read yet."""
        return max(self.stable_end - self.next_offset, 0)

    @property
    def held_by_transactions(self) -> int:
        """Records that an open transaction keeps from being read."""
        return max(self.end - self.stable_end, 0)

    @property
    def is_away(self) -> bool:
        """Whether it cannot be read: it has no leader that answers."""
        return self.away_from_ms is not None and self.away_to_ms is None

    def unknown_since(self, now_ms: int) -> int | None:
        """Since when the groups that commit to it are unknown because it cannot be read up to its end."""
        seen_ms = self.seen_until_ms or self.awaited_at_ms or self.away_from_ms or now_ms
        return seen_ms if now_ms - seen_ms > UNSEEN_MS else None


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The positions in one offsets topic of one cluster."""

    topic_id: str
    positions: Mapping[int, Position]


class ZooKeeperSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A consumer section that commits to ZooKeeper: its position, in transactions of the ensemble, and its reader.

    `tree_id` tells the root of its znodes from one that is created again. `error` says why it cannot be read, if it
    cannot. `znodes` are known and watched, `pending` of them have changed and are not read yet, and `requests` counts
    what the reader has asked of the ensemble since it was started.
    """

    tree_id: str
    position: Position
    error: str | None = None
    znodes: int = 0
    pending: int = 0
    requests: int = 0

    def unknown_since(self, now_ms: int) -> int | None:
        """Since when its groups are unknown because it cannot be read; one that is only read slowly is not."""
        return self.position.unknown_since(now_ms) if self.position.is_away else None


class ClusterState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The health and totals of a cluster; `unknown_since_ms` is set while its groups cannot be judged."""

    unknown_since_ms: int | None
    error: str | None
    is_catching_up: bool
    sources: Mapping[str, Source]
    seeded: bool
    looked_at_ms: int
    groups_by_status: Mapping[str, int]
    partitions_by_status: Mapping[str, int]
    totallag: int
    worst_status: str
    topics_at_ms: int = 0
    filters: str = ""
    """The filters of groups that its rows have passed."""
    implausible_commits: int = 0
    """Groups whose commits were stamped with a time that contradicts the others, counted in each cycle."""
    has_unseen_deletions: bool = False
    """Whether groups may have been deleted unseen, and its brokers were not asked since."""
    hidden_topics: int = 0
    """Topics that Warren may no longer see; their heads are unknown."""
    missing_right: str | None = None
    """The right that it lacks on them, in one sentence."""
    zookeeper: Mapping[str, ZooKeeperSource] = {}
    """The consumer sections that commit to ZooKeeper, by name."""
    absent_offsets_topics: tuple[str, ...] = ()
    """Its offsets topics that do not exist, as that of a new cluster before the first commit."""

    @property
    def is_judged(self) -> bool:
        """Whether the verdicts of its groups are of this snapshot, not of the time before it became unknown."""
        return self.unknown_since_ms is None

    def positions(self) -> Iterator[Position]:
        """The positions in all of its offsets partitions."""
        return (position for source in self.sources.values() for position in source.positions.values())

    @property
    def backlog(self) -> int:
        """Records of its offsets topics that are committed but not read yet."""
        return sum(position.backlog for position in self.positions())


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a reader, or a writer after a restart, needs to know."""

    sequence: int
    predecessor: int | None
    epoch: int
    now_ms: int
    intervals: int
    minimum_complete: float
    allowed_lag: int
    trigger_ms: int
    buckets: tuple[Bucket, ...]
    heads: tuple[HeadSample, ...]
    clusters: Mapping[str, ClusterState]
    cycle_ms: Mapping[str, int] = {}
    rejects: Mapping[str, Mapping[str, int]] = {}
    requests: tuple[PipelineRequest, ...] = ()
    """The deletions of groups in force."""
    steady_ms: int = 0
    """The steady clock of the writer's machine at `now_ms`, comparable while `boot_id` is the same."""
    boot_id: str = ""
    clock_steps: int = 0
    """How often the wall clock was seen to be set."""
    format: int = FORMAT

    @property
    def is_ready(self) -> bool:
        """Whether no cluster that answers is catching up any more."""
        return not any(cluster.is_catching_up and cluster.error is None for cluster in self.clusters.values())

    @property
    def backlog(self) -> int:
        """Records of all offsets topics that are committed but not read yet."""
        return sum(cluster.backlog for cluster in self.clusters.values())

    def unknown_clusters(self) -> list[str]:
        """The clusters that cannot be judged."""
        return [name for name, state in self.clusters.items() if not state.is_judged]

    def files(self) -> list[File]:
        """Every file that this manifest names."""
        named = [f for bucket in self.buckets for f in (bucket.partitions, bucket.groups)]
        named += [f for sample in self.heads for f in (sample.heads, sample.layout)]
        return named


NO_MANIFEST = Manifest(0, None, 0, 0, 0, 0.0, 0, 0, buckets=(), heads=(), clusters={})
"""What there is before the first snapshot: all numbers are zero."""


class _AnyFormat(msgspec.Struct):
    """What manifests of all formats have."""

    format: msgspec.Raw = msgspec.Raw(b"(none)")


def from_json(data: bytes) -> Manifest:
    """The manifest back from its bytes; UnknownFormat for one of another version, CorruptSnapshot for a damaged one."""
    try:
        written = bytes(msgspec.json.decode(data, type=_AnyFormat).format).decode()
        if written == "1":
            return _from_format_1(data)
        if written == str(FORMAT):
            return msgspec.json.decode(data, type=Manifest)
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        # A later version may add optional fields without a new format. The JSON is whole, so it is not cut short.
        damage = UnknownFormat if "unknown field" in str(error) else CorruptSnapshot
        raise damage(f"a manifest that cannot be read: {error}") from error
    if not written.isdigit():
        raise CorruptSnapshot(f"a manifest that cannot be read: its format is {written}")
    raise UnknownFormat(f"manifest format {written} is not {FORMAT}: written by another version of Warren")


def _from_format_1(data: bytes) -> Manifest:
    """Format 1 had one clock skew per cluster, and told catching up by where a log stood at the start."""
    manifest = msgspec.json.decode(data)
    for state in manifest["clusters"].values():
        state.pop("skew", None)
        for source in state["sources"].values():
            for position in source["positions"].values():
                position.pop("catch_up_to", None)
    return msgspec.convert({**manifest, "format": FORMAT}, Manifest, str_keys=True)

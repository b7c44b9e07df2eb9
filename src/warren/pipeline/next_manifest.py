"""The manifest that follows from the results of a cycle; pure functions."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from warren.domain.clock_skew import ClockSkew, observe_skew
from warren.domain.status import Status
from warren.kafka.client_errors import missing_right
from warren.kafka.samples import ClusterSample
from warren.pipeline.bucket_result import BucketResult, ClusterCounts
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan, PlannedCluster, filters_text
from warren.pipeline.zookeeper_offsets import SectionRead
from warren.snapshot.manifest import ClusterState, Manifest, Position, Source, ZooKeeperSource

UNKNOWN_CLUSTER = ClusterState(None, None, True, {}, False, 0, {}, {}, 0, Status.OK.name)

MAX_SKEW_INTERVAL_MS = 300_000
"""Commits that may have been made over a longer time than this say too little about a clock."""


def state_of(manifest: Manifest, cluster: str) -> ClusterState:
    """The state of a cluster in a manifest, also of one that the manifest does not know."""
    return manifest.clusters.get(cluster, UNKNOWN_CLUSTER)


def next_manifest(
    before: Manifest,
    plan: CyclePlan,
    samples: Mapping[str, ClusterSample],
    reads: Sequence[TopicRead],
    seeded: Collection[str],
    results: Sequence[BucketResult],
    stages: Mapping[str, int],
    sections: Sequence[SectionRead] = (),
) -> Manifest:
    """The manifest of a cycle, given the one before it and the results in the order of the buckets."""
    clusters = {}
    for planned in plan.clusters:
        own = [read for read in reads if read.cluster == planned.name]
        counts = [result.clusters[planned.name] for result in results]
        was = state_of(before, planned.name)
        in_zookeeper = [read for read in sections if read.cluster == planned.name]
        state = cluster_state(was, planned, samples.get(planned.name), own, counts, plan.now_ms, in_zookeeper)
        filters = filters_text(plan.storage_filter, planned.filters)
        clusters[planned.name] = replace(state, seeded=was.seeded or planned.name in seeded, filters=filters)
    return replace(
        before,
        sequence=plan.sequence,
        predecessor=before.sequence,
        now_ms=plan.now_ms,
        buckets=tuple(result.bucket for result in results),
        heads=plan.heads,
        clusters=clusters,
        cycle_ms=dict(stages),
        rejects=add_rejects(before.rejects, results, [cluster.name for cluster in plan.clusters]),
        requests=plan.deletions,
    )


def cluster_state(
    before: ClusterState,
    planned: PlannedCluster,
    sample: ClusterSample | None,
    reads: Sequence[TopicRead],
    counts: Sequence[ClusterCounts],
    now_ms: int,
    sections: Sequence[SectionRead] = (),
) -> ClusterState:
    """A cluster after the cycle; one that did not answer keeps what it had, with its error."""
    groups = _sum(count.groups for count in counts)
    after = replace(
        before,
        unknown_since_ms=None if planned.is_judged else (before.unknown_since_ms or now_ms),
        groups_by_status=groups,
        partitions_by_status=_sum(count.partitions for count in counts),
        totallag=sum(count.totallag for count in counts),
        worst_status=max((Status[name] for name in groups), default=Status.OK).name,
    )
    if sample is None or sample.error is not None:
        return replace(after, error=sample.error if sample else "it was not sampled")
    if sample.is_late:
        return _late_state(before, after, now_ms, planned.max_gap_ms)
    skews, implausible = observe_skews(planned, [pair for count in counts for pair in count.commit_times])
    return replace(
        after,
        error=None,
        is_catching_up=any(read.is_catching_up for read in reads),
        sources={**before.sources, **{read.topic: _with_skews(read, skews) for read in reads}},
        zookeeper={read.section: _with_skew(read, skews) for read in sections},
        looked_at_ms=sample.ends_at_ms[0],
        topics_at_ms=sample.topics_at_ms,
        implausible_commits=before.implausible_commits + implausible,
        hidden_topics=len(sample.hidden_topics),
        missing_right=missing_right("Describe", sample.hidden_topics) if sample.hidden_topics else None,
        absent_offsets_topics=tuple(read.topic for read in reads if read.topic in sample.absent_topics),
    )


def _late_state(before: ClusterState, after: ClusterState, now_ms: int, max_late_ms: int) -> ClusterState:
    """A cluster that takes longer than the cycle: it is as it was, and unknown if that was too long ago."""
    late_ms = now_ms - before.looked_at_ms
    if before.error is not None or before.is_catching_up:
        return after
    if late_ms <= max_late_ms:
        return replace(after, unknown_since_ms=before.unknown_since_ms)
    return replace(after, error=f"it is slow: what is known of it is {late_ms // 1000} s old")


def observe_skews(planned: PlannedCluster, commit_times: Sequence[tuple[int, int]]) -> tuple[dict[int, ClockSkew], int]:
    """The clock skew by offsets partition, from pairs of its id and the time of a commit; how many contradict it."""
    skews, implausible = {}, 0
    pairs = np.array(commit_times, dtype=np.int64).reshape(-1, 2)
    for log in planned.logs:
        times = pairs[pairs[:, 0] == log.id, 1]
        if times.size and log.read_from_ms > 0 and log.read_to_ms - log.read_from_ms <= MAX_SKEW_INTERVAL_MS:
            skews[log.id], outliers = observe_skew(times, log.read_from_ms, log.read_to_ms)
            implausible += outliers
    return skews, implausible


def _with_skews(read: TopicRead, observed: Mapping[int, ClockSkew]) -> Source:
    positions = {
        partition: _followed_by(position, observed.get(read.first_log + partition))
        for partition, position in read.after.positions.items()
    }
    return replace(read.after, positions=positions)


def _with_skew(read: SectionRead, observed: Mapping[int, ClockSkew]) -> ZooKeeperSource:
    return replace(read.after, position=_followed_by(read.after.position, observed.get(read.log)))


def _followed_by(position: Position, skew: ClockSkew | None) -> Position:
    if skew is None:
        return position
    skew = ClockSkew(*position.skew).followed_by(skew) if position.skew else skew
    return replace(position, skew=(skew.low, skew.high))


def skew_of(position: Position | None) -> ClockSkew:
    """How far the clock of an offsets partition's leader is ahead of ours, as far as it is known."""
    return ClockSkew(*position.skew) if position and position.skew else ClockSkew(0, 0)


def add_rejects(
    before: Mapping[str, Mapping[str, int]], results: Sequence[BucketResult], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Rejects counted by cluster and reason since the data directory was created."""
    total = {cluster: dict(reasons) for cluster, reasons in before.items()}
    for reject in (reject for result in results for reject in result.rejects):
        own = total.setdefault(names[reject.cluster], {})
        own[reject.reason] = own.get(reject.reason, 0) + reject.count
    return total


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = sum(map(Counter, counts), Counter())
    return {name: total[name] for name in sorted(total)}

"""The manifest that follows from the results of a cycle; pure functions."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from warren.domain.clock_skew import ClockSkew
from warren.domain.status import Status
from warren.kafka.samples import ClusterSample
from warren.pipeline.bucket_result import BucketResult, ClusterCounts
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan, PlannedCluster
from warren.snapshot.manifest import ClusterState, Manifest

UNKNOWN_CLUSTER = ClusterState(None, None, True, {}, False, 0, None, {}, {}, 0, Status.OK.name)


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
) -> Manifest:
    """The manifest of a cycle, given the one before it and the results in the order of the buckets."""
    clusters = {}
    for planned in plan.clusters:
        own = [read for read in reads if read.cluster == planned.name]
        counts = [result.clusters[planned.name] for result in results]
        was = state_of(before, planned.name)
        state = cluster_state(was, planned, samples.get(planned.name), own, counts, plan.now_ms)
        clusters[planned.name] = replace(state, seeded=was.seeded or planned.name in seeded)
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
    skew = clock_skew_of(before)
    newest = max((count.newest_ms for count in counts if count.newest_ms is not None), default=None)
    if newest is not None and before.looked_at_ms and not before.is_catching_up:
        skew = skew.updated(newest, before.looked_at_ms, sample.ends_at_ms)
    return replace(
        after,
        error=None,
        is_catching_up=any(read.is_catching_up for read in reads),
        sources={**before.sources, **{read.topic: read.after for read in reads}},
        looked_at_ms=sample.ends_at_ms,
        topics_at_ms=sample.topics_at_ms,
        skew=(skew.low, skew.high),
    )


def clock_skew_of(state: ClusterState) -> ClockSkew:
    """The clock skew of a cluster, as far as it is known."""
    return ClockSkew(*state.skew) if state.skew else ClockSkew()


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

"""What a cycle came to: the buckets' answers and the manifest that follows from them; pure functions."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warren.domain.clock_skew import ClockSkew
from warren.domain.status import Status
from warren.kafka.samples import ClusterSample
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.plan import CyclePlan, PlannedCluster
from warren.snapshot.manifest import Bucket, ClusterState, File, Manifest

NEVER_SEEN = ClusterState(None, None, True, {}, False, 0, None, {}, {}, 0, Status.OK.name)


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """What one bucket says of one cluster."""

    groups: Mapping[str, int]
    partitions: Mapping[str, int]
    totallag: int
    commits: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Records of one cluster that were rejected for one reason."""

    cluster: int
    reason: str
    count: int
    sample: str


@dataclass(frozen=True, slots=True)
class BucketOutcome:
    """The answer of a bucket's task."""

    bucket: Bucket
    clusters: Mapping[str, ClusterPart]
    rejects: tuple[Rejected, ...]
    doubted: tuple[tuple[str, str, int], ...]
    heard: tuple[str, ...] = ()
    """The deletions whose groups have committed again."""


def from_summary(summary: bytes) -> BucketOutcome:
    """The answer back from the JSON in which it travelled."""
    raw: dict[str, Any] = json.loads(summary)
    held = raw["bucket"]
    return BucketOutcome(
        Bucket(**{**held, "partitions": File(**held["partitions"]), "groups": File(**held["groups"])}),
        {name: ClusterPart(**part) for name, part in raw["clusters"].items()},
        tuple(Rejected(**reject) for reject in raw["rejects"]),
        tuple((cluster, topic, partition) for cluster, topic, partition in raw["doubted"]),
        tuple(raw["heard"]),
    )


def doubted(outcomes: Sequence[BucketOutcome]) -> dict[str, list[tuple[str, int]]]:
    """The partitions whose tails are to be looked at, by cluster, each once."""
    found: dict[str, dict[tuple[str, int], None]] = {}
    for cluster, topic, partition in (one for outcome in outcomes for one in outcome.doubted):
        found.setdefault(cluster, {})[topic, partition] = None
    return {cluster: list(partitions) for cluster, partitions in found.items()}


def next_manifest(
    before: Manifest,
    plan: CyclePlan,
    samples: Mapping[str, ClusterSample],
    readings: Sequence[TopicRead],
    seeded: Collection[str],
    outcomes: Sequence[BucketOutcome],
    stages: Mapping[str, int],
) -> Manifest:
    """The manifest of a cycle, given the one before it and the buckets' answers in the order of the buckets."""
    clusters = {}
    for planned in plan.clusters:
        own = [reading for reading in readings if reading.cluster == planned.name]
        parts = [outcome.clusters[planned.name] for outcome in outcomes]
        was = before.clusters.get(planned.name, NEVER_SEEN)
        state = cluster_state(was, planned, samples.get(planned.name), own, parts, plan.now_ms)
        clusters[planned.name] = replace(state, seeded=was.seeded or planned.name in seeded)
    return Manifest(
        sequence=plan.sequence,
        predecessor=before.sequence,
        epoch=before.epoch,
        now_ms=plan.now_ms,
        intervals=plan.intervals,
        minimum_complete=plan.limits.minimum_complete,
        allowed_lag=plan.limits.allowed_lag,
        trigger_ms=before.trigger_ms,
        buckets=tuple(outcome.bucket for outcome in outcomes),
        heads=plan.heads,
        clusters=clusters,
        cycle_ms=dict(stages),
        rejects=added_rejects(before.rejects, outcomes, [cluster.name for cluster in plan.clusters]),
        requests=plan.deletions,
    )


def cluster_state(
    before: ClusterState,
    planned: PlannedCluster,
    sample: ClusterSample | None,
    readings: Sequence[TopicRead],
    parts: Sequence[ClusterPart],
    now_ms: int,
) -> ClusterState:
    """A cluster after the cycle; one that did not answer keeps what it had, and says why it is unknown."""
    groups = _summed([part.groups for part in parts])
    after = replace(
        before,
        unknown_since_ms=None if planned.is_judged else (before.unknown_since_ms or now_ms),
        groups_by_status=groups,
        partitions_by_status=_summed([part.partitions for part in parts]),
        totallag=sum(part.totallag for part in parts),
        worst_status=max((Status[name] for name in groups), default=Status.OK).name,
    )
    if sample is None or sample.error is not None:
        return replace(after, error=sample.error if sample else "it was not looked at")
    skew = clock_skew_of(before)
    newest = max((part.newest_ms for part in parts if part.newest_ms is not None), default=None)
    if newest is not None and before.looked_at_ms and not before.is_catching_up:
        skew = skew.seen(newest, before.looked_at_ms, sample.ends_at_ms)
    return replace(
        after,
        error=None,
        is_catching_up=any(reading.is_catching_up for reading in readings),
        sources={**before.sources, **{reading.topic: reading.after for reading in readings}},
        looked_at_ms=sample.ends_at_ms,
        topics_at_ms=sample.topics_at_ms,
        skew=(skew.low, skew.high),
    )


def clock_skew_of(state: ClusterState) -> ClockSkew:
    """What is known of a cluster's clock."""
    return ClockSkew(*state.skew) if state.skew else ClockSkew()


def added_rejects(
    before: Mapping[str, Mapping[str, int]], outcomes: Sequence[BucketOutcome], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Rejects counted by cluster and reason since the beginning."""
    total = {cluster: dict(reasons) for cluster, reasons in before.items()}
    for reject in (reject for outcome in outcomes for reject in outcome.rejects):
        own = total.setdefault(names[reject.cluster], {})
        own[reject.reason] = own.get(reject.reason, 0) + reject.count
    return total


def _summed(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = {name for part in parts for name in part}
    return {name: sum(part.get(name, 0) for part in parts) for name in sorted(names)}

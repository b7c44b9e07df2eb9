"""What the task of a bucket sends back to the driver: a few counts, however many groups the bucket has."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from warren.domain.arrays import Ints, to_array, to_bools, to_ints
from warren.domain.status import Status
from warren.kafka.samples import Partition, SampleQuestions, UnreadOffset
from warren.pipeline.judge_partitions import Tail, tails_to_verify
from warren.pipeline.record_times import Unread, times_to_look_up
from warren.pipeline.topic_configs import LaggingTopic, topics_to_describe
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket
from warren.snapshot.manifest import Bucket, File

MAX_COMMIT_TIMES = 64
"""How many groups of a cluster a bucket reports a commit time of."""


class ClusterCounts(msgspec.Struct, frozen=True):
    """One cluster in one bucket; `commits` counts the new ones.

    `commit_times` has, for some of the groups that have committed, their offsets partition and the time of a commit.
    """

    groups: Mapping[str, int]
    partitions: Mapping[str, int]
    totallag: int
    commits: int
    commit_times: tuple[tuple[int, int], ...]


class Rejected(msgspec.Struct, frozen=True):
    """Records of one cluster (an index into the plan's) that were rejected for one reason, with a sample."""

    cluster: int
    reason: str
    count: int
    sample: str


class BucketResult(msgspec.Struct, frozen=True):
    """The files of a judged bucket and what the driver needs of it."""

    bucket: Bucket
    clusters: Mapping[str, ClusterCounts]
    rejects: tuple[Rejected, ...] = ()
    tails_to_verify: tuple[Tail, ...] = ()
    times_to_look_up: tuple[Unread, ...] = ()
    topics_to_describe: tuple[LaggingTopic, ...] = ()
    renewed_deletions: tuple[str, ...] = ()
    """The ids of deletions whose groups have committed again."""
    unlisted_groups: tuple[tuple[str, str], ...] = ()
    """Clusters and names of some groups that their brokers do not list."""
    failures: Mapping[str, str] = {}
    """The clusters that could not be judged, and why; if there are any, nothing of the bucket was written."""


def failed_result(failures: Mapping[str, str]) -> BucketResult:
    """The result of a bucket in which some clusters could not be judged."""
    return BucketResult(Bucket(File("", 0, ""), File("", 0, ""), 0, 0), {}, failures=failures)


def decode_result(data: bytes) -> BucketResult:
    """A result back from the bytes in which it crosses Spark."""
    return msgspec.msgpack.decode(data, type=BucketResult)


def unread_offsets(results: Iterable[BucketResult]) -> dict[str, tuple[list[UnreadOffset], list[UnreadOffset]]]:
    """By cluster, the offsets of first unread messages whose times are asked for, and those of them that are read."""
    offsets: dict[str, tuple[list[UnreadOffset], list[UnreadOffset]]] = {}
    every = (unread for result in results for unread in result.times_to_look_up)
    for cluster, topic, partition, offset, is_read in every:
        asked, to_read = offsets.setdefault(cluster, ([], []))
        asked.append((topic, partition, offset))
        to_read += asked[-1:] if is_read else ()
    return offsets


def sample_questions(
    clusters: Iterable[str], results: Sequence[BucketResult], missing: Mapping[str, Sequence[str]]
) -> dict[str, SampleQuestions]:
    """By cluster, what its next sample is to find out; `missing` are the topics that the last one lacked."""
    tails: dict[str, dict[Partition, None]] = {name: {} for name in clusters}
    for cluster, topic, partition in (tail for result in results for tail in result.tails_to_verify):
        tails[cluster][topic, partition] = None
    # Several buckets may name the same topic.
    lagging: dict[str, dict[str, None]] = {name: {} for name in tails}
    for cluster, topic in (lagging for result in results for lagging in result.topics_to_describe):
        lagging[cluster][topic] = None
    unread = unread_offsets(results)
    questions = {}
    for name, unverified in tails.items():
        asked, to_read = unread.get(name, ((), ()))
        questions[name] = SampleQuestions(list(unverified), missing.get(name, ()), asked, to_read, list(lagging[name]))
    return questions


def to_result(files: Bucket, bucket: WorkingBucket, inputs: BucketInputs) -> BucketResult:
    """The result of a bucket that went through all steps."""
    return BucketResult(
        files,
        _cluster_counts(bucket, inputs),
        msgspec.convert(tuple(inputs.rejects.to_pylist()), tuple[Rejected, ...]),
        tails_to_verify(bucket, inputs.plan),
        times_to_look_up(bucket, inputs.plan),
        topics_to_describe(bucket, inputs.plan),
        bucket.renewed_deletions,
        bucket.unlisted_groups,
    )


def _cluster_counts(bucket: WorkingBucket, inputs: BucketInputs) -> dict[str, ClusterCounts]:
    rows, groups, commits = bucket.rows, bucket.group_table, inputs.commits
    group_cluster = to_ints(to_array(groups["cluster"]).indices)
    group_status = to_ints(groups["status"])
    commit_cluster, time_ms = to_ints(commits["cluster"]), to_ints(commits["time_ms"])
    group, log = to_ints(to_array(commits["group"]).indices), to_ints(commits["log"])
    is_commit = ~to_bools(commits["is_tombstone"])
    counts = {}
    for number, cluster in enumerate(inputs.plan.clusters):
        is_own = rows.cluster == number
        own = np.flatnonzero((commit_cluster == number) & is_commit)
        counts[cluster.name] = ClusterCounts(
            groups=_count_statuses(group_status[group_cluster == number]),
            partitions=_count_statuses(rows.status[is_own]),
            totallag=int(np.maximum(rows.current_lag[is_own], 0).sum()),
            commits=int(own.size),
            commit_times=_commit_times(own, group, log, time_ms),
        )
    return counts


def _commit_times(own: Ints, group: Ints, log: Ints, time_ms: Ints) -> tuple[tuple[int, int], ...]:
    """The offsets partition and the time of one commit of some groups, from a sample of a cluster's commits."""
    own = own[:: own.size // (16 * MAX_COMMIT_TIMES) + 1]
    _, first = np.unique(group[own], return_index=True)
    shown = own[first[:: first.size // MAX_COMMIT_TIMES + 1]]
    return tuple(zip(log[shown].tolist(), time_ms[shown].tolist(), strict=True))


def _count_statuses(status: NDArray[np.integer]) -> dict[str, int]:
    values, counts = np.unique(status, return_counts=True)
    return {Status(int(value)).name: int(count) for value, count in zip(values, counts, strict=True)}

"""Verdicts that wait until the tail of their partition is verified.

Transaction markers and aborted records take offsets that no consumer reads, so a group that has read everything may
lag a few offsets for ever. The rung `is_tail_unverified` (`domain/rules.py`) holds back a bad verdict for such a short
lag. This file has the rest: which tails are verified, what stands meanwhile, and which tails to verify next. Decision 7
tells the whole way.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.lag import SHORT_LAG
from warren.domain.rules import Reason, Verdicts
from warren.domain.status import Status
from warren.pipeline.plan import CyclePlan
from warren.pipeline.working_bucket import Names, WorkingBucket

MAX_REQUESTED = 100
"""How many tails one bucket requests per cycle."""

Tail = tuple[str, str, int]
"""The cluster, topic and partition of a tail to verify."""


def is_tail_verified(bucket: WorkingBucket, plan: CyclePlan) -> NDArray[np.bool_]:
    """Whether the sampler has read the tail of each row with a short lag up to its present head."""
    rows = bucket.rows
    is_verified = np.zeros(len(rows), dtype=np.bool_)
    short = np.flatnonzero((rows.current_lag > 0) & (rows.current_lag <= SHORT_LAG))
    topic_partition = rows.topic[short].astype(np.int64) << 32 | rows.partition[short]
    for number, cluster in enumerate(plan.clusters):
        if cluster.verified_tails and short.size:
            topics, partitions = zip(*cluster.verified_tails, strict=True)
            codes = Names(bucket.topics.values).codes(pa.array(topics, pa.string()))
            tails = codes.astype(np.int64) << 32 | np.array(partitions, dtype=np.int64)
            is_verified[short] |= (rows.cluster[short] == number) & np.isin(topic_partition, tails)
    return is_verified


def keep_last_verdicts(verdicts: Verdicts, last_status: NDArray[np.int8], last_reason: NDArray[np.int8]) -> None:
    """Where a verdict waits for its tail, let a last verdict that was bad stand; one that was OK is OK still."""
    waits = (verdicts.reason == Reason.TAIL_IN_DOUBT) & (last_status != Status.OK)
    verdicts.status[waits], verdicts.reason[waits] = last_status[waits], last_reason[waits]


def tails_to_verify(bucket: WorkingBucket, plan: CyclePlan) -> tuple[Tail, ...]:
    """The tails of some of the waiting partitions; the others follow when these are verified."""
    rows, requested = bucket.rows, bucket.unverified_rows[:MAX_REQUESTED]
    clusters = [plan.clusters[number].name for number in rows.cluster[requested].tolist()]
    topics = bucket.topics.values.take(pa.array(rows.topic[requested])).to_pylist()
    return tuple(zip(clusters, topics, rows.partition[requested].tolist(), strict=True))


def by_cluster(tails: Iterable[Tail]) -> dict[str, list[tuple[str, int]]]:
    """The tails to verify in each cluster, each once, as the sampler takes them."""
    partitions: dict[str, dict[tuple[str, int], None]] = {}
    for cluster, topic, partition in tails:
        partitions.setdefault(cluster, {})[topic, partition] = None
    return {cluster: list(wanted) for cluster, wanted in partitions.items()}

"""The files of head samples: one per cycle for all clusters, and a layout whenever topics change.

Brokers before 2.8 have no ids of topics. Their topics get ids of Warren's own: a topic keeps its id until one of its
heads has fallen, as that of a topic does that is deleted and created again.
"""

import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Ints, to_ints
from warren.domain.lag import SHORT_LAG
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import NO_OFFSETS, TOPIC_GRACE_MS, ClusterSample, Topic, missing_topics
from warren.snapshot.manifest import File, HeadSample
from warren.snapshot.schemas import HEADS, LAYOUT
from warren.snapshot.store import Store

TIERS_MS = ((180_000, 0), (1_800_000, 60_000), (21_600_000, 600_000), (86_400_000, 3_600_000))
"""Pairs of an age and the distance between samples that are kept up to that age: all at first, then fewer and fewer."""


_OWN_ID = "~"
"""How ids of Warren's own begin."""


class HeadFiles:
    """Writes head samples, and remembers the layout of the last published one."""

    def __init__(self, store: Store, newest: HeadSample | None) -> None:
        self._store = store
        self._topics: dict[str, tuple[Topic, ...]] = {}
        self._layout: File | None = None
        self._pending: tuple[dict[str, tuple[Topic, ...]], File] | None = None
        self._pending_heads: Ints = NO_OFFSETS
        self._missing: dict[str, dict[Topic, int]] = {}
        """By cluster, the topics that its lists lack, and since when."""
        self._last_heads: dict[str, dict[str, Ints]] = {}
        """By cluster and topic, the last known heads of topics with ids of Warren's own."""
        if newest is not None:
            self._topics = _topics_of(store.read_arrow(newest.layout))
            self._layout = newest.layout
            self._remember_heads(to_ints(store.read_arrow(newest.heads)["head"]))

    def topics(self, cluster: str) -> tuple[Topic, ...]:
        """The topics of a cluster in the last published sample."""
        return self._topics.get(cluster, ())

    def complete(self, sample: ClusterSample) -> ClusterSample:
        """The sample with an id for every topic, and with topics that it lacks and that do not count as deleted."""
        return self.keep_missing_topics(self.with_own_ids(sample))

    def with_own_ids(self, sample: ClusterSample) -> ClusterSample:
        """The sample with an id for every topic."""
        if all(topic.id for topic in sample.topics):
            return sample
        known = {topic.name: topic.id for topic in self.topics(sample.cluster)}
        last = self._last_heads.get(sample.cluster, {})
        topics = []
        for topic, heads in _heads_of_topics(sample.topics, sample.heads):
            topic_id = topic.id or known.get(topic.name, _OWN_ID)
            if not topic.id and has_fallen(last.get(topic.name, heads), heads):
                topic_id = f"{_OWN_ID}{sample.topics_at_ms}"
            topics.append(replace(topic, id=topic_id))
        return replace(sample, topics=tuple(topics))

    def keep_missing_topics(self, sample: ClusterSample) -> ClusterSample:
        """The sample with the topics that it lacks and that do not count as deleted; their heads are unknown.

        A topic is deleted when it has been missing for a while and the brokers say that it does not exist.
        """
        at_ms, before = sample.topics_at_ms, self._missing.get(sample.cluster, {})
        missing = {topic: before.get(topic, at_ms) for topic in self._missing_topics(sample)}
        self._missing[sample.cluster] = missing
        absent = set(sample.absent_topics)
        is_kept = (topic.name not in absent or at_ms - since < TOPIC_GRACE_MS for topic, since in missing.items())
        return with_topics(sample, list(compress(missing, is_kept)))

    def missing_topics(self) -> dict[str, list[str]]:
        """The names of the topics that the last samples lacked, by cluster."""
        return {cluster: [topic.name for topic in topics] for cluster, topics in self._missing.items()}

    def _missing_topics(self, sample: ClusterSample) -> list[Topic]:
        known = self.topics(sample.cluster)
        return [] if known == sample.topics else missing_topics(known, sample.topics)

    def write(self, sequence: int, clusters: Sequence[str], samples: Mapping[str, ClusterSample]) -> HeadSample:
        """Write one sample; clusters that did not answer keep their rows, with unknown heads."""
        topics = {c: samples[c].topics if c in samples else self.topics(c) for c in clusters}
        stem = f"{sequence:012d}"
        layout = self._layout
        if layout is None or topics != self._topics:
            layout = self._store.write_arrow("layouts", stem, _layout_of(topics))
        self._pending = (topics, layout)
        unknown = {c: np.full(sum(t.partitions for t in topics[c]), UNKNOWN, dtype=np.int64) for c in clusters}
        columns = {
            "head": [samples[c].heads if c in samples else unknown[c] for c in clusters],
            "log_start": [samples[c].log_starts if c in samples else unknown[c] for c in clusters],
        }
        table = pa.table({name: np.concatenate(parts) for name, parts in columns.items()}, schema=HEADS)
        self._pending_heads = to_ints(table["head"])
        heads = self._store.write_arrow("heads", stem, table)
        return HeadSample(heads, layout, {name: sample.heads_at_ms for name, sample in samples.items()})

    def published(self) -> None:
        """The last written sample is in a manifest now: the next one is compared with it."""
        if self._pending is not None:
            self._topics, self._layout = self._pending
            self._remember_heads(self._pending_heads)

    def _remember_heads(self, heads: Ints) -> None:
        flat = [(cluster, topic) for cluster, own in self._topics.items() for topic in own]
        if not any(topic.id.startswith(_OWN_ID) for _, topic in flat):
            return
        before, self._last_heads = self._last_heads, {cluster: {} for cluster in self._topics}
        for (cluster, _), (topic, now) in zip(flat, _heads_of_topics([topic for _, topic in flat], heads), strict=True):
            if topic.id.startswith(_OWN_ID):
                last = before.get(cluster, {}).get(topic.name, now)
                is_comparable = len(last) == len(now) and not has_fallen(last, now)
                self._last_heads[cluster][topic.name] = np.maximum(last, now) if is_comparable else now


def thin_history(history: Sequence[HeadSample], now_ms: int) -> tuple[HeadSample, ...]:
    """The history without samples that are too old, or too close together for their age."""
    times = [max((end for _, end in sample.taken_ms.values()), default=0) for sample in history]
    return tuple(history[index] for index in keep_samples(times, now_ms))


def keep_samples(times_ms: Sequence[int], now_ms: int) -> list[int]:
    """The indexes of the samples to keep, given their times, oldest first.

    The newest is always among them. So is the last one before a gap: what it says holds until sampling went on.
    """
    kept: list[int] = []
    for index, time_ms in enumerate(times_ms[:-1]):
        spacing = next((gap for age, gap in TIERS_MS if now_ms - time_ms <= age), math.inf)
        is_apart = spacing < math.inf and (not kept or time_ms - times_ms[kept[-1]] >= spacing)
        if is_apart or times_ms[index + 1] - time_ms > spacing:
            kept.append(index)
    return [*kept, len(times_ms) - 1] if times_ms else []


def with_topics(sample: ClusterSample, topics: Sequence[Topic]) -> ClusterSample:
    """A sample with more topics, of whose partitions nothing is known."""
    if not topics:
        return sample
    names = [topic.name for topic in sample.topics]
    first_rows = np.cumsum([0, *(topic.partitions for topic in sample.topics)])
    rows = [first_rows[bisect(names, topic.name)] for topic in topics for _ in range(topic.partitions)]
    return replace(
        sample,
        topics=tuple(sorted([*sample.topics, *topics], key=lambda topic: topic.name)),
        heads=np.insert(sample.heads, rows, UNKNOWN),
        log_starts=np.insert(sample.log_starts, rows, UNKNOWN),
    )


def changed_topics(before: Sequence[Topic], now: Sequence[Topic]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Topics that were deleted, and topics that were deleted and created again."""
    if tuple(before) == tuple(now):
        return (), ()
    ids = {topic.name: topic.id for topic in now}
    deleted = tuple(topic.name for topic in missing_topics(before, now))
    recreated = tuple(topic.name for topic in before if _is_another(topic.id, ids.get(topic.name, topic.id)))
    return deleted, recreated


def _is_another(before_id: str, now_id: str) -> bool:
    """Whether these are ids of two topics, and not of one whose brokers have ids only since an upgrade."""
    return before_id != now_id and before_id.startswith(_OWN_ID) == now_id.startswith(_OWN_ID)


def has_fallen(before: Ints, now: Ints) -> bool:
    """Whether a partition has a lower head than before, or is not there any more.

    A head falls by a few also when its tail was read and turned out to be markers of transactions.
    """
    common = min(len(before), len(now))
    is_known = (before[:common] != UNKNOWN) & (now[:common] != UNKNOWN)
    return len(now) < len(before) or bool((is_known & (now[:common] < before[:common] - SHORT_LAG)).any())


def _heads_of_topics(topics: Sequence[Topic], heads: Ints) -> Iterator[tuple[Topic, Ints]]:
    first = 0
    for topic in topics:
        yield topic, heads[first : first + topic.partitions]
        first += topic.partitions


def _layout_of(topics: Mapping[str, Sequence[Topic]]) -> pa.Table:
    flat = [(cluster, topic) for cluster, own in topics.items() for topic in own]
    partitions = np.array([topic.partitions for _, topic in flat], dtype=np.int32)
    first_row = np.concatenate([[0], np.cumsum(partitions)])[:-1] if flat else np.zeros(0)
    columns = {
        "cluster": [cluster for cluster, _ in flat],
        "topic": [topic.name for _, topic in flat],
        "topic_id": [topic.id for _, topic in flat],
        "partitions": partitions,
        "first_row": first_row.astype(np.int64),
    }
    return pa.table(columns, schema=LAYOUT)


def _topics_of(layout: pa.Table) -> dict[str, tuple[Topic, ...]]:
    topics: dict[str, list[Topic]] = {}
    for row in layout.to_pylist():
        topics.setdefault(row["cluster"], []).append(Topic(row["topic"], row["topic_id"], row["partitions"]))
    return {cluster: tuple(own) for cluster, own in topics.items()}

"""The files of head samples: one per cycle for all clusters, and a layout whenever topics change."""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, pairwise

import numpy as np
import pyarrow as pa

from warren.domain.arrays import to_ints
from warren.domain.past_heads import AHEAD_MS, APPENDED_WITHIN_MS
from warren.domain.windows import UNKNOWN
from warren.kafka.past_heads import PastHeads
from warren.kafka.samples import TOPIC_GRACE_MS, ClusterSample, Topic, missing_topics
from warren.pipeline.topic_ids import TopicIds, is_another
from warren.snapshot.manifest import File, HeadSample
from warren.snapshot.schemas import HEADS, LAYOUT, PAST_HEADS
from warren.snapshot.store import Store

DENSE_MS = 180_000
"""Up to which age all samples are kept."""
HISTORY_MS = 86_400_000
"""Up to which age samples are kept at all."""
MAX_GAP_SHARE = 0.05
"""How far apart the samples between may be, as a share of their age: so exactly is known when a head was passed."""


class HeadFiles:
    """Writes head samples, and remembers the layout of the last published one."""

    def __init__(self, store: Store, newest: HeadSample | None) -> None:
        self._store = store
        self._topics: dict[str, tuple[Topic, ...]] = {}
        self._layout: File | None = None
        self._pending: tuple[dict[str, tuple[Topic, ...]], File] | None = None
        self._missing: dict[str, dict[Topic, int]] = {}
        """By cluster, the topics that its lists lack, and since when."""
        self._ids = TopicIds()
        self._written: Mapping[str, ClusterSample] = {}
        if newest is not None:
            self._topics = _topics_of(store.read_arrow(newest.layout))
            self._layout = newest.layout
            self._remember(newest)

    def topics(self, cluster: str) -> tuple[Topic, ...]:
        """The topics of a cluster in the last published sample."""
        return self._topics.get(cluster, ())

    def _remember(self, newest: HeadSample) -> None:
        """Remember the heads of the last published sample, from its file."""
        heads, first = to_ints(self._store.read_arrow(newest.heads)["head"]), 0
        for cluster, topics in self._topics.items():
            end = first + sum(topic.partitions for topic in topics)
            if cluster in newest.taken_ms:
                self._ids.remember(cluster, topics, heads[first:end], newest.taken_ms[cluster][0])
            first = end

    def complete(self, sample: ClusterSample) -> ClusterSample:
        """The sample with an id for every topic, and with topics that it lacks and that do not count as deleted."""
        return self.keep_missing_topics(self._ids.with_ids(sample, self.topics(sample.cluster)))

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
        self._pending, self._written = (topics, layout), samples
        unknown = {c: np.full(sum(t.partitions for t in topics[c]), UNKNOWN, dtype=np.int64) for c in clusters}
        columns = {
            "head": [samples[c].heads if c in samples else unknown[c] for c in clusters],
            "log_start": [samples[c].log_starts if c in samples else unknown[c] for c in clusters],
        }
        table = pa.table({name: np.concatenate(parts) for name, parts in columns.items()}, schema=HEADS)
        heads = self._store.write_arrow("heads", stem, table)
        return HeadSample(heads, layout, {name: sample.heads_at_ms for name, sample in samples.items()})

    def write_past(self, sequence: int, sample: ClusterSample, past: PastHeads) -> list[HeadSample]:
        """Write the heads of one cluster from before its sample, oldest first, of the topics that the sample has."""
        ids = {topic.name: topic for topic in sample.topics}
        topics = tuple(ids.get(topic.name, topic) for topic in past.topics)
        if [topic.partitions for topic in topics] != [topic.partitions for topic in past.topics]:
            return []
        stem = f"{sequence:012d}"
        layout = self._store.write_arrow("layouts", stem, _layout_of({sample.cluster: topics}))
        samples = []
        for time_ms, heads, lowest in reversed(list(zip(past.times_ms, past.heads, past.lowest, strict=True))):
            taken_ms = (time_ms - AHEAD_MS, time_ms + APPENDED_WITHIN_MS)
            if taken_ms[1] < sample.heads_at_ms[0]:
                unknown = np.full(heads.size, UNKNOWN, np.int64)
                table = pa.table([heads, unknown, lowest], schema=PAST_HEADS)
                file = self._store.write_arrow("heads", stem, table)
                samples.append(HeadSample(file, layout, {sample.cluster: taken_ms}, by_record_time=True))
        return samples

    def published(self) -> None:
        """The last written sample is in a manifest now: the next one is compared with it."""
        if self._pending is not None:
            self._topics, self._layout = self._pending
            for name, sample in self._written.items():
                self._ids.remember(name, sample.topics, sample.heads, sample.heads_at_ms[0])


def thin_history(history: Sequence[HeadSample], now_ms: int) -> tuple[HeadSample, ...]:
    """The history in the order of time, without samples that are too old, or too close together for their age.

    Samples by record time are of one cluster: they do not replace samples of all.
    """
    by_clusters: dict[tuple[str, ...], list[HeadSample]] = {}
    for sample in history:
        by_clusters.setdefault(tuple(sample.taken_ms) if sample.by_record_time else (), []).append(sample)
    kept = [
        own[index]
        for own in by_clusters.values()
        for index in keep_samples([sample.taken_at_ms for sample in own], now_ms)
        if not own[index].by_record_time or now_ms - own[index].taken_at_ms <= HISTORY_MS
    ]
    return tuple(sorted(kept, key=lambda sample: sample.taken_at_ms)) if len(by_clusters) > 1 else tuple(kept)


def keep_samples(times_ms: Sequence[int], now_ms: int) -> list[int]:
    """The indexes of the samples to keep, given their times, oldest first.

    The newest is always among them. So is the last one before a gap: what it says holds until sampling went on.
    """
    kept: list[int] = []
    for index, (time_ms, next_ms) in enumerate(pairwise(times_ms)):
        if now_ms - time_ms > HISTORY_MS:
            continue
        is_dense = now_ms - time_ms <= DENSE_MS
        if is_dense or not kept or next_ms - times_ms[kept[-1]] > MAX_GAP_SHARE * (now_ms - next_ms):
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


def changed_topics(before: Sequence[Topic], now: Sequence[Topic]) -> tuple[tuple[Topic, ...], tuple[Topic, ...]]:
    """Topics that were deleted, and topics as they are now that were deleted and created again."""
    if tuple(before) == tuple(now):
        return (), ()
    known = {topic.name: topic for topic in before}
    recreated = tuple(topic for topic in now if topic.name in known and is_another(known[topic.name], topic))
    return tuple(missing_topics(before, now)), recreated


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

"""Head samples on their way into the snapshot: one file a cycle for all clusters, a layout only when topics change."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from warren.domain.head_retention import keep_samples
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import ClusterSample, Topic
from warren.snapshot.manifest import File, HeadSample
from warren.snapshot.schemas import HEADS, LAYOUT
from warren.snapshot.store import Store


class HeadFiles:
    """Writes samples below the data directory and remembers which layout the topics have."""

    def __init__(self, store: Store, newest: HeadSample | None) -> None:
        self._store = store
        self._topics: dict[str, tuple[Topic, ...]] = {}
        self._layout: File | None = None
        self._pending: tuple[dict[str, tuple[Topic, ...]], File] | None = None
        if newest is not None:
            self._topics = _topics_of(store.read_arrow(newest.layout))
            self._layout = newest.layout

    def topics(self, cluster: str) -> tuple[Topic, ...]:
        """The topics of a cluster as last seen."""
        return self._topics.get(cluster, ())

    def write(self, sequence: int, clusters: Sequence[str], samples: Mapping[str, ClusterSample]) -> HeadSample:
        """One sample of every cluster that answered; the others keep their place, with nothing known."""
        topics = {c: samples[c].topics if c in samples else self.topics(c) for c in clusters}
        stem = f"{sequence:012d}"
        layout = self._layout
        if layout is None or topics != self._topics:
            layout = self._store.write_arrow("layouts", stem, _layout_of(topics))
        self._pending = (topics, layout)
        columns: dict[str, list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {"head": [], "log_start": []}
        for cluster in clusters:
            if cluster in samples:
                columns["head"].append(samples[cluster].heads)
                columns["log_start"].append(samples[cluster].log_starts)
            else:
                unknown = np.full(sum(t.partitions for t in topics[cluster]), UNKNOWN, dtype=np.int64)
                columns["head"].append(unknown)
                columns["log_start"].append(unknown)
        table = pa.table({name: np.concatenate(parts) for name, parts in columns.items()}, schema=HEADS)
        heads = self._store.write_arrow("heads", stem, table)
        taken = {name: sample.heads_at_ms for name, sample in samples.items()}
        return HeadSample(heads, layout, taken)

    def published(self) -> None:
        """What was written last is in a manifest now: the next sample is compared with it."""
        if self._pending is not None:
            self._topics, self._layout = self._pending


def thinned(history: Sequence[HeadSample], now_ms: int) -> tuple[HeadSample, ...]:
    """The history less the samples that are too old or too close together for their age."""
    times = [max((end for _, end in sample.taken_ms.values()), default=0) for sample in history]
    return tuple(history[place] for place in keep_samples(times, now_ms))


def changed_topics(before: Sequence[Topic], now: Sequence[Topic]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Topics that are gone, and topics that were deleted and made again."""
    if tuple(before) == tuple(now):
        return (), ()
    ids = {topic.name: topic.id for topic in now}
    gone = tuple(topic.name for topic in before if topic.name not in ids)
    remade = tuple(topic.name for topic in before if ids.get(topic.name, topic.id) != topic.id)
    return gone, remade


def _layout_of(topics: Mapping[str, Sequence[Topic]]) -> pa.Table:
    flat = [(cluster, topic) for cluster, held in topics.items() for topic in held]
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
    found: dict[str, list[Topic]] = {}
    for row in layout.to_pylist():
        found.setdefault(row["cluster"], []).append(Topic(row["topic"], row["topic_id"], row["partitions"]))
    return {cluster: tuple(topics) for cluster, topics in found.items()}

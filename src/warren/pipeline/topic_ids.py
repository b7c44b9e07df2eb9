"""Ids of Warren's own for the topics of brokers that have none, as those before Kafka 2.8.

A topic keeps its id until one of its heads has fallen, as that of a topic does that is deleted and created again. Its
new id says when the former topic was seen last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from warren.domain.arrays import Ints
from warren.domain.lag import SHORT_LAG
from warren.domain.topic_ids import is_another_topic, is_own_id, own_id, own_id_ms
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import ClusterSample, Topic


@dataclass(slots=True)
class TopicIds:
    """The last known heads of topics with ids of Warren's own, by cluster and topic, and when they were sampled."""

    _last: dict[str, dict[str, tuple[Ints, int]]] = field(default_factory=dict)

    def with_ids(self, sample: ClusterSample, known: Sequence[Topic]) -> ClusterSample:
        """The sample with an id for every topic; `known` are the topics of the last published one."""
        if all(topic.id for topic in sample.topics):
            return sample
        ids = {topic.name: topic.id for topic in known}
        last = self._last.get(sample.cluster, {})
        topics = []
        for topic, heads in _heads_of_topics(sample.topics, sample.heads):
            before, seen_at_ms = last.get(topic.name, (heads, 0))
            new_id = own_id(seen_at_ms) if _has_fallen(before, heads) else ids.get(topic.name, own_id())
            topics.append(replace(topic, id=topic.id or new_id))
        return replace(sample, topics=tuple(topics))

    def remember(self, cluster: str, topics: Sequence[Topic], heads: Ints, sampled_at_ms: int) -> None:
        """Remember the heads of a sample that is published."""
        before = self._last.pop(cluster, {})
        own = [(topic, now) for topic, now in _heads_of_topics(topics, heads) if is_own_id(topic.id)]
        if own:
            self._last[cluster] = {topic.name: _merge(before.get(topic.name), now, sampled_at_ms) for topic, now in own}


def _merge(last: tuple[Ints, int] | None, now: Ints, now_ms: int) -> tuple[Ints, int]:
    """The last known heads of a topic, and when a sample had some."""
    if last is None:
        return now, now_ms
    is_known = now != UNKNOWN
    if len(last[0]) == len(now) and not _has_fallen(last[0], now):
        now = np.where(is_known, now, last[0])
    return now, now_ms if is_known.any() else last[1]


def is_another(before: Topic, now: Topic) -> bool:
    """Whether these are two topics of one name, and not one whose brokers have ids only since an upgrade."""
    return is_another_topic(before.id, now.id)


def last_seen_ms(topic: Topic) -> int | None:
    """When the topic was seen last that had the same name before; None if the brokers tell topics apart themselves."""
    return own_id_ms(topic.id) if is_own_id(topic.id) else None


def _has_fallen(before: Ints, now: Ints) -> bool:
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

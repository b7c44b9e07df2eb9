"""Topics of brokers that have no topic ids."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from warren.domain.windows import UNKNOWN
from warren.kafka.samples import ClusterSample, Topic
from warren.pipeline.head_files import HeadFiles, changed_topics
from warren.pipeline.topic_ids import last_seen_ms
from warren.snapshot.store import Store


def sample(*heads: int, topic_id: str = "", at_ms: int) -> ClusterSample:
    topics = (Topic("a", topic_id, 1), Topic("b", topic_id, 2))
    values = np.array(heads, np.int64)
    taken = ClusterSample("one", topics=topics, heads=values, log_starts=values // 10)
    return replace(taken, heads_at_ms=(at_ms, at_ms), topics_at_ms=at_ms)


def test_a_topic_keeps_its_id_until_a_head_falls(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create()
    files = HeadFiles(store, None)

    def publish(taken: ClusterSample, *, is_restarted: bool = False) -> dict[str, int | None]:
        """Publish a sample; gives the topics that were created again, and when the former one was seen last."""
        nonlocal files
        completed, before = files.complete(taken), files.topics("one")
        assert all(topic.id for topic in completed.topics)
        written = files.write(taken.topics_at_ms, ["one"], {"one": completed})
        files.published()
        if is_restarted:
            files = HeadFiles(store, written)
        return {topic.name: last_seen_ms(topic) for topic in changed_topics(before, completed.topics)[1]}

    assert publish(sample(500, 500, 500, at_ms=1)) == {}
    assert publish(sample(510, 499, 600, at_ms=2)) == {}, "it falls by one: markers of transactions"
    assert publish(sample(UNKNOWN, UNKNOWN, UNKNOWN, at_ms=3)) == {}
    assert publish(sample(510, 600, 70, at_ms=4), is_restarted=True) == {"b": 2}
    assert publish(sample(520, 610, 80, at_ms=5), is_restarted=True) == {}
    assert publish(sample(3, 610, 80, at_ms=6)) == {"a": 5}
    assert publish(sample(530, 610, 80, topic_id="id", at_ms=7)) == {}, "the brokers were upgraded"
    assert publish(sample(5, 6, 7, at_ms=8)) == {}, "a broker that was not upgraded yet"
    assert publish(sample(5, 6, 7, topic_id="other", at_ms=9)) == {"a": None, "b": None}

"""Head samples on their way into the snapshot."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from warren.domain.windows import UNKNOWN
from warren.kafka.samples import TOPIC_GRACE_MS, ClusterSample, Topic
from warren.pipeline.head_files import HeadFiles, changed_topics, thin_history
from warren.snapshot.manifest import File, HeadSample
from warren.snapshot.schemas import HEADS, LAYOUT
from warren.snapshot.store import Store

CLUSTERS = ["one", "two"]


def sample(cluster: str, topics: list[Topic], heads: list[int], at_ms: int = 5) -> ClusterSample:
    values = np.array(heads, np.int64)
    return ClusterSample(
        cluster, heads_at_ms=(at_ms, at_ms + 1), topics=tuple(topics), heads=values, log_starts=values // 10
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    made.create()
    return made


def both(first: list[int]) -> dict[str, ClusterSample]:
    return {
        "one": sample("one", [Topic("a", "id-a", len(first))], first),
        "two": sample("two", [Topic("a", "id-2", 1), Topic("b", "id-b", 1)], [70, 80], 9),
    }


def test_a_sample_of_all_clusters_is_one_file_with_its_layout(store: Store) -> None:
    taken = HeadFiles(store, None).write(1, CLUSTERS, both([50, UNKNOWN]))
    layout, heads = store.read_arrow(taken.layout), store.read_arrow(taken.heads)
    assert (layout.schema, heads.schema) == (LAYOUT, HEADS)
    assert [tuple(row.values()) for row in layout.to_pylist()] == [
        ("one", "a", "id-a", 2, 0),
        ("two", "a", "id-2", 1, 2),
        ("two", "b", "id-b", 1, 3),
    ]
    assert heads["head"].to_pylist() == [50, UNKNOWN, 70, 80]
    assert heads["log_start"].to_pylist() == [5, UNKNOWN, 7, 8]
    assert taken.taken_ms == {"one": (5, 6), "two": (9, 10)}


def test_a_cluster_that_did_not_answer_keeps_its_place_with_nothing_known(store: Store) -> None:
    files = HeadFiles(store, None)
    first = files.write(1, CLUSTERS, both([50]))
    files.published()
    second = files.write(2, CLUSTERS, {"two": both([1])["two"]})
    assert second.layout == first.layout
    assert store.read_arrow(second.heads)["head"].to_pylist() == [UNKNOWN, 70, 80]
    assert second.taken_ms == {"two": (9, 10)}


def test_no_topics_at_all(store: Store) -> None:
    taken = HeadFiles(store, None).write(1, ["one"], {"one": sample("one", [], [])})
    assert store.read_arrow(taken.layout).num_rows == store.read_arrow(taken.heads).num_rows == 0


def test_what_was_not_published_does_not_count(store: Store) -> None:
    files = HeadFiles(store, None)
    first = files.write(1, CLUSTERS, both([50]))
    assert files.topics("one") == ()
    again = files.write(1, CLUSTERS, both([50]))
    assert again.layout != first.layout, "the files of a cycle that died are swept"
    files.published()
    assert files.topics("one") == (Topic("a", "id-a", 1),)
    assert files.write(2, CLUSTERS, both([60])).layout == again.layout
    grown = files.write(2, CLUSTERS, both([60, 61]))
    assert grown.layout != again.layout


def test_a_restart_goes_on_with_the_layout_of_the_manifest(store: Store) -> None:
    taken = HeadFiles(store, None).write(1, CLUSTERS, both([50]))
    files = HeadFiles(store, taken)
    assert files.topics("two") == (Topic("a", "id-2", 1), Topic("b", "id-b", 1))
    assert files.write(2, CLUSTERS, both([60])).layout == taken.layout


def test_a_removed_cluster_leaves_the_layout(store: Store) -> None:
    files = HeadFiles(store, HeadFiles(store, None).write(1, CLUSTERS, both([50])))
    taken = files.write(2, ["two"], {"two": both([1])["two"]})
    assert store.read_arrow(taken.layout)["cluster"].to_pylist() == ["two", "two"]
    assert store.read_arrow(taken.heads)["head"].to_pylist() == [70, 80]


def test_a_topic_is_kept_until_lists_lack_it_for_a_while(store: Store) -> None:
    files = HeadFiles(store, None)
    topics = [Topic("a", "1", 1), Topic("b", "2", 2), Topic("c", "3", 1)]
    files.write(1, ["one"], {"one": sample("one", topics, [10, 20, 30, 40])})
    files.published()

    def at(at_ms: int, now: list[Topic], heads: list[int]) -> tuple[tuple[Topic, ...], list[int], list[int]]:
        taken = replace(sample("one", now, heads), topics_at_ms=at_ms, absent_topics=absent)
        kept = files.keep_missing_topics(taken)
        return kept.topics, kept.heads.tolist(), kept.log_starts.tolist()

    all_three = tuple(topics)
    absent: tuple[str, ...] = ("b", "c")
    lacks_b = ([topics[0], topics[2]], [11, 41])
    with_b = (all_three, [11, UNKNOWN, UNKNOWN, 41], [1, UNKNOWN, UNKNOWN, 4])
    assert at(1_000, *lacks_b) == at(1_000 + TOPIC_GRACE_MS - 1, *lacks_b) == with_b, "one list, or two too close"
    assert at(7_000, topics, [11, 21, 31, 41]) == (all_three, [11, 21, 31, 41], [1, 2, 3, 4]), "it is back"
    assert at(8_000, *lacks_b) == with_b, "and counts from its next absence"
    assert at(9_000, [], []) == (all_three, [UNKNOWN] * 4, [UNKNOWN] * 4)
    absent = ("c",)
    assert at(8_000 + TOPIC_GRACE_MS, *lacks_b) == with_b, "nobody said that it does not exist"
    assert files.missing_topics() == {"one": ["b"]}
    absent = ("b",)
    assert at(8_000 + TOPIC_GRACE_MS, *lacks_b) == (tuple(lacks_b[0]), [11, 41], [1, 4])
    again = [topics[0], Topic("b", "9", 1), topics[2]]
    assert at(99_000, again, [11, 1, 41]) == (tuple(again), [11, 1, 41], [1, 0, 4]), "another topic is not that one"


OLD = [Topic("a", "1", 2), Topic("b", "2", 2), Topic("c", "3", 2)]


@pytest.mark.parametrize(
    ("name", "now", "gone", "remade"),
    [
        ("nothing changed", OLD, (), ()),
        ("one is gone", OLD[1:], ("a",), ()),
        ("one came", [*OLD, Topic("d", "4", 1)], (), ()),
        ("one grew", [Topic("a", "1", 5), *OLD[1:]], (), ()),
        ("one was made again", [Topic("a", "9", 2), *OLD[1:]], (), ("a",)),
        ("all of it", [Topic("b", "9", 2), Topic("z", "5", 1)], ("a", "c"), ("b",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_changed_topics(name: str, now: list[Topic], gone: tuple[str, ...], remade: tuple[str, ...]) -> None:
    changed = changed_topics(OLD, now)
    assert [tuple(topic.name for topic in topics) for topics in changed] == [gone, remade], name


def test_a_cluster_that_was_never_seen_has_lost_nothing() -> None:
    assert changed_topics((), OLD) == ((), ())


def test_thinning_goes_by_the_time_a_sample_was_done() -> None:
    def taken(at_ms: int) -> HeadSample:
        file = File(f"heads/{at_ms}", 1, "")
        return HeadSample(file, file, {"one": (at_ms - 5_000, at_ms - 4_000), "two": (at_ms - 100, at_ms)})

    now = 10_000_000
    history = [taken(now - age) for age in (400_000, 390_000, 384_000, 10_000, 0)]
    assert thin_history(history, now) == (history[0], history[2], history[3], history[4])
    assert thin_history([], now) == ()

"""Samples that are taken ahead of the cycle, of clusters that answer at once, late, or not at all."""

import threading
import time
from collections.abc import Iterator

import pytest

from warren.kafka.samples import ClusterSample
from warren.pipeline import patience
from warren.pipeline.sample_prefetch import SamplePrefetch

CLUSTERS = ["a", "b", "c"]


class Brokers:
    """Answers of clusters, some of which are held back."""

    def __init__(self) -> None:
        self.held: dict[str, threading.Event] = {}
        self.asked: list[tuple[str, float]] = []
        self.delay_s = dict.fromkeys(CLUSTERS, 0.0)
        self.failing: set[str] = set()

    def sample(self, cluster: str) -> ClusterSample:
        self.asked.append((cluster, time.monotonic()))
        time.sleep(self.delay_s[cluster])
        if cluster in self.held:
            self.held[cluster].wait(30)
        error = "refused" if cluster in self.failing else None
        return ClusterSample(cluster, error, topics_at_ms=len(self.asked))


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def prefetch(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> Iterator[SamplePrefetch]:
    monkeypatch.setattr(patience, "LEAST_GRACE_S", 1.0)
    made = SamplePrefetch(brokers.sample, lambda: CLUSTERS)
    yield made
    made.close()


def late(samples: dict[str, ClusterSample]) -> list[str]:
    return [name for name, sample in samples.items() if sample.is_late]


def test_a_cluster_that_does_not_answer_is_late_and_nobody_waits_for_it_again(
    brokers: Brokers, prefetch: SamplePrefetch
) -> None:
    brokers.held["b"] = threading.Event()
    assert late(prefetch.take()) == ["b"]
    began = time.monotonic()
    for _ in range(3):
        assert late(prefetch.take()) == ["b"]
    assert time.monotonic() - began < 2.0, "the grace is given once"
    assert [name for name, _ in brokers.asked].count("b") == 1, "it has a request under way"
    brokers.held.pop("b").set()
    deadline = time.monotonic() + 10
    while late(prefetch.take()):
        assert time.monotonic() < deadline
    assert late(prefetch.take()) == []


def test_a_cluster_that_is_late_and_then_fails_holds_up_only_the_first_cycle(
    brokers: Brokers, prefetch: SamplePrefetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LEAST_GRACE_S", 3.0)
    brokers.failing = {"b"}
    for turn in range(3):
        brokers.held["b"] = threading.Event()
        began = time.monotonic()
        assert late(prefetch.take()) == ["b"]
        assert (time.monotonic() - began >= 2.9) == (turn == 0)
        brokers.held["b"].set()
        failed = prefetch.take()["b"]
        while failed.is_late:
            failed = prefetch.take()["b"]
        assert failed.error == "refused"


def test_clusters_that_fail_at_once_do_not_make_the_others_late(brokers: Brokers, prefetch: SamplePrefetch) -> None:
    brokers.failing = {"a", "b"}
    brokers.delay_s["c"] = 1.5
    assert late(prefetch.take()) == []
    brokers.failing = {"a"}
    assert late(prefetch.take()) == ["c"], "one that answers sets the pace"


def test_the_only_cluster_is_waited_for(brokers: Brokers) -> None:
    brokers.delay_s["a"] = 0.5
    prefetch = SamplePrefetch(brokers.sample, lambda: ["a"])
    assert late(prefetch.take()) == []
    prefetch.close()


def test_each_cluster_is_asked_as_long_ahead_as_it_takes(brokers: Brokers, prefetch: SamplePrefetch) -> None:
    brokers.delay_s["b"] = 0.1
    assert late(prefetch.take()) == []
    brokers.asked.clear()
    due = time.monotonic() + 1.0
    prefetch.prepare(due)
    time.sleep(1.0)
    samples = prefetch.take()
    assert late(samples) == []
    asked = dict(brokers.asked)
    assert asked["b"] < due - 0.1
    assert asked["a"] > due - 0.1


def test_prepared_samples_are_discarded_if_the_clusters_change_and_kept_if_only_the_time_does() -> None:
    taken: list[int] = []

    def sample(cluster: str) -> ClusterSample:
        taken.append(len(taken))
        return ClusterSample(cluster, topics_at_ms=taken[-1])

    prefetch = SamplePrefetch(sample, lambda: ["c"])

    def take() -> int:
        return prefetch.take()["c"].topics_at_ms

    prefetch.prepare(time.monotonic() + 60)
    prefetch.prepare(time.monotonic())
    assert take() == 0
    prefetch.prepare(time.monotonic())
    while len(taken) < 2:
        time.sleep(0.01)
    prefetch.prepare(time.monotonic())
    assert take() == 1
    prefetch.prepare(time.monotonic())
    prefetch.discard()
    assert take() == len(taken) - 1
    prefetch.close()

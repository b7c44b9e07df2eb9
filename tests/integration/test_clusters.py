"""Clusters that go away, come back, are added and removed: the others do not notice, and nothing is lost."""

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from tests.kit.brokers import KafkaTrio
from tests.kit.reference import Reference, assert_windows_equal, read_topic
from tests.kit.warrens import Recorder, Sections, Seen, WarrenRun, sections_for
from warren.demo.broker import Kafka
from warren.demo.workload.committing_groups import Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import create_topics, fill_topic

pytestmark = pytest.mark.timeout(900)

TRIGGER_S = 2.0
RATE = 100.0
FILLED = 5_000
TOPIC = "orders"
CYCLES = 6
"""How many snapshots are looked at before, during and after each event."""

# The same names in both, with other fates: a verdict that strays from one cluster to the other shows.
NORTH = {"billing": "healthy", "export": "stalled", "search": "slow"}
SOUTH = {"billing": "stalled", "export": "healthy", "search": "healthy"}
TRIO = {"billing": "healthy", "export": "stalled", "search": "slow"}
VERDICT = {"healthy": "OK", "stalled": "STALL", "slow": "WARN"}


def group_of(kind: str, bootstrap: str, name: str) -> ConsumerGroup:
    if kind == "healthy":
        return Healthy(bootstrap, TOPIC, name)
    if kind == "stalled":
        return Stalled(bootstrap, TOPIC, name, behind=500)
    return Slow(bootstrap, TOPIC, name, produced_rate=RATE, fraction=0.5, behind=500)


@contextlib.contextmanager
def workload(kafka: Kafka | KafkaTrio, fates: Mapping[str, str]) -> Iterator[dict[str, ConsumerGroup]]:
    """A producer and groups of these fates on a cluster."""
    create_topics(kafka.bootstrap, {TOPIC: 3})
    fill_topic(kafka.bootstrap, TOPIC, FILLED)
    groups = {name: group_of(kind, kafka.bootstrap, name) for name, kind in fates.items()}
    workers: list[WorkloadThread] = [Producer(kafka.bootstrap, TOPIC, RATE), *groups.values()]
    with contextlib.ExitStack() as parts:
        parts.callback(stop_all, workers, 60.0)
        for worker in workers:
            worker.start()
        yield groups


def settled(seen: Seen, cluster: str, fates: Mapping[str, str]) -> bool:
    """Whether every group of a cluster has the verdict of its fate, and the cluster is there."""
    state = seen.manifest.clusters.get(cluster)
    return (
        state is not None
        and state.unknown_since_ms is None
        and all(seen.verdicts(cluster, name) == {VERDICT[kind]} for name, kind in fates.items())
    )


@dataclass
class Summary:
    """What was published in each chapter."""

    record: Recorder
    chapters: dict[str, tuple[float, float]] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)

    def wait_settled(self, run: WarrenRun, cluster: str, fates: Mapping[str, str]) -> None:
        began_s = time.time()

        def look(_: object) -> bool:
            found = self.record.since(began_s)
            return bool(found) and settled(found[-1], cluster, fates)

        run.wait_for(look, f"the verdicts of {cluster}: {self._shown(cluster, fates)}")

    def _shown(self, cluster: str, fates: Mapping[str, str]) -> dict[str, set[str]]:
        seen = self.record.seen
        return {name: seen[-1].verdicts(cluster, name) for name in fates} if seen else {}

    @contextlib.contextmanager
    def chapter(self, name: str) -> Iterator[None]:
        began_s = time.time()
        yield
        self.chapters[name] = (began_s, time.time())

    def snapshots(self, chapter: str) -> list[Seen]:
        """The snapshots that were judged within a chapter."""
        began_s, ended_s = self.chapters[chapter]
        return [seen for seen in self.record.since(began_s) if seen.manifest.now_ms <= ended_s * 1000]


def sections(**clusters: Kafka | KafkaTrio) -> Sections:
    return sections_for({name: kafka.bootstrap for name, kafka in clusters.items()}, trigger=TRIGGER_S)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Summary]:
    """Two clusters, one dies and comes back; then one is removed and a third added, which loses a broker."""
    with contextlib.ExitStack() as parts:
        north, south = parts.enter_context(Kafka()), parts.enter_context(Kafka())
        run = WarrenRun(tmp_path_factory.mktemp("clusters"), sections(north=north, south=south))
        told = Summary(parts.enter_context(Recorder(run.data)))
        parts.enter_context(workload(north, NORTH))
        with workload(south, SOUTH), run:
            told.wait_settled(run, "north", NORTH)
            told.wait_settled(run, "south", SOUTH)
            with told.chapter("both are there"):
                run.wait_for_cycles(CYCLES)
            south.kill()
            run.wait_for(lambda s: s.manifest.clusters["south"].unknown_since_ms, "south is noticed to be away")
            with told.chapter("south is away"):
                run.wait_for_cycles(CYCLES)
            south.start()
            run.wait_for(lambda s: s.manifest.clusters["south"].unknown_since_ms is None, "south is judged again")
            told.wait_settled(run, "south", SOUTH)
            with told.chapter("south is back"):
                run.wait_for_cycles(CYCLES)
        told.references["south"] = Reference(read_topic(south.bootstrap, "__consumer_offsets"))
        south.stop()
        tell_of_three_brokers(told, run, north, parts)
        told.references["north"] = Reference(read_topic(north.bootstrap, "__consumer_offsets"))
        yield told


def tell_of_three_brokers(told: Summary, run: WarrenRun, north: Kafka, parts: contextlib.ExitStack) -> None:
    trio = parts.enter_context(KafkaTrio())
    with workload(trio, TRIO):
        run.configure(sections(north=north, trio=trio))
        with told.chapter("south is removed and trio added"), run:
            told.wait_settled(run, "trio", TRIO)
            with told.chapter("a broker is killed"):
                trio.kill(1)
                run.wait_for_cycles(CYCLES)
                # Until its clients have found the new controller the cluster may be unknown, which is no verdict.
                run.wait_for(lambda s: s.manifest.clusters["trio"].unknown_since_ms is None, "two brokers are enough")
                run.wait_for_cycles(CYCLES)
            with told.chapter("the broker is back"):
                trio.start(1)
                run.wait_for_cycles(2 * CYCLES)
            told.wait_settled(run, "trio", TRIO)
        told.references["trio"] = Reference(read_topic(trio.bootstrap, "__consumer_offsets"))


def test_groups_of_the_same_name_are_judged_by_their_own_cluster(story: Summary) -> None:
    chapter = story.snapshots("both are there")
    assert len(chapter) >= CYCLES
    for seen in chapter:
        assert settled(seen, "north", NORTH)
        assert settled(seen, "south", SOUTH)


@pytest.mark.parametrize("chapter", ["south is away", "south is back"])
def test_the_verdicts_of_the_living_cluster_do_not_change(story: Summary, chapter: str) -> None:
    snapshots = story.snapshots(chapter)
    assert len(snapshots) >= CYCLES
    for seen in snapshots:
        assert settled(seen, "north", NORTH), seen.why("north", "billing")


def test_the_living_cluster_is_as_fresh_as_before(story: Summary) -> None:
    def age_ms(chapter: str) -> float:
        ages = [s.published_s * 1000 - s.manifest.clusters["north"].looked_at_ms for s in story.snapshots(chapter)]
        return statistics.median(ages)

    def gap_ms(chapter: str) -> float:
        times = [seen.manifest.now_ms for seen in story.snapshots(chapter)]
        return statistics.median(later - earlier for earlier, later in pairwise(times))

    # Twice as long is what a noisy machine does by itself; waiting for a dead cluster takes its whole timeout.
    for of in (age_ms, gap_ms):
        assert of("south is away") <= 2 * max(of("both are there"), TRIGGER_S * 1000)


def test_the_groups_of_the_dead_cluster_are_unknown_since_when(story: Summary) -> None:
    before = story.snapshots("both are there")[-1]
    away = story.snapshots("south is away")
    assert len({seen.manifest.clusters["south"].unknown_since_ms for seen in away}) == 1
    for seen in away:
        south = seen.manifest.clusters["south"]
        assert south.unknown_since_ms is not None
        assert before.manifest.now_ms < south.unknown_since_ms <= seen.manifest.now_ms
        assert south.error
        # Known still, by what was known last, and not judged anew on old heads.
        for name, kind in SOUTH.items():
            assert seen.verdicts("south", name) == {VERDICT[kind]}


def test_a_cluster_that_is_back_is_judged_again(story: Summary) -> None:
    for seen in story.snapshots("south is back"):
        assert settled(seen, "south", SOUTH)
        assert seen.manifest.clusters["south"].error is None


@pytest.mark.parametrize("cluster", ["north", "south", "trio"])
def test_nothing_is_lost(story: Summary, cluster: str) -> None:
    snapshots = [seen for seen in story.record.seen if cluster in seen.manifest.clusters]
    assert_windows_equal(snapshots, cluster, story.references[cluster])


def test_a_removed_cluster_is_gone_and_an_added_one_is_there(story: Summary) -> None:
    first = story.snapshots("south is removed and trio added")[0]
    assert first.manifest.clusters.keys() == {"north", "trio"}
    assert {cluster for cluster, _ in first.groups} <= {"north", "trio"}


def test_a_restart_with_other_clusters_keeps_the_windows_of_those_that_stay(story: Summary) -> None:
    first = story.snapshots("south is removed and trio added")[0]
    assert settled(first, "north", NORTH)
    assert all(row["complete"] == 1.0 for (c, _, _, _), row in first.partitions.items() if c == "north")


@pytest.mark.parametrize("chapter", ["a broker is killed", "the broker is back"])
def test_a_broker_of_three_goes_and_comes_back_without_a_wrong_verdict(story: Summary, chapter: str) -> None:
    snapshots = story.snapshots(chapter)
    assert len(snapshots) >= CYCLES
    for seen in snapshots:
        for name, kind in TRIO.items():
            # A group that lost its coordinator for a moment may catch up with what is paced by the clock.
            assert seen.verdicts("trio", name) <= {"OK", VERDICT[kind]}, seen.why("trio", name)


def test_the_cluster_of_three_is_judged_while_a_broker_is_away(story: Summary) -> None:
    last = story.snapshots("a broker is killed")[-1]
    assert last.manifest.clusters["trio"].unknown_since_ms is None

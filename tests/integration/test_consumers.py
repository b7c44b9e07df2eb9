"""Every kind of consumer, on a real Kafka and judged by a real `warren run`, gets its right verdict and only that."""

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kit.warrens import Recorder, Seen, WarrenRun, recorded, sections_for, wait_for
from tests.kit.workloads import Left, expected_status, fill_in_transaction, settles_after_s
from warren.demo.broker import Kafka
from warren.demo.workload.committing_groups import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Bursty, Healthy, Kip848, Pair, Stopped, Transactional
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic

pytestmark = pytest.mark.timeout(900)

TRIGGER_S = 2.0
OBSERVED_S = 120.0
RATE = 1_000.0
QUIET_RATE = 200.0
BUSY, QUIET, OUTPUT, LEDGER = "busy", "quiet", "quiet-output", "ledger"
FILLED = 12_000
BEHIND = 10_000
"""So far behind that no sample of the heads is as old as the message a group reads."""
COMMIT_EVERY_S = {"0.2 s": 0.2, "1 s": 1.0, "5 s": 5.0, "20 s": 20.0}


def busy_groups(bootstrap: str) -> dict[str, ConsumerGroup]:
    """Groups of the busy topic: healthy ones that differ in how often they commit, and one that is 1 % too slow."""
    at = bootstrap, BUSY
    groups: dict[str, ConsumerGroup] = {
        f"healthy {name}": Healthy(*at, f"busy-healthy-{number}", commit_every_s=every_s)
        for number, (name, every_s) in enumerate(COMMIT_EVERY_S.items())
    }
    groups["1 % too slow"] = Slow(*at, "busy-slow", produced_rate=RATE, fraction=0.99, behind=BEHIND)
    return groups


def quiet_groups(bootstrap: str) -> dict[str, ConsumerGroup]:
    """A group of every other kind."""
    at = bootstrap, QUIET
    return {
        "healthy": Healthy(*at, "kind-healthy"),
        "slow": Slow(*at, "kind-slow", produced_rate=QUIET_RATE, fraction=0.7, behind=500),
        "slow from the start": Slow(*at, "kind-slow-from-0", produced_rate=QUIET_RATE, fraction=0.5),
        "stalled": Stalled(*at, "kind-stalled", behind=500),
        "stopped": Stopped(*at, "kind-stopped", healthy_s=12.0),
        "left": Left(*at, "kind-left", healthy_s=12.0),
        "rewinding": Rewinding(*at, "kind-rewinding"),
        "catching up": CatchingUp(*at, "kind-catching-up", produced_rate=QUIET_RATE, behind=4_000),
        "bursty": Bursty(*at, "kind-bursty"),
        "transactional": Transactional(*at, "kind-transactional", output=OUTPUT, abort_every=3),
        "kip848": Kip848(*at, "kind-kip848"),
        "assign-only": AssignOnly(*at, "kind-assign-only"),
        "pair": Pair(*at, "kind-pair"),
        "of transactions": Healthy(bootstrap, LEDGER, "kind-of-transactions"),
    }


class Journal:
    """What a group had committed, and when it knew, looked at every few milliseconds."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.entries: list[tuple[float, dict[int, int]]] = []
        self._group = group
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Journal":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        seen = 0
        while not self._stopping.wait(0.01):
            if self._group.commits != seen:
                seen = self._group.commits
                self.entries.append((time.time(), self._group.committed))


@dataclass
class Played:
    """A run of every kind of consumer, and all that was published about it."""

    groups: Mapping[str, ConsumerGroup]
    record: Recorder
    settled_s: float
    journal: Journal
    snapshots: list[Seen] = field(default_factory=list)

    def verdicts(self, name: str) -> list[set[str]]:
        """The statuses of a group's partitions in every snapshot that knows it."""
        found = [seen.verdicts("local", self.groups[name].group) for seen in self.snapshots]
        return [verdicts for verdicts in found if verdicts]

    def why(self, name: str, unlike: frozenset[str]) -> str:
        """What the first snapshots say in which a group has a status it should not have."""
        group = self.groups[name].group
        wrong = [seen for seen in self.snapshots if not seen.verdicts("local", group) <= unlike]
        return "\n".join(line for seen in wrong[:2] for line in seen.why("local", group))


@contextlib.contextmanager
def playing(bootstrap: str, home: Path, groups: Mapping[str, ConsumerGroup]) -> Iterator[Recorder]:
    """Producers, groups and a Warren, running; Warren is started last, so that it finds commits from before it."""
    producers = [Producer(bootstrap, BUSY, RATE), Producer(bootstrap, QUIET, QUIET_RATE)]
    run = WarrenRun(home, sections_for({"local": bootstrap}, trigger=TRIGGER_S))
    with contextlib.ExitStack() as parts:
        parts.callback(stop_all, producers)
        for producer in producers:
            producer.start()
        parts.callback(stop_all, groups.values())
        for group in groups.values():
            group.start()
        record = parts.enter_context(recorded(run))
        run.wait_for(lambda s: s.manifest.is_ready and s.groups().num_rows, "the first verdicts")
        yield record


def observe(kafka: Kafka, home: Path, for_s: float) -> Played:
    """Play all there is for a while."""
    create_topics(kafka.bootstrap, {BUSY: 3, QUIET: 2, OUTPUT: 2, LEDGER: 2})
    fill_topic(kafka.bootstrap, BUSY, FILLED)
    fill_topic(kafka.bootstrap, QUIET, FILLED)
    groups = {**busy_groups(kafka.bootstrap), **quiet_groups(kafka.bootstrap)}
    with playing(kafka.bootstrap, home, groups) as record, Journal(groups["healthy 1 s"]) as journal:
        began = time.time()
        fill_in_transaction(kafka.bootstrap, LEDGER, 50)
        settles = max(settles_after_s(group, 10, TRIGGER_S) for group in groups.values())
        assert settles < for_s
        wait_for(
            lambda: (found := record.seen) and found[-1].manifest.now_ms >= (began + for_s) * 1000,
            "the time is over",
            for_s + 120,
        )
    return Played(groups, record, settles, journal, record.seen)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with Kafka() as kafka:
        yield observe(kafka, tmp_path_factory.mktemp("consumers"), OBSERVED_S)


@pytest.mark.parametrize("name", [f"healthy {every}" for every in COMMIT_EVERY_S])
def test_a_healthy_group_at_1000_messages_a_second_is_ok_in_every_snapshot(played: Played, name: str) -> None:
    verdicts = played.verdicts(name)
    assert len(verdicts) > OBSERVED_S / TRIGGER_S / 4
    assert all(verdict == {"OK"} for verdict in verdicts), played.why(name, frozenset({"OK"}))


def test_a_group_that_is_1_percent_too_slow_becomes_warn(played: Played) -> None:
    verdicts = played.verdicts("1 % too slow")
    assert {"WARN"} in verdicts, played.why("1 % too slow", frozenset({"WARN"}))
    assert set().union(*verdicts) <= {"OK", "WARN"}


@pytest.mark.parametrize(
    "name",
    ["healthy", "catching up", "bursty", "transactional", "kip848", "assign-only", "pair", "of transactions"],
)
def test_a_group_that_keeps_up_is_never_anything_but_ok(played: Played, name: str) -> None:
    verdicts = played.verdicts(name)
    assert verdicts
    assert all(verdict == {"OK"} for verdict in verdicts), played.why(name, frozenset({"OK"}))


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("slow", "WARN"),
        ("slow from the start", "WARN"),
        ("stalled", "STALL"),
        ("stopped", "STOP"),
        ("left", "STOP"),
        ("rewinding", "REWIND"),
    ],
)
def test_a_group_in_trouble_gets_the_verdict_of_its_trouble_and_keeps_it(
    played: Played, name: str, status: str
) -> None:
    verdicts = played.verdicts(name)
    expected = frozenset({status})
    assert set().union(*verdicts) <= {"OK", status}, played.why(name, frozenset({"OK", status}))
    assert expected in verdicts, f"never {status}"
    first = verdicts.index(set(expected))
    assert all(verdict == expected for verdict in verdicts[first:]), [sorted(v) for v in verdicts]


def test_a_group_shows_its_worst_partition_as_burrow_does(played: Played) -> None:
    last = played.snapshots[-1]
    numbers = {"OK": 1, "WARN": 2, "ERR": 3}
    for name, behaviour in played.groups.items():
        if name != "1 % too slow":
            shown = last.groups["local", behaviour.group]["status"]
            assert shown == numbers[expected_status(behaviour)], name


def test_the_marker_of_a_transaction_is_no_lag(played: Played) -> None:
    group = played.groups["of transactions"]
    assert group.committed == {0: 50, 1: 50}, "it has read everything, and the marker after it is not for reading"
    rows = [row for (_, g, _, _), row in played.snapshots[-1].partitions.items() if g == group.group]
    assert [(row["head"], row["current_lag"]) for row in rows] == [(50, 0)] * 2
    assert all(len(set(row["offsets"])) == 1 for row in rows), "a whole window of one offset: by its lag of 1 a STALL"


def test_only_what_a_transaction_committed_counts(played: Played) -> None:
    group = played.groups["transactional"]
    assert isinstance(group, Transactional)
    assert group.aborted > 5
    rows = [row for (_, g, _, _), row in played.snapshots[-1].partitions.items() if g == group.group]
    assert rows
    for seen in played.snapshots:
        for (_, name, _, _), row in seen.partitions.items():
            if name == group.group:
                # What was aborted is read, and committed, again: with the aborted ones an offset would come twice.
                moved = [offset for offset in row["offsets"] if offset > row["offsets"][0]]
                assert len(set(moved)) == len(moved), row["offsets"]


@pytest.mark.parametrize("name", ["healthy", "kip848", "transactional", "slow"])
def test_members_of_a_group_are_shown_as_owners(played: Played, name: str) -> None:
    group = played.groups[name]
    rows = [row for (_, g, _, _), row in played.snapshots[-1].partitions.items() if g == group.group]
    assert len(rows) == 2
    for row in rows:
        assert row["client_id"] == group.client_id
        assert row["owner"].endswith("127.0.0.1")


@pytest.mark.parametrize("name", ["assign-only", "left"])
def test_a_group_without_members_has_no_owners(played: Played, name: str) -> None:
    rows = [row for (_, g, _, _), row in played.snapshots[-1].partitions.items() if g == played.groups[name].group]
    assert len(rows) == 2
    assert [(row["owner"], row["client_id"]) for row in rows] == [("", "")] * 2


def test_a_commit_is_in_the_snapshot_within_two_triggers(played: Played) -> None:
    group = played.groups["healthy 1 s"].group
    shown = [
        (seen.published_s, {p: row["committed_offset"] for (_, g, _, p), row in seen.partitions.items() if g == group})
        for seen in played.snapshots
    ]
    took = []
    for committed_s, offsets in played.journal.entries:
        later = [(at, known) for at, known in shown if at > committed_s]
        if not offsets or len(later) < 2:
            continue
        holds = [at for at, known in later if all(known.get(p, -1) >= offset for p, offset in offsets.items())]
        # The cycle that was under way may have missed it, the next one may not.
        assert holds
        assert holds[0] <= later[1][0]
        took.append(holds[0] - committed_s)
    assert len(took) > 20
    # A machine on which a cycle does not fit into the trigger has a longer one.
    apart_s = statistics.median(later - earlier for (earlier, _), (later, _) in pairwise(shown))
    assert statistics.median(took) <= 2 * max(apart_s, TRIGGER_S)


def test_every_snapshot_has_every_group_that_was_there_before(played: Played) -> None:
    known: set[tuple[str, str]] = set()
    for seen in played.snapshots:
        assert known <= seen.groups.keys()
        known |= seen.groups.keys()
    assert {("local", group.group) for group in played.groups.values()} <= known


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_healthy_group_is_ok_for_20_minutes(tmp_path: Path) -> None:
    with Kafka() as kafka:
        played = observe(kafka, tmp_path, 1200.0)
    for name in (f"healthy {every}" for every in COMMIT_EVERY_S):
        assert all(verdict == {"OK"} for verdict in played.verdicts(name)), played.why(name, frozenset({"OK"}))
    assert played.verdicts("1 % too slow")[-1] == {"WARN"}

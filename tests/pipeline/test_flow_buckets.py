"""The reduce side: cycles in a row on hand-made commits, without Spark, against what the snapshot must then show."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from warren.domain.offsets_logs import OffsetsLog
from warren.domain.rules import Limits, Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.pipeline.bucket_result import ClusterCounts
from warren.pipeline.plan import PlannedCluster

TRIGGER = 10_000
KEY = ("local", "g", "t", 0)


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path))


def commit(
    order: int, time_ms: int, offset: int | None, partition: int = 0, group: str = "g", topic: str = "t"
) -> Commit:
    return Commit(group, topic, partition, offset, time_ms, order)


def group_tombstone(order: int, group: str = "g") -> Commit:
    return Commit(group, None, -1, None, 0, order)


def owner(partition: int | None, host: str | None, group: str = "g", topic: str | None = "t") -> dict[str, Any]:
    return {
        "cluster": 0, "group": group, "topic": topic, "partition": partition,
        "owner": host, "client_id": f"client-{host}" if host else None,
    }  # fmt: skip


def window(row: dict[str, Any]) -> list[tuple[int, int, int]]:
    return list(zip(row["offsets"], row["times_ms"], row["orders"], strict=True))


def status(row: dict[str, Any]) -> tuple[Status, Reason]:
    return Status(row["status"]), Reason(row["reason"])


def test_a_cycle_without_anything(cycles: Rehearsal) -> None:
    assert cycles.cycle(NOW) == {}
    assert cycles.groups() == {}
    assert cycles.cycle(NOW + TRIGGER) == {}
    assert cycles.results[0].clusters["local"] == ClusterCounts({}, {}, totallag=0, commits=0, commit_times=())


def test_windows_grow_over_cycles_and_lags_come_from_the_heads_around_each_commit(cycles: Rehearsal) -> None:
    cycles.sample(NOW, {"local": {"t": [100]}})
    row = cycles.cycle(NOW, [commit(1, NOW - 4_000, 90)])[KEY]
    assert (row["lags"], row["current_lag"], row["head"]) == ([UNKNOWN], 10, 100)
    assert status(row) == (Status.OK, Reason.TOO_LITTLE_KNOWN)

    cycles.sample(NOW + TRIGGER, {"local": {"t": [200]}})
    row = cycles.cycle(NOW + TRIGGER, [commit(2, NOW + 5_000, 120), commit(3, NOW + 9_000, 150)])[KEY]
    assert window(row) == [(90, NOW - 4_000, 1), (120, NOW + 5_000, 2), (150, NOW + 9_000, 3)]
    assert (row["lags"], row["lags_low"], row["lags_high"]) == ([UNKNOWN, 30, 40], [UNKNOWN, 0, 0], [UNKNOWN, 80, 50])
    assert (row["current_lag"], row["committed_offset"], row["head"], row["log_start"]) == (50, 150, 200, 0)
    assert (row["start_offset"], row["start_ms"], row["start_lag"]) == (90, NOW - 4_000, UNKNOWN)
    assert (row["end_offset"], row["end_ms"], row["end_lag"]) == (150, NOW + 9_000, 40)
    assert status(row) == (Status.OK, Reason.WAS_CAUGHT_UP)

    before = row
    row = cycles.cycle(NOW + TRIGGER + 1)[KEY]
    assert row.pop("seconds_behind") == pytest.approx(before.pop("seconds_behind") + 0.001)
    assert row == before, "a cycle without news changes nothing else"


def test_a_stop_is_seen_without_any_commit_arriving(cycles: Rehearsal) -> None:
    for n in range(3):
        cycles.sample(NOW + n * TRIGGER, {"local": {"t": [1_000 + n * 100]}})
        cycles.cycle(NOW + n * TRIGGER, [commit(n, NOW + n * TRIGGER - 3_000, 500 + n * 100)])
    assert cycles.partitions()[KEY]["status"] != Status.STOP
    last = NOW + 2 * TRIGGER - 3_000
    cycles.sample(last + 20_000, {"local": {"t": [1_300]}})
    assert cycles.cycle(last + 20_000)[KEY]["status"] != Status.STOP
    row = cycles.cycle(last + 20_001)[KEY]
    assert status(row) == (Status.STOP, Reason.STOPPED)
    assert row["since_ms"] == last + 20_001
    assert cycles.groups()["local", "g"]["since_ms"] == last + 20_001
    cycles.cycle(last + 40_000)
    assert cycles.partitions()[KEY]["since_ms"] == last + 20_001
    assert cycles.groups()["local", "g"]["since_ms"] == last + 20_001


def test_a_bad_verdict_for_a_short_lag_waits_until_its_tail_is_known(cycles: Rehearsal) -> None:
    for n in range(3):
        cycles.sample(NOW + n * TRIGGER, {"local": {"t": [850 + 10 * n]}})
        cycles.cycle(NOW + n * TRIGGER, [commit(n, NOW + n * TRIGGER - 3_000, 800 + 10 * n)])
    late = NOW + 10 * TRIGGER
    cycles.sample(late, {"local": {"t": [871]}})
    row = cycles.cycle(late)[KEY]
    assert (status(row), row["current_lag"]) == ((Status.OK, Reason.TAIL_IN_DOUBT), 51)
    assert cycles.results[0].tails_to_verify == (("local", "t", 0),)

    other = PlannedCluster("local", is_judged=True, verified_tails=(("t", 1, 871), ("u", 0, 871), ("t", 0, 820)))
    assert status(cycles.cycle(late + 1, clusters=(other,))[KEY]) == (Status.OK, Reason.TAIL_IN_DOUBT)
    known = PlannedCluster("local", is_judged=True, verified_tails=(("u", 0, 5), ("t", 0, 821)))
    row = cycles.cycle(late + 2, clusters=(known,))[KEY]
    assert (status(row), row["since_ms"]) == ((Status.STOP, Reason.STOPPED), late + 2)
    assert len(cycles.results[0].tails_to_verify) == 0

    forgotten = PlannedCluster("local", is_judged=True)
    row = cycles.cycle(late + 3, clusters=(forgotten,))[KEY]
    assert (status(row), row["since_ms"]) == ((Status.STOP, Reason.STOPPED), late + 2), "what it was before, it stays"
    assert cycles.results[0].tails_to_verify == (("local", "t", 0),)


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_a_dead_consumer_of_a_topic_that_goes_on_is_found_within_two_triggers_of_doubt(
    cycles: Rehearsal, is_in_doubt: bool
) -> None:
    # One message per trigger. A tail that a cycle requests is read at the head of the next sample, and known with the
    # sample after that one, when the head has moved on again.
    is_read: dict[int, int] = {}
    for n in range(25):
        at, head = NOW + n * TRIGGER, 800 + n
        cycles.sample(at, {"local": {"t": [head]}})
        commits = [commit(n, at - 3_000, head)] if n < 5 else []
        ends = [end for read_at, end in is_read.items() if read_at < n] if is_in_doubt else [head]
        known = PlannedCluster("local", is_judged=True, verified_tails=tuple(("t", 0, end) for end in ends[-1:]))
        row = cycles.cycle(at, commits, clusters=(known,))[KEY]
        if row["status"] == Status.STOP:
            break
        if cycles.results[0].tails_to_verify:
            is_read[n + 1] = head + 1
    without_doubt = 15
    assert n == without_doubt + 2 * is_in_doubt


def test_silence_is_counted_only_while_the_group_could_be_heard(cycles: Rehearsal) -> None:
    for n in range(3):
        cycles.sample(NOW + n * TRIGGER, {"local": {"t": [1000 + 10 * n]}})
        cycles.cycle(NOW + n * TRIGGER, [commit(n, NOW + n * TRIGGER, 800 + 10 * n)])
    last = NOW + 2 * TRIGGER

    def silent_for(now_ms: int, seen_until_ms: int = 0, **changes: Any) -> tuple[Reason, int]:
        cycles.sample(now_ms, {"local": {"t": [2000]}})
        read = OffsetsLog(0, last, now_ms, seen_until_ms or now_ms, **changes)
        known = PlannedCluster("local", is_judged=True, recent_ms=0, logs=(read,))
        reason = status(cycles.cycle(now_ms, clusters=(known,))[KEY])[1]
        return reason, cycles.groups()["local", "g"]["unknown_since_ms"]

    late = last + 4 * TRIGGER
    stopped, waiting = (Reason.STOPPED, UNKNOWN), (Reason.FALLING_BEHIND, UNKNOWN)
    assert silent_for(late, seen_until_ms=last + 2 * TRIGGER) == waiting, "read up to two triggers ago"
    assert silent_for(late + 1, away_from_ms=last + TRIGGER) == waiting
    assert silent_for(late + 2, away_from_ms=last + TRIGGER, away_to_ms=late) == waiting
    assert silent_for(late + 3, unknown_since_ms=last) == (Reason.FALLING_BEHIND, last), "the last verdict stands"
    assert silent_for(late + 4, away_from_ms=late - TRIGGER, away_to_ms=late) == stopped, "silent long before"
    assert silent_for(late + 5) == stopped


def test_the_brokers_clock_is_taken_into_account(tmp_path: Path) -> None:
    ahead = PlannedCluster("local", is_judged=True, logs=(OffsetsLog(0, NOW, NOW + TRIGGER, NOW, skew_ms=3_000),))
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=(ahead,)))
    cycles.sample(NOW, {"local": {"t": [100]}})
    cycles.sample(NOW + TRIGGER, {"local": {"t": [200]}})
    row = cycles.cycle(NOW + TRIGGER, [commit(1, NOW + 8_000, 100)])[KEY]
    assert (row["lags"], row["times_ms"]) == ([50], [NOW + 5_000])


def test_rows_that_are_there_are_found_beside_larger_partitions_and_new_names(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [commit(0, NOW, 1, group="b", topic="s"), commit(1, NOW, 10)])
    more = [
        commit(2, NOW + 1, 20),
        commit(3, NOW + 1, 5, partition=7),
        commit(4, NOW + 1, 6, group="a"),
        commit(5, NOW + 1, 7, group="z", topic="aa", partition=900),
    ]
    rows = cycles.cycle(NOW + TRIGGER, more)
    assert sorted(rows) == [
        ("local", "a", "t", 0), ("local", "b", "s", 0), ("local", "g", "t", 0), ("local", "g", "t", 7),
        ("local", "z", "aa", 900),
    ]  # fmt: skip
    assert list(rows) == sorted(rows), "sorted by name in the file"
    assert [slot[0] for slot in window(rows[KEY])] == [10, 20]


Event = tuple[int, int, int | None]  # partition (-1: the group), time, offset (None: a tombstone)

some_events = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 5]), st.integers(0, 60), st.integers(0, 99))
    | st.tuples(st.sampled_from([-1, 0, 1, 5]), st.just(0), st.none()),
    max_size=30,
)  # fmt: skip


def burrows_windows(
    commits: Iterable[Commit], intervals: int, min_distance_ms: int
) -> dict[int, list[tuple[int, ...]]]:
    """The windows said plainly, one commit at a time."""
    rings: dict[int, list[tuple[int, ...]]] = {}
    for c in commits:
        if c.offset is None:
            rings = {p: ring for p, ring in rings.items() if p != c.partition and c.partition >= 0}
            continue
        ring = rings.setdefault(c.partition, [])
        if ring and c.time_ms - ring[-1][1] < min_distance_ms:
            ring[-1] = (c.offset, ring[-1][1], c.order)
        else:
            ring.append((c.offset, c.time_ms, c.order))
            del ring[:-intervals]
    return rings


@settings(max_examples=25)
@given(
    events=some_events,
    cuts=st.lists(st.integers(0, 30), max_size=4),
    intervals=st.sampled_from([1, 3, 10]),
    min_distance_ms=st.sampled_from([0, 0, 5, 20]),
    is_timely=st.booleans(),
)
def test_any_split_into_cycles_gives_the_same_windows(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[Event],
    cuts: list[int],
    intervals: int,
    min_distance_ms: int,
    is_timely: bool,
) -> None:
    commits = [
        Commit("g", "t" if p >= 0 else None, p, offset, NOW + (3 * n + time % 5 if is_timely else time), n)
        for n, (p, time, offset) in enumerate(events)
    ]
    root = tmp_path_factory.mktemp("split")
    cycles = Rehearsal(root, plan(root, intervals=intervals, min_distance_ms=min_distance_ms))
    edges = [0, *sorted(min(cut, len(commits)) for cut in cuts), len(commits)]
    rows: dict[tuple[str, str, str, int], dict[str, Any]] = {}
    for number, (start, end) in enumerate(pairwise(edges)):
        batch = commits[start:end]
        random.Random(number).shuffle(batch)
        rows = cycles.cycle(NOW + 100 + number, batch)
    expected = burrows_windows(commits, intervals, min_distance_ms)
    assert {key[3]: window(row) for key, row in rows.items()} == expected


def test_commits_that_are_read_again_change_nothing(cycles: Rehearsal) -> None:
    commits = [commit(n, NOW + n, n * 10) for n in range(5)]
    first = cycles.cycle(NOW + TRIGGER, commits)
    assert window(cycles.cycle(NOW + TRIGGER, commits[2:])[KEY]) == window(first[KEY])


def test_a_tombstone_takes_only_what_is_older(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [commit(n, NOW + n, n) for n in range(3)])
    assert cycles.cycle(NOW + TRIGGER, [commit(3, NOW, None)]) == {}
    assert cycles.groups() == {}
    rows = cycles.cycle(NOW + 2 * TRIGGER, [commit(4, NOW + 4, 40), commit(5, NOW, None), commit(6, NOW + 6, 60)])
    assert window(rows[KEY]) == [(60, NOW + 6, 6)]
    rows = cycles.cycle(NOW + 3 * TRIGGER, [commit(7, NOW, None, partition=1)])
    assert window(rows[KEY]) == [(60, NOW + 6, 6)]


def test_a_tombstone_of_a_group_takes_all_its_partitions_and_no_others(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [commit(n, NOW, 5, n % 3, group) for n, group in enumerate(["g", "g", "g", "h", "h"])])
    rows = cycles.cycle(NOW + TRIGGER, [group_tombstone(8), commit(7, NOW, 6, 0), commit(9, NOW, 7, 1)])
    assert {key[1:]: row["offsets"] for key, row in rows.items()} == {
        ("g", "t", 1): [7], ("h", "t", 0): [5], ("h", "t", 1): [5],
    }  # fmt: skip
    assert set(cycles.cycle(NOW + TRIGGER, [group_tombstone(1, "never seen")])) == set(rows)


def test_a_partition_then_its_topic_then_its_group_expire_and_come_back(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, expire_ms=60_000))
    rows = cycles.cycle(NOW, [
        commit(1, NOW - 50_000, 5), commit(2, NOW - 40_000, 5, 1), commit(3, NOW - 10_000, 5, topic="u"),
        commit(4, NOW - 70_000, 5, 2),
    ])  # fmt: skip
    names = [key[2:] for key in rows]
    assert names == [("t", 0), ("t", 1), ("u", 0)], "a commit that is too old already is left out"
    assert [key[2:] for key in cycles.cycle(NOW + 10_000)] == names
    assert [key[2:] for key in cycles.cycle(NOW + 10_001)] == names[1:]
    assert [key[2:] for key in cycles.cycle(NOW + 20_001)] == names[2:]
    assert ("local", "g") in cycles.groups()
    assert cycles.cycle(NOW + 50_001) == {}
    assert cycles.groups() == {}
    rows = cycles.cycle(NOW + 60_000, [commit(9, NOW + 55_000, 6)])
    assert window(rows[KEY]) == [(6, NOW + 55_000, 9)]
    assert cycles.groups()["local", "g"]["since_ms"] == NOW + 60_000


def test_names_that_are_gone_leave_the_files(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, expire_ms=60_000))
    for n in range(5):
        owners = [owner(0, f"host-{n}", f"short-lived-{n}", f"topic-{n}")]
        cycles.cycle(NOW + n * 70_000, [commit(n, NOW + n * 70_000, 5, 0, f"short-lived-{n}", f"topic-{n}")], owners)
    table = cycles.store.read_parquet(cycles.plan.state[0].partitions)
    names = {name: table[name].combine_chunks().dictionary.to_pylist() for name in ("group", "topic", "owner")}
    assert names == {"group": ["short-lived-4"], "topic": ["topic-4"], "owner": ["host-4"]}


def test_rows_stay_sorted_when_as_many_come_as_go(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, expire_ms=60_000))
    cycles.cycle(NOW, [commit(1, NOW - 50_000, 5, group="b"), commit(2, NOW, 5, group="c")])
    seed = {"cluster": 0, "group": "a", "topic": "t", "partition": 0, "offset": 3}
    rows = cycles.cycle(NOW + 20_000, seeds=[seed])
    assert list(rows) == [("local", "a", "t", 0), ("local", "c", "t", 0)]
    assert list(cycles.groups()) == [("local", "a"), ("local", "c")]


def test_owners_are_set_replaced_and_cleared(cycles: Rehearsal) -> None:
    def shown() -> dict[tuple[str, int], tuple[str, str]]:
        return {(key[1], key[3]): (row["owner"], row["client_id"]) for key, row in cycles.partitions().items()}

    mark = owner(None, None, topic=None)
    cycles.cycle(NOW, [commit(1, NOW, 5), commit(2, NOW, 5, 1), commit(3, NOW, 5, 0, "h")])
    assert set(shown().values()) == {("", "")}
    cycles.cycle(NOW, owners=[mark, owner(0, "/a"), owner(1, "/b")])
    owned = {("g", 0): ("/a", "client-/a"), ("g", 1): ("/b", "client-/b"), ("h", 0): ("", "")}
    assert shown() == owned
    cycles.cycle(NOW, [commit(4, NOW, 6)])
    assert shown() == owned
    cycles.cycle(NOW, owners=[mark, owner(1, "/c")])
    assert shown() == owned | {("g", 0): ("", ""), ("g", 1): ("/c", "client-/c")}
    cycles.cycle(NOW, owners=[mark])
    assert set(shown().values()) == {("", "")}


def test_an_owned_partition_without_commits_is_shown_as_long_as_it_is_owned(cycles: Rehearsal) -> None:
    mark = owner(None, None, topic=None)
    cycles.sample(NOW, {"local": {"t": [100]}})
    row = cycles.cycle(NOW, owners=[mark, owner(0, "/a")])[KEY]
    assert (status(row), row["current_lag"], row["offsets"]) == ((Status.OK, Reason.NO_COMMITS), UNKNOWN, [])
    assert (row["start_offset"], row["end_ms"], row["end_lag"]) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert cycles.groups()["local", "g"]["newest_commit_ms"] == UNKNOWN
    assert cycles.cycle(NOW, owners=[mark]) == {}


def test_seeds_stand_in_until_the_first_commit(cycles: Rehearsal) -> None:
    seed = {"cluster": 0, "group": "g", "topic": "t", "partition": 0, "offset": 60}
    cycles.sample(NOW, {"local": {"t": [100]}})
    row = cycles.cycle(NOW, seeds=[seed])[KEY]
    assert (row["committed_offset"], row["current_lag"], row["reason"]) == (60, 40, Reason.NO_COMMITS)
    assert row["status"] == Status.OK
    assert cycles.groups()["local", "g"]["totallag"] == 40
    assert set(cycles.cycle(NOW + TRIGGER)) == {KEY}, "a seed stays"
    row = cycles.cycle(NOW + TRIGGER, [commit(1, NOW + TRIGGER, 70)], seeds=[seed])[KEY]
    assert (row["committed_offset"], row["offsets"]) == (70, [70]), "a commit is newer than any seed"
    assert cycles.cycle(NOW + TRIGGER, [commit(2, NOW, None)]) == {}


def test_a_seed_that_stays_behind_has_stopped_when_the_recent_past_has_gone_by(cycles: Rehearsal) -> None:
    seed = {"cluster": 0, "group": "g", "topic": "t", "partition": 0, "offset": 1_000}
    caught_up = {**seed, "partition": 1, "offset": 9_000}
    recent_ms = cycles.plan.clusters[0].recent_ms
    reasons = []
    for after_ms in range(0, recent_ms + 3 * TRIGGER, TRIGGER):
        cycles.sample(NOW + after_ms, {"local": {"t": [5_000 + after_ms, 9_000]}})
        rows = cycles.cycle(NOW + after_ms, seeds=[] if after_ms else [seed, caught_up])
        reasons.append(status(rows[KEY]))
        assert status(rows[*KEY[:-1], 1]) == (Status.OK, Reason.NO_COMMITS)
    waits = recent_ms // TRIGGER
    assert reasons == [(Status.OK, Reason.NO_COMMITS)] * waits + [(Status.STOP, Reason.SILENT)] * 3
    now = NOW + recent_ms + 3 * TRIGGER
    cycles.sample(now, {"local": {"t": [200_000, 9_000]}})
    row = cycles.cycle(now, [commit(1, now - 1_000, 20_000)])[KEY]
    assert status(row) == (Status.OK, Reason.TOO_LITTLE_KNOWN), "it commits again"


def test_a_tombstone_takes_a_seed_too(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, seeds=[{"cluster": 0, "group": "g", "topic": "t", "partition": 0, "offset": 60}])
    assert cycles.cycle(NOW, [group_tombstone(1)]) == {}


def test_a_tombstone_of_a_group_takes_its_owned_partitions_too(cycles: Rehearsal) -> None:
    mark = owner(None, None, topic=None)
    cycles.cycle(NOW, [commit(1, NOW, 5)], [mark, owner(0, "/a"), owner(1, "/a")])
    assert cycles.cycle(NOW, [group_tombstone(2)], [mark]) == {}


TWO = (PlannedCluster("one", is_judged=True), PlannedCluster("two", is_judged=True))


def test_clusters_with_the_same_names_do_not_touch(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=TWO, slots=(0, 1, 2)))
    cycles.sample(NOW, {"one": {"t": [100]}, "two": {"t": [50]}})
    rows = cycles.cycle(NOW, [commit(1, NOW, 10), replace(commit(2, NOW, 20), cluster=1)])
    assert {key[0]: (row["offsets"], row["current_lag"]) for key, row in rows.items()} == {
        "one": ([10], 90), "two": ([20], 30),
    }  # fmt: skip
    rows = cycles.cycle(NOW, [replace(group_tombstone(5), cluster=1)])
    assert {key[0] for key in rows} == {"one"}


def test_a_cluster_that_is_away_keeps_its_verdicts_and_leaves_the_other_alone(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=TWO))
    for n in range(4):
        at = NOW + n * TRIGGER
        cycles.sample(at, {"one": {"t": [1_000 + 200 * n]}, "two": {"t": [1_000 + 200 * n]}})
        commits = [replace(commit(n, at - 4_000, 100 + 100 * n), cluster=cluster) for cluster in (0, 1)]
        cycles.cycle(at, commits)
    before = cycles.partitions()
    away = (TWO[0], replace(TWO[1], is_judged=False))
    later = NOW + 100 * TRIGGER
    cycles.sample(later, {"one": {"t": [9_000]}})
    after = cycles.cycle(later, clusters=away)
    assert after["two", "g", "t", 0] == before["two", "g", "t", 0]
    one = after["one", "g", "t", 0]
    assert (one["head"], one["status"], one["since_ms"]) == (9_000, Status.STOP, later)
    assert cycles.groups()["two", "g"]["since_ms"] < later


def test_commits_of_a_cluster_that_is_restarted_are_taken_but_not_judged(tmp_path: Path) -> None:
    waiting = PlannedCluster("local", is_judged=False)
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=(waiting,)))
    cycles.sample(NOW, {"local": {"t": [100]}})
    row = cycles.cycle(NOW, [commit(1, NOW, 10)])[KEY]
    assert (status(row), row["offsets"], row["current_lag"]) == ((Status.OK, Reason.NOT_JUDGED), [10], UNKNOWN)
    row = cycles.cycle(NOW + TRIGGER, clusters=(replace(waiting, is_judged=True),))[KEY]
    assert (row["reason"], row["since_ms"]) == (Reason.TOO_LITTLE_KNOWN, NOW + TRIGGER)


def test_a_cluster_that_is_removed_or_added_takes_or_brings_only_its_own_rows(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=TWO))
    cycles.cycle(NOW, [commit(1, NOW, 10), replace(commit(2, NOW, 20), cluster=1)])
    assert {key[0] for key in cycles.cycle(NOW, clusters=(TWO[1],))} == {"two"}
    assert set(cycles.groups()) == {("two", "g")}
    added = (PlannedCluster("a new one", is_judged=True), TWO[1])
    rows = cycles.cycle(NOW + TRIGGER, [commit(1, NOW, 5)], clusters=added)
    assert {key[0]: row["offsets"] for key, row in rows.items()} == {"a new one": [5], "two": [20]}
    assert {key[0]: row["since_ms"] for key, row in cycles.groups().items()} == {"a new one": NOW + TRIGGER, "two": NOW}


def test_topics_that_are_gone_or_made_again_take_their_rows(cycles: Rehearsal) -> None:
    commits = [commit(n, NOW, 10, topic=topic) for n, topic in enumerate(["gone", "again", "stays"])]
    later = [commit(n, NOW + 500, 3, 1, topic=topic) for n, topic in [(8, "gone"), (9, "again")]]
    cycles.cycle(NOW, [*commits, *later])
    lost = (("gone", NOW + 100), ("unheard of", NOW + 100), ("again", NOW + 100))
    rows = cycles.cycle(NOW + TRIGGER, clusters=(replace(cycles.plan.clusters[0], deleted_topics=lost),))
    assert [key[2:] for key in rows] == [("again", 1), ("gone", 1), ("stays", 0)]


def test_a_topic_was_made_again_by_the_brokers_clock(tmp_path: Path) -> None:
    ahead = PlannedCluster("local", is_judged=True, logs=(OffsetsLog(0, 0, NOW + TRIGGER, NOW, skew_ms=3_000),))
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=(ahead,)))
    cycles.cycle(NOW, [commit(1, NOW + 2_900, 10), commit(2, NOW + 3_100, 10, 1)])
    assert [key[3] for key in cycles.cycle(NOW, clusters=(replace(ahead, deleted_topics=(("t", NOW),)),))] == [1]


def test_a_cluster_whose_log_begins_anew_forgets_what_was_there(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=TWO))
    cycles.cycle(NOW, [commit(900, NOW, 10), replace(commit(900, NOW, 20), cluster=1)])
    anew = (TWO[0], replace(TWO[1], is_restarted=True))
    rows = cycles.cycle(NOW, [replace(commit(1, NOW, 5), cluster=1)], clusters=anew)
    assert {key[0]: row["offsets"] for key, row in rows.items()} == {"one": [10], "two": [5]}


@pytest.mark.parametrize(("before", "after"), [(4, 10), (10, 4), (5, 1)])
def test_another_number_of_intervals_keeps_the_newest_slots(tmp_path: Path, before: int, after: int) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, intervals=before))
    commits = [commit(n, NOW + n, n) for n in range(20)] + [commit(20, NOW, 3, 1)]
    cycles.cycle(NOW, commits)
    rows = cycles.cycle(NOW, [commit(30, NOW + 30, 30)], intervals=after)
    kept = [*range(20 - before, 20), 30][-after:]
    assert rows[KEY]["offsets"] == kept
    assert rows["local", "g", "t", 1]["offsets"] == [3]
    assert rows[KEY]["complete"] == pytest.approx(len(kept) / after)


def test_groups_roll_up_their_partitions(cycles: Rehearsal) -> None:
    looks: Sequence[int] = range(4)
    for n in looks:
        at = NOW + n * TRIGGER
        cycles.sample(at, {"local": {"t": [1_000 + 100 * n] * 5, "u": [7]}})
        cycles.cycle(at, [
            commit(10 * n, at - 10, 1_000 + 100 * n, 0),  # caught up
            commit(10 * n + 1, at - 10, 500, 1),  # stalled
            commit(10 * n + 2, at - 10, 400 - 10 * n, 2),  # rewinding
            commit(10 * n + 3, at - 10, 500 + 10 * n, 3),  # slow
            *([commit(10 * n + 4, at - 10, 300 + n, 4)] if n < 2 else []),  # stopped
            commit(10 * n + 5, at - 10, 7, 0, "fine", "u"),
        ], intervals=4)  # fmt: skip
    rows = cycles.partitions()
    assert {key[3]: Status(row["status"]).name for key, row in rows.items() if key[1] == "g"} == {
        0: "OK", 1: "STALL", 2: "REWIND", 3: "WARN", 4: "STOP",
    }  # fmt: skip
    group, fine = cycles.groups()["local", "g"], cycles.groups()["local", "fine"]
    counts = {name: group[f"count_{name}"] for name in ("ok", "warn", "stop", "stall", "rewind")}
    assert counts == dict.fromkeys(counts, 1)
    assert (group["status"], group["worst_status"], group["partitions"]) == (Status.ERR, Status.REWIND, 5)
    lags = [row["current_lag"] for key, row in rows.items() if key[1] == "g"]
    assert lags == [0, 800, 930, 770, 999]
    assert (group["totallag"], group["maxlag"]) == (sum(lags), 999)
    assert group["complete"] == pytest.approx(4 / 5)
    assert group["newest_commit_ms"] == NOW + 3 * TRIGGER - 10
    names = list(rows)
    assert names[group["first_row"]] == KEY
    assert names[group["maxlag_row"]] == ("local", "g", "t", 4)
    assert names[group["worst_row"]] == ("local", "g", "t", 2)
    assert (fine["status"], fine["totallag"], fine["complete"]) == (Status.OK, 0, 1.0)
    assert names[fine["first_row"]] == names[fine["worst_row"]] == ("local", "fine", "u", 0)
    summary = cycles.results[0].clusters["local"]
    assert summary.groups == {"ERR": 1, "OK": 1}
    assert summary.partitions == {"OK": 2, "WARN": 1, "STOP": 1, "STALL": 1, "REWIND": 1}
    assert summary.totallag == sum(lags)
    assert (summary.commits, summary.commit_times) == (5, ((0, NOW + 3 * TRIGGER - 10),) * 2)


def test_of_the_worst_partitions_the_one_that_lags_most_speaks_for_the_group(cycles: Rehearsal) -> None:
    for n in range(3):
        at = NOW + n * TRIGGER
        cycles.sample(at, {"local": {"t": [1_000] * 3}})
        cycles.cycle(at, [commit(3 * n + p, at - 10, offset, p) for p, offset in enumerate((800, 300, 600))])
    group, names = cycles.groups()["local", "g"], list(cycles.partitions())
    assert (group["count_stall"], names[group["worst_row"]][3], names[group["maxlag_row"]][3]) == (3, 1, 1)


def test_of_the_worst_partitions_the_one_that_waits_longest_speaks_for_the_group(cycles: Rehearsal) -> None:
    for n in range(5):
        at = NOW + n * TRIGGER
        cycles.sample(at, {"local": {"t": [3_000 * n, 1_000 + 10 * n]}})
        cycles.cycle(at, [commit(2 * n + p, at - 10, offset, p) for p, offset in enumerate((2_000 * n, 990 + n))])
    group, names = cycles.groups()["local", "g"], list(cycles.partitions())
    assert group["count_ok"] == 2
    assert (names[group["worst_row"]][3], names[group["maxlag_row"]][3]) == (1, 0)


def test_limits_of_the_evaluator_reach_the_ladder(cycles: Rehearsal) -> None:
    for n in range(3):
        at = NOW + n * TRIGGER
        cycles.sample(at, {"local": {"t": [1_000]}})
        cycles.cycle(at, [commit(n, at - 10, 500)])
    last = NOW + 2 * TRIGGER
    assert cycles.partitions()[KEY]["status"] == Status.STALL
    assert cycles.cycle(last, limits=Limits(allowed_lag=500))[KEY]["reason"] == Reason.CAUGHT_UP
    assert cycles.cycle(last, limits=Limits(minimum_complete=0.5))[KEY]["reason"] == Reason.INCOMPLETE


def test_a_group_at_many_buckets_is_found_in_its_own(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, slots=(5, 6, 7)))
    commits = [commit(n, NOW, n, group=f"group-{n}") for n in range(30)]
    assert len(cycles.cycle(NOW, commits)) == 30
    assert all(bucket.group_rows > 0 for bucket in cycles.plan.state)
    assert len(cycles.cycle(NOW, [commit(99, NOW, 5, 1, "group-7")])) == 31


def test_files_keep_names_as_dictionaries_and_row_groups_small(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [commit(1, NOW, 10)])
    file = pq.ParquetFile(cycles.store.path(cycles.plan.state[0].partitions))
    columns = file.metadata.row_group(0)
    encodings = {columns.column(i).path_in_schema: columns.column(i).encodings for i in range(columns.num_columns)}
    assert "RLE_DICTIONARY" in encodings["group"]
    assert "DELTA_BINARY_PACKED" in encodings["offsets.list.element"]

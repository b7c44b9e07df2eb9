"""Groups, and topics of groups, that are deleted: what goes, what stays, and with what they come back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from warren.domain.offsets_logs import OffsetsLog
from warren.domain.windows import UNKNOWN
from warren.pipeline.plan import PlannedCluster
from warren.snapshot.requests import PipelineRequest, RequestKind

TRIGGER = 10_000
KEY = ("local", "g", "t", 0)
TWO = (PlannedCluster("one", is_judged=True), PlannedCluster("two", is_judged=True))


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path))


def commit(order: int, time_ms: int, partition: int = 0, group: str = "g", topic: str = "t", **more: Any) -> Commit:
    return Commit(group, topic, partition, 10 * order, time_ms, order, **more)


def deletion(asked_at_ms: int, topic: str | None = None, group: str = "g", cluster: str = "local") -> PipelineRequest:
    return PipelineRequest(
        f"{cluster}/{group}/{topic}/{asked_at_ms}", RequestKind.DELETE, asked_at_ms, cluster, group, topic
    )


def times(row: dict[str, Any]) -> list[int]:
    return [time_ms - NOW for time_ms in row["times_ms"]]


def test_a_group_goes_and_comes_back_with_its_new_commits_only(cycles: Rehearsal) -> None:
    cycles.sample(NOW, {"local": {"t": [100]}})
    cycles.cycle(NOW, [commit(n, NOW - 9 + n) for n in range(9)])
    assert cycles.cycle(NOW + TRIGGER, deletions=(deletion(NOW + 1),)) == {}
    assert cycles.groups() == {}
    assert cycles.cycle(NOW + 2 * TRIGGER, deletions=()) == {}, "it stays away"
    late = NOW + 3 * TRIGGER
    row = cycles.cycle(late, [commit(20, NOW + 20), commit(21, NOW + 21)], deletions=())[KEY]
    assert (times(row), row["committed_offset"]) == ([20, 21], 210)
    assert (row["since_ms"], cycles.groups()["local", "g"]["since_ms"]) == (late, late)


def test_commits_that_were_made_before_do_not_bring_it_back_however_late_they_are_read(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [commit(1, NOW)])
    deletions = (deletion(NOW + 100),)
    assert cycles.cycle(NOW + TRIGGER, [commit(2, NOW + 99)], deletions=deletions) == {}
    assert cycles.cycle(NOW + 2 * TRIGGER, [commit(3, NOW + 100), commit(3, NOW, 7)], deletions=deletions) == {}
    rows = cycles.cycle(NOW + 3 * TRIGGER, [commit(4, NOW + 50), commit(5, NOW + 101)], deletions=deletions)
    assert {key: times(row) for key, row in rows.items()} == {KEY: [101]}
    rows = cycles.cycle(NOW + 4 * TRIGGER, [commit(6, NOW + 106)], deletions=deletions)
    assert times(rows[KEY]) == [101, 106], "what has come back stays, although the deletion is still in force"


def test_what_was_committed_since_keeps_its_place_and_its_owner(cycles: Rehearsal) -> None:
    owner = {"cluster": 0, "group": "g", "topic": "t", "partition": 0, "owner": "/a", "client_id": "a"}
    cycles.cycle(NOW, [commit(n, NOW + n) for n in range(6)] + [commit(6, NOW, 1)], [owner])
    rows = cycles.cycle(NOW + TRIGGER, deletions=(deletion(NOW + 3),))
    assert {key: (times(row), row["committed_offset"], row["owner"]) for key, row in rows.items()} == {
        KEY: ([4, 5], 50, "/a")
    }
    assert (rows[KEY]["start_offset"], rows[KEY]["offsets"], rows[KEY]["orders"]) == (40, [40, 50], [4, 5])


@pytest.mark.parametrize("is_read_late", [True, False])
def test_a_new_commit_is_not_lost_in_the_slot_of_an_old_one(tmp_path: Path, is_read_late: bool) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, min_distance_ms=1_000))
    before, after = [commit(1, NOW)], [commit(2, NOW + 200), commit(3, NOW + 300)]
    cycles.cycle(NOW, [] if is_read_late else before)
    commits = [*before, *after] if is_read_late else after
    row = cycles.cycle(NOW + TRIGGER, commits, deletions=(deletion(NOW + 100),))[KEY]
    assert (times(row), row["offsets"]) == ([200], [30])


def test_a_topic_of_a_group(cycles: Rehearsal) -> None:
    commits = [commit(n, NOW, n % 2, group, topic) for n, (group, topic) in enumerate(
        [("g", "t"), ("g", "t"), ("g", "u"), ("h", "t"), ("h", "u")]
    )]  # fmt: skip
    cycles.cycle(NOW, commits)
    rows = cycles.cycle(NOW + TRIGGER, deletions=(deletion(NOW, "t"), deletion(NOW, "never heard of")))
    assert [key[1:3] for key in rows] == [("g", "u"), ("h", "t"), ("h", "u")]
    assert cycles.groups()["local", "g"]["partitions"] == 1
    rows = cycles.cycle(NOW + TRIGGER, deletions=(deletion(NOW, "u", "h"), deletion(NOW, group="g")))
    assert [key[1:3] for key in rows] == [("h", "t")]


def test_others_are_as_if_nothing_had_been_deleted(tmp_path: Path) -> None:
    names = ["g", "gg", "G", "", "g\u0308", "消費"]
    shown = []
    deletions = [deletion(NOW, group=name) for name in ("g", "消費", "nobody")]
    for number, asked in enumerate([(), (*deletions, deletion(NOW, group="gg", cluster="elsewhere"))]):
        root = tmp_path / str(number)
        cycles = Rehearsal(root, plan(root, slots=(0, 1, 2)))
        cycles.sample(NOW, {"local": {"t": [100, 200]}})
        commits = [commit(n, NOW, n % 2, name) for n, name in enumerate(names)]
        cycles.cycle(NOW, commits)
        shown.append(cycles.cycle(NOW + TRIGGER, [replace(c, order=c.order + 9) for c in commits], deletions=asked))
    whole, rest = shown
    assert {key[1] for key in whole} - {key[1] for key in rest} == {"g", "消費"}
    assert rest == {key: row for key, row in whole.items() if key in rest}


def test_the_same_names_in_another_cluster_stay(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=TWO, slots=(0, 1)))
    cycles.cycle(NOW, [commit(1, NOW), commit(1, NOW, cluster=1)])
    assert list(cycles.cycle(NOW, deletions=(deletion(NOW, cluster="two"),))) == [("one", "g", "t", 0)]


def test_a_group_of_a_cluster_that_is_away_goes_at_once(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=TWO))
    cycles.cycle(NOW, [commit(1, NOW), commit(1, NOW, cluster=1)])
    away = (TWO[0], replace(TWO[1], is_judged=False))
    rows = cycles.cycle(NOW + TRIGGER, clusters=away, deletions=(deletion(NOW, cluster="two"),))
    assert list(rows) == [("one", "g", "t", 0)]
    assert cycles.results[0].clusters["two"].groups == {}


@pytest.mark.parametrize("skew_ms", [3_000, -3_000])
def test_a_deletion_is_made_by_our_clock_and_commits_by_the_brokers(tmp_path: Path, skew_ms: int) -> None:
    logs = (OffsetsLog(0, 0, NOW + TRIGGER, NOW, skew_ms),)
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=(PlannedCluster("local", True, logs=logs),)))
    cycles.cycle(NOW, [commit(1, NOW + skew_ms), commit(2, NOW + skew_ms + 1, 1)])
    assert [key[3] for key in cycles.cycle(NOW, deletions=(deletion(NOW),))] == [1]


def test_seeds_and_owners_do_not_bring_it_back_while_it_is_in_force(cycles: Rehearsal) -> None:
    seeds = [{"cluster": 0, "group": group, "topic": "t", "partition": 3, "offset": 60} for group in ("g", "h")]
    owners = [
        {"cluster": 0, "group": group, "topic": "t", "partition": 4, "owner": "/a", "client_id": "a"}
        for group in ("g", "h")
    ]
    deletions = (deletion(NOW),)
    cycles.cycle(NOW, owners=owners, seeds=seeds)
    assert {key[1] for key in cycles.cycle(NOW + 1, deletions=deletions)} == {"h"}, "they go with it"
    rows = cycles.cycle(NOW + 2, owners=owners, seeds=seeds, deletions=deletions)
    assert [(*key[1:], row["committed_offset"], row["owner"]) for key, row in rows.items()] == [
        ("h", "t", 3, 60, ""), ("h", "t", 4, UNKNOWN, "/a"),
    ]  # fmt: skip
    rows = cycles.cycle(NOW + 3, [commit(5, NOW + 1, 4)], owners, seeds, deletions=deletions)
    assert [(key[3], row["owner"]) for key, row in rows.items() if key[1] == "g"] == [(4, "/a")]


def test_a_deletion_is_told_when_its_group_has_committed_again(cycles: Rehearsal) -> None:
    whole, part, other = deletion(NOW), deletion(NOW, "t"), deletion(NOW, "u")
    asked = (whole, part, other, deletion(NOW, group="h"), deletion(NOW, cluster="elsewhere"))

    def heard() -> list[str]:
        return [deletion for result in cycles.results.values() for deletion in result.renewed_deletions]

    cycles.cycle(NOW, [commit(1, NOW), commit(2, NOW, topic="u"), commit(3, NOW, group="h")], deletions=asked)
    assert heard() == []
    cycles.cycle(NOW + 1, [commit(4, NOW + 1)], deletions=asked)
    assert heard() == [whole.id, part.id]
    cycles.cycle(NOW + 2, [commit(5, NOW + 2, topic="u")], deletions=asked)
    assert heard() == [whole.id, part.id, other.id], "and again as long as it is in force"


def test_of_two_deletions_the_later_counts(cycles: Rehearsal) -> None:
    cycles.cycle(NOW, [commit(n, NOW + n) for n in range(6)])
    rows = cycles.cycle(NOW + TRIGGER, deletions=(deletion(NOW + 3), deletion(NOW + 1, "t")))
    assert times(rows[KEY]) == [4, 5]


def test_a_deletion_where_nothing_is(cycles: Rehearsal) -> None:
    assert cycles.cycle(NOW, deletions=(deletion(NOW),)) == {}
    tombstones = [Commit("g", "t", 0, None, 0, 1), Commit("g", None, -1, None, 0, 2)]
    assert cycles.cycle(NOW, tombstones, deletions=(deletion(NOW),)) == {}
    rows = cycles.cycle(NOW, [commit(3, NOW), Commit("g", "t", 0, None, 0, 4), commit(5, NOW + 1)],
                        deletions=(deletion(NOW),))  # fmt: skip
    assert times(rows[KEY]) == [1], "a tombstone still counts"

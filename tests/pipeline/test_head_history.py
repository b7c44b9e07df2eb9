"""Head history as a task sees it: which head a row had, when, and within which bounds its lag is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tests.kit.plans import NOW, Commit, Rehearsal, commits_table, plan
from warren.domain.windows import UNKNOWN
from warren.pipeline.add_commits import locate_commits
from warren.pipeline.head_history import MAX_SAMPLES_BACK, RowHeads
from warren.pipeline.head_samples import HeadHistory, load_head_history
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.schemas import OWNERS, REJECTS, SEEDS
from warren.pipeline.working_bucket import BucketInputs, WorkingBucket, new_rows

TRIGGER = 10_000
MAX_GAP_MS = 60_000
NONE = np.zeros(1, np.int64)
TWO = (PlannedCluster("one", is_judged=True), PlannedCluster("two", is_judged=True))
ALL = np.arange(4)
"""The rows below: one/t/0, one/t/1, one/u/0, two/t/0."""

Look = Mapping[str, Mapping[str, Sequence[int]]]


def four_rows(history: HeadHistory) -> RowHeads:
    names = [(0, "t", 0), (0, "t", 1), (0, "u", 0), (1, "t", 0)]
    commits = [Commit("g", topic, partition, 0, NOW, n, cluster) for n, (cluster, topic, partition) in enumerate(names)]
    inputs = BucketInputs(
        plan(Path("unused"), clusters=TWO), commits_table(commits), OWNERS.empty_table(), SEEDS.empty_table(),
        REJECTS.empty_table(), history,
    )  # fmt: skip
    bucket = locate_commits(WorkingBucket(new_rows(0, 10)), inputs)
    assert bucket.commit_rows.tolist() == ALL.tolist()
    return inputs.row_heads(bucket)


def loaded(cycles: Rehearsal) -> RowHeads:
    return four_rows(load_head_history(cycles.store, plan(cycles.root, clusters=TWO, heads=tuple(cycles.heads))))


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path, clusters=TWO))


def history(cycles: Rehearsal, looks: Sequence[Look], ids: Sequence[Mapping[str, str]] | None = None) -> RowHeads:
    """Samples a trigger apart, the first one at NOW."""
    for n, look in enumerate(looks):
        cycles.sample(NOW + n * TRIGGER, look, ids[n] if ids else {})
    return loaded(cycles)


def heads(t: Sequence[int], u: Sequence[int] = (7,), two: Sequence[int] = (9,)) -> Look:
    return {"one": {"t": t, "u": u}, "two": {"t": two}}


def test_no_history(cycles: Rehearsal) -> None:
    nothing = history(cycles, [])
    assert nothing.newest(ALL)[0].tolist() == [UNKNOWN] * 4
    recent, is_whole = nothing.recent(ALL, "one", NOW)
    assert (recent.tolist(), is_whole.tolist()) == ([UNKNOWN] * 4, [False] * 4)
    lag, low, high = nothing.lags(ALL, "one", ALL, ALL + NOW, NONE, MAX_GAP_MS)
    assert lag.tolist() == low.tolist() == high.tolist() == [UNKNOWN] * 4


def test_each_row_has_the_head_of_its_own_cluster_topic_and_partition(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([1, 2], [3], [4])])
    assert found.newest(ALL)[0].tolist() == [1, 2, 3, 4]
    assert found.newest(ALL, "log_start")[0].tolist() == [0] * 4
    assert found.newest(np.array([3, 1]))[0].tolist() == [4, 2]


def test_topics_that_come_grow_and_go_move_the_places_of_all_others(cycles: Rehearsal) -> None:
    looks: list[Look] = [
        {"one": {"t": [10]}, "two": {}},
        {"one": {"a": [5] * 9, "t": [20, 21], "u": [22]}, "two": {"t": [23]}},
        {"one": {"t": [30, 31, 32]}, "two": {"a": [1], "t": [33]}},
    ]
    found = history(cycles, looks)
    assert [found.at(n, ALL).tolist() for n in range(3)] == [
        [10, UNKNOWN, UNKNOWN, UNKNOWN],
        [20, 21, 22, 23],
        [30, 31, UNKNOWN, 33],
    ]


def test_a_layout_is_written_only_when_topics_change(cycles: Rehearsal) -> None:
    history(cycles, [heads([1, 2]), heads([3, 4]), heads([5, 6, 7]), heads([5, 6, 8])])
    layouts = [sample.layout.path for sample in cycles.heads]
    assert layouts[0] == layouts[1] != layouts[2] == layouts[3]


def test_a_partition_without_a_leader_has_the_last_head_that_is_known(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([10, 20]), heads([11, UNKNOWN]), heads([12, UNKNOWN])])
    head, head_ms = found.newest(ALL[:2])
    assert (head.tolist(), head_ms.tolist()) == ([12, 20], [NOW + 2 * TRIGGER, NOW])


def test_a_head_that_was_known_long_ago_is_not_known(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([10, 20]), *[heads([11, UNKNOWN])] * MAX_SAMPLES_BACK])
    assert found.newest(ALL[:2])[0].tolist() == [11, UNKNOWN]


def test_a_cluster_that_is_away_keeps_its_heads_and_leaves_the_others_alone(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([10, 20]), {"two": {"t": [99]}}])
    assert found.newest(ALL)[0].tolist() == [10, 20, 7, 99]
    assert [held for held, _, _ in (found.times("one"), found.times("two"))] == [[0], [0, 1]]


def test_the_old_heads_of_a_topic_that_was_made_again_say_nothing(cycles: Rehearsal) -> None:
    looks = [heads([1_000, 1_000]), heads([5, UNKNOWN])]
    found = history(cycles, looks, ids=[{"t": "old"}, {"t": "new"}])
    assert found.at(0, ALL).tolist() == [UNKNOWN, UNKNOWN, 7, UNKNOWN]
    assert found.newest(ALL)[0].tolist() == [5, UNKNOWN, 7, 9]
    lag, _, _ = found.lags(ALL[:1], "one", np.array([3]), np.array([NOW + 5_000]), NONE, MAX_GAP_MS)
    assert lag.tolist() == [UNKNOWN]


@pytest.mark.parametrize(
    ("name", "time_ms", "expected"),
    [
        ("before the history began", NOW - 1, (UNKNOWN, UNKNOWN, UNKNOWN)),
        ("at the first sample", NOW, (50, 50, 50)),
        ("between the first two", NOW + 5_000, (100, 50, 150)),
        ("between the last two", NOW + 12_500, (200, 150, 350)),
        ("at the newest sample", NOW + 20_000, (350, 350, 350)),
        ("after it, by a clock that is wrong", NOW + 25_000, (350, 350, 350)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_lag_of_a_commit_is_bounded_by_the_samples_around_it(
    cycles: Rehearsal, name: str, time_ms: int, expected: tuple[int, int, int]
) -> None:
    found = history(cycles, [heads([100, 0]), heads([200, 0]), heads([400, 0])])
    lag, low, high = found.lags(ALL[:1], "one", np.array([50]), np.array([time_ms]), NONE, MAX_GAP_MS)
    assert (int(lag[0]), int(low[0]), int(high[0])) == expected, name


def test_many_commits_at_once_have_each_their_own_lag(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([100, 1_000]), heads([200, 2_000]), heads([300, UNKNOWN])])
    rows = np.array([1, 0, 1, 0, 2])
    times = NOW + np.array([5_000, 15_000, 15_000, 0, 5_000])
    lag, low, high = found.lags(rows, "one", np.array([500, 200, 500, 100, 7]), times, NONE, MAX_GAP_MS)
    assert lag.tolist() == [1_000, 50, UNKNOWN, 0, 0]
    assert low.tolist() == [500, 0, UNKNOWN, 0, 0]
    assert high.tolist() == [1_500, 100, UNKNOWN, 0, 0]


def test_a_commit_within_a_look_is_bounded_by_the_looks_around_that(cycles: Rehearsal) -> None:
    history(cycles, [heads([100, 0]), heads([200, 0]), heads([300, 0])])
    slow = cycles.heads[1]
    cycles.heads[1] = type(slow)(slow.heads, slow.layout, {"one": (NOW + 8_000, NOW + 12_000)})
    found = loaded(cycles)
    lag, low, high = found.lags(ALL[:1], "one", np.array([50]), np.array([NOW + 10_000]), NONE, MAX_GAP_MS)
    assert (lag.tolist(), low.tolist(), high.tolist()) == ([150], [50], [250])


def test_the_smallest_recent_head_and_whether_the_past_is_whole(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([100 * n, 5]) for n in range(1, 6)])
    for at, smallest, is_whole in (
        (-1, 100, False),
        (0, 100, True),
        (15_000, 200, True),
        (20_000, 300, True),
        (60_000, 500, True),
    ):
        recent, whole = found.recent(ALL[:1], "one", NOW + at)
        assert (recent.tolist(), whole.tolist()) == ([smallest], [is_whole])


def test_the_past_of_a_topic_that_is_new_is_not_whole(cycles: Rehearsal) -> None:
    found = history(cycles, [{"one": {"u": [7]}}] * 2 + [heads([500, 500])] * 2)
    recent, is_whole = found.recent(ALL[:3], "one", NOW + TRIGGER)
    assert recent.tolist() == [500, 500, 7]
    assert is_whole.tolist() == [False, False, True]
    recent, is_whole = found.recent(ALL[:3], "one", NOW + 2 * TRIGGER)
    assert is_whole.all()


def test_a_recent_head_that_is_missing_in_one_sample_is_taken_from_the_next(cycles: Rehearsal) -> None:
    found = history(cycles, [heads([10, 10]), heads([UNKNOWN, 10]), heads([20, 10]), heads([30, 20])])
    assert found.recent(ALL[:2], "one", NOW + TRIGGER)[0].tolist() == [20, 10]


def test_after_a_hole_in_the_history_the_head_before_it_counts(cycles: Rehearsal) -> None:
    for at, head in ((0, 10), (600_000, 50)):
        cycles.sample(NOW + at, heads([head, 0]))
    found = loaded(cycles)
    assert found.recent(ALL[:1], "one", NOW + 500_000)[0].tolist() == [10]


def test_how_fast_log_starts_move_is_told_by_samples_and_not_by_heads_of_the_past(cycles: Rehearsal) -> None:
    for n in range(3):
        cycles.sample(NOW + n * 600_000, heads([100, 100]))
    past = replace(cycles.heads[0], by_record_time=True)
    taken_ms = {name: (start - 60_000, end - 60_000) for name, (start, end) in past.taken_ms.items()}
    cycles.heads[:0] = [replace(past, taken_ms=taken_ms, heads=cycles.heads[-1].heads)]
    found = loaded(cycles)
    assert found.log_start_rate(ALL[:1], "one").tolist() == [0.0]
    cycles.heads[:] = [replace(sample, by_record_time=True) for sample in cycles.heads[:-1]] + cycles.heads[-1:]
    assert np.isnan(loaded(cycles).log_start_rate(ALL[:1], "one")).all(), "a single sample is no movement"

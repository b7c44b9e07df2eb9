"""Windows against a plain ring that follows Burrow's rules one commit at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.domain.windows import (
    MAX_DISTANCE_MS,
    NEVER,
    UNKNOWN,
    Commits,
    Windows,
    append,
    concat,
    drop_before,
    drop_until,
    empty,
    keep_newest,
    take_rows,
)

ROWS = 3

# How fast an example runs says nothing about whether it is right.
untimed = settings(deadline=None)


class Commit(NamedTuple):
    """One commit as the reference sees it; a slot is the same thing."""

    row: int
    offset: int
    time_ms: int
    order: int
    lag: int = UNKNOWN
    lag_low: int = UNKNOWN
    lag_high: int = UNKNOWN


class Ring:
    """One partition's window, as Burrow keeps it."""

    def __init__(self, intervals: int) -> None:
        self.slots: deque[Commit] = deque(maxlen=intervals)

    def append(self, commit: Commit, min_distance_ms: int) -> None:
        if self.slots:
            newest = self.slots[-1]
            if commit.order <= newest.order:
                return
            if commit.time_ms - newest.time_ms < min_distance_ms:
                self.slots[-1] = commit._replace(time_ms=newest.time_ms)
                return
        self.slots.append(commit)

    def drop_before(self, barrier_order: int) -> None:
        self.slots = deque((s for s in self.slots if s.order >= barrier_order), maxlen=self.slots.maxlen)


def to_commits(commits: Iterable[Commit]) -> Commits:
    ordered = sorted(commits, key=lambda commit: (commit.row, commit.order))
    columns = np.array(ordered, np.int64).reshape(-1, len(Commit._fields)).T
    return Commits(**dict(zip(Commit._fields, columns, strict=True)))


def to_windows(rings: Sequence[Ring], intervals: int) -> Windows:
    windows = empty(len(rings), intervals)
    for row, ring in enumerate(rings):
        windows.count[row] = len(ring.slots)
        for slot, commit in enumerate(ring.slots, start=intervals - len(ring.slots)):
            for name in Commit._fields[1:]:
                getattr(windows, name)[row, slot] = getattr(commit, name)
    return windows


def folded(commits: Iterable[Commit], rows: int, intervals: int, min_distance_ms: int) -> list[Ring]:
    rings = [Ring(intervals) for _ in range(rows)]
    for commit in commits:
        rings[commit.row].append(commit, min_distance_ms)
    return rings


def in_order(commits: Iterable[Commit]) -> list[Commit]:
    return sorted(commits, key=lambda commit: (commit.row, commit.order))


def assert_same(actual: Windows, expected: Windows) -> None:
    for field in fields(Windows):
        got, wanted = getattr(actual, field.name), getattr(expected, field.name)
        assert got.dtype == wanted.dtype, field.name
        np.testing.assert_array_equal(got, wanted, err_msg=field.name)


def shown(windows: Windows, row: int = 0) -> list[tuple[int, int]]:
    filled = slice(windows.intervals - int(windows.count[row]), None)
    return list(zip(windows.offset[row, filled].tolist(), windows.time_ms[row, filled].tolist(), strict=True))


def commits_drawn(jitter: st.SearchStrategy[int]) -> st.SearchStrategy[list[Commit]]:
    lags = st.integers(UNKNOWN, 5)
    commit = st.builds(
        lambda row, offset, order, late, *lags: Commit(row, offset, order + late, order, *lags),
        *(st.integers(0, ROWS - 1), st.integers(0, 99), st.integers(0, 80), jitter, lags, lags, lags),
    )
    # Lists of a drawn length: left to itself hypothesis makes them too short for much to happen in them.
    return st.integers(0, 60).flatmap(lambda size: st.lists(commit, min_size=size, max_size=size))


# Times rise with the order but often step back or repeat, as orders do; or they are anything at all.
some_commits = commits_drawn(st.integers(-12, 12)) | commits_drawn(st.integers(-(2**63), 2**63 - 81))
distances = st.sampled_from([0, 1, 4, 15, MAX_DISTANCE_MS])
intervals_drawn = st.integers(1, 5)


@pytest.mark.parametrize(
    ("name", "times_ms", "min_distance_ms", "expected"),
    [
        (
            "a second apart",
            [0, 0, 500, 999, 1000, 400, 2500],
            1000,
            [(4, 0), (6, 1000), (7, 2500)],
        ),
        ("exactly the distance opens a slot", [0, 1000, 2000], 1000, [(1, 0), (2, 1000), (3, 2000)]),
        (
            "always too close to the slot, never to the commit before",
            [0, 600, 1200],
            1000,
            [(2, 0), (3, 1200)],
        ),
        ("no distance keeps equal times apart", [5, 5, 5], 0, [(1, 5), (2, 5), (3, 5)]),
        ("no distance merges a step back", [5, 4, 5, 3], 0, [(2, 5), (4, 5)]),
        ("the oldest fall out", list(range(12)), 0, [(offset, offset - 1) for offset in range(3, 13)]),
        (
            "merging never pushes out the oldest",
            [*range(0, 100, 10), *[91] * 30],
            10,
            [
                *((offset + 1, offset * 10) for offset in range(9)),
                (40, 90),
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_append_by_example(
    name: str, times_ms: list[int], min_distance_ms: int, expected: list[tuple[int, int]]
) -> None:
    commits = [Commit(0, n, time_ms, order=n) for n, time_ms in enumerate(times_ms, start=1)]
    assert shown(append(empty(1, 10), to_commits(commits), min_distance_ms)) == expected, name
    one_by_one = empty(1, 10)
    for commit in commits:
        one_by_one = append(one_by_one, to_commits([commit]), min_distance_ms)
    assert shown(one_by_one) == expected, name


@untimed
@given(some_commits, st.booleans(), st.lists(st.integers(0, 60), min_size=1), distances, intervals_drawn)
def test_any_split_into_batches_gives_burrows_windows(
    commits: list[Commit], is_in_order: bool, cuts: list[int], min_distance_ms: int, intervals: int
) -> None:
    if is_in_order:
        commits = sorted(commits, key=lambda commit: commit.order)
    edges = [0, *sorted(cuts), len(commits)]
    batches = [commits[start:end] for start, end in pairwise(edges)]
    windows = empty(ROWS, intervals)
    arriving: list[Commit] = []
    for batch in batches:
        windows = append(windows, to_commits(batch), min_distance_ms)
        arriving += in_order(batch)
    assert_same(windows, to_windows(folded(arriving, ROWS, intervals, min_distance_ms), intervals))


@untimed
@given(some_commits, st.integers(0, 60), distances, intervals_drawn)
def test_where_an_ordered_stream_is_cut_does_not_matter(
    commits: list[Commit], cut: int, min_distance_ms: int, intervals: int
) -> None:
    stream = sorted(commits, key=lambda commit: commit.order)
    whole = append(empty(ROWS, intervals), to_commits(stream), min_distance_ms)
    parts = append(empty(ROWS, intervals), to_commits(stream[:cut]), min_distance_ms)
    assert_same(append(parts, to_commits(stream[cut:]), min_distance_ms), whole)


@untimed
@given(some_commits, distances, intervals_drawn)
def test_commits_that_come_again_change_nothing(commits: list[Commit], min_distance_ms: int, intervals: int) -> None:
    once = append(empty(ROWS, intervals), to_commits(commits), min_distance_ms)
    rows = np.arange(ROWS)
    assert_same(append(take_rows(once, rows), to_commits(commits), min_distance_ms), once)


@pytest.mark.parametrize("min_distance_ms", [0, 7, 5_000])
def test_a_hot_row_between_quiet_ones(min_distance_ms: int) -> None:
    many = 1_000_000
    random = np.random.default_rng(min_distance_ms)
    row = np.concatenate([[0], np.full(many, 1), [2]])
    time_ms = np.arange(many + 2) + random.integers(-20, 20, many + 2)
    order = np.arange(many + 2)
    windows = append(
        empty(3, 10),
        Commits(row, order * 2, time_ms, order, order % 7, order % 5, order % 11),
        min_distance_ms,
    )
    columns = (row, order * 2, time_ms, order, order % 7, order % 5, order % 11)
    commits = map(Commit._make, zip(*(column.tolist() for column in columns), strict=True))
    assert_same(windows, to_windows(folded(commits, 3, 10, min_distance_ms), 10))


@pytest.mark.parametrize("min_distance_ms", [0, 40])
def test_many_rows_at_once(min_distance_ms: int) -> None:
    random = np.random.default_rng(1)
    rows, many = 500, 20_000
    drawn = zip(random.integers(0, rows, many).tolist(), random.integers(0, 30, many).tolist(), strict=True)
    commits = [Commit(row, n, n // 10 + jitter, n, n % 13) for n, (row, jitter) in enumerate(drawn)]
    windows = empty(rows, 10)
    for start in range(0, many, 6_000):
        windows = append(windows, to_commits(commits[start : start + 6_000]), min_distance_ms)
    assert_same(windows, to_windows(folded(commits, rows, 10, min_distance_ms), 10))


@pytest.mark.parametrize("min_distance_ms", [-1, MAX_DISTANCE_MS + 1])
def test_an_impossible_distance_is_refused(min_distance_ms: int) -> None:
    with pytest.raises(ValueError, match="min_distance_ms is"):
        append(empty(1, 10), to_commits([]), min_distance_ms)


def test_read_only_arrays_are_left_alone() -> None:
    windows = empty(2, 3)
    for field in fields(Windows):
        getattr(windows, field.name).flags.writeable = False
    appended = append(windows, to_commits([Commit(1, 5, 10, 7)]), 0)
    assert shown(appended, 1) == [(5, 10)]
    assert_same(windows, empty(2, 3))


@untimed
@given(some_commits, st.lists(st.integers(-1, 90), min_size=ROWS, max_size=ROWS), intervals_drawn)
def test_drop_before_leaves_what_is_not_older(commits: list[Commit], barriers: list[int], intervals: int) -> None:
    rings = folded(in_order(commits), ROWS, intervals, 0)
    windows = drop_before(to_windows(rings, intervals), np.array(barriers, np.int64))
    for ring, barrier in zip(rings, barriers, strict=True):
        ring.drop_before(barrier)
    assert_same(windows, to_windows(rings, intervals))


@untimed
@given(
    some_commits,
    st.lists(st.just(NEVER) | st.integers(-1, 90), min_size=ROWS, max_size=ROWS),
    intervals_drawn,
    st.sampled_from([0, 5]),
)
def test_drop_until_leaves_what_is_later(
    commits: list[Commit], until: list[int], intervals: int, min_distance_ms: int
) -> None:
    rings = folded(in_order(commits), ROWS, intervals, min_distance_ms)
    windows = drop_until(to_windows(rings, intervals), np.array(until, np.int64))
    for ring, until_ms in zip(rings, until, strict=True):
        ring.slots = deque((s for s in ring.slots if s.time_ms > until_ms), maxlen=intervals)
    assert_same(windows, to_windows(rings, intervals))


@untimed
@given(some_commits, st.lists(st.integers(-1, ROWS - 1)))
def test_take_rows_picks_repeats_and_makes_empty_ones(commits: list[Commit], picked: list[int]) -> None:
    rings = folded(in_order(commits), ROWS, 4, 0)
    taken = take_rows(to_windows(rings, 4), np.array(picked, np.int64))
    assert_same(taken, to_windows([Ring(4) if row < 0 else rings[row] for row in picked], 4))


@untimed
@given(some_commits, some_commits)
def test_concat_stacks_rows(above: list[Commit], below: list[Commit]) -> None:
    first, second = folded(in_order(above), ROWS, 4, 0), folded(in_order(below), ROWS, 4, 0)
    assert_same(concat(to_windows(first, 4), to_windows(second, 4)), to_windows([*first, *second], 4))


def test_taken_rows_are_a_copy() -> None:
    windows = append(empty(2, 3), to_commits([Commit(0, 5, 10, 7)]), 0)
    taken = append(take_rows(windows, np.array([0, 1])), to_commits([Commit(0, 6, 20, 8)]), 0)
    assert (shown(windows), shown(taken)) == ([(5, 10)], [(5, 10), (6, 20)])


def test_no_rows_at_all() -> None:
    nothing = to_commits([])
    for windows in (
        append(empty(0, 3), nothing, 5),
        drop_before(empty(0, 3), np.zeros(0, np.int64)),
        take_rows(empty(2, 3), np.zeros(0, np.int64)),
    ):
        assert_same(windows, empty(0, 3))
    assert_same(take_rows(empty(0, 3), np.array([-1, -1])), empty(2, 3))


def newest_of_each(codes: Sequence[int], orders: Sequence[int], n: int) -> list[bool]:
    newest: dict[int, list[int]] = {}
    for position in sorted(range(len(codes)), key=lambda position: orders[position]):
        newest.setdefault(codes[position], []).append(position)
    kept = {position for positions in newest.values() for position in positions[-n:]}
    return [position in kept for position in range(len(codes))]


@untimed
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 65_535, 65_536, 65_538, 200_000]), st.integers(0, 30))),
    st.integers(1, 4),
    st.sampled_from([np.int32, np.int64, np.uint32]),
    st.booleans(),
)
def test_keep_newest(keyed: list[tuple[int, int]], n: int, dtype: type[np.integer], is_in_order: bool) -> None:
    if is_in_order:
        keyed = sorted(keyed, key=lambda pair: pair[1])
    codes, orders = [code for code, _ in keyed], [order for _, order in keyed]
    kept = keep_newest(np.array(codes, dtype), np.array(orders, np.int64), n)
    assert kept.dtype == np.bool_
    assert kept.tolist() == newest_of_each(codes, orders, n)


@pytest.mark.parametrize("is_in_order", [True, False])
def test_keep_newest_of_many_keys(is_in_order: bool) -> None:
    random = np.random.default_rng(2)
    codes, orders = random.integers(0, 70_000, 300_000), np.arange(300_000)
    if not is_in_order:
        orders = random.permutation(orders)
    assert keep_newest(codes, orders, 3).tolist() == newest_of_each(codes.tolist(), orders.tolist(), 3)

"""What a batch may leave out: windows from the survivors are the windows from all commits."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.domain.compaction import keep_needed
from warren.domain.windows import UNKNOWN, Commits, Windows, append, drop_before, empty

KEYS = 2


class Event(NamedTuple):
    """A commit, or the tombstone of its key."""

    key: int
    time_ms: int
    is_tombstone: bool


def folded(windows: Windows, events: Sequence[tuple[int, Event]], min_distance_ms: int) -> Windows:
    """What a cycle does with a batch: the newest tombstone of a key takes what is older, then commits are added."""
    barrier = np.zeros(KEYS, np.int64)
    for order, event in events:
        if event.is_tombstone:
            barrier[event.key] = max(barrier[event.key], order + 1)
    windows = drop_before(windows, barrier)
    kept = sorted(
        (e.key, order, e.time_ms) for order, e in events if not e.is_tombstone and order >= barrier[e.key]
    )  # fmt: skip
    row, orders, time_ms = np.array(kept, np.int64).reshape(-1, 3).T.copy()
    unknown = np.full(len(kept), UNKNOWN, np.int64)
    return append(windows, Commits(row, orders * 10, time_ms, orders, unknown, unknown, unknown), min_distance_ms)


def survivors(events: Sequence[tuple[int, Event]], intervals: int, min_distance_ms: int) -> list[tuple[int, Event]]:
    kept = keep_needed(
        np.array([event.key for _, event in events], np.int64),
        np.array([order for order, _ in events], np.int64),
        np.array([event.time_ms for _, event in events], np.int64),
        np.array([event.is_tombstone for _, event in events], np.bool_),
        intervals,
        min_distance_ms,
    )
    return [numbered for numbered, is_kept in zip(events, kept, strict=True) if is_kept]


events_drawn = st.integers(0, 40).flatmap(
    lambda size: st.lists(
        st.builds(
            Event,
            st.integers(0, KEYS - 1),
            st.integers(0, 60),
            st.integers(0, 19).map(lambda drawn: drawn == 0),
        ),
        min_size=size,
        max_size=size,
    )
)


def in_time(events: Sequence[Event], jitter: int) -> list[Event]:
    """Times that rise with the order, but step back within the jitter; or as they were drawn."""
    if jitter < 0:
        return list(events)
    return [e._replace(time_ms=3 * n + e.time_ms % (jitter + 1)) for n, e in enumerate(events)]


@settings(max_examples=150)
@given(
    before=events_drawn,
    batch=events_drawn,
    cuts=st.lists(st.integers(0, 40), max_size=3),
    intervals=st.integers(1, 4),
    min_distance_ms=st.sampled_from([0, 1, 5, 12, 1_000]),
    jitter=st.sampled_from([-1, 0, 4, 20]),
    shuffled=st.randoms(use_true_random=False),
)
def test_windows_from_the_survivors_are_the_windows_from_all(
    before: list[Event],
    batch: list[Event],
    cuts: list[int],
    intervals: int,
    min_distance_ms: int,
    jitter: int,
    shuffled: object,
) -> None:
    numbered = list(enumerate(in_time([*before, *batch], jitter), start=1))
    prior, rest = numbered[: len(before)], numbered[len(before) :]
    whole = folded(folded(empty(KEYS, intervals), prior, min_distance_ms), rest, min_distance_ms)

    # Tasks compact their batches, and what is left of several once more, in whatever order the batches came.
    edges = [0, *sorted(min(cut, len(rest)) for cut in cuts), len(rest)]
    parts = [survivors(rest[a:b], intervals, min_distance_ms) for a, b in pairwise(edges)]
    shuffled.shuffle(parts)  # type: ignore[attr-defined]
    left = survivors([event for part in parts for event in part], intervals, min_distance_ms)
    compacted = folded(folded(empty(KEYS, intervals), prior, min_distance_ms), left, min_distance_ms)
    for field in fields(Windows):
        np.testing.assert_array_equal(getattr(compacted, field.name), getattr(whole, field.name), err_msg=field.name)


@pytest.mark.parametrize(
    ("name", "times_ms", "min_distance_ms", "kept"),
    [
        ("without a distance the newest", [1, 2, 3, 4, 5], 0, [3, 4, 5]),
        ("times that step back do not open", [1, 2, 9, 3, 4], 0, [1, 2, 9, 3, 4]),
        ("close together: all that share a slot that stays", [0, 10, 11, 22, 32, 33], 10, [10, 11, 22, 32, 33]),
        ("what may or may not open, by the window, stays", [0, 10, 15, 20, 30, 31], 10, [0, 10, 15, 20, 30, 31]),
        ("one slot for all", [0, 1, 2, 3], 10, [0, 1, 2, 3]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_keep_needed_by_example(name: str, times_ms: list[int], min_distance_ms: int, kept: list[int]) -> None:
    events = [(order, Event(0, time, False)) for order, time in enumerate(times_ms)]
    assert [event.time_ms for _, event in survivors(events, 3, min_distance_ms)] == kept, name


def test_of_tombstones_the_newest_stays_and_takes_what_is_older() -> None:
    events = [Event(0, 1, False), Event(0, 0, True), Event(0, 2, False), Event(0, 0, True), Event(0, 3, False)]
    assert [order for order, _ in survivors(list(enumerate(events)), 3, 0)] == [3, 4]


@pytest.mark.parametrize("min_distance_ms", [0, 10])
def test_a_hot_key_that_commits_all_the_time_is_cut_to_its_slots(min_distance_ms: int) -> None:
    many = 200_000
    order = np.arange(many)
    kept = keep_needed(np.zeros(many, np.int64), order, order * 10, np.zeros(many, np.bool_), 10, min_distance_ms)
    assert np.flatnonzero(kept).tolist() == list(range(many - 10, many))


def test_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    assert keep_needed(nothing, nothing, nothing, nothing > 0, 10, 0).tolist() == []

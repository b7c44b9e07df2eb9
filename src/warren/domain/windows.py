"""Burrow's ring of the last commits, for all partitions at once: one row each, the newest slot at the right."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warren.domain.arrays import Bools, Codes, Ints

Positions = npt.NDArray[np.intp]

UNKNOWN = -1
"""A lag, head or offset that is not known."""

NEVER = int(np.iinfo(np.int64).min)
"""A time before all others."""

OLDEST_ORDER = -1
"""The order of a slot that is older than every record, whatever its offset."""

MAX_DISTANCE_MS = 2**38
"""The largest distance between slots, over eight years: added up over a whole batch it stays within int64."""

# What a commit that is merged into a slot replaces; the time stays the slot's own.
_REPLACED = ("offset", "order", "lag", "lag_low", "lag_high")
_UNFILLED = {"offset": 0, "time_ms": 0, "order": 0, "lag": UNKNOWN, "lag_low": UNKNOWN, "lag_high": UNKNOWN}
COLUMNS = tuple(_UNFILLED)
"""The matrices of windows, with one column per slot."""


@dataclass(slots=True)
class Windows:
    """The windows of n partitions: row i fills its last `count[i]` slots, oldest first, orders rising."""

    count: Codes
    offset: Ints
    time_ms: Ints
    order: Ints
    lag: Ints
    lag_low: Ints
    lag_high: Ints

    @property
    def intervals(self) -> int:
        """How many slots a window has."""
        return int(self.order.shape[1])


@dataclass(slots=True)
class Commits:
    """New commits for the windows' rows, any number for each, sorted by (row, order)."""

    row: Ints
    offset: Ints
    time_ms: Ints
    order: Ints
    lag: Ints
    lag_low: Ints
    lag_high: Ints


def empty(n: int, intervals: int) -> Windows:
    """Creates n windows without a commit."""
    slots = {name: np.full((n, intervals), fill, np.int64) for name, fill in _UNFILLED.items()}
    return Windows(count=np.zeros(n, np.int32), **slots)


def is_filled(windows: Windows) -> Bools:
    """Which slots of each row hold a commit."""
    return np.asarray(np.arange(windows.intervals) >= (windows.intervals - windows.count)[:, None])


def mean_distance_ms(windows: Windows) -> Ints:
    """The mean time between two commits of each row; 0 for a row with fewer."""
    first = windows.intervals - np.maximum(windows.count, 1)
    span_ms = windows.time_ms[:, -1] - windows.time_ms[np.arange(len(first)), first]
    return np.asarray(span_ms // np.maximum(windows.count - 1, 1))


def append(windows: Windows, commits: Commits, min_distance_ms: int) -> Windows:
    """Adds commits as Burrow's ring does; writable arrays are changed in place."""
    if not 0 <= min_distance_ms <= MAX_DISTANCE_MS:
        raise ValueError(f"min_distance_ms is {min_distance_ms}, allowed are 0 to {MAX_DISTANCE_MS}")
    windows = _writable(windows)
    commits = _drop_seen(windows, commits)
    if len(commits.row) == 0:
        return windows
    is_first = _is_run_start(commits.row)
    starts = np.flatnonzero(is_first)
    is_opening = _is_opening(windows, commits, starts, min_distance_ms)

    # A row's commits fall into one group for each slot they go to; a slot shows the last of its group.
    group_start = np.flatnonzero(is_opening | is_first)
    group_end = np.append(group_start[1:], len(commits.row)) - 1
    group_row = commits.row[group_start]
    group_opens = is_opening[group_start]
    row_start = np.flatnonzero(_is_run_start(group_row))
    groups = np.diff(row_start, append=len(group_row))
    rows = group_row[row_start]
    opened = groups - ~group_opens[row_start]
    _make_room(windows, rows, opened)

    newer_groups = _count_newer(groups)
    is_kept = newer_groups < windows.intervals
    cell = (group_row + 1) * windows.intervals - 1 - newer_groups
    shown = group_end[is_kept]
    for name in _REPLACED:
        getattr(windows, name).reshape(-1)[cell[is_kept]] = getattr(commits, name)[shown]
    is_new = is_kept & group_opens
    windows.time_ms.reshape(-1)[cell[is_new]] = commits.time_ms[group_start[is_new]]
    return windows


def drop_before(windows: Windows, barrier_order: Ints) -> Windows:
    """Drops the slots whose order is below the row's barrier (OLDEST_ORDER drops none); in place, as `append` does."""
    return _drop_below(windows, "order", barrier_order)


def drop_until(windows: Windows, until_ms: Ints) -> Windows:
    """Drops the slots whose time is the row's or before it (NEVER drops none); in place, as `append` does."""
    return _drop_below(windows, "time_ms", until_ms + 1)


def _drop_below(windows: Windows, measure: str, barrier: Ints) -> Windows:
    # Orders rise and times never fall from slot to slot, so that what is left stands together at the right.
    windows = _writable(windows)
    slots = windows.intervals
    measured = getattr(windows, measure)
    oldest = np.minimum(slots - windows.count, slots - 1)
    is_hit = (windows.count > 0) & (measured[np.arange(len(oldest)), oldest] < barrier)
    rows = np.flatnonzero(is_hit)
    is_old = measured[rows] < barrier[rows, None]
    for name, unfilled in _UNFILLED.items():
        column = getattr(windows, name)
        column[rows] = np.where(is_old, unfilled, column[rows])
    is_filled = np.arange(slots) >= slots - windows.count[rows, None]
    windows.count[rows] = np.count_nonzero(is_filled & ~is_old, axis=1)
    return windows


def take_rows(windows: Windows, idx: Ints) -> Windows:
    """Copies the windows of the given rows, in that order; -1 gives an empty window."""
    is_known = idx >= 0
    if is_known.all():
        slots = {name: np.take(getattr(windows, name), idx, axis=0) for name in COLUMNS}
        return Windows(count=np.take(windows.count, idx), **slots)
    taken = empty(len(idx), windows.intervals)
    for name in ("count", *COLUMNS):
        getattr(taken, name)[is_known] = getattr(windows, name)[idx[is_known]]
    return taken


def concat(a: Windows, b: Windows) -> Windows:
    """Copies two sets of windows of the same length into one, a's rows first."""
    slots = {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in COLUMNS}
    return Windows(count=np.concatenate([a.count, b.count]), **slots)


def keep_newest(key_code: Ints, order: Ints, n: int) -> Bools:
    """Marks the n newest by order of each key (codes from 0); of equal orders the later one is newer."""
    is_kept = np.zeros(len(key_code), np.bool_)
    by_key, _, sizes = runs_by_code(key_code, order)
    is_kept[by_key[_count_newer(sizes) < n]] = True
    return is_kept


def runs_by_code(key_code: Ints, order: Ints) -> tuple[Positions, Positions, Ints]:
    """The indexes of all rows by key and order, and where the run of each key starts and how long it is."""
    by_key = _sorted_by_code(key_code)
    sorted_code, sorted_order = key_code[by_key], order[by_key]
    is_start = np.ones(len(key_code), np.bool_)
    is_start[1:] = sorted_code[1:] != sorted_code[:-1]
    if ((sorted_order[1:] < sorted_order[:-1]) & ~is_start[1:]).any():
        by_order = np.argsort(order, kind="stable")
        by_key = by_order[_sorted_by_code(key_code[by_order])]
    starts = np.flatnonzero(is_start)
    return by_key, starts, np.diff(starts, append=len(key_code))


def _sorted_by_code(code: npt.NDArray[np.integer]) -> Positions:
    # numpy's linear sort takes 16 bits at most, so larger codes are sorted 16 bits at a time, lowest first.
    by_code = np.argsort(code.astype(np.uint16), kind="stable")
    rest = code >> 16
    while rest.any():
        digit = rest.astype(np.uint16)[by_code]
        by_code = by_code[np.argsort(digit, kind="stable")]
        rest = rest >> 16
    return by_code


def _writable(windows: Windows) -> Windows:
    # Arrays that view Arrow memory are read-only; those are copied, all others are ours to change.
    slots = {name: np.require(getattr(windows, name), requirements=["C", "W"]) for name in COLUMNS}
    return Windows(count=np.require(windows.count, requirements=["C", "W"]), **slots)


def _is_run_start(row: Ints) -> Bools:
    is_start = np.ones(len(row), np.bool_)
    np.not_equal(row[1:], row[:-1], out=is_start[1:])
    return is_start


def _count_newer(sizes: Ints) -> Ints:
    # The runs lie end to end, the newest last: how many of its own run come after each member.
    end = np.repeat(np.cumsum(sizes), sizes)
    return end - 1 - np.arange(len(end))


def _drop_seen(windows: Windows, commits: Commits) -> Commits:
    is_seen = (commits.order <= windows.order[commits.row, -1]) & (windows.count[commits.row] > 0)
    is_seen[1:] |= (commits.order[1:] == commits.order[:-1]) & (commits.row[1:] == commits.row[:-1])
    if not is_seen.any():
        return commits
    return Commits(**{name: getattr(commits, name)[~is_seen] for name in ("row", *COLUMNS)})


def _make_room(windows: Windows, rows: Ints, opened: Ints) -> None:
    # What is left in the cells that become free is overwritten by the slots that are opened.
    slots = windows.intervals
    is_same_for_all = len(rows) == len(windows.count) and opened.min() == opened.max()
    for shift in range(1, slots):
        moving = rows[opened == shift]
        if len(moving) == 0:
            continue
        for name in COLUMNS:
            column = getattr(windows, name)
            if is_same_for_all:
                flat = column.reshape(-1)
                flat[:-shift] = flat[shift:]
            else:
                # A row as one item is copied whole, which is much faster than slot by slot.
                items = column.view(f"V{slots * column.itemsize}").reshape(-1)
                flat = np.take(column, moving, axis=0).reshape(-1)
                flat[:-shift] = flat[shift:]
                items[moving] = flat.view(items.dtype)
    windows.count[rows] = np.minimum(windows.count[rows] + opened, slots)


def _is_opening(windows: Windows, commits: Commits, starts: Positions, min_distance_ms: int) -> Bools:
    # A slot keeps the time of the commit that opened it; a commit that is far enough from it opens the next.
    time_ms = commits.time_ms
    rows = commits.row[starts]
    slot_time = windows.time_ms[rows, -1]
    first_time = time_ms[starts]
    first_opens: Bools = (windows.count[rows] == 0) | _is_apart(slot_time, first_time, min_distance_ms)
    if len(starts) == len(time_ms):
        return first_opens

    # From here on a row's first commit stands for the slot that is the newest one after it.
    sizes = np.diff(starts, append=len(time_ms))
    latest = time_ms.copy()
    latest[starts] = np.where(first_opens, first_time, slot_time)
    run_maximum(latest, starts, sizes)
    # The newest slot's time is the latest so far, or less than the distance before it.
    is_opening = _is_reached(latest, starts, sizes, min_distance_ms) if min_distance_ms else latest == time_ms
    is_opening[starts] = first_opens
    return is_opening


def _is_apart(earlier_ms: Ints, later_ms: Ints, distance_ms: int) -> Bools:
    # As unsigned numbers the difference is right however far apart the two are.
    elapsed = later_ms.view(np.uint64) - earlier_ms.view(np.uint64)
    is_apart: Bools = (later_ms >= earlier_ms) & (elapsed >= np.uint64(distance_ms))
    return is_apart


def run_maximum(values: Ints, starts: Positions, sizes: Ints) -> None:
    """Turns each value into the largest of its run so far, in place."""
    is_falling = values[1:] < values[:-1]
    is_falling[starts[1:] - 1] = False
    if not is_falling.any():
        return
    # Each pass doubles how far back a value has looked within its row.
    rank = np.arange(len(values)) - np.repeat(starts, sizes)
    reach = 1
    while reach < sizes.max():
        np.maximum(values[reach:], values[:-reach], out=values[reach:], where=rank[reach:] >= reach)
        reach *= 2


def _is_reached(latest: Ints, starts: Positions, sizes: Ints, distance_ms: int) -> Bools:
    # Only whether a gap is as wide as the distance matters, not how much wider. So gaps are cut to the
    # distance, those between rows too: all rows become one rising line, and one search finds what is next.
    gap = np.empty(len(latest), np.uint64)
    np.subtract(latest[1:].view(np.uint64), latest[:-1].view(np.uint64), out=gap[1:])
    gap[starts] = distance_ms
    line = np.cumsum(np.minimum(gap, np.uint64(distance_ms)).astype(np.int64))
    hop = np.append(np.searchsorted(line, line + distance_ms), len(line))
    is_reached = np.zeros(len(line) + 1, np.bool_)
    is_reached[starts] = True
    # With hops of 1, 2, 4, .. slots every slot of a row is reached from its first after log2(commits) passes.
    for _ in range(int(sizes.max() - 1).bit_length()):
        is_reached[hop[is_reached]] = True
        hop = hop[hop]
    return is_reached[:-1]

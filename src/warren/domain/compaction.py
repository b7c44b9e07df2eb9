"""Which commits of a batch a window can still need, decided before anything is known of the windows.

A commit that comes at least `min-distance` after every earlier one of its batch opens a slot whatever the window held
before (unless the window is ahead of it in time, and then it is ahead of all commits before it, too). So the commits
from the N-th newest such opening on decide the newest N slots, and what is older can go. Equal to Burrow's fold over
all commits; the tests hold it against that.
"""

import numpy as np

from warren.domain.arrays import Bools, Ints
from warren.domain.windows import run_maximum, runs_by_code


def keep_needed(
    code: Ints, order: Ints, time_ms: Ints, is_tombstone: Bools, intervals: int, min_distance_ms: int
) -> Bools:
    """Marks what the windows need: of each key the newest tombstone, and after it the newest commits."""
    is_dense = code.size > 0 and int(code.max()) < 4 * code.size
    if code.size == 0 or (is_dense and not is_tombstone.any() and np.bincount(code).max() <= intervals):
        # The usual case: no key has more commits than its window has slots.
        return np.ones(code.size, dtype=np.bool_)
    by_key, starts, sizes = runs_by_code(code, order)
    is_kept = np.zeros(code.size, dtype=np.bool_)
    tombstone = is_tombstone[by_key]
    later_tombstones = _count_later(tombstone, starts, sizes)
    is_alive = (later_tombstones == 0) & ~tombstone
    opens = _is_opening(time_ms[by_key], is_alive, starts, sizes, min_distance_ms)
    is_needed = is_alive & (_count_later(opens, starts, sizes) < intervals)
    is_last_tombstone = tombstone & (later_tombstones == 0)
    is_kept[by_key[is_needed | is_last_tombstone]] = True
    return is_kept


def _is_opening(time_ms: Ints, is_alive: Bools, starts: Ints, sizes: Ints, min_distance_ms: int) -> Bools:
    """Commits that come far enough after every earlier one of their key."""
    latest = np.where(is_alive, time_ms, np.iinfo(np.int64).min // 4)
    run_maximum(latest, starts, sizes)
    before = np.empty_like(latest)
    before[1:] = latest[:-1]
    before[starts] = np.iinfo(np.int64).min // 4
    opens: Bools = is_alive & (time_ms - before >= min_distance_ms)
    return opens


def _count_later(marks: Bools, starts: Ints, sizes: Ints) -> Ints:
    """For each row how many marks come after it in its run."""
    seen = np.cumsum(marks)
    at_end = seen[starts + sizes - 1]
    return np.repeat(at_end, sizes) - seen

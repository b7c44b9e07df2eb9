"""The rules that judge a partition's window, and the ladder that holds their order.

Each rule is one predicate over whole columns. The ladder asks them from the top; the first that holds decides, and its
`Reason` is kept with the verdict. With exact lags (`lag_low == lag_high`) the ladder is Burrow's own; with lags that
are only known within bounds a rule needs evidence beyond the bounds before it calls a partition slow.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, Windows, take_rows

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Reason(IntEnum):
    """Which rung of the ladder decided."""

    NOT_JUDGED = 0
    NO_COMMITS = 1
    INCOMPLETE = 2
    NO_HEAD = 3
    CAUGHT_UP = 4
    STOPPED = 5
    REWOUND = 6
    TOO_LITTLE_KNOWN = 7
    WAS_CAUGHT_UP = 8
    STALLED = 9
    LAG_FELL = 10
    FALLING_BEHIND = 11
    LAG_STEADY = 12
    TAIL_IN_DOUBT = 13


STATUS_OF_REASON: dict[Reason, Status] = {
    Reason.STOPPED: Status.STOP,
    Reason.REWOUND: Status.REWIND,
    Reason.STALLED: Status.STALL,
    Reason.FALLING_BEHIND: Status.WARN,
}
_STATUS = np.array([STATUS_OF_REASON.get(reason, Status.OK) for reason in Reason], dtype=np.int8)

NOISE_SHARE = 0.1
"""How much of a lag's uncertainty (high - low) a move must exceed to be a trend: interpolation is that good."""


TREND_MS = 600_000
"""How fast the beginning of a rise is forgotten: a lag that has stayed where it rose to is a steady one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the evaluator section allows."""

    minimum_complete: float = 0.0
    allowed_lag: int = 0


@dataclass(slots=True)
class Evidence:
    """What is known of n partitions beside their windows; unknown numbers are UNKNOWN.

    `recent_head` is the smallest head of the recent past (the head ring), `is_recent_whole` whether that past is as
    long as the ring should be, `trend_floor` the lag from which the present rise began.
    """

    current_lag: Ints
    recent_head: Ints
    is_recent_whole: Bools
    trend_floor: Floats
    elapsed_ms: int = 0


@dataclass(slots=True)
class Verdicts:
    """One verdict a partition: its status, the rung that decided, how full the window is, and where its rise began."""

    status: NDArray[np.int8]
    reason: NDArray[np.int8]
    complete: NDArray[np.float32]
    trend_floor: Floats


def judge(windows: Windows, evidence: Evidence, now_ms: Ints, limits: Limits) -> Verdicts:
    """Run the ladder over all partitions; each rung looks only at the rows that no rung above has decided."""
    n, intervals = windows.offset.shape
    reason = np.full(n, Reason.NOT_JUDGED, dtype=np.int8)
    complete = windows.count.astype(np.float32) / np.float32(intervals)
    trend_floor = np.full(n, UNKNOWN, dtype=np.float64)

    has_no_commits = windows.count == 0
    is_incomplete = complete < np.float32(limits.minimum_complete)
    has_no_head = evidence.current_lag == UNKNOWN
    is_caught_up = evidence.current_lag <= limits.allowed_lag
    reason[is_caught_up] = Reason.CAUGHT_UP
    reason[has_no_head] = Reason.NO_HEAD
    reason[is_incomplete] = Reason.INCOMPLETE
    reason[has_no_commits] = Reason.NO_COMMITS

    behind = np.flatnonzero(reason == Reason.NOT_JUDGED)
    if behind.size:
        of_behind = windows if behind.size == n else take_rows(windows, behind)
        reason[behind], trend_floor[behind] = _judge_behind(
            of_behind,
            evidence.recent_head[behind],
            evidence.is_recent_whole[behind],
            relaxed(of_behind, evidence.trend_floor[behind], evidence.elapsed_ms),
            now_ms[behind],
            limits.allowed_lag,
        )
    return Verdicts(_STATUS[reason], reason, complete, trend_floor)


def _judge_behind(
    windows: Windows, recent_head: Ints, is_recent_whole: Bools, floor: Floats, now_ms: Ints, allowed_lag: int
) -> tuple[NDArray[np.int8], Floats]:
    """The rungs for partitions whose current lag is more than allowed."""
    stopped = is_stopped(windows, now_ms) & ~was_recently_caught_up(windows, recent_head)
    # One commit has no span to compare with, and where we first looked after the last commit the head may have been at
    # its offset just before: until the recent past is seen whole, neither silence says anything.
    is_too_new = (windows.count == 1) | (windows.lag[:, -1] == UNKNOWN)
    known = (windows.lag != UNKNOWN) & is_filled(windows)
    known_lags = known.sum(axis=1)
    trend = lag_trend(windows, known, floor)
    stalled = is_stalled(windows)
    rungs: list[tuple[Bools, Reason]] = [
        (stopped & is_too_new & ~is_recent_whole, Reason.TOO_LITTLE_KNOWN),
        (stopped, Reason.STOPPED),
        (is_rewound(windows), Reason.REWOUND),
        (known_lags == 0, Reason.TOO_LITTLE_KNOWN),
        (was_caught_up(windows, known, allowed_lag), Reason.WAS_CAUGHT_UP),
        (stalled, Reason.STALLED),
        (known_lags < 2, Reason.TOO_LITTLE_KNOWN),
        (trend.has_fallen, Reason.LAG_FELL),
        (trend.has_risen, Reason.FALLING_BEHIND),
    ]
    reason = np.full(windows.count.size, Reason.LAG_STEADY, dtype=np.int8)
    for holds, because in reversed(rungs):
        reason[holds] = because
    # A rise that is interrupted by being caught up begins anew.
    return reason, np.where(reason == Reason.WAS_CAUGHT_UP, UNKNOWN, trend.floor)


def is_filled(windows: Windows) -> Bools:
    """Which slots of each row hold a commit."""
    intervals = windows.offset.shape[1]
    filled: Bools = np.arange(intervals) >= (intervals - windows.count)[:, None]
    return filled


def is_stopped(windows: Windows, now_ms: Ints) -> Bools:
    """No commit for longer than the whole window took."""
    rows = np.arange(windows.count.size)
    first = windows.time_ms[rows, windows.offset.shape[1] - windows.count]
    last = windows.time_ms[:, -1]
    stopped: Bools = (now_ms - last) > (last - first)
    return stopped


def was_recently_caught_up(windows: Windows, recent_head: Ints) -> Bools:
    """The head was at or below the last committed offset in the recent past."""
    caught_up: Bools = (recent_head != UNKNOWN) & (recent_head <= windows.offset[:, -1])
    return caught_up


def is_rewound(windows: Windows) -> Bools:
    """An offset fell, and no later one came back to where it had been."""
    offset = windows.offset
    fell = (offset[:, 1:] < offset[:, :-1]) & is_filled(windows)[:, :-1]
    rewound: Bools = np.any(fell, axis=1)
    rows = np.flatnonzero(rewound)
    if rows.size:
        first = fell[rows].argmax(axis=1)
        before = offset[rows, first]
        is_later = np.arange(offset.shape[1]) > first[:, None]
        rewound[rows] = ~((offset[rows] >= before[:, None]) & is_later).any(axis=1)
    return rewound


def was_caught_up(windows: Windows, known: Bools, allowed_lag: int) -> Bools:
    """The lag may have been within what is allowed at some commit of the window."""
    caught_up: Bools = np.any((windows.lag_low <= allowed_lag) & known, axis=1)
    return caught_up


def is_stalled(windows: Windows) -> Bools:
    """Commits go on, the offset does not."""
    is_same = windows.offset == windows.offset[:, -1:]
    stalled: Bools = np.all(is_same | ~is_filled(windows), axis=1)
    return stalled


@dataclass(slots=True)
class Trend:
    """How the lag moved, beyond what sampling alone can explain, and the lag at which the present rise began."""

    has_fallen: Bools
    has_risen: Bools
    floor: Floats


def relaxed(windows: Windows, floor: Floats, elapsed_ms: int) -> Floats:
    """The beginning of a rise, drawn towards the window's oldest lag as time goes by."""
    known = (windows.lag != UNKNOWN) & is_filled(windows)
    first = windows.lag[np.arange(floor.size), known.argmax(axis=1)]
    share = 1.0 - float(np.exp(-elapsed_ms / TREND_MS))
    return np.where((floor == UNKNOWN) | (first == UNKNOWN), floor, floor + share * (first - floor))


def lag_trend(windows: Windows, known: Bools, floor: Floats) -> Trend:
    """Tell a rise and a fall of the lag from noise, looking back past the window to where the rise began."""
    lag = windows.lag
    noise = np.where(known, windows.lag_high - windows.lag_low, 0).max(axis=1, initial=0)
    tolerance = np.ceil(noise * NOISE_SHARE).astype(np.int64)
    lowest = np.iinfo(np.int64).min // 4
    peak_so_far = np.maximum.accumulate(np.where(known, lag, lowest), axis=1)
    fall = np.where(known, peak_so_far - lag, 0).max(axis=1, initial=0)
    has_fallen: Bools = fall > tolerance

    first_known = known.argmax(axis=1)
    last_known = known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
    rows = np.arange(lag.shape[0])
    first, last = lag[rows, first_known], lag[rows, last_known]
    highest = np.iinfo(np.int64).max
    peak_at = np.where(known, lag, lowest).argmax(axis=1)
    is_after_peak = np.arange(lag.shape[1]) >= peak_at[:, None]
    lowest_after_peak = np.where(known & is_after_peak, lag, highest).min(axis=1, initial=highest)
    since_before = np.where(floor == UNKNOWN, first, np.minimum(floor, first))
    new_floor = np.where(has_fallen, lowest_after_peak, since_before)
    new_floor = np.where(known.any(axis=1), new_floor, UNKNOWN)
    is_exact = tolerance == 0
    has_risen: Bools = np.where(is_exact, last >= new_floor, last - new_floor > tolerance)
    return Trend(has_fallen, has_risen, new_floor)

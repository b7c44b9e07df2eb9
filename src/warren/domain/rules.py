"""The rules that judge a partition's window, and the ladder that holds their order.

Each rule is one predicate over whole columns. The first rung whose rule holds decides the verdict and gives it its
`Reason`. With exact lags (`lag_low == lag_high`) the ladder is Burrow's own. With lags that are known only within
bounds, a rule needs evidence beyond the bounds before it calls a partition slow.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warren.domain.arrays import Bools, Floats, Ints, SmallInts
from warren.domain.lag import SHORT_LAG, Trend, lag_trend
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, Windows, is_filled, take_rows


class Reason(IntEnum):
    """Which rung of the ladder decided; files hold the numbers, sinks receive the names."""

    NOT_JUDGED = 0
    """The ladder has not run for this partition yet."""
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
    SILENT = 14


@dataclass(frozen=True, slots=True)
class Limits:
    """What the evaluator section allows."""

    minimum_complete: float = 0.0
    allowed_lag: int = 0


@dataclass(slots=True)
class Evidence:
    """What is known of n partitions beside their windows; unknown numbers are UNKNOWN.

    `recent_head` is the lowest head of the recent past, `is_recent_complete` whether the samples cover all of that
    past, and a single commit is older than it. `trend_floor` is the lag at which the present rise started, `elapsed_ms`
    the time since it was determined.
    `is_tail_verified` says that the current lag holds no transaction markers. `is_silent` is for partitions without
    commits for which the brokers hold an offset: whether none has come in all of the recent past, with the head ahead.
    """

    current_lag: Ints
    recent_head: Ints
    is_recent_complete: Bools
    trend_floor: Floats
    is_tail_verified: Bools
    is_silent: Bools
    elapsed_ms: int = 0


@dataclass(slots=True)
class Verdicts:
    """One verdict per partition: its status and reason, how full its window is, and where its rise started."""

    status: SmallInts
    reason: SmallInts
    complete: NDArray[np.float32]
    trend_floor: Floats


@dataclass
class Partitions:
    """The partitions that the rungs are asked about, one per row, and the reason of each as far as it is decided."""

    windows: Windows
    evidence: Evidence
    now_ms: Ints
    limits: Limits
    reason: SmallInts

    @cached_property
    def complete(self) -> NDArray[np.float32]:
        """The filled share of each window."""
        return self.windows.count.astype(np.float32) / np.float32(self.windows.intervals)

    @cached_property
    def has_lag(self) -> Bools:
        """Which slots hold a commit whose lag is known."""
        return np.asarray((self.windows.lag != UNKNOWN) & is_filled(self.windows))

    @cached_property
    def known_lags(self) -> Ints:
        """How many lags of each window are known."""
        return np.asarray(self.has_lag.sum(axis=1))

    @cached_property
    def trend(self) -> Trend:
        """How the lag of each partition moved."""
        return lag_trend(self.windows, self.has_lag, self.evidence.trend_floor, self.evidence.elapsed_ms)

    def take(self, rows: Ints) -> "Partitions":
        """Some of the partitions."""
        if rows.size == self.reason.size:
            return self
        evidence = {f.name: getattr(self.evidence, f.name)[rows] for f in fields(Evidence) if f.name != "elapsed_ms"}
        return Partitions(
            take_rows(self.windows, rows),
            Evidence(**evidence, elapsed_ms=self.evidence.elapsed_ms),
            self.now_ms[rows],
            self.limits,
            self.reason[rows],
        )


def has_no_commits(partitions: Partitions) -> Bools:
    """The window is empty, and it is not known to be silent."""
    return np.asarray((partitions.windows.count == 0) & ~partitions.evidence.is_silent)


def is_incomplete(partitions: Partitions) -> Bools:
    """The window holds fewer commits than `minimum-complete` demands."""
    return np.asarray(partitions.complete < np.float32(partitions.limits.minimum_complete))


def has_no_head(partitions: Partitions) -> Bools:
    """The head is unknown, and so is the current lag."""
    return np.asarray(partitions.evidence.current_lag == UNKNOWN)


def is_caught_up(partitions: Partitions) -> Bools:
    """The current lag is within `allowed-lag`."""
    return np.asarray(partitions.evidence.current_lag <= partitions.limits.allowed_lag)


def is_silent(partitions: Partitions) -> Bools:
    """It is behind by the offset that the brokers hold, and has not committed since it is watched."""
    return partitions.evidence.is_silent


def is_stopped(partitions: Partitions) -> Bools:
    """No commit for longer than the whole window took, and the head was always ahead of the last one."""
    windows, recent_head = partitions.windows, partitions.evidence.recent_head
    first = windows.time_ms[np.arange(windows.count.size), windows.intervals - np.maximum(windows.count, 1)]
    last = windows.time_ms[:, -1]
    is_silent = (partitions.now_ms - last) > (last - first)
    was_recently_caught_up = (recent_head != UNKNOWN) & (recent_head <= windows.offset[:, -1])
    return np.asarray(is_silent & ~was_recently_caught_up)


def is_stop_unproven(partitions: Partitions) -> Bools:
    """It looks stopped, but too little of the recent past was sampled.

    One commit has no span to compare with. And where sampling started after the last commit, the head may have been at
    its offset just before.
    """
    windows = partitions.windows
    is_too_new = (windows.count == 1) | (windows.lag[:, -1] == UNKNOWN)
    return np.asarray(is_stopped(partitions) & is_too_new & ~partitions.evidence.is_recent_complete)


def is_rewound(partitions: Partitions) -> Bools:
    """An offset fell, and no later one came back to where it had been."""
    offset = partitions.windows.offset
    fell = (offset[:, 1:] < offset[:, :-1]) & is_filled(partitions.windows)[:, :-1]
    rewound: Bools = np.any(fell, axis=1)
    rows = np.flatnonzero(rewound)
    if rows.size:
        first = fell[rows].argmax(axis=1)
        before = offset[rows, first]
        is_later = np.arange(offset.shape[1]) > first[:, None]
        rewound[rows] = ~((offset[rows] >= before[:, None]) & is_later).any(axis=1)
    return rewound


def has_no_known_lag(partitions: Partitions) -> Bools:
    """The lag of no commit is known."""
    return np.asarray(partitions.known_lags == 0)


def was_caught_up(partitions: Partitions) -> Bools:
    """The lag may have been within `allowed-lag` at some commit of the window."""
    is_allowed = partitions.windows.lag_low <= partitions.limits.allowed_lag
    return np.asarray(np.any(is_allowed & partitions.has_lag, axis=1))


def is_stalled(partitions: Partitions) -> Bools:
    """Commits go on, the offset does not."""
    offset = partitions.windows.offset
    return np.asarray(np.all((offset == offset[:, -1:]) | ~is_filled(partitions.windows), axis=1))


def has_few_known_lags(partitions: Partitions) -> Bools:
    """One lag is no trend, and neither are a few lags of a window that has mostly unknown ones."""
    known = partitions.known_lags
    return np.asarray((known < 2) | (2 * known < partitions.windows.count))


def has_lag_fallen(partitions: Partitions) -> Bools:
    """The lag went down within the window."""
    return partitions.trend.has_fallen


def has_lag_risen(partitions: Partitions) -> Bools:
    """The lag never went down, and rose or stayed."""
    return partitions.trend.has_risen


def is_left(partitions: Partitions) -> Bools:
    """Every partition that no rung above has decided."""
    return np.ones(partitions.reason.size, np.bool_)


def is_tail_unverified(partitions: Partitions) -> Bools:
    """A bad verdict for a lag that may be transaction markers alone; see decision 7."""
    is_short = partitions.evidence.current_lag <= SHORT_LAG
    return np.asarray((_STATUS[partitions.reason] != Status.OK) & is_short & ~partitions.evidence.is_tail_verified)


class Rung(NamedTuple):
    """A rule, with the reason and the status it gives; only a rung that `overrules` is asked of decided partitions."""

    rule: Callable[[Partitions], Bools]
    reason: Reason
    status: Status = Status.OK
    overrules: bool = False


LADDER = (
    Rung(has_no_commits, Reason.NO_COMMITS),
    Rung(is_incomplete, Reason.INCOMPLETE),
    Rung(has_no_head, Reason.NO_HEAD),
    Rung(is_caught_up, Reason.CAUGHT_UP),
    Rung(is_silent, Reason.SILENT, Status.STOP),
    Rung(is_stop_unproven, Reason.TOO_LITTLE_KNOWN),
    Rung(is_stopped, Reason.STOPPED, Status.STOP),
    Rung(is_rewound, Reason.REWOUND, Status.REWIND),
    Rung(has_no_known_lag, Reason.TOO_LITTLE_KNOWN),
    Rung(was_caught_up, Reason.WAS_CAUGHT_UP),
    Rung(is_stalled, Reason.STALLED, Status.STALL),
    Rung(has_few_known_lags, Reason.TOO_LITTLE_KNOWN),
    Rung(has_lag_fallen, Reason.LAG_FELL),
    Rung(has_lag_risen, Reason.FALLING_BEHIND, Status.WARN),
    Rung(is_left, Reason.LAG_STEADY),
    Rung(is_tail_unverified, Reason.TAIL_IN_DOUBT, overrules=True),
)
_BEHIND = [rung.reason for rung in LADDER].index(Reason.CAUGHT_UP) + 1
"""From here on the rungs look at every slot, and are asked only of partitions that are behind."""
_STATUS = np.ones(len(Reason), np.int8)
for _rung in LADDER:
    _STATUS[_rung.reason] = _rung.status


def judge(windows: Windows, evidence: Evidence, now_ms: Ints, limits: Limits) -> Verdicts:
    """Run the ladder over all partitions."""
    reason = np.full(windows.count.size, Reason.NOT_JUDGED, np.int8)
    everyone = Partitions(windows, evidence, now_ms, limits, reason)
    _decide(everyone, LADDER[:_BEHIND])
    rows = np.flatnonzero(reason == Reason.NOT_JUDGED)
    trend_floor = np.full(reason.size, UNKNOWN, np.float64)
    if rows.size:
        behind = everyone.take(rows)
        _decide(behind, LADDER[_BEHIND:])
        reason[rows] = behind.reason
        # A rise that was interrupted by being caught up starts over.
        trend_floor[rows] = np.where(behind.reason == Reason.WAS_CAUGHT_UP, UNKNOWN, behind.trend.floor)
    return Verdicts(_STATUS[reason], reason, everyone.complete, trend_floor)


def _decide(partitions: Partitions, rungs: tuple[Rung, ...]) -> None:
    """Give a reason to each partition that a rung applies to."""
    for rung in rungs:
        is_asked = rung.overrules | (partitions.reason == Reason.NOT_JUDGED)
        partitions.reason[rung.rule(partitions) & is_asked] = rung.reason

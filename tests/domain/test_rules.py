"""The ladder, rung by rung, against tables and against Burrow's rules said plainly."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.domain.lag import lag_bounds
from warren.domain.rules import Evidence, Limits, Reason, Verdicts, judge
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, Windows, empty

MINUTE = 60_000
T = 1_700_000_000_000
RISING = list(range(10, 110, 10))


@dataclass(frozen=True)
class Case:
    """A partition to judge; times a minute apart from T unless given, and `now` with the last commit."""

    offsets: Sequence[int] = tuple(RISING)
    lags: Sequence[int | None] = (5,) * 10
    current_lag: int | None = 9
    times_ms: Sequence[int] | None = None
    now_ms: int | None = None
    recent_heads: Sequence[int] = (1_000_000,)
    is_recent_complete: bool = True
    limits: Limits = field(default_factory=Limits)
    intervals: int = 10
    spread: Sequence[tuple[int, int]] | None = None
    trend_floor: float = UNKNOWN
    elapsed_ms: int = 0
    is_tail_verified: bool = True
    is_silent: bool = False

    @property
    def times(self) -> list[int]:
        """When each commit was made."""
        return list(self.times_ms) if self.times_ms is not None else [T + MINUTE * n for n in range(len(self.offsets))]

    @property
    def now(self) -> int:
        """When the partition is judged."""
        return self.now_ms if self.now_ms is not None else (self.times or [T])[-1]


def fill(windows: Windows, row: int, case: Case) -> None:
    count = len(case.offsets)
    windows.count[row] = count
    if not count:
        return
    lags = [UNKNOWN if lag is None else lag for lag in case.lags]
    low, high = zip(*case.spread, strict=True) if case.spread else (lags, lags)
    names = ("offset", "time_ms", "order", "lag", "lag_low", "lag_high")
    for name, column in zip(names, (case.offsets, case.times, range(count), lags, low, high), strict=True):
        getattr(windows, name)[row, windows.intervals - count :] = list(column)


def judged(cases: Sequence[Case]) -> Verdicts:
    """All cases at once; they share intervals and limits."""
    windows = empty(len(cases), cases[0].intervals)
    for row, case in enumerate(cases):
        fill(windows, row, case)
    evidence = Evidence(
        np.array([UNKNOWN if case.current_lag is None else case.current_lag for case in cases], np.int64),
        np.array([min(case.recent_heads, default=UNKNOWN) for case in cases], np.int64),
        np.array([case.is_recent_complete for case in cases], np.bool_),
        np.array([case.trend_floor for case in cases], np.float64),
        np.array([case.is_tail_verified for case in cases], np.bool_),
        np.array([case.is_silent for case in cases], np.bool_),
        cases[0].elapsed_ms,
    )
    return judge(windows, evidence, np.array([case.now for case in cases], np.int64), cases[0].limits)


def verdict(case: Case) -> tuple[Status, Reason]:
    verdicts = judged([case])
    return Status(int(verdicts.status[0])), Reason(int(verdicts.reason[0]))


CAUGHT_UP_ONCE = (0, 0, 0, 0, 0, 0, 1, 3, 5, 5)
ONE_FALL = (5, 5, 6, 4, 5, 6, 6, 7, 8, 8)

SEED_EXAMPLES = {
    "lag 0 at one point of the window": (Case(lags=CAUGHT_UP_ONCE), Status.OK, Reason.WAS_CAUGHT_UP),
    "the same after five more commits: the last 0 is still there": (
        Case(lags=(*CAUGHT_UP_ONCE[5:], 5, 5, 6, 6, 7)),
        Status.OK,
        Reason.WAS_CAUGHT_UP,
    ),
    "the same after six more commits: the last 0 has left": (
        Case(lags=(*CAUGHT_UP_ONCE[6:], 5, 5, 6, 6, 7, 7)),
        Status.WARN,
        Reason.FALLING_BEHIND,
    ),
    "commits go on at one offset, the lag stays or grows": (
        Case(offsets=(10,) * 10, lags=(1, 1, 1, 1, 1, 2, 2, 2, 3, 3)),
        Status.STALL,
        Reason.STALLED,
    ),
    "offsets rise, the lag too": (Case(lags=(1, 1, 1, 1, 1, 2, 2, 2, 3, 3)), Status.WARN, Reason.FALLING_BEHIND),
    "offsets rise, the lag too but for one fall": (Case(lags=ONE_FALL), Status.OK, Reason.LAG_FELL),
    "the same window at T+1200: 660 s are longer than 540 s": (
        Case(lags=ONE_FALL, now_ms=T + 1200_000),
        Status.STOP,
        Reason.STOPPED,
    ),
}


@pytest.mark.parametrize("name", SEED_EXAMPLES)
def test_the_worked_examples(name: str) -> None:
    case, status, reason = SEED_EXAMPLES[name]
    assert case.times[-1] - case.times[0] == 540_000
    assert verdict(case) == (status, reason)


LADDER = {
    # how full the window is
    "no commits at all": (Case((), (), None), Reason.NO_COMMITS),
    "no commits, but the broker holds an offset": (Case((), (), 50), Reason.NO_COMMITS),
    "no commits, and silent since it is watched": (Case((), (), 500, is_silent=True), Reason.SILENT),
    "silent, but caught up": (Case((), (), 0, is_silent=True), Reason.CAUGHT_UP),
    "silent, by a lag that may be markers": (
        Case((), (), 50, is_silent=True, is_tail_verified=False),
        Reason.TAIL_IN_DOUBT,
    ),
    "no commits are worse known than an incomplete window": (
        Case((), (), 50, limits=Limits(minimum_complete=0.5)),
        Reason.NO_COMMITS,
    ),
    "fewer commits than minimum-complete wants": (
        Case(RISING[:4], (5,) * 4, limits=Limits(minimum_complete=0.5)),
        Reason.INCOMPLETE,
    ),
    "exactly as many as minimum-complete wants": (
        Case(RISING[:5], (5,) * 5, limits=Limits(minimum_complete=0.5)),
        Reason.FALLING_BEHIND,
    ),
    "a share of float32 is compared as float32": (
        Case(RISING[:3], (5,) * 3, limits=Limits(minimum_complete=0.3)),
        Reason.FALLING_BEHIND,
    ),
    "an incomplete window hides a stop": (
        Case(RISING[:4], (5,) * 4, now_ms=T + 99 * MINUTE, limits=Limits(minimum_complete=0.5)),
        Reason.INCOMPLETE,
    ),
    "a full window is complete whatever is asked": (Case(limits=Limits(minimum_complete=1.0)), Reason.FALLING_BEHIND),
    # current lag
    "no head": (Case(current_lag=None), Reason.NO_HEAD),
    "no head hides a stop": (Case(current_lag=None, now_ms=T + 99 * MINUTE), Reason.NO_HEAD),
    "lag 0 now": (Case(current_lag=0), Reason.CAUGHT_UP),
    "lag 0 now hides a stop": (Case(current_lag=0, now_ms=T + 99 * MINUTE), Reason.CAUGHT_UP),
    "lag 0 now hides a rewind": (Case((50, 20), (5, 5), current_lag=0), Reason.CAUGHT_UP),
    "lag 1 now is not caught up": (Case(current_lag=1), Reason.FALLING_BEHIND),
    "lag now just within what is allowed": (
        Case(lags=(8,) * 10, current_lag=7, limits=Limits(allowed_lag=7)),
        Reason.CAUGHT_UP,
    ),
    "lag now just beyond what is allowed": (
        Case(lags=(8,) * 10, current_lag=8, limits=Limits(allowed_lag=7)),
        Reason.FALLING_BEHIND,
    ),
    # stop
    "silent for exactly as long as the window took": (Case(now_ms=T + 18 * MINUTE), Reason.FALLING_BEHIND),
    "silent for a millisecond longer": (Case(now_ms=T + 18 * MINUTE + 1), Reason.STOPPED),
    "silent, but the head was at the offset a while ago": (
        Case(now_ms=T + 99 * MINUTE, recent_heads=(300, 100, 200)),
        Reason.FALLING_BEHIND,
    ),
    "silent, and the head was never as low as the offset": (
        Case(now_ms=T + 99 * MINUTE, recent_heads=(300, 101, 200)),
        Reason.STOPPED,
    ),
    "silent, and of the recent heads nothing is known": (Case(now_ms=T + 99 * MINUTE, recent_heads=()), Reason.STOPPED),
    "one commit, silent ever since": (Case((10,), (5,), now_ms=T + 1), Reason.STOPPED),
    "one commit, just now": (Case((10,), (5,), now_ms=T), Reason.STALLED),
    "one commit, silent, but the recent past is not whole": (
        Case((10,), (5,), now_ms=T + 1, is_recent_complete=False),
        Reason.TOO_LITTLE_KNOWN,
    ),
    "silent since before we first looked": (
        Case((10, 20), (None, None), now_ms=T + 99 * MINUTE, is_recent_complete=False),
        Reason.TOO_LITTLE_KNOWN,
    ),
    "two commits, silent, though the recent past is not whole": (
        Case((10, 20), (5, 5), now_ms=T + 99 * MINUTE, is_recent_complete=False),
        Reason.STOPPED,
    ),
    "silence hides a rewind": (Case((50, 20), (5, 5), now_ms=T + 99 * MINUTE), Reason.STOPPED),
    "silence needs no known lag": (Case(lags=(None,) * 10, now_ms=T + 99 * MINUTE), Reason.STOPPED),
    # rewind
    "an offset fell and stayed below": (Case((10, 50, 20, 30, 49), (5, 6, 7, 8, 9)), Reason.REWOUND),
    "an offset fell and came back": (Case((10, 50, 20, 30, 50), (5, 6, 7, 8, 9)), Reason.FALLING_BEHIND),
    "the last offset fell": (Case((10, 50, 49), (5, 6, 7)), Reason.REWOUND),
    "two falls: only the first decides what must be reached again": (
        Case((10, 50, 20, 60, 30), (5, 6, 7, 8, 9)),
        Reason.FALLING_BEHIND,
    ),
    "a fall to 0 in a window that is not full": (Case((7, 0), (5, 6)), Reason.REWOUND),
    "a rewind hides that the lag was 0": (Case((50, 20, 30), (0, 30, 20)), Reason.REWOUND),
    "a rewind needs no known lag": (Case((50, 20), (None, None)), Reason.REWOUND),
    # lag 0 in the window
    "the oldest lag was 0": (Case(lags=(0, *range(1, 10))), Reason.WAS_CAUGHT_UP),
    "the newest lag was 0": (Case(lags=(*range(1, 10), 0)), Reason.WAS_CAUGHT_UP),
    "a lag within what is allowed": (
        Case(lags=(9, 9, 7, 9, 9, 9, 9, 9, 9, 9), current_lag=9, limits=Limits(allowed_lag=7)),
        Reason.WAS_CAUGHT_UP,
    ),
    "no lag within what is allowed": (
        Case(lags=(8,) * 10, current_lag=9, limits=Limits(allowed_lag=7)),
        Reason.FALLING_BEHIND,
    ),
    "lag 0 hides a stall": (Case((10,) * 3, (0, 1, 2)), Reason.WAS_CAUGHT_UP),
    "an unknown lag is no lag of 0": (Case(lags=(None, *range(1, 10))), Reason.FALLING_BEHIND),
    # stall
    "all offsets equal, lag falling all the same": (Case((10,) * 3, (9, 8, 7)), Reason.STALLED),
    "all offsets equal but one": (Case((10, 10, 11), (5, 6, 7)), Reason.FALLING_BEHIND),
    "offset 0 again and again": (Case((0,) * 3, (5, 6, 7)), Reason.STALLED),
    # trend
    "lag constant": (Case(lags=(5,) * 10), Reason.FALLING_BEHIND),
    "lag fell by one once": (Case(lags=(5, 5, 5, 5, 5, 4, 5, 6, 7, 8)), Reason.LAG_FELL),
    "lag fell over an unknown one": (Case(lags=(5, None, 4, 5, 6, 6, 7, 8, 8, 9)), Reason.LAG_FELL),
    "lag did not fall over an unknown one": (Case(lags=(4, None, 5, 5, 6, 6, None, 8, 8, 9)), Reason.FALLING_BEHIND),
    # too little known
    "no known lag": (Case(lags=(None,) * 10), Reason.TOO_LITTLE_KNOWN),
    "no known lag, all offsets equal": (Case((10,) * 3, (None,) * 3), Reason.TOO_LITTLE_KNOWN),
    "one known lag, all offsets equal": (Case((10,) * 3, (None, 5, None)), Reason.STALLED),
    "one known lag, offsets rising": (Case((10, 20, 30), (None, None, 5)), Reason.TOO_LITTLE_KNOWN),
    "one known lag of 0": (Case((10, 20, 30), (None, None, 0)), Reason.WAS_CAUGHT_UP),
    "two known lags": (Case((10, 20, 30), (None, 5, 5)), Reason.FALLING_BEHIND),
    # tails that may hold only transaction markers
    "slow by a short, unverified lag": (Case(current_lag=100, is_tail_verified=False), Reason.TAIL_IN_DOUBT),
    "slow by more than a short lag": (Case(current_lag=101, is_tail_verified=False), Reason.FALLING_BEHIND),
    "stopped at an unverified tail": (Case(now_ms=T + 99 * MINUTE, is_tail_verified=False), Reason.TAIL_IN_DOUBT),
    "a good verdict needs no verified tail": (Case(lags=ONE_FALL, is_tail_verified=False), Reason.LAG_FELL),
}  # fmt: skip


@pytest.mark.parametrize("name", LADDER)
def test_every_rung(name: str) -> None:
    case, reason = LADDER[name]
    statuses = {
        Reason.STOPPED: Status.STOP,
        Reason.SILENT: Status.STOP,
        Reason.REWOUND: Status.REWIND,
        Reason.STALLED: Status.STALL,
        Reason.FALLING_BEHIND: Status.WARN,
    }
    assert verdict(case) == (statuses.get(reason, Status.OK), reason)


def test_rows_are_judged_apart_from_each_other() -> None:
    alike = [(case, reason) for case, reason in LADDER.values() if case.limits == Limits()]
    reasons = judged([case for case, _ in alike]).reason
    assert [Reason(int(reason)) for reason in reasons] == [reason for _, reason in alike]


def test_complete_is_the_filled_share_as_float32() -> None:
    complete = judged([Case(RISING[:n], (5,) * n) for n in range(11)]).complete
    assert complete.dtype == np.float32
    assert complete.tolist() == [np.float32(n) / np.float32(10) for n in range(11)]


def test_no_partitions_at_all() -> None:
    nothing = np.zeros(0, np.int64)
    evidence = Evidence(nothing, nothing, nothing > 0, nothing.astype(np.float64), nothing > 0, nothing > 0)
    verdicts = judge(empty(0, 10), evidence, nothing, Limits())
    assert verdicts.status.size == verdicts.reason.size == verdicts.complete.size == 0


def plain_rules(case: Case) -> Status:
    """Burrow's rules, one partition at a time, with the evidence that Warren wants for WARN and STALL."""
    offsets, times, limits = case.offsets, case.times, case.limits
    known = [lag for lag in case.lags if lag is not None]
    if not offsets or np.float32(len(offsets)) / np.float32(case.intervals) < np.float32(limits.minimum_complete):
        return Status.OK
    if case.current_lag is None or case.current_lag <= limits.allowed_lag:
        return Status.OK
    is_silent = case.now - times[-1] > times[-1] - times[0]
    if is_silent and not any(head <= offsets[-1] for head in case.recent_heads):
        return Status.STOP
    for at, (before, after) in enumerate(pairwise(offsets)):
        if after < before:
            if not any(offset >= before for offset in offsets[at + 1 :]):
                return Status.REWIND
            break
    if any(lag <= limits.allowed_lag for lag in known):
        return Status.OK
    if len(set(offsets)) == 1:
        return Status.STALL if known else Status.OK
    if len(known) < max(2, len(offsets) / 2) or any(after < before for before, after in pairwise(known)):
        return Status.OK
    return Status.WARN


small = st.integers(0, 6)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    intervals = draw(st.integers(1, 6))
    count = draw(st.integers(0, intervals))
    is_rising = draw(st.booleans())
    offsets = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    lags = draw(st.lists(small | st.none() if draw(st.booleans()) else small, min_size=count, max_size=count))
    times = sorted(draw(st.lists(st.integers(0, 20), min_size=count, max_size=count)))
    return Case(
        offsets=sorted(offsets) if is_rising else offsets,
        lags=sorted(lags, key=lambda lag: lag or 0) if draw(st.booleans()) else lags,
        current_lag=draw(st.none() | st.integers(0, 9)),
        times_ms=times,
        now_ms=(times or [0])[-1] + draw(st.integers(0, 25)),
        recent_heads=draw(st.lists(st.integers(0, 12), max_size=3)),
        limits=Limits(draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])), draw(st.sampled_from([0, 0, 1, 3]))),
        intervals=intervals,
    )


@settings(max_examples=400)
@given(cases())
def test_with_exact_lags_the_ladder_is_burrows(case: Case) -> None:
    assert verdict(case)[0] == plain_rules(case)


@dataclass
class Sampled:
    """A topic whose heads are sampled every `every_ms`, and a group on it whose lags are only known within bounds."""

    rate: float  # messages a ms
    every_ms: int = 10_000

    def head(self, at_ms: float) -> int:
        return int(self.rate * at_ms)

    def case(self, commits: Sequence[tuple[int, int]]) -> Case:
        """A window of commits (time, offset) with the lags that the samples allow."""
        times = np.array([time for time, _ in commits], np.int64)
        offsets = np.array([offset for _, offset in commits], np.int64)
        before = times // self.every_ms * self.every_ms
        after = before + self.every_ms
        heads = [np.array([self.head(at) for at in ends.tolist()], np.int64) for ends in (before, after)]
        lag, low, high = lag_bounds(offsets, times, before, heads[0], after, heads[1])
        return Case(
            offsets=offsets.tolist(),
            lags=lag.tolist(),
            spread=list(zip(low.tolist(), high.tolist(), strict=True)),
            times_ms=times.tolist(),
            current_lag=max(self.head(int(after[-1])) - int(offsets[-1]), 0),
        )


def verdicts_over(topic: Sampled, commits: Sequence[tuple[int, int]]) -> list[Reason]:
    """The reason after every commit from the tenth on, the floor of the rise carried along as the state does."""
    floor, reasons = float(UNKNOWN), []
    for end in range(10, len(commits) + 1):
        elapsed_ms = commits[end - 1][0] - commits[end - 2][0]
        verdicts = judged([replace(topic.case(commits[end - 10 : end]), trend_floor=floor, elapsed_ms=elapsed_ms)])
        floor = float(verdicts.trend_floor[0])
        reasons.append(Reason(int(verdicts.reason[0])))
    return reasons


@pytest.mark.parametrize("phase_ms", [1, 50, 500, 3_000, 9_999])
@pytest.mark.parametrize("commit_every_ms", [1_000, 5_000, 10_000, 60_000])
@pytest.mark.parametrize("latency_ms", [0, 20, 400])
def test_a_healthy_group_is_never_slow_however_its_commits_fall_between_samples(
    phase_ms: int, commit_every_ms: int, latency_ms: int
) -> None:
    topic = Sampled(rate=1.0)
    random = np.random.default_rng(phase_ms)
    times = [phase_ms + n * commit_every_ms + int(random.integers(0, 30)) for n in range(1, 80)]
    commits = [(time, topic.head(time - latency_ms - int(random.integers(0, 100)))) for time in times]
    assert Reason.FALLING_BEHIND not in verdicts_over(topic, commits)


@pytest.mark.parametrize("commit_every_ms", [1_000, 10_000])
def test_a_constant_noisy_lag_is_not_slow(commit_every_ms: int) -> None:
    topic = Sampled(rate=1.0)
    random = np.random.default_rng(1)
    times = [n * commit_every_ms + 10 for n in range(1, 120)]
    commits = [(time, topic.head(time) - 40_000 - int(random.integers(-450, 450))) for time in times]
    reasons = verdicts_over(topic, commits)
    assert Reason.FALLING_BEHIND not in reasons
    assert Reason.LAG_STEADY in reasons


@pytest.mark.parametrize("commit_every_ms", [1_000, 5_000, 10_000])
def test_a_slow_rise_within_the_noise_of_a_window_is_told_over_several(commit_every_ms: int) -> None:
    topic = Sampled(rate=1.0)
    random = np.random.default_rng(2)
    # 1 % too slow: a window's rise is less than its noise allows to tell.
    times = [n * commit_every_ms + 10 for n in range(1, 400_000 // commit_every_ms)]
    commits = [(time, int(0.99 * time) - 20_000 - int(random.integers(0, 100))) for time in times]
    commits = [(time, max(offset, 0)) for time, offset in commits if time > 30_000]
    reasons = verdicts_over(topic, commits)
    assert reasons[0] != Reason.FALLING_BEHIND
    first = reasons.index(Reason.FALLING_BEHIND)
    assert set(reasons[first:]) == {Reason.FALLING_BEHIND}


def test_a_lag_that_stays_where_it_rose_to_is_steady_again() -> None:
    topic = Sampled(rate=1.0)
    # Behind by 20 s, then for good by 24 s: the step is a rise, but it does not go on.
    commits = [(t, t - (20_000 if t < 200_000 else 24_000)) for t in range(30_010, 3_000_000, 5_000)]
    reasons = verdicts_over(topic, commits)
    assert Reason.FALLING_BEHIND in reasons
    assert set(reasons[-100:]) == {Reason.LAG_STEADY}


def test_the_low_bound_decides_whether_the_lag_was_zero() -> None:
    bounds = [(3, 40)] * 10
    slow = Case(lags=range(10, 20), spread=bounds, current_lag=50)
    assert verdict(slow)[1] == Reason.FALLING_BEHIND
    assert verdict(replace(slow, spread=[*bounds[:4], (0, 40), *bounds[5:]]))[1] == Reason.WAS_CAUGHT_UP


def test_a_fall_beyond_the_noise_begins_the_rise_anew() -> None:
    wide = [(1, 101)] * 10  # a tolerance of 10
    falling = Case(lags=(50, 60, 70, 40, 41, 42, 43, 44, 45, 46), spread=wide, current_lag=50, trend_floor=20)
    verdicts = judged([falling])
    assert (int(verdicts.reason[0]), int(verdicts.trend_floor[0])) == (Reason.LAG_FELL, 40)


def test_being_caught_up_forgets_where_the_rise_began() -> None:
    before = Case(lags=(7,) * 10, trend_floor=3)
    assert judged([before]).trend_floor.tolist() == [3]
    for caught_up in (replace(before, current_lag=0), replace(before, lags=(0, *[7] * 9))):
        assert judged([caught_up]).trend_floor.tolist() == [UNKNOWN]

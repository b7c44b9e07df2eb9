"""The reason of a verdict in words, made when it is read from its rung of the ladder and the partition's numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from warren.domain.rules import Reason


@dataclass(frozen=True, slots=True)
class Facts:
    """The numbers that a reason is explained with: a window (oldest first, unknown lags None) and its context."""

    offsets: Sequence[int]
    times_ms: Sequence[int]
    lags: Sequence[int | None]
    current_lag: int | None
    now_ms: int
    intervals: int
    minimum_complete: float = 0.0
    allowed_lag: int = 0
    trend_floor: int | None = None

    @property
    def known_lags(self) -> list[int]:
        """The lags of the window that are known."""
        return [lag for lag in self.lags if lag is not None]

    @property
    def lag(self) -> str:
        """The current lag as text."""
        return "unknown" if self.current_lag is None else f"{self.current_lag:,}"

    @property
    def allowed(self) -> str:
        """What a lag within `allowed-lag` is."""
        return "0" if self.allowed_lag == 0 else f"within the allowed {self.allowed_lag:,}"

    @property
    def span(self) -> str:
        """The time between the first and the last commit of the window."""
        return format_duration(self.times_ms[-1] - self.times_ms[0])


def explain(reason: Reason, facts: Facts) -> str:
    """One sentence that names the rule and the numbers that decided."""
    if not _is_explained_by_window(reason, facts):
        return f"{_EARLIER[reason]}; commits have come or gone since, which are not judged yet; lag {facts.lag}"
    return _WORDS[reason](facts)


def format_duration(milliseconds: int) -> str:
    """A duration as people say it: 45 s, 12 min, 3 h 20 min, 5 d 2 h."""
    seconds = max(milliseconds, 0) // 1000
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def _is_explained_by_window(reason: Reason, facts: Facts) -> bool:
    """Whether the window still shows the reason: windows of a cluster that is not judged change without a verdict."""
    if reason == Reason.REWOUND:
        return any(after < before for before, after in pairwise(facts.offsets))
    if reason in (Reason.LAG_FELL, Reason.FALLING_BEHIND, Reason.LAG_STEADY):
        return bool(facts.known_lags)
    return reason not in _EARLIER or len(facts.offsets) > 0


def _no_commits(facts: Facts) -> str:
    if facts.current_lag is not None:
        return f"no commit seen yet; lag {facts.lag} by the offset the broker holds"
    return "no commit seen yet"


def _incomplete(facts: Facts) -> str:
    return (
        f"{len(facts.offsets)} of {facts.intervals} commits in the window, "
        f"less than minimum-complete {facts.minimum_complete:g}"
    )


def _caught_up(facts: Facts) -> str:
    return f"caught up: lag is {facts.lag}" if facts.current_lag == 0 else f"lag {facts.lag} is {facts.allowed}"


def _stopped(facts: Facts) -> str:
    return (
        f"no commit for {format_duration(facts.now_ms - facts.times_ms[-1])}, longer than the "
        f"{facts.span} its last {len(facts.offsets)} commits took; lag {facts.lag}"
    )


def _rewound(facts: Facts) -> str:
    offsets = facts.offsets
    fell = next(i for i in range(1, len(offsets)) if offsets[i] < offsets[i - 1])
    return (
        f"the committed offset went back from {offsets[fell - 1]:,} to {offsets[fell]:,} "
        f"and has reached only {max(offsets[fell:]):,} since; lag {facts.lag}"
    )


def _too_little_known(facts: Facts) -> str:
    known, commits = len(facts.known_lags), len(facts.offsets)
    return f"too little is known yet: {known} of {commits} commits with a known lag; lag now {facts.lag}"


def _stalled(facts: Facts) -> str:
    return f"{len(facts.offsets)} commits in {facts.span}, all at offset {facts.offsets[-1]:,}; lag {facts.lag}"


def _lag_fell(facts: Facts) -> str:
    first, last = facts.known_lags[0], facts.known_lags[-1]
    return f"lag went down within the window ({first:,} first, {last:,} last); now {facts.lag}"


def _falling_behind(facts: Facts) -> str:
    known = facts.known_lags
    low = known[0] if facts.trend_floor is None else min(facts.trend_floor, known[0])
    if low == known[-1]:
        return f"lag has stayed at {low:,} over {len(known)} commits in {facts.span}, never less"
    return f"falling behind: lag rose from {low:,} to {known[-1]:,} and never went down; now {facts.lag}"


def _lag_steady(facts: Facts) -> str:
    return f"keeps pace: lag {facts.known_lags[-1]:,}, no rise beyond what sampling can tell; now {facts.lag}"


_WORDS: dict[Reason, Callable[[Facts], str]] = {
    Reason.NOT_JUDGED: lambda _: "not judged yet: the offsets topic is still being read",
    Reason.NO_COMMITS: _no_commits,
    Reason.INCOMPLETE: _incomplete,
    Reason.NO_HEAD: lambda _: "the head of this partition is not known yet",
    Reason.CAUGHT_UP: _caught_up,
    Reason.STOPPED: _stopped,
    Reason.REWOUND: _rewound,
    Reason.TOO_LITTLE_KNOWN: _too_little_known,
    Reason.WAS_CAUGHT_UP: lambda facts: (
        f"lag was {facts.allowed} at some commit of the last {facts.span}; now {facts.lag}"
    ),
    Reason.STALLED: _stalled,
    Reason.LAG_FELL: _lag_fell,
    Reason.FALLING_BEHIND: _falling_behind,
    Reason.LAG_STEADY: _lag_steady,
    Reason.TAIL_IN_DOUBT: lambda facts: (
        f"lag {facts.lag} may be transaction markers alone: the tail of the partition is being read"
    ),
}
_EARLIER = {
    Reason.STOPPED: "had stopped when last judged",
    Reason.REWOUND: "had gone back when last judged",
    Reason.WAS_CAUGHT_UP: "had been caught up when last judged",
    Reason.STALLED: "had stalled when last judged",
    Reason.LAG_FELL: "its lag went down when last judged",
    Reason.FALLING_BEHIND: "was falling behind when last judged",
    Reason.LAG_STEADY: "kept pace when last judged",
}

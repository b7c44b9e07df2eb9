"""The reason of a verdict in words, made when it is read from its rung of the ladder and the partition's numbers."""

from collections.abc import Sequence
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
    head_age_ms: int | None = None
    """How old the head is, if it could not be sampled since."""

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
        words = f"{_EARLIER[reason]}; commits have come or gone since, which are not judged yet; lag {facts.lag}"
    else:
        words = _in_words(reason, facts)
    if facts.head_age_ms is None:
        return words
    return f"{words}; the head is of {format_duration(facts.head_age_ms)} ago: no leader has answered since"


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


def _in_words(reason: Reason, facts: Facts) -> str:
    offsets, known, lag = facts.offsets, facts.known_lags, facts.lag
    match reason:
        case Reason.NOT_JUDGED:
            return "not judged yet: the offsets topic is still being read"
        case Reason.NO_COMMITS:
            by_broker = "" if facts.current_lag is None else f"; lag {lag} by the offset the broker holds"
            return f"no commit seen yet{by_broker}"
        case Reason.INCOMPLETE:
            filled = f"{len(offsets)} of {facts.intervals} commits in the window"
            return f"{filled}, less than minimum-complete {facts.minimum_complete:g}"
        case Reason.NO_HEAD:
            return "the head of this partition is not known yet"
        case Reason.CAUGHT_UP:
            return f"caught up: lag is {lag}" if facts.current_lag == 0 else f"lag {lag} is {facts.allowed}"
        case Reason.STOPPED:
            silence = format_duration(facts.now_ms - facts.times_ms[-1])
            return (
                f"no commit for {silence}, longer than the {facts.span} its last {len(offsets)} commits took; lag {lag}"
            )
        case Reason.REWOUND:
            fell = next(i for i in range(1, len(offsets)) if offsets[i] < offsets[i - 1])
            moved = f"from {offsets[fell - 1]:,} to {offsets[fell]:,}"
            return (
                f"the committed offset went back {moved} and has reached only {max(offsets[fell:]):,} since; lag {lag}"
            )
        case Reason.TOO_LITTLE_KNOWN:
            known_share = f"{len(known)} of {len(offsets)} commits with a known lag"
            return f"too little is known yet: {known_share}; lag now {lag}"
        case Reason.WAS_CAUGHT_UP:
            return f"lag was {facts.allowed} at some commit of the last {facts.span}; now {lag}"
        case Reason.STALLED:
            return f"{len(offsets)} commits in {facts.span}, all at offset {offsets[-1]:,}; lag {lag}"
        case Reason.LAG_FELL:
            return f"lag went down within the window ({known[0]:,} first, {known[-1]:,} last); now {lag}"
        case Reason.FALLING_BEHIND:
            low = known[0] if facts.trend_floor is None else min(facts.trend_floor, known[0])
            if low == known[-1]:
                return f"lag has stayed at {low:,} over {len(known)} commits in {facts.span}, never less"
            return f"falling behind: lag rose from {low:,} to {known[-1]:,} and never went down; now {lag}"
        case Reason.LAG_STEADY:
            return f"keeps pace: lag {known[-1]:,}, no rise beyond what sampling can tell; now {lag}"
        case Reason.SILENT:
            return f"no commit since Warren has watched it; lag {lag} by the offset the broker holds"
        case Reason.TAIL_IN_DOUBT:
            return f"lag {lag} may be transaction markers alone: the tail of the partition is being read"


_EARLIER = {
    Reason.STOPPED: "had stopped when last judged",
    Reason.REWOUND: "had gone back when last judged",
    Reason.WAS_CAUGHT_UP: "had been caught up when last judged",
    Reason.STALLED: "had stalled when last judged",
    Reason.LAG_FELL: "its lag went down when last judged",
    Reason.FALLING_BEHIND: "was falling behind when last judged",
    Reason.LAG_STEADY: "kept pace when last judged",
}

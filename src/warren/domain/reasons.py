"""A verdict's reason in words; made when somebody reads it, from the rung of the ladder and the partition's numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from warren.domain.rules import Reason


@dataclass(frozen=True, slots=True)
class Facts:
    """The numbers a reason is told with: a window (oldest first, unknown lags None) and what stood beside it."""

    offsets: Sequence[int]
    times_ms: Sequence[int]
    lags: Sequence[int | None]
    current_lag: int | None
    now_ms: int
    intervals: int
    minimum_complete: float = 0.0
    allowed_lag: int = 0
    trend_floor: int | None = None


def explain(reason: Reason, facts: Facts) -> str:
    """One sentence that names the rule and the numbers it was decided on."""
    if not _bears_out(reason, facts):
        return f"{_EARLIER[reason]}; commits have come or gone since, which are not judged yet; lag {_lag(facts)}"
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


def _bears_out(reason: Reason, facts: Facts) -> bool:
    """Whether the window can still tell the reason: that of a cluster which is away or read anew moves on unjudged."""
    if reason == Reason.REWOUND:
        return any(after < before for before, after in pairwise(facts.offsets))
    if reason in (Reason.LAG_FELL, Reason.FALLING_BEHIND, Reason.LAG_STEADY):
        return any(lag is not None for lag in facts.lags)
    return reason not in _EARLIER or len(facts.offsets) > 0


def _lag(facts: Facts) -> str:
    return "unknown" if facts.current_lag is None else f"{facts.current_lag:,}"


def _known(facts: Facts) -> list[int]:
    return [lag for lag in facts.lags if lag is not None]


def _allowed(facts: Facts) -> str:
    return "0" if facts.allowed_lag == 0 else f"within the allowed {facts.allowed_lag:,}"


def _span_ms(facts: Facts) -> int:
    return facts.times_ms[-1] - facts.times_ms[0]


def _not_judged(_: Facts) -> str:
    return "not judged yet: the offsets topic is still being read"


def _no_commits(facts: Facts) -> str:
    if facts.current_lag is not None:
        return f"no commit seen yet; lag {_lag(facts)} by the offset the broker holds"
    return "no commit seen yet"


def _incomplete(facts: Facts) -> str:
    return (
        f"{len(facts.offsets)} of {facts.intervals} commits in the window, "
        f"less than minimum-complete {facts.minimum_complete:g}"
    )


def _no_head(_: Facts) -> str:
    return "the head of this partition is not known yet"


def _caught_up(facts: Facts) -> str:
    return f"caught up: lag is {_lag(facts)}" if facts.current_lag == 0 else f"lag {_lag(facts)} is {_allowed(facts)}"


def _stopped(facts: Facts) -> str:
    return (
        f"no commit for {format_duration(facts.now_ms - facts.times_ms[-1])}, longer than the "
        f"{format_duration(_span_ms(facts))} its last {len(facts.offsets)} commits took; lag {_lag(facts)}"
    )


def _rewound(facts: Facts) -> str:
    offsets = facts.offsets
    fell = next(i for i in range(1, len(offsets)) if offsets[i] < offsets[i - 1])
    return (
        f"the committed offset went back from {offsets[fell - 1]:,} to {offsets[fell]:,} "
        f"and has reached only {max(offsets[fell:]):,} since; lag {_lag(facts)}"
    )


def _too_little_known(facts: Facts) -> str:
    known = len(_known(facts))
    return f"too little is known yet: {known} of {len(facts.offsets)} commits with a known lag; lag now {_lag(facts)}"


def _was_caught_up(facts: Facts) -> str:
    return f"lag was {_allowed(facts)} at some commit of the last {format_duration(_span_ms(facts))}; now {_lag(facts)}"


def _stalled(facts: Facts) -> str:
    return (
        f"{len(facts.offsets)} commits in {format_duration(_span_ms(facts))}, all at offset {facts.offsets[-1]:,}; "
        f"lag {_lag(facts)}"
    )


def _lag_fell(facts: Facts) -> str:
    known = _known(facts)
    return f"lag went down within the window ({known[0]:,} first, {known[-1]:,} last); now {_lag(facts)}"


def _falling_behind(facts: Facts) -> str:
    known = _known(facts)
    low = known[0] if facts.trend_floor is None else min(facts.trend_floor, known[0])
    if low == known[-1]:
        return f"lag has stayed at {low:,} over {len(known)} commits in {format_duration(_span_ms(facts))}, never less"
    return f"falling behind: lag rose from {low:,} to {known[-1]:,} and never went down; now {_lag(facts)}"


def _tail_in_doubt(facts: Facts) -> str:
    return f"lag {_lag(facts)} may be nothing but markers of transactions: its tail is being looked at"


def _lag_steady(facts: Facts) -> str:
    known = _known(facts)
    return f"keeps pace: lag {known[-1]:,}, no rise beyond what sampling can tell; now {_lag(facts)}"


_WORDS = {
    Reason.NOT_JUDGED: _not_judged,
    Reason.NO_COMMITS: _no_commits,
    Reason.INCOMPLETE: _incomplete,
    Reason.NO_HEAD: _no_head,
    Reason.CAUGHT_UP: _caught_up,
    Reason.STOPPED: _stopped,
    Reason.REWOUND: _rewound,
    Reason.TOO_LITTLE_KNOWN: _too_little_known,
    Reason.WAS_CAUGHT_UP: _was_caught_up,
    Reason.STALLED: _stalled,
    Reason.LAG_FELL: _lag_fell,
    Reason.FALLING_BEHIND: _falling_behind,
    Reason.LAG_STEADY: _lag_steady,
    Reason.TAIL_IN_DOUBT: _tail_in_doubt,
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

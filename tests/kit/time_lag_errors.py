"""What Warren says of lag in time against the truth: how far off it is, and how far off it says it may be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.kit.timed_groups import TimedGroup, TimedLog
from tests.kit.warrens import Seen
from warren.domain.time_lag import TimeLagMethod

CLUSTER = "local"
CLOCK_MS = 2
"""Times are in whole milliseconds, those of the broker, of Warren and of the test."""
_LAST_SAMPLE = -1


@dataclass(frozen=True)
class Answer:
    """What one snapshot says of one group, how far that is off, and how far it may be."""

    group: TimedGroup
    now_ms: int
    method: TimeLagMethod
    seconds_behind: float
    error_s: float
    """How far off it is; with AT_LEAST how far it is below the truth."""
    bound_s: float
    """How far off it may be by its own account; infinite with AT_LEAST and UNKNOWN."""
    true_s: float

    @property
    def since_ms(self) -> int:
        """Since when the first unread message has been there, as Warren says."""
        return round(self.now_ms - self.seconds_behind * 1000)

    @property
    def is_wrong(self) -> bool:
        """Whether it is further off than it may be."""
        return not -CLOCK_MS / 1000 <= self.error_s <= self.bound_s + CLOCK_MS / 1000

    def __str__(self) -> str:
        return (
            f"{self.group.name} at {self.now_ms}: {self.seconds_behind:.3f} s by {self.method.name}, in truth "
            f"{self.true_s:.3f} s, may be off by {self.bound_s:.3f} s"
        )


def answers(snapshots: Iterable[Seen], groups: Sequence[TimedGroup], noticed_ms: int) -> list[Answer]:
    """All that snapshots say of groups, compared with the truth.

    What they say of a topic that was created again counts after the time that Warren may take to notice it.
    """
    found = []
    for seen in snapshots:
        now_ms, sampled_ms = seen.manifest.now_ms, seen.manifest.heads[_LAST_SAMPLE].taken_ms[CLUSTER][0]
        for group in groups:
            log = group.log_at(now_ms, noticed_ms)
            row = seen.partitions.get((CLUSTER, group.name, group.name, 0))
            if log is not None and row is not None:
                found.append(_answer(group, log, row, now_ms, sampled_ms))
    return found


def _answer(group: TimedGroup, log: TimedLog, row: dict[str, Any], now_ms: int, sampled_ms: int) -> Answer:
    method, said_s = TimeLagMethod(row["behind_method"]), row["seconds_behind"]
    least_s, most_s = _true_seconds(log, row["committed_offset"], method, now_ms)
    true_s = min(max(said_s, least_s), most_s)
    error_s, bound_s = abs(said_s - true_s), row["unread_error_ms"] / 1000
    if method == TimeLagMethod.AT_LEAST:
        error_s, bound_s, true_s = most_s - said_s, np.inf, most_s
    elif method == TimeLagMethod.CAUGHT_UP:
        # Nothing was unread when the heads were sampled.
        bound_s = (now_ms - sampled_ms) / 1000
    elif method == TimeLagMethod.UNKNOWN:
        error_s, bound_s = 0.0, np.inf
    return Answer(group, now_ms, method, said_s, error_s, bound_s, true_s)


def _true_seconds(log: TimedLog, offset: int, method: TimeLagMethod, now_ms: int) -> tuple[float, float]:
    """How long the message at an offset has been there at least and at most; by its timestamp if that is the method."""
    if offset >= log.head:
        return 0.0, 0.0
    from_ms, until_ms = log.appended_ms[offset]
    if method == TimeLagMethod.RECORD_TIME:
        from_ms = until_ms = log.record_ms[offset]
    elif method == TimeLagMethod.AT_LEAST:
        from_ms = min(from_ms, log.record_ms[offset])
    return max(now_ms - until_ms, 0) / 1000, max(now_ms - from_ms, 0) / 1000


def to_table(measured: Iterable[Answer], trigger_s: float) -> str:
    """The errors by scenario, kind of timestamps and method, as a table in Markdown.

    Answers by the head history for times at which Warren did not sample, as it was starting or down, are rows of their
    own.
    """
    by_row: dict[tuple[str, str, str], list[Answer]] = {}
    for answer in measured:
        method = f"`{answer.method.name.lower()}`"
        if answer.method == TimeLagMethod.HEAD_HISTORY and answer.bound_s > 1.5 * trigger_s:
            method += ", not sampled"
        by_row.setdefault((answer.group.scenario, answer.group.timestamps, method), []).append(answer)
    lines = [
        "| group | timestamps | method | answers | error p50 | p99 | largest | may be off by at most |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (scenario, timestamps, method), own in by_row.items():
        errors = np.array([answer.error_s for answer in own])
        p50, p99 = np.quantile(errors, [0.5, 0.99])
        bound = max(answer.bound_s for answer in own)
        stated = f"{bound:.2f} s" if np.isfinite(bound) else ""
        numbers = f"{len(own)} | {p50:.2f} s | {p99:.2f} s | {errors.max():.2f} s | {stated}"
        lines.append(f"| {scenario} | {timestamps} | {method} | {numbers} |")
    return "\n".join(lines)

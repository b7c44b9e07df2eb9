"""`warren evaluate`: judges windows from a JSON-lines file, with the same code that judges the clusters."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from warren.domain.reasons import Facts, explain
from warren.domain.rules import Evidence, Limits, Reason, judge
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, empty

CHUNK_LINES = 20_000
MAX_CELLS = 1_000_000
"""How many slots are judged together; limits the memory that windows with many intervals need."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """The values of keys that a line does not have."""

    now_ms: int | None = None
    intervals: int = 10
    minimum_complete: float = 0.0
    allowed_lag: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One line: a window with its current lag, time and limits."""

    facts: Facts
    recent_heads: tuple[int, ...]


class BadLineError(ValueError):
    """A line that cannot be judged, and why."""


def evaluate_file(path: str, defaults: Defaults, out: TextIO | None = None, errors: TextIO | None = None) -> int:
    """Judge every line of a file (- for standard input); returns 1 if the file or a line could not be read, else 0."""
    out, errors = out or sys.stdout, errors or sys.stderr
    now_ms = defaults.now_ms if defaults.now_ms is not None else time.time_ns() // 1_000_000
    try:
        opened = contextlib.nullcontext(sys.stdin) if path == "-" else _open(path)
    except OSError as error:
        errors.write(f"cannot read {path}: {error.strerror}\n")
        return 1
    with opened as lines:
        return evaluate_lines(lines, defaults, now_ms, out.write, errors.write)


def evaluate_lines(
    lines: Iterable[str],
    defaults: Defaults,
    now_ms: int,
    out: Callable[[str], Any],
    errors: Callable[[str], Any],
) -> int:
    """Judge lines in chunks; results come in the order of the lines, bad lines are reported by number."""
    code = 0
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while chunk := list(islice(numbered, CHUNK_LINES)):
        cases: list[Case] = []
        for number, line in chunk:
            try:
                cases.append(parse(line, defaults, now_ms))
            except BadLineError as error:
                errors(f"line {number}: {error}\n")
                code = 1
        for verdict in judge_cases(cases):
            out(json.dumps(verdict) + "\n")
    return code


def parse(line: str, defaults: Defaults, now_ms: int) -> Case:
    """A line as a case; unknown keys are ignored, anything else that is wrong raises BadLineError."""
    try:
        raw = json.loads(line)
    except ValueError as error:
        raise BadLineError(f"not JSON: {error}") from None
    except RecursionError:
        raise BadLineError("not JSON that can be read: nested too deeply") from None
    if not isinstance(raw, dict):
        raise BadLineError("not a JSON object")
    offsets, times = _numbers(raw, "offsets"), _numbers(raw, "times_ms")
    lags = _numbers(raw, "lags", may_be_null=True)
    if not len(offsets) == len(times) == len(lags):
        raise BadLineError(f"offsets, times_ms and lags differ in length: {len(offsets)}, {len(times)}, {len(lags)}")
    intervals = _integer(raw, "intervals", defaults.intervals, 1)
    current = raw.get("current_lag")
    facts = Facts(
        offsets=offsets[-intervals:],
        times_ms=times[-intervals:],
        lags=lags[-intervals:],
        current_lag=None if current is None else _integer(raw, "current_lag", 0, 0),
        now_ms=_integer(raw, "now_ms", now_ms, None),
        intervals=intervals,
        minimum_complete=_share(raw, defaults.minimum_complete),
        allowed_lag=_integer(raw, "allowed_lag", defaults.allowed_lag, 0),
    )
    return Case(facts, tuple(_numbers(raw, "recent_heads") if raw.get("recent_heads") is not None else ()))


def judge_cases(cases: list[Case]) -> Iterator[dict[str, object]]:
    """Verdicts in the order of the cases; cases with the same limits are judged together."""
    by_limits: dict[tuple[int, float, int], list[int]] = {}
    for index, case in enumerate(cases):
        facts = case.facts
        by_limits.setdefault((facts.intervals, facts.minimum_complete, facts.allowed_lag), []).append(index)
    verdicts: list[dict[str, object]] = [{} for _ in cases]
    for (intervals, minimum_complete, allowed_lag), indices in by_limits.items():
        size = max(MAX_CELLS // intervals, 1)
        for start in range(0, len(indices), size):
            some = indices[start : start + size]
            judged = _judge_alike([cases[index] for index in some], intervals, Limits(minimum_complete, allowed_lag))
            for index, verdict in zip(some, judged, strict=True):
                verdicts[index] = verdict
    yield from verdicts


def _judge_alike(cases: list[Case], intervals: int, limits: Limits) -> Iterator[dict[str, object]]:
    windows = empty(len(cases), intervals)
    evidence = Evidence(
        current_lag=np.full(len(cases), UNKNOWN, dtype=np.int64),
        recent_head=np.full(len(cases), UNKNOWN, dtype=np.int64),
        is_recent_complete=np.ones(len(cases), dtype=np.bool_),
        is_tail_verified=np.ones(len(cases), dtype=np.bool_),
        trend_floor=np.full(len(cases), UNKNOWN, dtype=np.float64),
    )
    now_ms = np.zeros(len(cases), dtype=np.int64)
    for row, case in enumerate(cases):
        facts = case.facts
        now_ms[row] = facts.now_ms
        windows.count[row] = count = len(facts.offsets)
        first = intervals - count
        windows.offset[row, first:] = facts.offsets
        windows.time_ms[row, first:] = facts.times_ms
        windows.order[row, first:] = range(count)
        for lags in (windows.lag, windows.lag_low, windows.lag_high):
            lags[row, first:] = [UNKNOWN if lag is None else lag for lag in facts.lags]
        evidence.current_lag[row] = UNKNOWN if facts.current_lag is None else facts.current_lag
        evidence.recent_head[row] = min(case.recent_heads, default=UNKNOWN)
    verdicts = judge(windows, evidence, now_ms, limits)
    for row, case in enumerate(cases):
        yield {
            "status": Status(int(verdicts.status[row])).name,
            "complete": round(float(verdicts.complete[row]), 6),
            "reason": explain(Reason(int(verdicts.reason[row])), case.facts),
        }


def _numbers(raw: dict[str, Any], key: str, *, may_be_null: bool = False) -> list[Any]:
    values = raw.get(key)
    if not isinstance(values, list):
        raise BadLineError(f"{key} must be a list of numbers, not {values!r}"[:200])
    for value in values:
        is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
        if not (is_whole or (may_be_null and value is None)):
            raise BadLineError(f"{key} holds {value!r}: a whole number from 0 is allowed" + " or null" * may_be_null)
    return values


def _integer(raw: dict[str, Any], key: str, default: int, minimum: int | None) -> int:
    value = raw.get(key, default)
    is_too_small = minimum is not None and isinstance(value, int) and value < minimum
    if not isinstance(value, int) or isinstance(value, bool) or is_too_small or abs(value) >= 2**62:
        raise BadLineError(
            f"{key} is {value!r}: a whole number" + (f" from {minimum}" if minimum is not None else "") + " is allowed"
        )
    if key == "intervals" and value > 10_000:
        raise BadLineError(f"intervals is {value}: at most 10000 is allowed")
    return value


def _share(raw: dict[str, Any], default: float) -> float:
    value = raw.get("minimum_complete", default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise BadLineError(f"minimum_complete is {value!r}: a number from 0 to 1 is allowed")
    return float(value)


def _open(path: str) -> TextIO:
    return Path(path).open(encoding="utf-8-sig", errors="replace")

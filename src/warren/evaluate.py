"""`warren evaluate`: judge windows from a JSON-lines file with the very code that judges the clusters."""

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

CHUNK = 20_000
CELLS = 1_000_000
"""Slots that are judged together; bounds the memory that lines with many intervals take."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a line may leave out."""

    now_ms: int | None = None
    intervals: int = 10
    minimum_complete: float = 0.0
    allowed_lag: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One line: a window and what stood beside it."""

    facts: Facts
    recent_heads: tuple[int, ...]


class BadLine(ValueError):  # noqa: N818 - reads as what it is
    """A line that cannot be judged, and why."""


def evaluate_file(path: str, defaults: Defaults, out: TextIO | None = None, errors: TextIO | None = None) -> int:
    """Judge every line of a file (- for standard input); 1 if a line or the file could not be read, else 0."""
    out, errors = out or sys.stdout, errors or sys.stderr
    now_ms = defaults.now_ms if defaults.now_ms is not None else time.time_ns() // 1_000_000
    try:
        opened = _keep_open(sys.stdin) if path == "-" else _open(path)
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
    """Judge lines in chunks, answers in the order of the lines, bad ones reported by number."""
    code = 0
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while chunk := list(islice(numbered, CHUNK)):
        cases: list[Case] = []
        for number, line in chunk:
            try:
                cases.append(parse(line, defaults, now_ms))
            except BadLine as error:
                errors(f"line {number}: {error}\n")
                code = 1
        for answer in judge_cases(cases):
            out(json.dumps(answer) + "\n")
    return code


def parse(line: str, defaults: Defaults, now_ms: int) -> Case:
    """A line as a case; unknown keys are ignored, anything else that is wrong is a BadLine."""
    try:
        raw = json.loads(line)
    except ValueError as error:
        raise BadLine(f"not JSON: {error}") from None
    except RecursionError:
        raise BadLine("not JSON that can be read: nested too deeply") from None
    if not isinstance(raw, dict):
        raise BadLine("not a JSON object")
    offsets, times = _numbers(raw, "offsets"), _numbers(raw, "times_ms")
    lags = _numbers(raw, "lags", may_be_null=True)
    if not len(offsets) == len(times) == len(lags):
        raise BadLine(f"offsets, times_ms and lags differ in length: {len(offsets)}, {len(times)}, {len(lags)}")
    intervals = _number(raw, "intervals", defaults.intervals, 1)
    current = raw.get("current_lag")
    facts = Facts(
        offsets=offsets[-intervals:],
        times_ms=times[-intervals:],
        lags=lags[-intervals:],
        current_lag=None if current is None else _number(raw, "current_lag", 0, 0),
        now_ms=_number(raw, "now_ms", now_ms, None),
        intervals=intervals,
        minimum_complete=_share(raw, defaults.minimum_complete),
        allowed_lag=_number(raw, "allowed_lag", defaults.allowed_lag, 0),
    )
    return Case(facts, tuple(_numbers(raw, "recent_heads") if raw.get("recent_heads") is not None else ()))


def judge_cases(cases: list[Case]) -> Iterator[dict[str, object]]:
    """Verdicts in the order of the cases; cases with the same limits are judged together."""
    answers: list[dict[str, object]] = [{} for _ in cases]
    alike: dict[tuple[int, float, int], list[int]] = {}
    for place, case in enumerate(cases):
        facts = case.facts
        alike.setdefault((facts.intervals, facts.minimum_complete, facts.allowed_lag), []).append(place)
    together = [
        (limits, places[start : start + max(CELLS // limits[0], 1)])
        for limits, places in alike.items()
        for start in range(0, len(places), max(CELLS // limits[0], 1))
    ]
    for (intervals, minimum_complete, allowed_lag), places in together:
        windows = empty(len(places), intervals)
        evidence = Evidence(
            current_lag=np.full(len(places), UNKNOWN, dtype=np.int64),
            recent_head=np.full(len(places), UNKNOWN, dtype=np.int64),
            is_recent_whole=np.ones(len(places), dtype=np.bool_),
            trend_floor=np.full(len(places), UNKNOWN, dtype=np.float64),
        )
        now_ms = np.zeros(len(places), dtype=np.int64)
        for row, place in enumerate(places):
            facts = cases[place].facts
            now_ms[row] = facts.now_ms
            windows.count[row] = count = len(facts.offsets)
            if count:
                lags = [UNKNOWN if lag is None else lag for lag in facts.lags]
                columns = (facts.offsets, facts.times_ms, range(count), lags, lags, lags)
                matrices = (
                    windows.offset,
                    windows.time_ms,
                    windows.order,
                    windows.lag,
                    windows.lag_low,
                    windows.lag_high,
                )
                for matrix, column in zip(matrices, columns, strict=True):
                    matrix[row, intervals - count :] = list(column)
            evidence.current_lag[row] = UNKNOWN if facts.current_lag is None else facts.current_lag
            evidence.recent_head[row] = min(cases[place].recent_heads, default=UNKNOWN)
        verdicts = judge(windows, evidence, now_ms, Limits(minimum_complete, allowed_lag))
        for row, place in enumerate(places):
            answers[place] = {
                "status": Status(int(verdicts.status[row])).name,
                "complete": round(float(verdicts.complete[row]), 6),
                "reason": explain(Reason(int(verdicts.reason[row])), cases[place].facts),
            }
    yield from answers


def _numbers(raw: dict[str, Any], key: str, *, may_be_null: bool = False) -> list[Any]:
    values = raw.get(key)
    if not isinstance(values, list):
        raise BadLine(f"{key} must be a list of numbers, not {values!r}"[:200])
    for value in values:
        is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
        if not (is_whole or (may_be_null and value is None)):
            raise BadLine(f"{key} holds {value!r}: a whole number from 0 is allowed" + " or null" * may_be_null)
    return values


def _number(raw: dict[str, Any], key: str, default: int, least: int | None) -> int:
    value = raw.get(key, default)
    too_small = least is not None and isinstance(value, int) and value < least
    if not isinstance(value, int) or isinstance(value, bool) or too_small or abs(value) >= 2**62:
        raise BadLine(
            f"{key} is {value!r}: a whole number" + (f" from {least}" if least is not None else "") + " is allowed"
        )
    if key == "intervals" and value > 10_000:
        raise BadLine(f"intervals is {value}: at most 10000 is allowed")
    return value


def _share(raw: dict[str, Any], default: float) -> float:
    value = raw.get("minimum_complete", default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise BadLine(f"minimum_complete is {value!r}: a number from 0 to 1 is allowed")
    return float(value)


def _open(path: str) -> TextIO:
    return Path(path).open(encoding="utf-8-sig", errors="replace")


class _keep_open:  # noqa: N801 - a context manager that reads like a function
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> TextIO:
        return self._stream

    def __exit__(self, *_: object) -> None:
        pass

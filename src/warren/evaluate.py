"""`warren evaluate`: judges windows from a JSON-lines file, with the same code that judges the clusters."""

import contextlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import numpy as np
from msgspec import Meta, structs

from warren.domain.reasons import Facts, explain
from warren.domain.rules import Evidence, Limits, Reason, judge
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, empty

CHUNK_LINES = 20_000
MAX_CELLS = 1_000_000
"""How many slots are judged together; limits the memory that windows with many intervals need."""

Whole = Annotated[int, Meta(ge=0, lt=2**62)]


class Case(msgspec.Struct):
    """One line: a window with its current lag, time and limits; unknown keys are ignored."""

    offsets: list[Whole]
    times_ms: list[Whole]
    lags: list[Whole | None]
    now_ms: Annotated[int, Meta(gt=-(2**62), lt=2**62)]
    intervals: Annotated[int, Meta(ge=1, le=10_000)]
    minimum_complete: Annotated[float, Meta(ge=0, le=1)]
    allowed_lag: Whole
    current_lag: Whole | None = None
    recent_heads: list[Whole] | None = None

    def __post_init__(self) -> None:
        lengths = [len(self.offsets), len(self.times_ms), len(self.lags)]
        if len(set(lengths)) > 1:
            raise ValueError(f"offsets, times_ms and lags differ in length: {', '.join(map(str, lengths))}")
        # Only the newest commits are in the window.
        for name in ("offsets", "times_ms", "lags"):
            setattr(self, name, getattr(self, name)[-self.intervals :])

    def facts(self) -> Facts:
        """The numbers behind the verdict."""
        numbers = structs.asdict(self)
        del numbers["recent_heads"]
        return Facts(**numbers)


def evaluate_file(path: str, defaults: Mapping[str, float | None]) -> int:
    """Judge every line of a file (- for standard input); returns 1 if the file or a line could not be read, else 0.

    Lines may leave out keys that have a default; that of `now_ms` is None for now.
    """
    if defaults["now_ms"] is None:
        defaults = {**defaults, "now_ms": time.time_ns() // 1_000_000}
    try:
        opened = contextlib.nullcontext(sys.stdin) if path == "-" else _open(path)
    except OSError as error:
        sys.stderr.write(f"cannot read {path}: {error.strerror}\n")
        return 1
    with opened as lines:
        return evaluate_lines(lines, defaults)


def evaluate_lines(lines: Iterable[str], defaults: Mapping[str, float | None]) -> int:
    """Judge lines in chunks; results come in the order of the lines, bad lines are reported by number."""
    code = 0
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while chunk := list(islice(numbered, CHUNK_LINES)):
        cases: list[Case] = []
        for number, line in chunk:
            try:
                raw = msgspec.json.decode(line, type=dict[str, Any])
                cases.append(msgspec.convert({**defaults, **raw}, Case))
            except (msgspec.DecodeError, RecursionError) as error:
                sys.stderr.write(f"line {number}: {error}\n")
                code = 1
        for verdict in judge_cases(cases):
            sys.stdout.write(json.dumps(verdict) + "\n")
    return code


def judge_cases(cases: list[Case]) -> Iterator[dict[str, object]]:
    """Verdicts in the order of the cases; cases with the same limits are judged together."""
    by_limits: dict[tuple[int, float, int], list[int]] = {}
    for index, case in enumerate(cases):
        by_limits.setdefault((case.intervals, case.minimum_complete, case.allowed_lag), []).append(index)
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
        is_silent=np.zeros(len(cases), dtype=np.bool_),
        trend_floor=np.full(len(cases), UNKNOWN, dtype=np.float64),
    )
    now_ms = np.zeros(len(cases), dtype=np.int64)
    for row, case in enumerate(cases):
        now_ms[row] = case.now_ms
        windows.count[row] = count = len(case.offsets)
        first = intervals - count
        windows.offset[row, first:] = case.offsets
        windows.time_ms[row, first:] = case.times_ms
        windows.order[row, first:] = range(count)
        for lags in (windows.lag, windows.lag_low, windows.lag_high):
            lags[row, first:] = [UNKNOWN if lag is None else lag for lag in case.lags]
        evidence.current_lag[row] = UNKNOWN if case.current_lag is None else case.current_lag
        evidence.recent_head[row] = min(case.recent_heads or (), default=UNKNOWN)
    verdicts = judge(windows, evidence, now_ms, limits)
    for row, case in enumerate(cases):
        yield {
            "status": Status(int(verdicts.status[row])).name,
            "complete": round(float(verdicts.complete[row]), 6),
            "reason": explain(Reason(int(verdicts.reason[row])), case.facts()),
        }


def _open(path: str) -> TextIO:
    return Path(path).open(encoding="utf-8-sig", errors="replace")

"""The loop of cycles: how failures are paced and logged."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.kit.plans import cluster_state, manifest, plan
from warren.app import SamplePrefetch, Warren
from warren.errors import Fenced
from warren.pipeline.engine import FlowFailed

BEHIND = manifest(plan(Path()), clusters={"c": cluster_state(is_catching_up=True)})


@dataclass
class Cycles:
    """Cycles with given outcomes, then the end."""

    outcomes: list[Callable[[], Any]]
    stop: threading.Event
    trigger_s: float = 0.2
    began: list[float] = field(default_factory=list)

    def run_once(self) -> Any:
        self.began.append(time.monotonic())
        outcome = self.outcomes.pop(0)
        if not self.outcomes:
            self.stop.set()
        return outcome()


def failing(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def run(*outcomes: Callable[[], Any]) -> list[float]:
    """Run cycles with these outcomes; gives the times between their starts."""
    stop = threading.Event()
    cycles: Any = Cycles([*outcomes, lambda: BEHIND], stop)
    prefetch = SamplePrefetch(dict)
    try:
        Warren(cycles, prefetch, (), ()).run(stop)
    finally:
        prefetch.close()
    return [after - before for before, after in zip(cycles.began, cycles.began[1:], strict=False)]


def test_what_is_behind_goes_on_at_once_but_a_failure_waits_for_the_next_trigger() -> None:
    gaps = run(lambda: BEHIND, failing(FlowFailed("no luck")), failing(FlowFailed("no luck")))
    assert gaps[0] < 0.1
    assert min(gaps[1:]) > 0.15


def test_a_failure_has_its_trace_once_and_an_expected_one_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        run(*(failing(error) for error in (ZeroDivisionError("a bug"), ZeroDivisionError("a bug"), FlowFailed("busy"))))
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, False]
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["a bug", "a bug", "busy"]


def test_an_error_of_warren_ends_it() -> None:
    with pytest.raises(Fenced):
        run(failing(Fenced("another one")))

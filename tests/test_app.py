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
from warren.app import Warren
from warren.errors import Fenced
from warren.kafka.samples import ClusterSample
from warren.pipeline.engine import FlowFailed
from warren.pipeline.sample_prefetch import SamplePrefetch

BEHIND = manifest(plan(Path()), clusters={"c": cluster_state(is_catching_up=True)})
READY = manifest(plan(Path()), clusters={"c": cluster_state()})


@dataclass
class Cycles:
    """Cycles with given outcomes, then the end."""

    outcomes: list[Callable[[], Any]]
    stop: threading.Event
    trigger_s: float = 0.2
    has_late_clusters: bool = False
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


class NoReloads:
    """Nobody asks for a reload."""

    def run_if_asked(self) -> bool:
        return False


NO_RELOADS = NoReloads()


def run(*outcomes: Callable[[], Any], reloads: Any = NO_RELOADS, has_late_clusters: bool = False) -> list[float]:
    """Run cycles with these outcomes; gives the times between their starts."""
    stop = threading.Event()
    cycles: Any = Cycles([*outcomes, lambda: BEHIND], stop, has_late_clusters=has_late_clusters)
    prefetch = SamplePrefetch(ClusterSample, list)
    try:
        Warren(cycles, prefetch, (), (), reloads).run(stop)
    finally:
        prefetch.close()
    return [after - before for before, after in zip(cycles.began, cycles.began[1:], strict=False)]


def test_what_is_behind_goes_on_at_once_but_a_failure_waits_for_the_next_trigger() -> None:
    gaps = run(lambda: BEHIND, failing(FlowFailed("no luck")), failing(FlowFailed("no luck")))
    assert gaps[0] < 0.1
    assert min(gaps[1:]) > 0.15


def test_what_is_behind_only_in_clusters_that_are_still_being_read_waits_for_the_next_trigger() -> None:
    assert min(run(lambda: BEHIND, lambda: BEHIND, has_late_clusters=True)) > 0.15


def test_a_failure_has_its_trace_once_and_an_expected_one_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        run(*(failing(error) for error in (ZeroDivisionError("a bug"), ZeroDivisionError("a bug"), FlowFailed("busy"))))
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, False]
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["a bug", "a bug", "busy"]


def test_an_error_of_warren_ends_it() -> None:
    with pytest.raises(Fenced):
        run(failing(Fenced("another one")))


def test_a_reload_waits_for_the_cycle_under_way_and_a_shorter_trigger_counts_at_once() -> None:
    events: list[str] = []

    def cycle() -> Any:
        events.append("cycle")
        return READY

    cycles = Cycles([cycle, cycle], threading.Event())
    cycles.trigger_s = 60.0

    class Reloads:
        def run_if_asked(self) -> bool:
            events.append("asked")
            if events.count("asked") < 3:
                return False
            cycles.trigger_s = 0.1
            return True

    prefetch = SamplePrefetch(ClusterSample, list)
    began = time.monotonic()
    made: Any = cycles
    reloads: Any = Reloads()
    Warren(made, prefetch, (), (), reloads).run(cycles.stop)
    prefetch.close()
    assert time.monotonic() - began < 10
    assert events[:5] == ["cycle", "asked", "asked", "asked", "cycle"]

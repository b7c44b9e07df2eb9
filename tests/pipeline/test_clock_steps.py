"""The last manifest when somebody has set the wall clock."""

from pathlib import Path

import pytest

from tests.kit.plans import cluster_state, manifest, plan
from warren.clock import ClockReading
from warren.pipeline.clock_steps import clock_step, moved

HOUR = 3_600_000


@pytest.mark.parametrize("step_ms", [HOUR, -HOUR])
def test_the_time_of_the_list_of_topics_moves_with_the_rows(tmp_path: Path, step_ms: int) -> None:
    """Else a topic that is created again in the cycle of the step would keep rows from before."""
    made = plan(tmp_path)
    clusters = {"listed": cluster_state(topics_at_ms=made.now_ms - 500), "new": cluster_state()}
    before = manifest(made, clusters=clusters, steady_ms=7_000)
    now = ClockReading(made.now_ms + 10_000 + step_ms, 17_000)
    assert clock_step(before, now) == step_ms
    after = moved(before, now, step_ms)
    assert {name: state.topics_at_ms for name, state in after.clusters.items()} == {
        "listed": made.now_ms - 500 + step_ms,
        "new": 0,
    }


def test_times_of_samples_stay_after_a_step_forward(tmp_path: Path) -> None:
    """The machine may have stood still, so the step may be a gap in which nothing was seen."""
    made = plan(tmp_path)
    before = manifest(made, clusters={"c": cluster_state(looked_at_ms=made.now_ms, unknown_since_ms=made.now_ms)})
    state = moved(before, ClockReading(made.now_ms + HOUR, 0), HOUR).clusters["c"]
    assert (state.looked_at_ms, state.unknown_since_ms) == (made.now_ms, made.now_ms)

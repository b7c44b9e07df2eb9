"""A Python worker of Spark and the sampler die, and the sampler stands still: verdicts may be late, never wrong."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.faults import environment
from tests.kit.warrens import wait_for
from tests.kit.watched import CLUSTER, TRIGGER_S, Watched, report, stopped, watched
from warren.app import SAMPLE_TIMEOUT_S
from warren.demo.broker import Kafka
from warren.pipeline.manifest_writer import ManifestWriter

pytestmark = pytest.mark.timeout(300)

NAME = "faults-processes"
IN_THE_MIDDLE = "before-groups"
"""The instant at which a task has written one of the two files of its bucket."""
STOPPED_S = SAMPLE_TIMEOUT_S + 3 * TRIGGER_S
SLACK_S = 5.0
"""What a cycle and the start of a process take on a busy machine."""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def stage(kafka: Kafka, faults: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    home = tmp_path_factory.mktemp("processes")
    with watched(kafka.bootstrap, NAME, home, environment(faults)) as running:
        began_s = time.time()
        yield running
        running.wait_right()
        running.assert_never_wrong(began_s)
    running.assert_nothing_lost()
    assert len({path.partition("/")[2][:12] for path in running.unnamed_files()}) <= 1, "only of the cycle that failed"
    # What a start does first.
    ManifestWriter(running.run.store, running.run.store.newest)
    assert running.unnamed_files() == set()
    wait_for(lambda: not running.run.left_behind(), "all processes have ended", 60)


def test_a_worker_that_dies_within_a_bucket_costs_no_verdict(stage: Watched, faults: Path) -> None:
    before = set(stage.workers())
    # Whole or not at all: the worker must not find the name without its content.
    (faults / "draft").write_text("self")
    (faults / "draft").rename(faults / IN_THE_MIDDLE)
    wait_for(lambda: not (faults / IN_THE_MIDDLE).exists(), "a worker reaches the middle of a bucket", 60)
    killed_s = time.time()
    right_s = stage.wait_right(killed_s - TRIGGER_S)
    report(f"worker killed: right {right_s - TRIGGER_S:.1f} s later, {stage.shown(killed_s - TRIGGER_S)}")
    assert before - set(stage.workers()), "no worker has died"
    assert stage.unknown_s(killed_s) == 0


def test_a_killed_sampler_is_replaced(stage: Watched) -> None:
    killed = stage.sampler()
    killed_s = time.time()
    os.kill(killed, signal.SIGKILL)
    right_s = stage.wait_right(killed_s)
    report(f"sampler killed: right {right_s:.1f} s later, {stage.shown(killed_s)}")
    assert stage.sampler() != killed
    assert stage.run.log.count("the sampler 0 ended (exit code -9); it is restarted in 1 s") == 1
    # A second until the restart, and a sample that may still wait for the one that is gone.
    assert right_s <= 1.0 + TRIGGER_S + SLACK_S


def test_a_sampler_that_stands_still_makes_the_cluster_unknown_and_is_right_when_it_goes_on(stage: Watched) -> None:
    stopped_s = time.time()
    with stopped(stage.sampler()):
        stage.run.wait_for(lambda s: s.manifest.clusters[CLUSTER].unknown_since_ms, "the cluster is unknown", 60)
        unknown_s = time.time() - stopped_s
        time.sleep(max(STOPPED_S - unknown_s, 2 * TRIGGER_S))
        continued_s = time.time()
    right_s = stage.wait_right(continued_s)
    report(
        f"sampler stopped for {continued_s - stopped_s:.1f} s: unknown after {unknown_s:.1f} s, "
        f"right {right_s:.1f} s after it went on, {stage.shown(stopped_s)}"
    )
    error = [s.manifest.clusters[CLUSTER].error for s in stage.record.since(stopped_s) if not stage.is_right(s)]
    assert set(error) == {f"no answer within {SAMPLE_TIMEOUT_S:g} s"}
    assert unknown_s <= SAMPLE_TIMEOUT_S + 2 * TRIGGER_S + SLACK_S
    assert right_s <= 2 * TRIGGER_S + SLACK_S

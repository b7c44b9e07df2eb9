"""Processes of a running Warren are killed and its files damaged: it repairs itself, and no commit is lost."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.kafka import create_timed_topics
from tests.kit.reference import Reference, assert_windows_equal, read_topic
from tests.kit.warrens import Recorder, WarrenRun, sections_for, wait_for
from warren.demo.broker import Kafka
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.topics import create_topics

pytestmark = pytest.mark.timeout(900)

TOPIC, GROUP, POINTS = "processes", "processes-group", "processes-points"
FELL_BACK = "continuing from what is intact"
JVM, WORKER, CHILD = "org.apache.spark.deploy.SparkSubmit", "pyspark.worker", "multiprocessing.spawn"


@dataclass
class Stage:
    """A Warren with a sink, under load."""

    run: WarrenRun
    record: Recorder

    def pids(self, mark: str) -> set[int]:
        """The processes of the run that have a text on their command line."""
        found = set()
        for pid in self.run.processes():
            # Processes come and go while we look.
            with contextlib.suppress(OSError):
                if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(pid)
        return found

    def kill(self, mark: str) -> set[int]:
        """Kill all processes that have a text on their command line."""
        killed = self.pids(mark)
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return killed

    def wait_until_judged(self) -> None:
        """Wait until a cycle that begins after this moment has judged the cluster."""
        began_ms = time.time() * 1000

        def is_judged_again() -> bool:
            last = self.record.seen[-1].manifest if self.record.seen else None
            return last is not None and last.now_ms > began_ms and not last.unknown_clusters()

        wait_for(is_judged_again, f"the cycles go on:\n{self.run.log[-3000:]}")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Kafka() as kafka:
        create_timed_topics(kafka.bootstrap, {TOPIC: 2})
        create_topics(kafka.bootstrap, {POINTS: 1})
        sections = sections_for({"local": kafka.bootstrap})
        sections["sink.points"] = {"class-name": "kafka", "topic": POINTS, "interval": 2}
        run = WarrenRun(tmp_path_factory.mktemp("processes"), sections)
        with (
            Producer(kafka.bootstrap, TOPIC, 50.0),
            Healthy(kafka.bootstrap, TOPIC, GROUP, commit_every_s=0.3),
            Recorder(run.data) as record,
        ):
            with run:
                run.wait_for(lambda s: s.group("local", GROUP), "the group is judged")
                yield Stage(run, record)
            reference = Reference(read_topic(kafka.bootstrap, "__consumer_offsets"))
        assert_windows_equal(record.seen, "local", reference)
        assert "a cycle failed and published nothing" not in run.log


def test_a_killed_jvm_is_replaced_and_said_once(stage: Stage) -> None:
    killed = stage.kill(JVM)
    stage.wait_until_judged()
    assert len(killed) == 1
    assert len(stage.pids(JVM) - killed) == 1
    assert stage.run.log.count("Spark's JVM has died (exit code -9); a new one is started") == 1


def test_killed_python_workers_of_spark_cost_no_commit(stage: Stage) -> None:
    for _ in range(5):
        # Spark starts them with the next query when all are gone.
        wait_for(lambda: stage.kill(WORKER), "there are workers")
        stage.wait_until_judged()


def test_every_other_process_is_restarted(stage: Stage) -> None:
    killed = stage.kill(CHILD)
    names = ("sampler 0", "web server", "sink points")
    assert len(killed) == len(names)
    wait_for(lambda: len(stage.pids(CHILD) - killed) == len(names), "all are there again")
    stage.wait_until_judged()
    for name in names:
        assert f"the {name} ended (exit code -9); it is restarted" in stage.run.log


@pytest.mark.parametrize("kind", ["partitions", "heads"])
def test_a_file_that_is_damaged_while_it_runs_is_passed_over(stage: Stage, kind: str) -> None:
    before = stage.run.log.count(FELL_BACK)
    for _ in range(10):
        manifest = stage.record.seen[-1].manifest
        path = stage.run.store.path(manifest.buckets[0].partitions if kind == "partitions" else manifest.heads[0].heads)
        path.unlink()
        path.write_bytes(b"ARROW1")
        if kind == "heads":
            # They keep the files of head samples mapped.
            stage.kill(WORKER)
        stage.wait_until_judged()
        # A cycle that had already read the file does not notice.
        if stage.run.log.count(FELL_BACK) > before:
            break
    assert stage.run.log.count(FELL_BACK) == before + 1
    assert stage.run.store.newest_whole()[1] == []

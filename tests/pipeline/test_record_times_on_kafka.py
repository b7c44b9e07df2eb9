"""The age of unread records and their waiting time on a real Kafka: backfills and mirrors, with and without reading.

Heads, timestamps and questions go between the sampler and the steps of a bucket as in a cycle; commits are by hand.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.kit.kafka import create_timed_topics
from tests.kit.plans import Commit, Rehearsal, plan
from warren.clock import read_clock
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample, SampleQuestions, SamplingTarget
from warren.pipeline.bucket_result import unread_offsets
from warren.pipeline.clock_steps import with_wall_times
from warren.pipeline.plan import PlannedCluster

DAY_MS = 86_400_000
READ, NOT_READ = "ages-read", "ages-unread"
MIRROR, APPENDED = "ages-mirror-read", "ages-appended-read"
PATIENCE_S = 30.0
Partitions = Mapping[str, Mapping[str, Any]]


class Cycles:
    """Cycles on the shared broker; every group has the name of its topic."""

    def __init__(self, folder: Path, samplers: ClusterSamplers) -> None:
        self._cycles = Rehearsal(folder, plan(folder))
        self._samplers = samplers
        self._order = 0
        self.questions: SampleQuestions = SampleQuestions()

    def run(self, committed: Mapping[str, int] = {}) -> Partitions:
        """One cycle; the partitions by topic, with the time of the cycle as `now_ms`."""
        sample = with_wall_times({"local": self._sample()}, read_clock().offset_ms)["local"]
        now_ms = sample.heads_at_ms[1]
        cycles = self._cycles
        cycles.heads.append(cycles.head_files.write(cycles.plan.sequence, ["local"], {"local": sample}))
        cycles.head_files.published()
        cluster = PlannedCluster(
            "local", is_judged=True, record_times=sample.record_times, read_records=("*-read",), topic_refresh_ms=200
        )
        cycles.plan = replace(cycles.plan, clusters=(cluster,))
        commits = []
        for topic, offset in committed.items():
            self._order += 1
            commits.append(Commit(topic, topic, 0, offset, now_ms - 1, self._order))
        rows = cycles.cycle(now_ms, commits)
        self.questions = SampleQuestions((), (), *unread_offsets(cycles.results.values()).get("local", ()))
        return {topic: {**row, "now_ms": now_ms} for (_, _, topic, _), row in rows.items()}

    def run_until_known(self, topics: Sequence[str]) -> Partitions:
        """Cycles until the ages of the unread records of these topics are known."""
        deadline = time.monotonic() + PATIENCE_S
        rows = self.run()
        while UNKNOWN in {rows[topic]["oldest_unread_age_s"] for topic in topics}:
            assert time.monotonic() < deadline, rows
            time.sleep(0.1)
            rows = self.run()
        return rows

    def see(self, topic: str) -> None:
        """Wait until samples have a topic, without a cycle."""
        deadline = time.monotonic() + PATIENCE_S
        while topic not in {each.name for each in self._sample().topics}:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def _sample(self) -> ClusterSample:
        self._samplers.ask({"local": self.questions})
        sample = self._samplers.sample(20.0)["local"]
        assert sample.error is None
        return sample


@pytest.fixture
def cycles(tmp_path: Path, kafka: Kafka) -> Iterator[Cycles]:
    create_topics(kafka.bootstrap, {READ: 1, NOT_READ: 1})
    create_timed_topics(kafka.bootstrap, {APPENDED: 1})
    target = SamplingTarget("local", Connection((kafka.bootstrap,)), topic_refresh_s=0.2)
    with ClusterSamplers([target], processes=1) as samplers:
        cycles = Cycles(tmp_path, samplers)
        cycles.see(APPENDED)
        yield cycles


def write(bootstrap: str, topic: str, times_ms: Sequence[int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for time_ms in times_ms:
        producer.produce(topic, b"x", partition=0, timestamp=time_ms)
    assert producer.flush(30) == 0


def test_age_and_waiting_time_of_backfills_and_mirrors(kafka: Kafka, cycles: Cycles) -> None:
    now_ms = time.time_ns() // 1_000_000
    watched = (READ, NOT_READ, APPENDED)
    for topic in watched:
        write(kafka.bootstrap, topic, [now_ms - 1_000] * 10)
    cycles.run(dict.fromkeys(watched, 10))
    old = [now_ms - 5 * DAY_MS + 1_000 * i for i in range(100)]
    for topic in watched:
        write(kafka.bootstrap, topic, old)
    # A mirror creates its topic while Warren watches, with the timestamps of its source.
    create_topics(kafka.bootstrap, {MIRROR: 1})
    write(kafka.bootstrap, MIRROR, old)
    cycles.see(MIRROR)
    cycles.run({MIRROR: 7})
    rows = cycles.run_until_known([READ, MIRROR, APPENDED])
    waited_s = (time.time_ns() // 1_000_000 - now_ms) / 1_000

    for topic in watched:
        assert rows[topic]["behind_method"] == TimeLagMethod.HEAD_HISTORY
        assert 0 < rows[topic]["seconds_behind"] <= waited_s, "the head history has watched them arrive"
    age_s = (rows[READ]["now_ms"] - old[0]) / 1_000
    assert rows[READ]["oldest_unread_age_s"] == pytest.approx(age_s)
    assert rows[NOT_READ]["oldest_unread_age_s"] == UNKNOWN, "it is neither read nor looked up"
    assert 0 < rows[APPENDED]["oldest_unread_age_s"] <= waited_s, "the broker has set its own time"

    assert rows[MIRROR]["behind_method"] == TimeLagMethod.AT_LEAST
    assert 0 <= rows[MIRROR]["seconds_behind"] <= waited_s, "no longer than the topic exists"
    assert rows[MIRROR]["oldest_unread_age_s"] == pytest.approx(age_s - 7)
    assert cycles.questions == SampleQuestions(), "all that is wanted is known"

    rows = cycles.run(dict.fromkeys((*watched, MIRROR), 110) | {MIRROR: 100})
    assert {(row["seconds_behind"], row["oldest_unread_age_s"]) for row in rows.values()} == {(0.0, UNKNOWN)}

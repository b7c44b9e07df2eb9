"""Configurations of topics over cycles in a row: what they change in time lag, and which topics are asked for."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from tests.kit.warrens import wait_for
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import admin
from warren.domain.rates import NEVER_S
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import TOPIC_CONFIGS, RecordTime, SamplingTarget, to_table
from warren.pipeline import topic_configs
from warren.pipeline.bucket_result import sample_questions
from warren.pipeline.topic_configs import row_configs
from warren.pipeline.working_bucket import Names, WorkingBucket, new_rows

TRIGGER = 10_000
HOUR = 3_600_000
KEY = ("local", "g", "t", 0)
Config = tuple[str, int, int, int, int]
UNLIMITED = -1
KEPT_FOR_AN_HOUR: Config = ("t", 0, 1, HOUR, UNLIMITED)
Row = dict[str, Any]


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path))


def tell(cycles: Rehearsal, *configs: Config, times: tuple[RecordTime, ...] = ()) -> None:
    """Let the next cycles have these configurations and times of records."""
    set_answers(cycles, to_table(TOPIC_CONFIGS, configs), times)


def set_answers(cycles: Rehearsal, configs: pa.Table, times: tuple[RecordTime, ...]) -> None:
    """Let the next cycles have these answers of brokers."""
    [cluster] = cycles.plan.clusters
    cluster = replace(cluster, topic_configs=configs, record_times=times)
    cycles.plan = replace(cycles.plan, clusters=(cluster,))


def run(
    cycles: Rehearsal, triggers: range, head: Callable[[int], int], committed: Callable[[int], int | None]
) -> list[Row]:
    """Cycles in which the head and the commit of each trigger are given; the partition as each cycle judged it."""
    rows = []
    for n in triggers:
        now, offset = NOW + n * TRIGGER, committed(n)
        cycles.sample(now, {"local": {"t": [head(n)]}})
        rows.append(cycles.cycle(now, [] if offset is None else [Commit("g", "t", 0, offset, now - 100, n + 1)])[KEY])
    return rows


def stop_after_five(cycles: Rehearsal, triggers: range) -> list[Row]:
    """10 messages per second; the group stops after the fifth commit."""
    return run(cycles, triggers, lambda n: 1_000 + 100 * n, lambda n: 1_000 + 100 * n if n < 5 else None)


def test_a_stopped_group_has_what_the_retention_leaves_of_the_age_of_its_first_unread_message(
    cycles: Rehearsal,
) -> None:
    tell(cycles, ("other", 0, 1, 1, UNLIMITED), KEPT_FOR_AN_HOUR)
    rows = stop_after_five(cycles, range(26))
    assert [row["retention_left_s"] for row in rows[:2]] == [NEVER_S] * 2, "nothing is unread"
    left = [row["retention_left_s"] + row["seconds_behind"] for row in rows[20:]]
    assert left == pytest.approx([3600.0] * 6, rel=0.01)
    assert cycles.groups()["local", "g"]["retention_left_s"] == rows[-1]["retention_left_s"]


def test_without_configurations_the_log_start_alone_tells(cycles: Rehearsal) -> None:
    rows = stop_after_five(cycles, range(20))
    assert {row["retention_left_s"] for row in rows[6:]} == {UNKNOWN}, "it has not been watched for ten minutes"


@pytest.mark.parametrize(
    ("config", "left_s"),
    [
        (("t", 0, 0, HOUR, 1), NEVER_S),
        (("t", 0, 1, UNLIMITED, UNLIMITED), NEVER_S),
        (("t", 0, 1, UNLIMITED, 1), UNKNOWN),
        (("t", 0, 1, 0, 1), 0.0),
    ],
    ids=["compacted only", "kept for ever", "limited by size only", "not kept at all"],
)
def test_retention_without_a_useful_limit_of_age(cycles: Rehearsal, config: Config, left_s: float) -> None:
    tell(cycles, config)
    assert stop_after_five(cycles, range(20))[-1]["retention_left_s"] == left_s


def test_a_group_that_keeps_up_loses_nothing_however_short_the_retention(cycles: Rehearsal) -> None:
    tell(cycles, ("t", 0, 1, 60_000, UNLIMITED))
    rows = run(cycles, range(12), lambda n: 10_000 + 1_000 * n, lambda n: 9_990 + 1_000 * n)
    assert rows[-1]["current_lag"] > 0
    assert {row["retention_left_s"] for row in rows[4:]} == {NEVER_S}


def test_a_group_that_falls_back_has_longer_than_one_that_has_stopped(cycles: Rehearsal) -> None:
    tell(cycles, KEPT_FOR_AN_HOUR)
    # It reads half of what is produced, so its time lag grows by half a second per second.
    [*_, row] = run(cycles, range(30), lambda n: 1_000 + 100 * n, lambda n: 1_000 + 50 * n)
    assert row["retention_left_s"] == pytest.approx((3600 - row["seconds_behind"]) * 2, rel=0.05)


def test_an_age_that_is_only_a_bound_tells_nothing_about_what_is_left(cycles: Rehearsal) -> None:
    tell(cycles, KEPT_FOR_AN_HOUR)
    rows = run(cycles, range(10), lambda n: 5_000 + n, lambda n: 10 if n == 0 else None)
    assert {(row["behind_method"], row["retention_left_s"]) for row in rows} == {(TimeLagMethod.AT_LEAST, UNKNOWN)}
    tell(cycles, KEPT_FOR_AN_HOUR, times=(("t", 0, 10, NOW - HOUR // 2, 0, False),))
    [row] = run(cycles, range(10, 11), lambda n: 5_000 + n, lambda _: None)
    assert row["retention_left_s"] == 3600 - (1800 + 100)


def test_times_of_records_that_brokers_have_stamped_are_append_times(cycles: Rehearsal) -> None:
    run(cycles, range(3), lambda n: 5_000 + n, lambda n: 10 if n == 0 else None)
    tell(cycles, times=(("t", 0, 5, NOW - 6 * HOUR, 0, False),))
    [row] = run(cycles, range(3, 4), lambda n: 5_000 + n, lambda _: None)
    assert row["behind_method"] == TimeLagMethod.RECORD_TIME
    tell(cycles, ("t", 1, 1, UNLIMITED, UNLIMITED), times=(("t", 0, 5, NOW - 6 * HOUR, 0, False),))
    [row] = run(cycles, range(4, 5), lambda n: 5_000 + n, lambda _: None)
    assert row["behind_method"] == TimeLagMethod.APPEND_TIME
    assert cycles.groups()["local", "g"]["behind_method"] == TimeLagMethod.APPEND_TIME
    tell(cycles)
    [row] = run(cycles, range(5, 6), lambda n: 5_000 + n, lambda _: None)
    assert row["behind_method"] == TimeLagMethod.APPEND_TIME, "what is known of an offset is kept"


def test_an_append_time_that_may_be_far_off_is_looked_up_again(cycles: Rehearsal) -> None:
    config = ("t", 1, 1, UNLIMITED, UNLIMITED)
    run(cycles, range(1), lambda _: 5_000, lambda _: 10)
    tell(cycles, config, times=(("t", 0, 10, NOW - 6 * HOUR, 0, False),))
    [row] = run(cycles, range(1, 2), lambda _: 5_000, lambda _: 2_505)
    assert row["behind_method"] == TimeLagMethod.APPEND_TIME
    asked = [unread for result in cycles.results.values() for unread in result.times_to_look_up]
    assert [unread[:4] for unread in asked] == [("local", "t", 0, 2_505)]


@pytest.mark.parametrize(
    ("config", "max_age_s", "is_limited_by_size", "is_append_time"),
    [
        (("t", 0, 1, 60_000, UNLIMITED), 60.0, False, False),
        (("t", 1, 1, 60_000, 500), 60.0, True, True),
        (("t", 0, 1, UNLIMITED, 500), NEVER_S, True, False),
        (("t", 0, 0, 60_000, 500), NEVER_S, False, False),
        (("another", 1, 1, 60_000, 500), float("nan"), True, False),
    ],
)
def test_rows_have_the_configuration_of_their_topic(
    tmp_path: Path, config: Config, max_age_s: float, is_limited_by_size: bool, is_append_time: bool
) -> None:
    bucket = WorkingBucket(new_rows(2, 10), topics=Names(["u", "t"]))
    bucket.rows.cluster[:], bucket.rows.topic[:] = 0, [0, 1]
    made = plan(tmp_path)
    cluster = replace(made.clusters[0], topic_configs=to_table(TOPIC_CONFIGS, [config]))
    found = row_configs(bucket, replace(made, clusters=(cluster,)))
    np.testing.assert_equal(found.max_age_s, [np.nan, max_age_s])
    assert found.is_limited_by_size.tolist() == [True, is_limited_by_size]
    assert found.is_append_time.tolist() == [False, is_append_time]


def test_topics_of_the_largest_time_lags_are_asked_for_and_those_of_groups_that_keep_up_are_not(
    cycles: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed: dict[str, Callable[[int], int]] = {
        "stopped": lambda _: 500,
        "slow": lambda n: 500 + 50 * n,
        "well": lambda n: 500 + 100 * n,
    }
    for n in range(12):
        now = NOW + n * TRIGGER
        cycles.sample(now, {"local": {topic: [500 + 100 * n + 1] for topic in committed}})
        at = [Commit(f"of-{topic}", topic, 0, offset(n), now - 100, n + 1) for topic, offset in committed.items()]
        at += [Commit("too", "stopped", 0, 600, now - 100, n + 1)]
        cycles.cycle(now, at)
    results = list(cycles.results.values())
    questions = sample_questions(["local", "other"], results, {"other": ["gone"]})
    assert questions["local"].lagging_topics == ["stopped", "slow"], "each of them once"
    assert (questions["other"].lagging_topics, questions["other"].missing_topics) == ([], ["gone"])

    monkeypatch.setattr(topic_configs, "MAX_DESCRIBED", 0)
    cycles.cycle(NOW + 12 * TRIGGER)
    assert [result.topics_to_describe for result in cycles.results.values()] == [(("local", "stopped"),)]


def test_brokers_tell_how_old_unread_messages_are_and_how_long_they_are_kept(kafka: Kafka, tmp_path: Path) -> None:
    """The questions of each cycle go to a real broker, which answers in the next sample."""
    old_ms, kept = 1_800_000, {"retention.ms": "3600000"}
    topics = {
        "kept-appended": {"message.timestamp.type": "LogAppendTime", **kept},
        "kept-created": kept,
        "kept-compacted": {"cleanup.policy": "compact"},
    }
    client = admin(kafka.bootstrap)
    for future in client.create_topics([NewTopic(name, 1, 1, config=topics[name]) for name in topics]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    created_ms = time.time_ns() // 1_000_000 - old_ms
    for topic in topics:
        for i in range(10):
            producer.produce(topic, b"x", f"{i}", 0, timestamp=created_ms + i)
    assert producer.flush(30) == 0
    # Times of records are known within a second: all of them are surely before the first sample.
    now_ms = time.time_ns() // 1_000_000 + 10_000

    cycles = Rehearsal(tmp_path, plan(tmp_path))
    with ClusterSamplers([SamplingTarget("local", Connection((kafka.bootstrap,)))], processes=1) as samplers:

        def cycle(at_ms: int, commits: Iterable[Commit] = ()) -> dict[str, Row]:
            """The partition of each topic, by the newest sample."""
            sample = samplers.sample(30.0)["local"]
            assert sample.error is None
            set_answers(cycles, sample.topic_configs, sample.record_times)
            ids = {topic.name: topic.id for topic in sample.topics if topic.name in topics}
            cycles.sample(at_ms, {"local": {name: [10] for name in topics}}, ids)
            rows = {topic: row for (_, _, topic, _), row in cycles.cycle(at_ms, commits).items()}
            samplers.ask(sample_questions(["local"], list(cycles.results.values()), {}))
            return rows

        cycle(now_ms, [Commit("g", topic, 0, 3, now_ms - 100, 1) for topic in topics])
        # Rates are known after 30 s.
        later_ms = now_ms + 40_000
        cycle(later_ms)
        wait_for(lambda: cycle(later_ms)["kept-created"]["retention_left_s"] != UNKNOWN, "the brokers have told", 30)
        rows = cycle(later_ms)

    found = {topic: (TimeLagMethod(row["behind_method"]), row["retention_left_s"]) for topic, row in rows.items()}
    created_left_s = (HOUR - (later_ms - created_ms)) / 1000
    # Times of records are known within 1 % of their age.
    assert found["kept-created"] == (TimeLagMethod.RECORD_TIME, pytest.approx(created_left_s, abs=18))
    assert found["kept-appended"] == (TimeLagMethod.APPEND_TIME, pytest.approx(HOUR / 1000 - 50, abs=5))
    assert found["kept-compacted"] == (TimeLagMethod.RECORD_TIME, NEVER_S)

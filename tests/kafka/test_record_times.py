"""When records were made: found in a few rounds of offsets by time, on logs of every shape and on a real broker."""

import time
from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

import numpy as np
import pytest
from confluent_kafka import Producer

from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.kafka.admin import AdminOf
from warren.kafka.record_times import MAX_ROUNDS, RecordTimes, look_up, offsets_by_time
from warren.kafka.samples import Partition, Topic
from warren.kafka.topics import PartitionLayout

NOW = 1_700_000_000_000
HOUR = 3_600_000
P: Partition = ("t", 0)


class Log:
    """A log with the timestamp of each record, asked as a broker is; counts the rounds."""

    def __init__(self, times_ms: list[int], log_start: int = 0) -> None:
        self.times_ms, self.log_start, self.rounds = times_ms, log_start, 0
        self._latest = list(accumulate(times_ms, max))

    def ask(self, times: Mapping[Partition, int], deadline: float) -> dict[Partition, tuple[int, int]]:
        self.rounds += 1
        index = bisect_left(self._latest, times[P])
        return {P: (self.log_start + index, self.times_ms[index]) if index < len(self.times_ms) else (-1, -1)}


def steady(n: int = 100_000, span_ms: int = 6 * HOUR) -> list[int]:
    return [NOW - span_ms + span_ms * i // n for i in range(n)]


def bursts() -> list[int]:
    return sorted(NOW - hour * HOUR + i for hour in (1, 3, 20) for i in range(10_000))


def random_times() -> list[int]:
    gaps = np.random.default_rng(1).pareto(1.1, 20_000) * 10
    return [NOW - round(age) for age in np.cumsum(gaps)[::-1].tolist()]


@pytest.mark.parametrize(
    ("name", "times_ms", "offset"),
    [
        ("steady", steady(), 12_345),
        ("steady, the first", steady(), 0),
        ("steady, the last", steady(), 99_999),
        ("bursts", bursts(), 15_000),
        ("random gaps", random_times(), 7_000),
        ("one record", [NOW - HOUR], 0),
        ("all at one time", [NOW - HOUR] * 50, 20),
    ],
)
def test_the_time_of_a_record_is_found_in_a_few_rounds(name: str, times_ms: list[int], offset: int) -> None:
    log = Log(times_ms)
    found_ms, error_ms = look_up(log.ask, {(*P, offset): len(times_ms)}, NOW, time.monotonic() + 5)[*P, offset]
    assert log.rounds <= (4 if name.startswith("steady") else MAX_ROUNDS + 1), name
    assert abs(found_ms - times_ms[offset]) <= error_ms, name
    assert error_ms <= max(1_000, 0.05 * (NOW - times_ms[offset])), name


def test_times_out_of_order_end_and_are_not_later_than_now() -> None:
    shuffled = np.random.default_rng(2).permutation(steady(10_000)).tolist()
    found_ms, _ = look_up(Log(shuffled).ask, {(*P, 5_000): 10_000}, NOW, time.monotonic() + 5)[*P, 5_000]
    assert NOW - 7 * HOUR <= found_ms <= NOW


@pytest.mark.parametrize(
    ("name", "times_ms"),
    [
        ("out of order", np.random.default_rng(3).permutation(steady(2_000)).tolist()),
        ("a backfill after live records", [*steady(1_000), *(time_ms - 9_000 * HOUR for time_ms in steady(1_000))]),
        ("a backfill before live records", [*(time_ms - 9_000 * HOUR for time_ms in steady(1_000)), *steady(1_000)]),
        ("from the future", [time_ms + 9 * HOUR for time_ms in steady(2_000)]),
    ],
)
def test_a_time_is_never_before_that_of_the_first_record_in_the_log(name: str, times_ms: list[int]) -> None:
    for offset in range(0, 2_000, 97):
        found_ms, error_ms = look_up(Log(times_ms).ask, {(*P, offset): 2_000}, NOW, time.monotonic() + 5)[*P, offset]
        assert min(times_ms[0], NOW) <= found_ms - error_ms, (name, offset)


def test_a_record_that_was_deleted_has_the_time_of_the_first_one_left() -> None:
    log = Log(steady(1_000), log_start=500)
    assert look_up(log.ask, {(*P, 100): 1_500}, NOW, time.monotonic() + 5) == {(*P, 100): (steady(1_000)[0], 0)}


def test_an_empty_log_tells_nothing() -> None:
    assert look_up(Log([]).ask, {(*P, 100): 100}, NOW, time.monotonic() + 5) == {}


def test_two_groups_on_one_partition_are_both_found() -> None:
    log = Log(steady())
    found = look_up(log.ask, {(*P, 100): 100_000, (*P, 90_000): 100_000}, NOW, time.monotonic() + 5)
    for (_, _, offset), (found_ms, error_ms) in found.items():
        assert abs(found_ms - steady()[offset]) <= error_ms
    assert len(found) == 2


def test_a_real_broker_tells_the_time_of_a_record_and_it_is_asked_once(kafka: Kafka) -> None:
    topic = "record-times"
    create_topics(kafka.bootstrap, {topic: 1})
    now_ms = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    for i in range(200):
        producer.produce(topic, b"x", partition=0, timestamp=now_ms - (200 - i) * 60_000)
    producer.flush()
    client = AdminOf(Connection((kafka.bootstrap,)))
    found = look_up(
        lambda times, deadline: offsets_by_time(client.admin(), times, deadline),
        {(topic, 0, 20): 200, (topic, 0, 199): 200},
        now_ms,
        time.monotonic() + 10,
    )
    for (_, _, offset), (found_ms, error_ms) in found.items():
        assert abs(found_ms - (now_ms - (200 - offset) * 60_000)) <= error_ms <= 0.05 * (200 - offset) * 60_000

    layout = PartitionLayout((Topic(topic, "an-id", 1),), np.zeros(1, np.int64), np.zeros(1, np.int32))
    times, heads = RecordTimes("local", client), np.array([200])
    assert times.known([(topic, 0, 20)], layout, heads) == ()
    deadline = time.monotonic() + 10
    while not (known := times.known([(topic, 0, 20)], layout, heads)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert known == ((topic, 0, 20, *found[topic, 0, 20]),)
    # A group that reads on is between the record that is known and the head.
    assert times.known([(topic, 0, 50)], layout, heads) == known
    times.close()

"""When records were made: found in a few rounds of offsets by time, on logs of every shape and on a real broker."""

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import pytest
from confluent_kafka import Producer

from tests.kit.kafka import create_timed_topics
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.domain.arrays import Ints
from warren.kafka.admin import AdminOf
from warren.kafka.record_times import MAX_ROUNDS, RecordTimes, look_up, offsets_by_time
from warren.kafka.samples import Partition, RecordTime, SampleQuestions, Topic, UnreadOffset
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
    times, heads = RecordTimes("local", client, Connection((kafka.bootstrap,))), np.array([200])
    assert times.known(SampleQuestions(unread_offsets=[(topic, 0, 20)]), layout, heads) == ()
    known = known_times(times, layout, heads, (topic, 0, 20))
    assert known == ((topic, 0, 20, *found[topic, 0, 20], False),)
    # A group that reads on is between the record that is known and the head.
    assert times.known(SampleQuestions(unread_offsets=[(topic, 0, 50)]), layout, heads) == known
    times.close()


def known_times(
    times: RecordTimes,
    layout: PartitionLayout,
    heads: Ints,
    *unread: UnreadOffset,
    to_read: Sequence[UnreadOffset] = (),
) -> tuple[RecordTime, ...]:
    """The times of records as samples get them, once all of these are known."""
    questions, deadline = SampleQuestions(unread_offsets=unread, unread_records=to_read), time.monotonic() + 20
    known = times.known(questions, layout, heads)
    while set(unread) - {each[:3] for each in known}:
        assert time.monotonic() < deadline, known
        time.sleep(0.05)
        known = times.known(questions, layout, heads)
    return known


def layout_of(*topics: str) -> PartitionLayout:
    """Topics with one partition each."""
    named = tuple(Topic(topic, f"id of {topic}", 1) for topic in sorted(topics))
    return PartitionLayout(named, np.arange(len(named)), np.zeros(len(named), np.int32))


def test_a_record_that_is_read_has_its_own_timestamp_where_times_are_out_of_order(kafka: Kafka) -> None:
    """After an hour of live messages comes a backfill of records that are days old."""
    topic, now_ms = "read-backfill", time.time_ns() // 1_000_000
    create_topics(kafka.bootstrap, {topic: 1})
    live = [now_ms - HOUR + i * 30_000 for i in range(100)]
    old = [now_ms - 5 * 24 * HOUR + i * 60_000 for i in range(100)]
    produce_timed(kafka.bootstrap, topic, live + old)
    connection, layout = Connection((kafka.bootstrap,)), layout_of(topic)
    times = RecordTimes("local", AdminOf(connection), connection)
    unread = [(topic, 0, 150), (topic, 0, 10), (topic, 0, 199)]
    known = known_times(times, layout, np.array([200]), *unread, to_read=unread)
    assert {each[2:] for each in known} == {(offset, (live + old)[offset], 0, False) for offset in (10, 150, 199)}, (
        "of several groups on one partition each is read"
    )
    # Behind them, the brokers tell when the latest record before it was made.
    [(*_, time_ms, _, is_append)] = known_times(times, layout, np.array([200]), (topic, 0, 160))
    assert (time_ms >= live[-1] - 30_000, is_append) == (True, False)
    moved = times.known(SampleQuestions(unread_offsets=[(topic, 0, 180)]), layout, np.array([200]))
    assert [each[2] for each in moved] == [150, 160], "the last two before it, to tell how fast timestamps rise"
    times.close()


def test_a_record_that_is_read_says_whether_the_broker_set_its_time(kafka: Kafka) -> None:
    topic, now_ms = "read-append-time", time.time_ns() // 1_000_000
    create_timed_topics(kafka.bootstrap, {topic: 1})
    produce_timed(kafka.bootstrap, topic, [now_ms - 5 * 24 * HOUR] * 3)
    connection = Connection((kafka.bootstrap,))
    times = RecordTimes("local", AdminOf(connection), connection)
    unread = (topic, 0, 1)
    [(*_, time_ms, error_ms, is_append)] = known_times(times, layout_of(topic), np.array([3]), unread, to_read=[unread])
    assert (error_ms, is_append) == (0, True)
    assert now_ms - 60_000 <= time_ms <= now_ms + 60_000
    times.close()


def test_where_there_is_no_record_to_read_its_time_is_looked_up(kafka: Kafka) -> None:
    """An open transaction hides what comes after it from consumers, but not from the brokers' index of times."""
    topic, now_ms = "read-held", time.time_ns() // 1_000_000
    create_topics(kafka.bootstrap, {topic: 1})
    produce_timed(kafka.bootstrap, topic, [now_ms - HOUR])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0, timestamp=now_ms - 60_000)
    producer.flush(30)
    connection, unread = Connection((kafka.bootstrap,)), (topic, 0, 1)
    times = RecordTimes("local", AdminOf(connection), connection)
    known = known_times(times, layout_of(topic), np.array([2]), unread, to_read=[unread])
    assert known == ((topic, 0, 1, now_ms - 60_000, 0, False),)
    times.close()
    producer.abort_transaction(30)


def produce_timed(bootstrap: str, topic: str, times_ms: Sequence[int]) -> None:
    """Write a record for each of these timestamps."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for time_ms in times_ms:
        producer.produce(topic, b"x", partition=0, timestamp=time_ms)
    assert producer.flush(30) == 0

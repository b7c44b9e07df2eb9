"""Heads of the past on a real broker, whose records are stamped rightly, wrongly, and of old."""

import time

import numpy as np
from confluent_kafka import Producer

from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.domain.windows import UNKNOWN
from warren.kafka.admin import LATEST, READ_UNCOMMITTED, AdminOf
from warren.kafka.past_heads import read_past_heads
from warren.kafka.topics import OffsetQuery, PartitionLayout

MINUTE, DAY = 60_000, 86_400_000


def test_heads_are_known_by_record_time_only_where_it_can_be_trusted(kafka: Kafka) -> None:
    names = ("past-live", "past-imported", "past-mixed", "past-ahead", "past-empty")
    create_topics(kafka.bootstrap, dict.fromkeys(names, 1))
    now_ms = time.time_ns() // 1_000_000
    live = [now_ms - 2 * MINUTE + 100 * n for n in range(1_200)]
    stamps_ms = {
        "past-live": live,
        "past-imported": [now_ms - 300 * DAY + n for n in range(500)],
        # Old records between the live ones, and after the last of them.
        "past-mixed": [stamp for stamp in live for stamp in (stamp, stamp - DAY)],
        "past-ahead": [*live[:600], now_ms + 30 * MINUTE, *live[600:]],
    }
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "batch.num.messages": 50})
    for topic, own in stamps_ms.items():
        for stamp_ms in own:
            producer.produce(topic, b"x", partition=0, timestamp=stamp_ms)
    assert producer.flush(30) == 0

    admin, deadline = AdminOf(Connection((kafka.bootstrap,))).admin(), time.monotonic() + 30
    layout = PartitionLayout.of(admin.describe_topics(names, deadline).topics)
    heads = OffsetQuery(layout, LATEST).send(admin, READ_UNCOMMITTED, deadline)()
    times_ms = [now_ms - age_ms for age_ms in (0, 5_000, 20_000, 60_000, 110_000, 10 * MINUTE)]
    past = read_past_heads(admin, layout, heads, times_ms, deadline)
    index = {topic.name: n for n, topic in enumerate(past.topics)}

    def column(topic: str) -> list[tuple[int, int]]:
        pairs = zip(past.heads, past.lowest, strict=True)
        return [(int(highest[index[topic]]), int(lowest[index[topic]])) for highest, lowest in pairs]

    expected = [int(np.searchsorted(live, time_ms)) for time_ms in times_ms]
    assert [highest for highest, _ in column("past-live")] == expected
    lowest = [lowest for _, lowest in column("past-live")]
    assert all(older < low <= own + 1 for own, low, older in zip(expected[:-2], lowest, expected[1:], strict=False))
    assert [highest for highest, _ in column("past-mixed")] == [2 * head for head in expected]
    assert column("past-live")[-1] == (0, UNKNOWN), "nothing was produced that long ago"
    assert column("past-imported") == [(500, UNKNOWN)] * len(times_ms)
    assert column("past-ahead") == [(UNKNOWN, UNKNOWN)] * len(times_ms)
    assert column("past-empty") == [(0, UNKNOWN)] * len(times_ms)

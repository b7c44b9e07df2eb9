"""Offsets from the answers of librdkafka."""

import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from warren.domain.windows import UNKNOWN
from warren.kafka.topics import to_offsets


def test_a_missing_offset_is_unknown() -> None:
    request = [TopicPartition("t", partition) for partition in range(4)]
    answers: list[Any] = [SimpleNamespace(offset=0), SimpleNamespace(offset=7), SimpleNamespace(offset=-1001)]
    future: Future[dict[TopicPartition, Any]] = Future()
    future.set_result(dict(zip(request[:3], answers, strict=True)))
    deadline = time.monotonic() + 1
    assert to_offsets(request[:3], future, deadline).tolist() == [0, 7, UNKNOWN]

    failed = KafkaException(KafkaError(KafkaError._TIMED_OUT))
    future = Future()
    future.set_result(dict(zip(request, [*answers, failed], strict=True)))
    assert to_offsets(request, future, deadline).tolist() == [0, 7, UNKNOWN, UNKNOWN]

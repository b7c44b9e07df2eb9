"""Offsets from the answers of librdkafka, and clients that follow their options."""

import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from warren.config.kafka import Connection
from warren.config.secrets import Secret
from warren.config.security import Sasl
from warren.domain.windows import UNKNOWN
from warren.errors import ClusterError
from warren.kafka.admin import AdminOf, to_offsets


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


def test_a_connection_has_one_client_until_a_file_of_its_options_changes(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first")
    sasl = Sasl("me", Secret(file=file), mechanism="SCRAM-SHA-256")
    client = AdminOf(Connection(("127.0.0.1:1",), sasl=sasl))
    first = client.admin()
    assert client.admin() is first
    file.write_text("second")
    second = client.admin()
    assert second is not first
    assert client.admin() is second
    file.unlink()
    with pytest.raises(ClusterError, match="cannot be read"):
        client.admin()

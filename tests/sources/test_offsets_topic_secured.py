"""Both clients on a real cluster with TLS, every mechanism and ACLs."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from tests.kit.secured import LISTENERS, OAUTH, SCRAM, USERS, SecuredKafka
from tests.kit.tokens import SCOPE
from warren.config.kafka import Connection
from warren.config.secrets import Secret
from warren.config.security import Iam, Tls
from warren.kafka.admin import EARLIEST, LATEST, READ_UNCOMMITTED, Admin
from warren.kafka.msk import MskTokens
from warren.kafka.options import to_librdkafka
from warren.kafka.partition_reader import PartitionReader
from warren.kafka.tails import read_tails
from warren.kafka.topics import to_offsets
from warren.sources.offsets_topic import OffsetRange, read_commits

OFFSETS_TOPIC = "__consumer_offsets"

ConnectionTo = Callable[[str], Connection]


def offsets_by_librdkafka(connection: Connection) -> dict[int, OffsetRange]:
    admin, deadline = Admin(to_librdkafka(connection)), time.monotonic() + 30
    partitions = len(admin.describe_topics([OFFSETS_TOPIC], deadline).topics[OFFSETS_TOPIC].leaders)
    starts, ends = (
        to_offsets(request, admin.list_offsets(request, READ_UNCOMMITTED, deadline), deadline).tolist()
        for request in (
            [TopicPartition(OFFSETS_TOPIC, p, spec) for p in range(partitions)] for spec in (EARLIEST, LATEST)
        )
    )
    return {p: OffsetRange(s, e) for p, (s, e) in enumerate(zip(starts, ends, strict=True))}


def read_by_java(spark: SparkSession, connection: Connection) -> int:
    ranges = offsets_by_librdkafka(connection)
    return read_commits(spark, 0, "closed", connection, OFFSETS_TOPIC, ranges).count()


@pytest.mark.parametrize("listener", LISTENERS)
def test_both_clients_read_commits(spark: SparkSession, connection_to: ConnectionTo, listener: str) -> None:
    assert read_by_java(spark, connection_to(listener)) >= 1


def test_with_noverify_both_clients_read_whatever_the_brokers_present(
    spark: SparkSession, connection_to: ConnectionTo, secured: SecuredKafka
) -> None:
    unverified = replace(connection_to(SCRAM), tls=Tls(noverify=True))
    expired = secured.authority.issue("elsewhere.example.com", valid_s=-3600)
    try:
        secured.present(SCRAM, expired)
        assert read_by_java(spark, unverified) >= 1
    finally:
        secured.present(SCRAM, secured.authority.server)


def test_a_password_that_is_rotated_in_its_file_counts_at_the_next_read(
    spark: SparkSession, connection_to: ConnectionTo, secured: SecuredKafka, tmp_path: Path
) -> None:
    connection, file = connection_to(SCRAM), tmp_path / "password"
    assert connection.sasl is not None
    connection = replace(connection, sasl=replace(connection.sasl, password=Secret(file=file)))
    file.write_text(f"{secured.passwords[USERS[SCRAM]]}\n")
    assert read_by_java(spark, connection) >= 1
    secured.set_password(USERS[SCRAM], "another one")
    file.write_text("another one\n")
    assert read_by_java(spark, connection) >= 1


def test_a_token_of_ones_own_opens_the_brokers_to_librdkafka(
    connection_to: ConnectionTo, secured: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon MSK's tokens take this way."""
    oauth = connection_to(OAUTH)
    token = secured.tokens.token(USERS[OAUTH], SCOPE)
    monkeypatch.setattr(MskTokens, "__call__", lambda *_: (token, time.time() + 60))
    connection = replace(oauth, sasl=None, iam=Iam("eu-west-1"))
    ranges = offsets_by_librdkafka(connection)
    assert any(found.end for found in ranges.values())
    # The reader of tails is a consumer, and no one polls it before it connects.
    heads = {(OFFSETS_TOPIC, partition): found.end for partition, found in ranges.items() if found.end}
    reader = PartitionReader("main", connection, 262_144, "")
    assert all(tail.is_read for tail in read_tails(reader, heads, time.monotonic() + 30).values())

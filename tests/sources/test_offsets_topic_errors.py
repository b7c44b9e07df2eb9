"""What each client says on a real cluster, when it is refused or cannot verify, in one sentence and without secrets."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from pyspark.sql import SparkSession

from tests.kit.rights import Right
from tests.kit.secured import MTLS, OAUTH, SCRAM, USERS, SecuredKafka
from tests.kit.warrens import wait_for
from warren.config.kafka import Connection
from warren.config.secrets import Secret
from warren.config.security import Tls
from warren.errors import ClusterError
from warren.kafka.admin import Admin
from warren.kafka.client_errors import missing_right
from warren.kafka.options import to_librdkafka
from warren.pipeline.spark_read import root_cause
from warren.sources.offsets_topic import OffsetRange, read_commits

OFFSETS_TOPIC = "__consumer_offsets"
WRONG = "wr0ng-s3cret"

ConnectionTo = Callable[[str], Connection]


def by_librdkafka(connection: Connection) -> str:
    """The error of the admin client, "" if there is none."""
    try:
        described = Admin(to_librdkafka(connection)).describe_topics([OFFSETS_TOPIC], time.monotonic() + 5)
    except ClusterError as error:
        return str(error)
    return missing_right("Read", described.hidden) if described.hidden else ""


def by_java(spark: SparkSession, connection: Connection) -> str:
    try:
        read_commits(spark, 0, "refused", connection, OFFSETS_TOPIC, {0: OffsetRange(0, 1)}).count()
    except Exception as error:  # noqa: BLE001
        return root_cause(error)
    return ""


def with_sasl(connection: Connection, **changes: Any) -> Connection:
    assert connection.sasl is not None
    return replace(connection, sasl=replace(connection.sasl, **changes))


def changed(case: str, connection_to: ConnectionTo, secured: SecuredKafka, other_ca: Path) -> Connection:
    scram, mtls, oauth = (connection_to(listener) for listener in (SCRAM, MTLS, OAUTH))
    assert mtls.tls is not None
    return {
        "password": with_sasl(scram, password=Secret(WRONG)),
        "user": with_sasl(scram, username="nobody"),
        "mechanism": with_sasl(scram, mechanism="PLAIN"),
        "no sasl": replace(scram, sasl=None),
        "sasl where there is none": replace(mtls, sasl=scram.sasl),
        "authority": replace(scram, tls=Tls(cafile=other_ca)),
        "no tls": replace(scram, tls=None),
        "tls on an open port": replace(scram, servers=(secured.bootstrap,)),
        "no certificate": replace(mtls, tls=Tls(cafile=mtls.tls.cafile)),
        "client secret": with_sasl(oauth, client_secret=Secret(WRONG)),
        "authority of the token endpoint": with_sasl(oauth, token_endpoint_cafile=other_ca),
    }[case]


CASES = {
    "password": "rejects the user name or the password",
    "user": "rejects the user name or the password",
    "mechanism": "does not offer this SASL mechanism",
    "no sasl": "closes the connection",
    "sasl where there is none": "does not expect SASL",
    "authority": "an authority that Warren does not trust",
    "no tls": "speaks TLS on this port",
    "tls on an open port": "does not speak TLS on this port",
    "no certificate": "Warren's client certificate, or requires one",
    "client secret": "the token endpoint gives no token",
    "authority of the token endpoint": "the token endpoint gives no token",
}
# Java's client waits until its timeout where the broker only closes the connection; the samples tell why.
SILENT_IN_JAVA = ("no sasl", "no tls", "tls on an open port")


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("other") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    return file


@pytest.mark.parametrize("case", CASES)
def test_librdkafkas_errors_are_one_sentence(
    case: str, connection_to: ConnectionTo, secured: SecuredKafka, other_ca: Path
) -> None:
    error = by_librdkafka(changed(case, connection_to, secured, other_ca))
    assert CASES[case] in error
    assert WRONG not in error


@pytest.mark.parametrize("case", [case for case in CASES if case not in SILENT_IN_JAVA])
def test_javas_errors_are_the_same_sentence(
    spark: SparkSession, case: str, connection_to: ConnectionTo, secured: SecuredKafka, other_ca: Path
) -> None:
    error = by_java(spark, changed(case, connection_to, secured, other_ca))
    assert CASES[case] in error
    assert WRONG not in error


@pytest.mark.parametrize(
    ("hosts", "valid_s", "words"),
    [(("127.0.0.1",), -3600.0, "certificate has expired"), (("elsewhere.test",), 3600.0, "is not for the host")],
)
def test_a_certificate_that_is_wrong_is_named_by_both(
    spark: SparkSession,
    connection_to: ConnectionTo,
    secured: SecuredKafka,
    hosts: tuple[str, ...],
    valid_s: float,
    words: str,
) -> None:
    scram = connection_to(SCRAM)
    try:
        secured.present(SCRAM, secured.authority.issue(*hosts, valid_s=valid_s))
        wait_for(lambda: words in by_librdkafka(scram), words, 60)
        assert words in by_java(spark, scram)
    finally:
        secured.present(SCRAM, secured.authority.server)
    wait_for(lambda: not by_librdkafka(scram), "it is mended", 60)
    assert by_java(spark, scram) == ""


def test_a_right_that_is_missing_is_named(
    spark: SparkSession, connection_to: ConnectionTo, secured: SecuredKafka
) -> None:
    scram, user = connection_to(SCRAM), USERS[SCRAM]
    read, describe = Right("Read", "topic", OFFSETS_TOPIC), Right("Describe", "topic")
    secured.revoke(user, [read])
    try:
        words = f"Warren is not allowed to read the topic {OFFSETS_TOPIC}: grant Read"
        wait_for(lambda: words in by_java(spark, scram), words, 60)
        assert by_librdkafka(scram) == "", "it may still describe the topic"
        secured.revoke(user, [describe])
        wait_for(lambda: words in by_librdkafka(scram), words, 60)
        secured.grant(user, [describe])
    finally:
        secured.grant(user, [read])

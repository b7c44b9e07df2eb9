from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from warren.config.kafka import ClientProfile, Connection
from warren.config.secrets import Secret
from warren.config.security import Iam, Sasl, Tls
from warren.errors import SecretError
from warren.kafka.msk import MskTokens
from warren.kafka.options import to_java, to_librdkafka, to_spark_options

OPEN = Connection(("a.example.com:9092", "[::1]:9093"))
NOBODY_THERE = Connection(("127.0.0.1:1",))
PASSWORD = 'a "quoted" \\ back\tslash'
SCRAM = Sasl("me", Secret(PASSWORD), mechanism="SCRAM-SHA-512")
OAUTH = Sasl(
    mechanism="OAUTHBEARER",
    client_id="id",
    client_secret=Secret("hush"),
    token_endpoint_url="https://127.0.0.1:1/token",
    scope="kafka",
)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    """A client certificate whose key is in the format of OpenSSL, with a password."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    own = authority.issue_cert("me@example.com")
    (tmp_path / "cert.pem").write_bytes(b"some text\n" + own.cert_chain_pems[0].bytes())
    key = load_pem_private_key(own.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"hush"))
    assert b"PRIVATE KEY" in encrypted
    (tmp_path / "key.pem").write_bytes(encrypted)
    return Tls(tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem", keypassword=Secret("hush"))


def test_without_a_profile_burrows_client_id_is_used() -> None:
    options = {
        "bootstrap.servers": "a.example.com:9092,[::1]:9093",
        "client.id": "burrow-lagchecker",
        "security.protocol": "PLAINTEXT",
    }
    assert to_librdkafka(OPEN) == options
    assert to_java(OPEN) == options
    assert to_spark_options(OPEN) == {f"kafka.{key}": options[key] for key in options}


def test_the_profile_gives_client_id_and_timeouts() -> None:
    connection = replace(OPEN, profile=ClientProfile(client_id="lag", dial_timeout=3, read_timeout=7))
    librdkafka, spark = to_librdkafka(connection), to_spark_options(connection)
    assert librdkafka["client.id"] == spark["kafka.client.id"] == "lag"
    assert librdkafka["socket.connection.setup.timeout.ms"] == "3000"
    assert librdkafka["socket.timeout.ms"] == "7000"
    assert spark["kafka.socket.connection.setup.timeout.ms"] == "3000"
    assert spark["kafka.socket.connection.setup.timeout.max.ms"] == "3000"
    assert spark["kafka.request.timeout.ms"] == "7000"


@pytest.mark.parametrize(("read_timeout", "call_timeout"), [(1, "60000"), (60, "60000"), (300, "300000")])
def test_java_never_gets_a_request_timeout_above_that_of_the_call(read_timeout: int, call_timeout: str) -> None:
    options = to_java(replace(OPEN, profile=ClientProfile(read_timeout=read_timeout)))
    assert options["default.api.timeout.ms"] == call_timeout


@pytest.mark.parametrize(
    ("given", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"tls": Tls()}, "SSL"),
        ({"sasl": SCRAM}, "SASL_PLAINTEXT"),
        ({"tls": Tls(), "sasl": SCRAM}, "SASL_SSL"),
        ({"iam": Iam("eu-west-1")}, "SASL_SSL"),
    ],
)
def test_what_a_profile_names_decides_the_protocol(given: dict[str, Any], protocol: str) -> None:
    connection = Connection(("a:1",), **given)
    assert to_librdkafka(connection)["security.protocol"] == protocol
    assert to_java(connection)["security.protocol"] == protocol


@pytest.mark.parametrize("timeout", [1, 300])
def test_librdkafka_knows_every_setting(tls: Tls, timeout: int) -> None:
    profile = ClientProfile(dial_timeout=timeout, read_timeout=timeout)
    for sasl in (SCRAM, replace(SCRAM, mechanism=None), OAUTH, None):
        for given in (tls, replace(tls, noverify=True), None):
            connection = replace(NOBODY_THERE, profile=profile, tls=given, sasl=sasl)
            AdminClient({**to_librdkafka(connection), "log_level": 0})


def test_certificates_and_keys_are_in_the_options_themselves_in_the_form_that_java_needs(tls: Tls) -> None:
    librdkafka, java = (to(replace(OPEN, tls=tls)) for to in (to_librdkafka, to_java))
    assert java["ssl.truststore.type"] == java["ssl.keystore.type"] == "PEM"
    assert tls.cafile is not None
    assert java["ssl.truststore.certificates"] == librdkafka["ssl.ca.pem"] == tls.cafile.read_text()
    assert java["ssl.keystore.certificate.chain"] == librdkafka["ssl.certificate.pem"]
    assert java["ssl.keystore.certificate.chain"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert java["ssl.keystore.key"] == librdkafka["ssl.key.pem"]
    assert java["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----\n"), "PKCS#8, without a password"


def test_a_file_that_changes_counts_at_the_next_use(tls: Tls, tmp_path: Path) -> None:
    connection = replace(OPEN, tls=tls, sasl=replace(SCRAM, password=Secret(file=tmp_path / "password")))
    with pytest.raises(SecretError, match="cannot be read: No such file"):
        to_librdkafka(connection)
    for password in ("first", "second"):
        (tmp_path / "password").write_text(f"{password}\n")
        assert to_librdkafka(connection)["sasl.password"] == password
        assert f'password="{password}"' in to_java(connection)["sasl.jaas.config"]
    before = to_java(connection)
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    assert to_java(connection) != before


def test_a_certificate_and_a_key_that_are_replaced_one_by_one_are_used_together(tls: Tls, tmp_path: Path) -> None:
    other = trustme.CA().issue_cert("me@example.com")
    other.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    connection = replace(OPEN, tls=tls)
    with ThreadPoolExecutor() as pool:
        options = pool.submit(to_java, connection)
        with pytest.raises(TimeoutError):
            options.result(0.1)
        other.private_key_pem.write_to_path(tmp_path / "key.pem")
        key = options.result(10)["ssl.keystore.key"]
    assert key == to_librdkafka(connection)["ssl.key.pem"]
    trustme.CA().issue_cert("me@example.com").private_key_pem.write_to_path(tmp_path / "key.pem")
    with pytest.raises(SecretError, match=r"is not the key of the certificate in .*cert\.pem"):
        to_java(connection)


def test_every_character_of_a_password_survives_jaas() -> None:
    assert to_java(replace(OPEN, sasl=SCRAM))["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a \\"quoted\\" \\\\ back\\tslash";'
    )
    assert to_librdkafka(replace(OPEN, sasl=SCRAM))["sasl.password"] == PASSWORD


def test_no_mechanism_means_plain() -> None:
    plain = replace(OPEN, sasl=replace(SCRAM, mechanism=None))
    assert to_librdkafka(plain)["sasl.mechanism"] == to_java(plain)["sasl.mechanism"] == "PLAIN"
    assert "plain.PlainLoginModule" in to_java(plain)["sasl.jaas.config"]


def test_oauthbearer_asks_the_token_endpoint_in_both_clients(tls: Tls) -> None:
    connection = replace(OPEN, sasl=replace(OAUTH, token_endpoint_cafile=tls.cafile))
    librdkafka, java = to_librdkafka(connection), to_java(connection)
    assert librdkafka["sasl.oauthbearer.method"] == "oidc"
    assert librdkafka["sasl.oauthbearer.client.secret"] == "hush"
    assert librdkafka["https.ca.pem"] == tls.ca_certificates()
    assert java["sasl.oauthbearer.token.endpoint.url"] == librdkafka["sasl.oauthbearer.token.endpoint.url"]
    assert 'clientId="id" clientSecret="hush" scope="kafka"' in java["sasl.jaas.config"]
    assert "\n" not in java["sasl.jaas.config"], "JAAS has no values over several lines"


def test_options_of_a_client_are_passed_on() -> None:
    profile = ClientProfile(librdkafka={"ssl.cipher.suites": Secret("A")}, java={"ssl.protocol": Secret("TLSv1.3")})
    connection = replace(OPEN, profile=profile)
    assert to_librdkafka(connection)["ssl.cipher.suites"] == "A"
    assert to_java(connection)["ssl.protocol"] == "TLSv1.3"
    assert "ssl.protocol" not in to_librdkafka(connection)


@pytest.mark.parametrize(
    ("iam", "login"),
    [
        (Iam("eu-west-1"), ""),
        (Iam("eu-west-1", profile="ops"), ' awsProfileName="ops"'),
        (Iam("eu-west-1", role_arn="arn:x"), ' awsRoleArn="arn:x" awsStsRegion="eu-west-1"'),
    ],
)
def test_amazon_msk_has_a_token_for_librdkafka_and_a_mechanism_for_java(iam: Iam, login: str) -> None:
    librdkafka, java = (to(replace(OPEN, iam=iam)) for to in (to_librdkafka, to_java))
    assert librdkafka["sasl.mechanism"] == "OAUTHBEARER"
    assert librdkafka["oauth_cb"] == MskTokens(iam)
    assert java["sasl.mechanism"] == "AWS_MSK_IAM"
    assert java["sasl.jaas.config"] == f"software.amazon.msk.auth.iam.IAMLoginModule required{login};"
    assert java["sasl.client.callback.handler.class"] == "software.amazon.msk.auth.iam.IAMClientCallbackHandler"

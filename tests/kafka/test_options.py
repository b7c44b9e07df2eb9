import pytest
from confluent_kafka.admin import AdminClient

from warren.config import Cluster, Consumer
from warren.config.kafka import ClientProfile, unsupported_keys
from warren.errors import ConfigError
from warren.kafka.options import to_librdkafka, to_spark_options

SERVERS = ("a.example.com:9092", "[::1]:9093")
CLUSTER = Cluster("local", SERVERS)
CONSUMER = Consumer("commits", "local", SERVERS)


@pytest.mark.parametrize("section", [CLUSTER, CONSUMER])
def test_without_a_profile_burrows_client_id_is_used(section: Cluster | Consumer) -> None:
    settings = {
        "bootstrap.servers": "a.example.com:9092,[::1]:9093",
        "client.id": "burrow-lagchecker",
        "security.protocol": "PLAINTEXT",
    }
    assert to_librdkafka(section, ClientProfile()) == settings
    assert to_spark_options(section, ClientProfile()) == {f"kafka.{key}": settings[key] for key in settings}


def test_the_profile_gives_client_id_and_timeouts() -> None:
    profile = ClientProfile(client_id="lag", dial_timeout=3, read_timeout=7)
    librdkafka = to_librdkafka(CLUSTER, profile)
    spark = to_spark_options(CLUSTER, profile)
    assert librdkafka["client.id"] == spark["kafka.client.id"] == "lag"
    assert librdkafka["socket.connection.setup.timeout.ms"] == "3000"
    assert librdkafka["socket.timeout.ms"] == "7000"
    assert spark["kafka.socket.connection.setup.timeout.ms"] == "3000"
    assert spark["kafka.socket.connection.setup.timeout.max.ms"] == "3000"
    assert spark["kafka.request.timeout.ms"] == "7000"


@pytest.mark.parametrize(("read_timeout", "call_timeout"), [(1, "60000"), (60, "60000"), (300, "300000")])
def test_java_never_gets_a_request_timeout_above_that_of_the_call(read_timeout: int, call_timeout: str) -> None:
    options = to_spark_options(CONSUMER, ClientProfile(read_timeout=read_timeout))
    assert options["kafka.default.api.timeout.ms"] == call_timeout


@pytest.mark.parametrize("timeout", [1, 300])
def test_librdkafka_knows_every_setting(timeout: int) -> None:
    nobody_there = Cluster("local", ("127.0.0.1:1",))
    AdminClient({**to_librdkafka(nobody_there, ClientProfile(dial_timeout=timeout, read_timeout=timeout))})


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (ClientProfile(name="safe", tls="x"), "[client-profile.safe] tls: TLS is not supported yet"),
        (ClientProfile(name="safe", tls=""), "[client-profile.safe] tls: TLS is not supported yet"),
        (ClientProfile(name="safe", sasl="x"), "[client-profile.safe] sasl: SASL is not supported yet"),
        (ClientProfile(name="safe", iam="x"), "[client-profile.safe] iam: AWS IAM is not supported yet"),
    ],
)
def test_a_profile_that_asks_for_security_never_gets_an_open_connection(profile: ClientProfile, words: str) -> None:
    for settings_of in (to_librdkafka, to_spark_options):
        with pytest.raises(ConfigError) as refusal:
            settings_of(CLUSTER, profile)
        assert [mistake.startswith(words) for mistake in refusal.value.mistakes] == [True]


def test_everything_that_unsupported_keys_is_named_at_once() -> None:
    assert list(unsupported_keys(ClientProfile(tls="a", sasl="b", iam="c"))) == ["tls", "sasl", "iam"]
    assert unsupported_keys(ClientProfile()) == {}

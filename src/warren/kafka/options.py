"""A connection as the options of the two Kafka clients, librdkafka and Java's.

Options are made when they are used: they contain secrets and certificates themselves, not the names of files, so that
a file that has changed counts at once and Spark's executors need no files.
"""

import contextlib
import time
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from warren.config.kafka import Connection
from warren.config.pem import is_key_of
from warren.config.secrets import revealed
from warren.config.security import Sasl, Tls
from warren.errors import SecretError
from warren.kafka.broker_certificates import trusted_certificates
from warren.kafka.msk import MskTokens

# The Java admin client refuses a request timeout above the one of the whole call, which is 60 s if not set.
_JAVA_CALL_TIMEOUT_MS = 60_000
_BROKERS_TIMEOUT_S = 5.0
_PAIR_ATTEMPTS = 5
_PAIR_WAIT_S = 0.2
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_OAUTH}.OAuthBearerLoginModule",
}
_MSK = "software.amazon.msk.auth.iam"


def to_librdkafka(connection: Connection) -> dict[str, Any]:
    """The options for confluent-kafka's clients; SecretError if a file cannot be read."""
    options: dict[str, Any] = _common(connection)
    if connection.profile.read_timeout is not None:
        options["socket.timeout.ms"] = str(connection.profile.read_timeout * 1000)
    if connection.tls is not None:
        options |= _librdkafka_tls(connection.tls)
    if connection.iam is not None:
        options |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": MskTokens(connection.iam)}
    elif connection.sasl is not None:
        options |= _librdkafka_sasl(connection.sasl)
    return options | {name: option.reveal() for name, option in connection.profile.librdkafka.items()}


def to_java(connection: Connection) -> dict[str, str]:
    """The options for Java's clients; SecretError if a file cannot be read."""
    options, profile = _common(connection), connection.profile
    if profile.dial_timeout is not None:
        options["socket.connection.setup.timeout.max.ms"] = str(profile.dial_timeout * 1000)
    if profile.read_timeout is not None:
        read_timeout_ms = profile.read_timeout * 1000
        options["request.timeout.ms"] = str(read_timeout_ms)
        options["default.api.timeout.ms"] = str(max(read_timeout_ms, _JAVA_CALL_TIMEOUT_MS))
    if connection.tls is not None:
        options |= _java_tls(connection.tls, connection)
    if connection.iam is not None:
        iam = connection.iam
        role = {"awsRoleArn": iam.role_arn, "awsStsRegion": iam.region} if iam.role_arn else {}
        given = role or ({"awsProfileName": iam.profile} if iam.profile else {})
        options["sasl.mechanism"] = "AWS_MSK_IAM"
        options["sasl.jaas.config"] = jaas(f"{_MSK}.IAMLoginModule", given)
        options["sasl.client.callback.handler.class"] = f"{_MSK}.IAMClientCallbackHandler"
    elif connection.sasl is not None:
        options |= _java_sasl(connection.sasl)
    return options | {name: option.reveal() for name, option in profile.java.items()}


def to_spark_options(connection: Connection) -> dict[str, str]:
    """The options of Spark's Kafka source, `kafka.` before each Java name."""
    return {f"kafka.{name}": value for name, value in to_java(connection).items()}


def jaas(module: str, given: dict[str, str | None]) -> str:
    """A login module with its settings, as Java's JAAS configuration needs them."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    table = str.maketrans(escapes)
    settings = "".join(f' {name}="{value.translate(table)}"' for name, value in given.items() if value is not None)
    return f"{module} required{settings};"


def _common(connection: Connection) -> dict[str, str]:
    is_encrypted = connection.tls is not None or connection.iam is not None
    has_login = connection.sasl is not None or connection.iam is not None
    protocol = "SSL" if is_encrypted else "PLAINTEXT"
    options = {
        "bootstrap.servers": ",".join(connection.servers),
        "client.id": connection.profile.client_id,
        "security.protocol": f"SASL_{protocol}" if has_login else protocol,
    }
    if connection.profile.dial_timeout is not None:
        options["socket.connection.setup.timeout.ms"] = str(connection.profile.dial_timeout * 1000)
    return options


def _librdkafka_tls(tls: Tls) -> dict[str, str]:
    options: dict[str, str] = {}
    if tls.cafile is not None:
        options["ssl.ca.pem"] = tls.ca_certificates()
    if tls.certfile is not None:
        options["ssl.certificate.pem"], options["ssl.key.pem"] = _own_certificate(tls)
    if tls.noverify:
        options |= {"enable.ssl.certificate.verification": "false", "ssl.endpoint.identification.algorithm": "none"}
    return options


def _librdkafka_sasl(sasl: Sasl) -> dict[str, str]:
    options = {"sasl.mechanism": sasl.effective_mechanism}
    if sasl.effective_mechanism != "OAUTHBEARER":
        return options | {"sasl.username": sasl.username or "", "sasl.password": revealed(sasl.password)}
    options |= {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": sasl.token_endpoint_url or "",
        "sasl.oauthbearer.client.id": sasl.client_id or "",
        "sasl.oauthbearer.client.secret": revealed(sasl.client_secret),
    }
    certificates = sasl.token_endpoint_certificates()
    optional = {"sasl.oauthbearer.scope": sasl.scope, "https.ca.pem": certificates}
    return options | {name: value for name, value in optional.items() if value}


def _java_tls(tls: Tls, connection: Connection) -> dict[str, str]:
    options: dict[str, str] = {}
    if tls.noverify:
        # Java has no switch for it: what the brokers present now is trusted, whatever it is.
        trusted = trusted_certificates(connection.servers, lambda: _brokers(connection))
        options["ssl.endpoint.identification.algorithm"] = ""
    else:
        trusted = tls.ca_certificates()
    if trusted:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
    if tls.certfile is not None:
        options["ssl.keystore.type"] = "PEM"
        options["ssl.keystore.certificate.chain"], options["ssl.keystore.key"] = _own_certificate(tls)
    return options


def _own_certificate(tls: Tls) -> tuple[str, str]:
    """The own certificate and its key; files that are just being replaced are read until they belong together."""
    for attempt in range(_PAIR_ATTEMPTS):
        time.sleep(_PAIR_WAIT_S if attempt else 0.0)
        pair = tls.certificates(), tls.private_key()
        if is_key_of(pair[1], pair[0]):
            return pair
    raise SecretError(f"{tls.keyfile}: is not the key of the certificate in {tls.certfile}")


def _brokers(connection: Connection) -> list[str]:
    """The addresses of all brokers, as far as they tell."""
    with contextlib.suppress(KafkaException):
        brokers = AdminClient({**to_librdkafka(connection), "log_level": 0}).list_topics(timeout=_BROKERS_TIMEOUT_S)
        return [f"{broker.host}:{broker.port}" for broker in brokers.brokers.values()]
    return []


def _java_sasl(sasl: Sasl) -> dict[str, str]:
    mechanism = sasl.effective_mechanism
    given: dict[str, str | None] = {"username": sasl.username, "password": revealed(sasl.password)}
    options = {"sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        given = {"clientId": sasl.client_id, "clientSecret": revealed(sasl.client_secret), "scope": sasl.scope}
        if certificates := sasl.token_endpoint_certificates():
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates}
        options["sasl.login.callback.handler.class"] = f"{_OAUTH}.OAuthBearerLoginCallbackHandler"
        options["sasl.oauthbearer.token.endpoint.url"] = sasl.token_endpoint_url or ""
    options["sasl.jaas.config"] = jaas(_LOGIN_MODULES[mechanism], given)
    return options

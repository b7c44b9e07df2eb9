"""A section's servers and client profile as the settings of the two Kafka clients: librdkafka and Java's."""

from warren.config.kafka import ClientProfile, Cluster, Consumer, unsupported_keys
from warren.errors import ConfigError

# The Java admin client refuses a request timeout above the one of the whole call, which is 60 s if not set.
_JAVA_CALL_TIMEOUT_MS = 60_000


def to_librdkafka(section: Cluster | Consumer, profile: ClientProfile) -> dict[str, str]:
    """The connection settings for confluent-kafka's clients."""
    settings = _connection(section, profile)
    if profile.read_timeout is not None:
        settings["socket.timeout.ms"] = str(profile.read_timeout * 1000)
    return settings


def to_spark_options(section: Cluster | Consumer, profile: ClientProfile) -> dict[str, str]:
    """The connection settings as options of Spark's Kafka source, `kafka.` before each Java name."""
    settings = _connection(section, profile)
    if profile.dial_timeout is not None:
        settings["socket.connection.setup.timeout.max.ms"] = str(profile.dial_timeout * 1000)
    if profile.read_timeout is not None:
        read_timeout_ms = profile.read_timeout * 1000
        settings["request.timeout.ms"] = str(read_timeout_ms)
        settings["default.api.timeout.ms"] = str(max(read_timeout_ms, _JAVA_CALL_TIMEOUT_MS))
    return {f"kafka.{name}": value for name, value in settings.items()}


def _connection(section: Cluster | Consumer, profile: ClientProfile) -> dict[str, str]:
    # Never fall back to an open connection when the profile asks for a safe one.
    refused = [f"[client-profile.{profile.name}] {key}: {why}" for key, why in unsupported_keys(profile).items()]
    if refused:
        raise ConfigError(refused)
    settings = {
        "bootstrap.servers": ",".join(section.servers),
        "client.id": profile.client_id,
        "security.protocol": "PLAINTEXT",
    }
    if profile.dial_timeout is not None:
        settings["socket.connection.setup.timeout.ms"] = str(profile.dial_timeout * 1000)
    return settings

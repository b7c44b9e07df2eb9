"""Whether librdkafka takes the options that profiles pass on, by asking it."""

from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import KafkaException, libversion
from confluent_kafka.admin import AdminClient

from warren.config import Config
from warren.config.findings import Findings
from warren.config.kafka import ClientProfile
from warren.errors import ConfigError


def check_options(config: Config, findings: Findings) -> None:
    """Report every option of a profile that librdkafka does not take."""
    findings.mistakes += [mistake for profile in config.client_profiles.values() for mistake in _mistakes(profile)]


def refuse_bad_options(config: Config) -> None:
    """Raise ConfigError if `check_options` finds mistakes, so that they prevent the start."""
    findings = Findings(Path())
    check_options(config, findings)
    if findings.mistakes:
        raise ConfigError(findings.mistakes)


def _mistakes(profile: ClientProfile) -> Iterator[str]:
    for name, value in profile.librdkafka.items():
        try:
            AdminClient({"log_level": 0, name: value.reveal()})
        except KafkaException as error:
            # Its message may quote the value, which may be a secret.
            is_unknown = error.args[0].str().startswith("No such configuration property")
            why = f"librdkafka {libversion()[0]} has no such option" if is_unknown else "librdkafka refuses its value"
            yield f"[client-profile.{profile.name}.librdkafka] {name}: {why}"

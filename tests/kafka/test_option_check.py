import pytest

from warren.config.kafka import ClientProfile
from warren.config.load import Config
from warren.config.secrets import Secret
from warren.errors import ConfigError
from warren.kafka.option_check import refuse_bad_options


def config_with(**options: str) -> Config:
    given = {name.replace("_", "."): Secret(value) for name, value in options.items()}
    return Config({}, {}, client_profiles={"p": ClientProfile(librdkafka=given, name="p")})


def test_librdkafka_itself_checks_the_options_that_are_passed_on() -> None:
    refuse_bad_options(config_with(socket_keepalive_enable="true", fetch_min_bytes="1"))
    with pytest.raises(ConfigError) as refused:
        refuse_bad_options(config_with(no_such_option="1", socket_timeout_ms="hush"))
    unknown, wrong = refused.value.mistakes
    assert unknown.startswith("[client-profile.p.librdkafka] no.such.option: librdkafka ")
    assert unknown.endswith(" has no such option")
    assert wrong == "[client-profile.p.librdkafka] socket.timeout.ms: librdkafka refuses its value"

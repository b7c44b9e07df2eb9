from pathlib import Path

import pytest

from warren.config import Config, read
from warren.config.tables import variable

FILE = """
[logging]
level = "info"
[cluster.eu-1]
class-name = "kafka"
servers = ["a:1"]
[consumer."eu.1"]
class-name = "kafka"
cluster = "eu-1"
servers = ["a:1"]
group-whitelist = "^a"
"""


def overridden(config_dir: Path, text: str = FILE, **environ: str) -> Config:
    (config_dir / "burrow.toml").write_text(text)
    config, findings = read(config_dir, environ)
    assert config is not None, findings.mistakes
    return config


def test_a_variable_is_the_key_in_capitals() -> None:
    assert variable("BURROW", "consumer", "eu.1", "start-latest") == "BURROW_CONSUMER_EU_1_START_LATEST"


def test_every_kind_of_value_can_come_from_the_environment(tmp_path: Path) -> None:
    config = overridden(
        tmp_path,
        BURROW_LOGGING_LEVEL="debug",
        BURROW_CLUSTER_EU_1_SERVERS="b:2 c:3,d:4",
        BURROW_CONSUMER_EU_1_START_LATEST="true",
        BURROW_CONSUMER_EU_1_GROUP_ALLOWLIST="^b",
        BURROW_PIPELINE_TRIGGER="2.5",
        BURROW_CLUSTER_EU_1_TOPIC_REFRESH="7",
    )
    assert (config.logging.level, config.pipeline.trigger) == ("debug", 2.5)
    assert (config.clusters["eu-1"].servers, config.clusters["eu-1"].topic_refresh) == (("b:2", "c:3", "d:4"), 7)
    consumer = config.consumers["eu.1"]
    assert (consumer.start_latest, consumer.group_allowlist) == (True, "^b"), "also where the file has its older name"


def test_warrens_own_prefix_is_the_stronger_one_and_an_empty_variable_says_nothing(tmp_path: Path) -> None:
    both = {"BURROW_LOGGING_LEVEL": "debug", "WARREN_LOGGING_LEVEL": "error", "WARREN_LOGGING_FILENAME": ""}
    config = overridden(tmp_path, **both)
    assert (config.logging.level, config.logging.filename) == ("error", None)


def test_the_prefix_can_be_chosen(tmp_path: Path) -> None:
    text = FILE + '[general]\nenv-var-prefix = "LAG"\n'
    config = overridden(tmp_path, text, LAG_LOGGING_LEVEL="warn", BURROW_LOGGING_LEVEL="debug")
    assert config.logging.level == "warn"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("BURROW_CLUSTER_EU_1_TOPIC_REFRESH", "often", 'BURROW_CLUSTER_EU_1_TOPIC_REFRESH = "often": must be a whole'),
        ("BURROW_LOGGING_USE_LOCALTIME", "maybe", 'BURROW_LOGGING_USE_LOCALTIME = "maybe": must be true or false'),
        ("BURROW_CLUSTER_EU_1_SERVERS", "nowhere", "BURROW_CLUSTER_EU_1_SERVERS ="),
    ],
)
def test_a_mistake_names_the_variable(tmp_path: Path, name: str, value: str, message: str) -> None:
    (tmp_path / "burrow.toml").write_text(FILE)
    config, findings = read(tmp_path, {name: value})
    assert config is None
    (mistake,) = findings.mistakes
    assert mistake.startswith(f"environment variable {message}")

"""Writes a burrow.toml and reads it back, with what is reported about it."""

from pathlib import Path

import pytest

from warren.config import Config, load, read
from warren.errors import ConfigError

CLUSTER = """
[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
"""
CONSUMER = """
[consumer.local]
class-name = "kafka"
cluster = "local"
servers = ["localhost:9092"]
"""
SMALLEST = CLUSTER + CONSUMER


def loaded(config_dir: Path, text: str) -> Config:
    (config_dir / "burrow.toml").write_text(text, encoding="utf-8")
    return load(config_dir)


def mistakes(config_dir: Path, text: str) -> list[str]:
    """The mistakes of a file, without the directory in front."""
    with pytest.raises(ConfigError) as refusal:
        loaded(config_dir, text)
    return [mistake.removeprefix(f"{config_dir}/") for mistake in refusal.value.mistakes]


def warnings(config_dir: Path, text: str) -> list[str]:
    loaded(config_dir, text)
    return [warning.removeprefix(f"{config_dir}/") for warning in read(config_dir)[1].warnings]


def notes(config_dir: Path, text: str) -> list[str]:
    loaded(config_dir, text)
    return [note.removeprefix(f"{config_dir}/") for note in read(config_dir)[1].notes]

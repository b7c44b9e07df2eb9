import json
from pathlib import Path

import pytest

from warren.config import read
from warren.config.files import find_file, yaml_lines

TABLES = {
    "general": {"access-control-allow-origin": "*"},
    "cluster": {"EU": {"class-name": "kafka", "servers": ["a:1"]}},
    "consumer": {"EU": {"class-name": "kafka", "cluster": "EU", "servers": ["a:1"], "start-latest": True}},
}
TOML = """
general.access-control-allow-origin = "*"
[cluster.EU]
class-name = "kafka"
servers = ["a:1"]
[consumer.EU]
class-name = "kafka"
cluster = "EU"
servers = ["a:1"]
start-latest = true
"""
YAML = """
general: {access-control-allow-origin: "*"}
cluster:
  EU: {class-name: kafka, servers: ["a:1"]}
consumer:
  EU:
    class-name: kafka
    cluster: EU
    servers:
    - a:1
    start-latest: true
"""
TEXTS = {"burrow.toml": TOML, "burrow.yaml": YAML, "burrow.json": json.dumps(TABLES, indent="\t")}


def test_toml_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    found = []
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
        assert find_file(tmp_path) == tmp_path / name
        config, findings = read(tmp_path, {})
        assert findings.mistakes == findings.warnings == []
        found.append(config)
        (tmp_path / name).unlink()
    assert found[0] is not None
    assert found == [found[0]] * 3


def test_of_several_files_the_toml_one_is_read(tmp_path: Path) -> None:
    for name in TEXTS:
        (tmp_path / name).write_text("")
    assert find_file(tmp_path).name == "burrow.toml"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("burrow.yaml", "cluster: [", "must be YAML: "),
        ("burrow.yaml", "- cluster", "must contain sections with keys"),
        ("burrow.yaml", "a: &a [*a]", "has no [cluster.NAME] section"),
        ("burrow.json", '{"cluster": }', "must be JSON: "),
        ("burrow.json", "[" * 100_000, "must be JSON: "),
        ("burrow.yaml", "", "has no [cluster.NAME] section"),
    ],
)
def test_what_is_no_configuration_is_a_mistake(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    config, findings = read(tmp_path, {})
    assert config is None
    assert findings.mistakes[0].startswith(f"{tmp_path / name}: {message}")


def test_lines_of_yaml_and_json_are_known() -> None:
    assert yaml_lines(YAML)["consumer", "EU", "start-latest"] == 11
    assert yaml_lines(json.dumps(TABLES, indent=2))["cluster", "EU", "servers"] == 8
    assert yaml_lines("a: [") == {}


def test_a_number_as_a_name_is_the_word_it_looks_like(tmp_path: Path) -> None:
    (tmp_path / "burrow.yaml").write_text("cluster:\n  1: {class-name: kafka, servers: ['a:1']}\n")
    config, _ = read(tmp_path, {})
    assert config is not None
    assert list(config.clusters) == ["1"]

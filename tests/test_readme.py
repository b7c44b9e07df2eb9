"""What the README shows is what one gets."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from warren.cli import main
from warren.config import load

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_every_command_is_one_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^\$ \.venv/bin/warren (\S+)", "".join(blocks("console")), re.MULTILINE)
    assert commands
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    assert capsys.readouterr().out


def test_the_configuration_loads_with_what_it_says(tmp_path: Path) -> None:
    clusters, pipeline = blocks("toml")
    (tmp_path / "burrow.toml").write_text(clusters + "\n" + pipeline)
    config = load(tmp_path)
    assert (list(config.clusters), list(config.consumers)) == (["main"], ["main"])
    # The section shows the defaults, so leaving it out must not change anything.
    (tmp_path / "burrow.toml").write_text(clusters)
    assert load(tmp_path) == config
    assert tomllib.loads(pipeline)["pipeline"]["trigger"] == config.pipeline.trigger


def test_the_example_of_evaluate_gives_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = next(block for block in blocks("console") if "windows.jsonl" in block).splitlines()
    monkeypatch.chdir(tmp_path)
    Path("windows.jsonl").write_text(shown[1] + "\n")
    assert main(shlex.split(shown[2])[2:]) == 0
    assert capsys.readouterr().out == shown[3] + "\n"

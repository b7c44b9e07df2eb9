"""What the README shows is what one gets."""

import os
import re
import shlex
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.demos import ROOT, readme_blocks
from tests.kit.kafka import commit
from tests.kit.warrens import wait_for
from warren.cli import main
from warren.config import load
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics, fill_topic

READMES = ("README.md", "README.ko.md")
SHOWN_PORT, SHOWN_BROKER = "8000", "localhost:9092"


def commands(name: str) -> list[str]:
    """Every command that is shown with a prompt, without its comment."""
    shown = "".join(readme_blocks("console", name))
    return [line.partition("  #")[0].strip() for line in re.findall(r"^\$ (.*)", shown, re.MULTILINE)]


@pytest.mark.parametrize("name", READMES)
def test_every_command_is_one_that_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.findall(r"\bwarren (\w+) ", "\n".join(commands(name)))
    assert {"run", "check", "groups", "group", "evaluate"} <= set(found)
    for command in set(found):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    assert capsys.readouterr().out


def test_both_show_the_same_commands_and_configuration() -> None:
    english, korean = READMES
    assert commands(korean) == commands(english)
    assert readme_blocks("sh", korean) == readme_blocks("sh", english)
    assert list(map(tomllib.loads, readme_blocks("toml", korean))) == list(map(tomllib.loads, readme_blocks("toml")))


@pytest.mark.parametrize("name", READMES)
def test_links_and_pictures_are_there(name: str) -> None:
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)|src=\"([^\"]+)\"", text):
        path = "".join(target)
        assert path.startswith("https://") or (ROOT / path).exists(), path


def test_the_configuration_loads_with_what_it_says(tmp_path: Path) -> None:
    clusters, pipeline = readme_blocks("toml")
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
    shown = next(block for block in readme_blocks("console") if "windows.jsonl" in block).splitlines()
    monkeypatch.chdir(tmp_path)
    Path("windows.jsonl").write_text(shown[1] + "\n")
    assert main(shlex.split(shown[2])[2:]) == 0
    assert capsys.readouterr().out == shown[3] + "\n"


@contextmanager
def started(command: str, log: Path) -> Iterator[None]:
    """A command of the README that goes on until it is ended."""
    with log.open("w") as out, subprocess.Popen(
        shlex.split(command), cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    ) as process:  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
    assert process.returncode == 0, log.read_text()[-2000:]


@pytest.mark.timeout(300)
def test_the_commands_do_on_a_real_kafka_what_they_say(tmp_path: Path) -> None:
    with Kafka() as kafka, socket.create_server(("127.0.0.1", 0)) as free:
        create_topics(kafka.bootstrap, {"orders": 1})
        fill_topic(kafka.bootstrap, "orders", 100)
        commit(kafka.bootstrap, "billing", "orders", {0: 90})
        port = str(free.getsockname()[1])
        free.close()
        config = readme_blocks("toml")[0].replace(SHOWN_BROKER, kafka.bootstrap).replace(SHOWN_PORT, port)
        (tmp_path / "burrow.toml").write_text(config)

        def meant(command: str) -> str:
            named = command.replace("DIR", str(tmp_path)).replace("GROUP", "billing").replace(SHOWN_PORT, port)
            return named.replace("make install && ", "")

        def printed(command: str) -> str:
            environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            done = subprocess.run(
                meant(command), shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            return done.stdout

        [run] = [command for command in commands("README.md") if " run " in command]
        asking = [one for one in commands("README.md") if any(f" {w} " in one for w in ("check", "groups", "group"))]
        asking = [one for one in asking if "/etc/" not in one] + [one for one in commands("README.md") if "curl" in one]
        assert len(asking) == 5
        check, groups, group, explain, in_trouble = asking
        assert "main" in printed(check)
        with started(meant(run), tmp_path / "log"):
            # A look at the log costs nothing; a command takes a second of the CPU that Warren needs for its start.
            wait_for(lambda: re.search(r" snapshot \d+: [1-9]", (tmp_path / "log").read_text()), "a judged snapshot")
            wait_for(lambda: "billing" in printed(groups), "the group is judged", 30)
            assert "orders" in printed(group)
            wait_for(lambda: '"current_lag":10' in printed(explain), "the reason is told", 30)
            assert '"total":0' in printed(in_trouble), "nobody is in trouble"
            assert "<title>Warren</title>" in printed("curl -s localhost:8000/")

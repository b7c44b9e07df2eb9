"""Commands, flags and exit codes."""

from pathlib import Path

import pytest

from tests.kit.plans import Rehearsal, plan
from warren import __version__
from warren.cli import EXAMPLES, main


def test_help_shows_every_command_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert EXAMPLES in out
    for command in ("run", "groups", "group", "evaluate", "demo"):
        assert f"\n    {command} " in out


@pytest.mark.parametrize("command", ["run", "groups", "group", "evaluate", "demo"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: warren {command}" in capsys.readouterr().out


def test_the_examples_are_commands_that_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    for command in ("_run", "_groups", "_group", "_evaluate", "_demo"):

        def note(_: object, command: str = command) -> int:
            ran.append(command)
            return 0

        monkeypatch.setattr(f"warren.cli.{command}", note)
    examples = [line.split("  ")[1].split()[1:] for line in EXAMPLES.splitlines()[1:]]
    assert [main(arguments) for arguments in examples] == [0] * len(examples)
    assert ran == ["_demo", "_run", "_groups", "_group", "_evaluate"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"warren {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [[], ["dance"], ["group", "only-a-cluster"], ["evaluate", "x", "--intervals", "y"]]
)
def test_mistakes_in_the_command_line_are_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: warren" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["groups"], ["group", "local", "g"], ["groups", "--json"]])
def test_without_a_snapshot_the_exit_code_is_2_and_says_what_to_do(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--data-dir", str(tmp_path / "nothing")]) == 2
    assert "start `warren run`" in capsys.readouterr().err

    claimed = Rehearsal(tmp_path, plan(tmp_path))
    claimed.store.publish(claimed.manifest())
    assert main([*command, "--data-dir", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "wait for the first cycle of `warren run`" in said.err
    assert said.out == ""


def test_the_data_directory_comes_from_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "burrow.toml").write_text(
        '[pipeline]\ndata-dir = "elsewhere"\n[cluster.local]\nclass-name = "kafka"\nservers = ["127.0.0.1:1"]\n'
        '[consumer.local]\nclass-name = "kafka"\ncluster = "local"\nservers = ["127.0.0.1:1"]\n'
    )
    assert main(["groups", "--config-dir", str(tmp_path)]) == 2
    assert str(tmp_path / "elsewhere") in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], ["groups"]])
def test_every_mistake_in_the_configuration_is_told(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "burrow.toml").write_text('[cluster.local]\nclass-name = "kafka"\n[storage.a]\nintervals = "many"\n')
    assert main([*command, "--config-dir", str(tmp_path)]) == 1
    errors = capsys.readouterr().err
    assert "servers" in errors
    assert "intervals" in errors
    assert "Traceback" not in errors

"""Commands, flags and exit codes."""

import logging
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.plans import Rehearsal, plan
from warren import __version__
from warren.cli import EXAMPLES, main


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """`warren run` takes over the logging of its process, which here is that of the tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_help_shows_every_command_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert EXAMPLES in out
    for command in ("run", "check", "groups", "group", "reload", "evaluate", "demo"):
        assert f"\n    {command} " in out


@pytest.mark.parametrize("command", ["run", "check", "groups", "group", "reload", "evaluate", "demo"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: warren {command}" in capsys.readouterr().out


def test_the_examples_are_commands_that_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    for command in (
        "_run",
        "_serve",
        "_check",
        "_groups",
        "_group",
        "_history",
        "_notify",
        "_reload",
        "_evaluate",
        "_demo",
    ):

        def note(_: object, command: str = command) -> int:
            ran.append(command)
            return 0

        monkeypatch.setattr(f"warren.cli.{command}", note)
    examples = [shlex.split(line.split("  ")[1])[1:] for line in EXAMPLES.splitlines()[1:]]
    assert [main(arguments) for arguments in examples] == [0] * len(examples)
    assert main(["--config-dir", "/etc/burrow"]) == 0
    last = ["_reload", "_notify", "_evaluate", "_run"]
    assert ran == ["_demo", "_check", "_run", "_serve", "_groups", "_group", "_history", *last]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"warren {__version__}\n")


@pytest.mark.parametrize("arguments", [["dance"], ["group", "only-a-cluster"], ["evaluate", "x", "--intervals", "y"]])
def test_mistakes_in_the_command_line_are_reported(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
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
    lines = capsys.readouterr()
    assert "wait for the first cycle of `warren run`" in lines.err
    assert lines.out == ""


def test_the_data_directory_comes_from_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "burrow.toml").write_text(
        '[pipeline]\ndata-dir = "elsewhere"\n[cluster.local]\nclass-name = "kafka"\nservers = ["127.0.0.1:1"]\n'
        '[consumer.local]\nclass-name = "kafka"\ncluster = "local"\nservers = ["127.0.0.1:1"]\n'
    )
    assert main(["groups", "--config-dir", str(tmp_path)]) == 2
    assert str(tmp_path / "elsewhere") in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], [], ["groups"], ["check"]])
def test_every_mistake_in_the_configuration_is_reported(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "burrow.toml").write_text('[cluster.local]\nclass-name = "kafka"\n[storage.a]\nintervals = "many"\n')
    assert main([*command, "--config-dir", str(tmp_path)]) == 1
    lines = capsys.readouterr()
    errors = lines.err + lines.out
    assert "servers" in errors
    assert "intervals" in errors
    assert "Traceback" not in errors


def test_check_prints_warnings_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "burrow.yaml").write_text(
        "cluster:\n  EU:\n    class-name: kafka\n    servers: [kafka:9092]\n    topic-refesh: 5\n"
        "consumer:\n  eu:\n    class-name: kafka\n    cluster: EU\n    servers: [kafka:9092]\n"
        "httpserver:\n  local:\n    address: 127.0.0.1:8000\n"
    )
    command = ["--config-dir", str(tmp_path), "check"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    odd = f"{tmp_path}/burrow.yaml:5: [cluster.EU] topic-refesh is not a key of this section and is ignored"
    assert lines[:2] == [f"warning: {odd}; did you mean topic-refresh?", f"{tmp_path}/burrow.yaml: 1 warning"]
    assert lines[2:4] == ["cluster EU: kafka:9092", "  groups, from __consumer_offsets of kafka:9092"]
    assert main([*command, "--strict"]) == 1
    assert "cluster EU" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("refreshes", "trigger", "shown"),
    [
        ([], "", "a cycle every 10 s, which"),
        (["offset-refresh = 2", "offset-refresh = 60"], "", "a cycle every 2 s (the shortest offset-refresh), which"),
        (["offset-refresh = 60"], "trigger = 4.5", "a cycle every 4.5 s, which"),
    ],
)
def test_check_shows_how_often_cycles_really_run(
    refreshes: list[str], trigger: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = "".join(
        f'[cluster.c{index}]\nclass-name = "kafka"\nservers = ["127.0.0.1:1"]\n{refresh}\n'
        for index, refresh in enumerate(refreshes or [""])
    )
    (tmp_path / "burrow.toml").write_text(f"{clusters}[pipeline]\n{trigger}\n")
    assert main(["check", "--config-dir", str(tmp_path)]) == 0
    assert f"pipeline: {shown} also samples heads, on Spark at" in capsys.readouterr().out


def test_a_template_that_fails_on_the_sample_is_a_mistake_only_with_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "open.tmpl").write_text("{{.Id}} {{.Nothing}}")
    (tmp_path / "burrow.toml").write_text(
        '[cluster.local]\nclass-name = "kafka"\nservers = ["127.0.0.1:1"]\n'
        '[consumer.local]\nclass-name = "kafka"\ncluster = "local"\nservers = ["127.0.0.1:1"]\n'
        '[notifier.x]\nclass-name = "null"\ntemplate-open = "open.tmpl"\n'
        '[httpserver.local]\naddress = "127.0.0.1:8000"\n'
    )
    command = ["check", "--config-dir", str(tmp_path)]
    assert main(command) == 0
    note, warning, verdict, *_ = capsys.readouterr().out.splitlines()
    assert note == f"note: notifier.x: template {tmp_path}/open.tmpl has .Id, which is read as .ID"
    assert warning.startswith(f"warning: notifier.x: template: {tmp_path}/open.tmpl:1: can't evaluate field Nothing")
    assert verdict.endswith("1 warning, 1 note")
    assert main([*command, "--strict"]) == 1


@pytest.mark.parametrize("section", ['[logging]\nfilename = "{}/x.log"', '[general]\nstdout-logfile = "{}/x.out"'])
def test_a_log_that_cannot_be_written_is_reported(
    section: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").write_text("")
    (tmp_path / "burrow.toml").write_text(
        section.format(tmp_path / "a-file" / "folder")
        + '\n[cluster.local]\nclass-name = "kafka"\nservers = ["127.0.0.1:1"]\n'
    )
    assert main(["run", "--config-dir", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"cannot write the log: {tmp_path / 'a-file'}")
    assert "Not a directory" in error

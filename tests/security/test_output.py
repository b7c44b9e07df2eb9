"""Names in the log and on a terminal are text on one line: no line of their own, no command, no other direction."""

import csv
import io
import json
import logging
import pickle
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.config.written import SMALLEST
from tests.security.names import NAMES
from warren.cli import main
from warren.config.general import Logging
from warren.domain.printable import printable
from warren.errors import WarrenError
from warren.logs import PipeHandler, set_up_logging
from warren.report import print_rows

log = logging.getLogger("warren.test")
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: ")


@pytest.fixture
def log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The log of a running Warren."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    set_up_logging(Logging(filename=tmp_path / "warren.log", level="debug"))
    yield tmp_path / "warren.log"
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def records(file: Path) -> list[str]:
    """The lines of a log that begin a record; the others must be those of tracebacks."""
    lines = file.read_bytes().decode().split("\n")[:-1]
    assert all(line.isprintable() for line in lines)
    assert all(RECORD.match(line) or line.startswith("    ") for line in lines)
    return [line for line in lines if RECORD.match(line)]


def fail(name: str) -> None:
    raise ValueError(name)


def test_a_record_of_the_log_is_one_line(log_file: Path) -> None:
    for name in NAMES.values():
        log.info("deletion requested: group %s of cluster %s", name, "local")
        log.warning(name)  # noqa: G004, RUF100 - as a message that was made elsewhere
    expected = [text for name in NAMES.values() for text in (f"group {printable(name)} of", printable(name))]
    found = records(log_file)
    assert len(found) == len(expected)
    assert all(text in line for text, line in zip(expected, found, strict=True))


def test_a_traceback_adds_no_record(log_file: Path) -> None:
    for name in NAMES.values():
        try:
            fail(name)
        except ValueError:
            log.exception("a cycle failed", stack_info=True)
    assert len(records(log_file)) == len(NAMES)
    assert printable(NAMES["clear the screen"]) in log_file.read_text()


def test_what_a_child_process_logs_is_one_line_too(log_file: Path) -> None:
    sent: list[bytes] = []
    child = logging.Logger("warren.child")
    child.addHandler(PipeHandler(lambda record: sent.append(pickle.dumps(record))))
    for name in NAMES.values():
        try:
            fail(name)
        except ValueError:
            child.exception("a point of %s", name)
    for record in map(pickle.loads, sent):
        logging.getLogger(record.name).handle(record)
    assert len(records(log_file)) == len(NAMES)
    assert "    Traceback (most recent call last):" in log_file.read_text().splitlines()


def test_what_ends_a_thread_is_in_the_log(log_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in NAMES.values():
        thread = threading.Thread(target=fail, args=(name,), name="sampler")
        thread.start()
        thread.join()
    found = records(log_file)
    assert len(found) == len(NAMES)
    assert all(line.endswith("the thread sampler ended with an error") for line in found)
    assert capfd.readouterr() == ("", "")


def is_harmless(text: str) -> bool:
    """Whether a terminal only shows a text."""
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def run(hostile_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "40000")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--data-dir", str(hostile_data)])
        out, err = capsys.readouterr()
        assert is_harmless(out + err), arguments
        return code, out, err

    return run


def test_tables_of_groups_show_names_as_they_are_written(run: Any) -> None:
    code, out, _ = run("groups")
    assert code == 0
    for name in NAMES.values():
        assert f"│ {printable(name)}" in out, name
    assert len(out.splitlines()) == len(NAMES) + 5
    groups = json.loads(run("groups", "--json")[1])
    assert {group["group"] for group in groups} == set(NAMES.values())


def test_a_group_is_shown_and_found_by_its_name(run: Any) -> None:
    for name in NAMES.values():
        if name.startswith("-") or "\x00" in name:
            continue
        code, out, _ = run("group", "one", name)
        assert code == 0
        assert out.startswith(f"one / {printable(name)}: ERR"), name
        assert out.count("STALL") == 2
        assert json.loads(run("group", "one", name, "--json")[1])["group"] == name


def test_errors_of_commands_show_names_as_text(run: Any) -> None:
    for name in NAMES.values():
        code, _, err = run("group", "two", name)
        assert (code, len(err.splitlines())) == (1, 1)


def test_a_bug_shows_its_traceback_without_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    assert main(["groups", "--data-dir", str(tmp_path)]) == 2
    capsys.readouterr()
    for name in NAMES.values():
        try:
            fail(name)
        except ValueError as error:
            sys.excepthook(type(error), error, error.__traceback__)
        err = capsys.readouterr().err
        assert is_harmless(err)
        assert err.startswith("Traceback (most recent call last):\n")


def test_check_shows_keys_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "burrow.toml").write_text(f'{SMALLEST}[general]\n"\\u202e\\u009b2J" = "\\u202e\\u009b2J"\n')
    assert main(["check", "--config-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert is_harmless(out)
    assert r"\u202e\x9b2J" in out


def printed(output_format: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "40000")
    names = list(NAMES.values())
    print_rows(pa.table({"group": names, "lag": range(-25, 25)}), output_format)
    return capsys.readouterr().out


def test_a_query_prints_tables_and_json_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = printed("table", capsys, monkeypatch)
    assert is_harmless(out)
    assert all(printable(name) in out for name in NAMES.values())
    out = printed("json", capsys, monkeypatch)
    assert is_harmless(out)
    assert [json.loads(line)["group"] for line in out.splitlines()] == list(NAMES.values())


def test_a_spreadsheet_finds_no_formula(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = printed("csv", capsys, monkeypatch)
    assert is_harmless(out.replace("\r\n", "\n"))
    [header, *rows] = csv.reader(io.StringIO(out))
    assert header == ["group", "lag"]
    assert [lag for _, lag in rows] == [str(lag) for lag in range(-25, 25)], "a number stays a number"
    assert not [group for group, _ in rows if group.startswith(("=", "+", "-", "@", "\t", "\r"))]
    expected = [f"'{printable(name)}" if name[0] in "=@" else printable(name) for name in NAMES.values()]
    assert [group for group, _ in rows] == expected


def test_an_error_for_the_user_is_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def refuse(*_: object, **__: object) -> None:
        raise WarrenError(NAMES["clear the screen"])

    monkeypatch.setattr("warren.report.print_groups", refuse)
    assert main(["groups", "--data-dir", "."]) == 1
    assert capsys.readouterr().err == printable(NAMES["clear the screen"]) + "\n"

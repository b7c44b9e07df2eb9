"""Logs as the section says: where they go, when a file is rotated, what is kept."""

import gzip
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warren.config.general import Logging
from warren.logs import RotatedFile, set_level, set_up_logging

log = logging.getLogger("warren.test")


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_without_a_file_logs_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(Logging(level="warn"))
    log.info("not this")
    log.warning("but this")
    out = capsys.readouterr().out
    assert out.endswith("WARNING warren.test: but this\n")
    assert "not this" not in out


def test_the_level_changes_while_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(Logging(level="info"), "error")
    log.info("one")
    set_level("trace")
    log.debug("two")
    assert capsys.readouterr().out.endswith("DEBUG warren.test: two\n")


def filled(folder: Path, settings: Logging, records: int = 30) -> tuple[RotatedFile, list[str]]:
    """A handler of files of 1 MB each after records of 100 kB, and what it was given."""
    handler = RotatedFile(settings)
    handler.setFormatter(logging.Formatter("%(message)s"))
    messages = [f"{number:03d} {'x' * 100_000}" for number in range(records)]
    for message in messages:
        handler.handle(logging.makeLogRecord({"msg": message, "levelno": logging.INFO}))
    handler.close()
    handler.clean_up()
    assert folder.exists()
    return handler, messages


def test_a_full_file_is_rotated_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "warren.log"
    handler, messages = filled(tmp_path, Logging(filename=file, maxsize=1))
    files = [*reversed(handler.backups()), file]
    assert len(files) == 3
    assert all(path.stat().st_size <= 1024 * 1024 for path in files)
    assert "".join(path.read_text() for path in files).splitlines() == messages


def test_rotated_files_are_compressed_and_only_so_many_kept(tmp_path: Path) -> None:
    file = tmp_path / "warren.log"
    (tmp_path / "warren-of-mine.txt").write_text("not ours")
    handler, messages = filled(tmp_path, Logging(filename=file, maxsize=1, maxbackups=2, use_compression=True), 60)
    backups = handler.backups()
    assert [path.suffix for path in backups] == [".gz", ".gz"]
    kept = "".join(gzip.decompress(path.read_bytes()).decode() for path in reversed(backups)) + file.read_text()
    assert kept.splitlines() == messages[-len(kept.splitlines()) :]
    assert (tmp_path / "warren-of-mine.txt").exists()


def test_what_is_older_than_its_age_is_removed(tmp_path: Path) -> None:
    handler, _ = filled(tmp_path, Logging(filename=tmp_path / "warren.log", maxsize=1, maxage=3))
    newer, older = handler.backups()
    os.utime(older, (time.time(), time.time() - 4 * 86_400))
    handler.clean_up()
    assert handler.backups() == [newer]

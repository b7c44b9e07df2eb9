"""The pid of a running Warren in its file, and its output in another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warren.daemon import pid_file
from warren.errors import WarrenError


def test_the_pid_is_in_the_file_while_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "warren.pid"
    with pid_file(file, is_configured=True):
        assert file.read_text() == str(os.getpid())
    assert not file.exists()


def test_a_file_of_a_process_that_is_gone_or_never_was_is_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "warren.pid"
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    for left in (str(gone.pid), "", "no number"):
        file.write_text(left)
        with pid_file(file, is_configured=True):
            assert file.read_text() == str(os.getpid())


def test_a_file_of_another_that_runs_forbids_the_start_if_it_was_chosen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "warren.pid"
    file.write_text(str(os.getppid()))
    with pytest.raises(WarrenError, match="already running"), pid_file(file, is_configured=True):
        pass
    with pid_file(file, is_configured=False):
        assert "already running" in caplog.text
    assert file.read_text() == str(os.getppid())


def test_a_file_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WarrenError, match="Not a directory"), pid_file(tmp_path / "file" / "x.pid", is_configured=True):
        pass


def test_a_file_in_a_missing_directory_says_what_to_do(tmp_path: Path) -> None:
    what_to_do = f"the directory {tmp_path}/run does not exist; create it, or configure another pidfile"
    with pytest.raises(WarrenError, match=what_to_do), pid_file(tmp_path / "run" / "x.pid", is_configured=True):
        pass


def test_output_goes_to_the_end_of_a_file(tmp_path: Path) -> None:
    out = tmp_path / "logs" / "burrow.out"
    program = (
        "import os, sys; from pathlib import Path; from warren.daemon import redirect_output;"
        f"redirect_output(Path({str(out)!r})); print('message', flush=True); os.system('echo by a child >&2')"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        assert done.stdout + done.stderr == b""
    assert out.read_text() == "message\nby a child\n" * 2

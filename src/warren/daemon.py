"""A long-running process: its pid file, and the file of its output."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from warren.errors import WarrenError

log = logging.getLogger(__name__)


@contextlib.contextmanager
def pid_file(path: Path, *, is_configured: bool) -> Iterator[None]:
    """Keep the pid of this process in a file while the block runs.

    If the file names another running process, a configured pid file forbids the start. The default one is left to that
    process, as several may run in one directory.
    """
    try:
        _write_pid(path)
    except (OSError, WarrenError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, FileNotFoundError):
            why = f"the directory {path.parent} does not exist; create it, or configure another pidfile"
        if is_configured:
            raise WarrenError(f"pidfile {path}: {why}") from error
        log.warning("no pid file %s: %s", path, why)
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text() == str(os.getpid()):
                path.unlink()


def _write_pid(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
        other = int(path.read_text())
        if other != os.getpid():
            with contextlib.suppress(PermissionError):
                os.kill(other, 0)
            raise WarrenError(f"process {other} is already running; stop it first, or configure another pidfile")
    path.write_text(str(os.getpid()))


def redirect_output(path: Path) -> None:
    """Append standard output and errors, also those of child processes, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)

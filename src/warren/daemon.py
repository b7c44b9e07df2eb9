"""What a process that runs for long leaves in the file system: its pid, and where its output goes."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from warren.errors import WarrenError

log = logging.getLogger(__name__)


@contextlib.contextmanager
def pid_in(path: Path, *, is_chosen: bool) -> Iterator[None]:
    """Keep our pid in a file while the block runs.

    A file that was chosen and that names another process which lives forbids the start; where it is only the default
    (several may run in one directory) it is left to that process.
    """
    try:
        _take(path)
    except (OSError, WarrenError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        if is_chosen:
            raise WarrenError(f"pidfile {path}: {why}") from error
        log.warning("no pid is written to %s: %s", path, why)
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text() == str(os.getpid()):
                path.unlink()


def _take(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError, ValueError):
        other = int(path.read_text())
        if other != os.getpid() and _lives(other):
            raise WarrenError(f"process {other} runs already; stop it first, or choose another pidfile")
    path.write_text(str(os.getpid()))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def redirect_output(path: Path) -> None:
    """Send standard output and errors, those of child processes too, to the end of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)

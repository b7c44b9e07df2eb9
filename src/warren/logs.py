"""Logging as in the `[logging]` section: to standard output, or to a file that is rotated."""

import contextlib
import copy
import gzip
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import QueueHandler, RotatingFileHandler
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from warren.config.general import LEVELS, Logging
from warren.domain.printable import printable, printable_lines

log = logging.getLogger(__name__)

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_INDENT = "    "
_MEGABYTE = 1024 * 1024
_DAY_S = 86_400


def set_up_logging(settings: Logging, level: str | None = None) -> None:
    """Send all logs where the section says; a level given here overrides that of the section."""
    handler = RotatedFile(settings) if settings.filename else logging.StreamHandler(sys.stdout)
    handler.setFormatter(PrintableFormatter(_FORMAT))
    logging.basicConfig(handlers=[handler], force=True)
    set_level(level or settings.level)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    threading.excepthook = log_uncaught


def log_uncaught(uncaught: threading.ExceptHookArgs) -> None:
    """Log what ends a thread; by default it would be printed as it is."""
    name = uncaught.thread.name if uncaught.thread else "?"
    info = (uncaught.exc_type, uncaught.exc_value or uncaught.exc_type(), uncaught.exc_traceback)
    log.error("the thread %s ended with an error", name, exc_info=info)


def set_level(level: str) -> None:
    """Change the level of all logs while Warren runs."""
    logging.getLogger().setLevel(LEVELS[level])


class PrintableFormatter(logging.Formatter):
    """Writes each record on one line, whatever names it has.

    The lines of a traceback follow, indented, so that none of them looks like another record.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the base class
        """The line of a record."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - the name of the base class
        """A traceback, which may quote names too."""
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the name of the base class
        """The stack of a call."""
        return _indented(stack_info)


def _indented(text: str) -> str:
    return _INDENT + printable_lines(text).replace("\n", f"\n{_INDENT}")


class PipeHandler(QueueHandler):
    """Hands records to another process, which writes them; messages and tracebacks are formatted before."""

    def __init__(self, send: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(SimpleQueue())
        self._send = send

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """A record that can be pickled; its traceback stays apart from its message."""
        sent = copy.copy(record)
        sent.msg, sent.args = record.getMessage(), None
        if record.exc_info:
            sent.exc_text = PrintableFormatter().formatException(record.exc_info)
        sent.exc_info = None
        return sent

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record, unless the other process has ended."""
        with contextlib.suppress(OSError):
            self._send(record)


class RotatedFile(RotatingFileHandler):
    """A log file that is renamed to the current time when it is full; old ones are compressed and removed."""

    def __init__(self, settings: Logging) -> None:
        assert settings.filename is not None
        settings.filename.parent.mkdir(parents=True, exist_ok=True)
        max_bytes = (settings.maxsize or Logging.maxsize) * _MEGABYTE
        # One backup for the base class, which then makes a single rename; how many are kept is up to `clean_up`.
        super().__init__(str(settings.filename), maxBytes=max_bytes, backupCount=1, encoding="utf-8")
        self.namer, self.rotator = self._backup_name, self._rotate
        self._settings = settings
        self._file = settings.filename
        self._cleaning = threading.Lock()

    def _backup_name(self, _: str) -> str:
        now = datetime.now(None if self._settings.use_localtime else UTC)
        stem = f"{self._file.stem}-{now:%Y-%m-%dT%H-%M-%S}.{now.microsecond // 1000:03d}"
        names = (self._file.with_name(f"{stem}{'' if n == 0 else f'-{n}'}{self._file.suffix}") for n in range(10_000))
        return str(next(name for name in names if not name.exists() and not Path(f"{name}.gz").exists()))

    def _rotate(self, source: str, backup: str) -> None:
        Path(source).rename(backup)
        # Compression takes long.
        threading.Thread(target=self.clean_up, name="log files", daemon=True).start()

    def backups(self) -> list[Path]:
        """The rotated files, newest first."""
        suffixes = (self._file.suffix, f"{self._file.suffix}.gz")
        paths = self._file.parent.glob(f"{self._file.stem}-*{self._file.suffix}*")
        # Without its suffix, a name comes before the same name with a number, which was rotated later.
        backups = (path for path in paths if path.name.endswith(suffixes))
        return sorted(backups, key=lambda path: path.name.partition(self._file.suffix)[0], reverse=True)

    def clean_up(self) -> None:
        """Remove rotated files that are too many or too old, and compress the others."""
        with self._cleaning:
            oldest = time.time() - self._settings.maxage * _DAY_S if self._settings.maxage else 0.0
            for index, path in enumerate(self.backups()):
                if (self._settings.maxbackups and index >= self._settings.maxbackups) or path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
                elif self._settings.use_compression and path.suffix != ".gz":
                    _compress(path)


def _compress(path: Path) -> None:
    times = path.stat()
    draft = path.with_name(f".{path.name}.gz")
    with path.open("rb") as plain, gzip.open(draft, "wb") as compressed:
        shutil.copyfileobj(plain, compressed)
    os.utime(draft, (times.st_atime, times.st_mtime))
    draft.rename(f"{path}.gz")
    path.unlink()

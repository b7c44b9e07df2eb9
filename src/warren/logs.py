"""Logging as the `[logging]` section says: to standard output, or to a file that is turned over."""

import contextlib
import gzip
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import BaseRotatingHandler
from pathlib import Path

from warren.config import Logging

LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "panic": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_MEGABYTE = 1024 * 1024
_DAY_S = 86_400


def set_up_logging(settings: Logging, level: str | None = None) -> None:
    """Send all logs where the section says; a level given here is stronger than the section's."""
    handler = TurnedFile(settings) if settings.filename else logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    set_level(level or settings.level)
    logging.getLogger("py4j").setLevel(logging.WARNING)


def set_level(level: str) -> None:
    """Change the level of all logs while Warren runs."""
    logging.getLogger().setLevel(LEVELS[level])


class PipeHandler(logging.Handler):
    """Hands records to another process, ready to be written there."""

    def __init__(self, tell: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """One record, with its words made and its traceback in them, as neither travels by itself."""
        told = logging.makeLogRecord(record.__dict__)
        told.msg = record.getMessage()
        if record.exc_info:
            told.msg = f"{told.msg}\n{logging.Formatter().formatException(record.exc_info)}"
        told.args, told.exc_info, told.exc_text, told.stack_info = None, None, None, None
        with contextlib.suppress(OSError):
            self._tell(told)


class TurnedFile(BaseRotatingHandler):
    """A log file that is put aside under the time of day when it is full; old ones are compressed and removed."""

    def __init__(self, settings: Logging) -> None:
        assert settings.filename is not None
        settings.filename.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(str(settings.filename), "a", encoding="utf-8")
        self._settings = settings
        self._file = settings.filename
        self._most = (settings.maxsize or Logging.maxsize) * _MEGABYTE
        self._tidying = threading.Lock()

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - logging's name
        """Whether the record does not fit any more; a file never stays empty for it."""
        size = self._file.stat().st_size if self._file.exists() else 0
        return size > 0 and size + len(self.format(record).encode()) + 1 > self._most

    def doRollover(self) -> None:  # noqa: N802 - logging's name
        """Put the file aside and begin a new one; what follows takes long and is done beside."""
        if self.stream:
            self.stream.close()
        self._file.rename(self._aside())
        self.stream = self._open()
        threading.Thread(target=self.tidy, name="log files", daemon=True).start()

    def _aside(self) -> Path:
        now = datetime.now(None if self._settings.use_localtime else UTC)
        stem = f"{self._file.stem}-{now:%Y-%m-%dT%H-%M-%S}.{now.microsecond // 1000:03d}"
        names = (self._file.with_name(f"{stem}{'' if n == 0 else f'-{n}'}{self._file.suffix}") for n in range(10_000))
        return next(name for name in names if not name.exists() and not Path(f"{name}.gz").exists())

    def backups(self) -> list[Path]:
        """The files put aside, newest first."""
        found = self._file.parent.glob(f"{self._file.stem}-*{self._file.suffix}*")
        ours = [path for path in found if path.name.endswith((self._file.suffix, f"{self._file.suffix}.gz"))]
        return sorted(ours, key=lambda path: path.name, reverse=True)

    def tidy(self) -> None:
        """Remove what is too many or too old, compress the rest."""
        with self._tidying:
            oldest = time.time() - self._settings.maxage * _DAY_S if self._settings.maxage else 0.0
            for place, path in enumerate(self.backups()):
                if (self._settings.maxbackups and place >= self._settings.maxbackups) or path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
                elif self._settings.use_compression and path.suffix != ".gz":
                    _compress(path)


def _compress(path: Path) -> None:
    done = path.stat()
    draft = path.with_name(f".{path.name}.gz")
    with path.open("rb") as plain, gzip.open(draft, "wb") as packed:
        shutil.copyfileobj(plain, packed)
    os.utime(draft, (done.st_atime, done.st_mtime))
    draft.rename(f"{path}.gz")
    path.unlink()

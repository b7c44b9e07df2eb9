"""Writes the book of incidents: all that changed in one snapshot in one transaction, durable when it returns."""

import logging
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from warren.errors import WarrenError
from warren.snapshot.incidents import COLUMNS, FILE, WAIT_S, Entry, to_entry, to_row

log = logging.getLogger(__name__)

_TABLE = """
CREATE TABLE IF NOT EXISTS incidents (
    id TEXT PRIMARY KEY, cluster TEXT NOT NULL, name TEXT NOT NULL, opened_ms INTEGER NOT NULL, closed_ms INTEGER,
    worst INTEGER NOT NULL, changes TEXT NOT NULL, told TEXT NOT NULL, acknowledged_ms INTEGER,
    partitions TEXT NOT NULL, partition_count INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS by_time ON incidents (opened_ms);
CREATE INDEX IF NOT EXISTS by_group ON incidents (cluster, name, opened_ms);
CREATE INDEX IF NOT EXISTS still_open ON incidents (opened_ms) WHERE closed_ms IS NULL;
CREATE INDEX IF NOT EXISTS by_end ON incidents (closed_ms) WHERE closed_ms IS NOT NULL;
"""


class Book:
    """The one writer of a data directory's incidents."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        data_dir.mkdir(parents=True, exist_ok=True)
        try:
            self._book = self._opened()
        except sqlite3.OperationalError as error:
            asked = "may Warren write there, and is there room?"
            raise WarrenError(f"{self._path} cannot be opened: {error}; {asked}") from None
        except sqlite3.DatabaseError as error:
            aside = self._path.with_suffix(".broken")
            log.error("%s cannot be read (%s): put aside as %s, a new one is begun", self._path, error, aside.name)
            self._path.replace(aside)
            self._book = self._opened()

    def _opened(self) -> sqlite3.Connection:
        # The thread that follows snapshots is another one than that which opens the book.
        book = sqlite3.connect(self._path, timeout=WAIT_S, check_same_thread=False, isolation_level=None)
        try:
            book.execute("PRAGMA journal_mode = WAL")
            book.execute("PRAGMA synchronous = FULL")
            book.executescript(_TABLE)
        except sqlite3.Error:
            book.close()
            raise
        return book

    def still_open(self) -> list[Entry]:
        """The incidents that have not ended."""
        query = f"SELECT {', '.join(COLUMNS)} FROM incidents WHERE closed_ms IS NULL"  # noqa: S608 - our own words
        return [to_entry(row) for row in self._book.execute(query)]

    def write(self, entries: Iterable[Entry], forget_before_ms: int) -> None:
        """Put down what has changed and forget what ended long ago: all of it or nothing."""
        places = ", ".join("?" * len(COLUMNS))
        self._book.execute("BEGIN IMMEDIATE")
        try:
            self._book.executemany(
                f"INSERT OR REPLACE INTO incidents ({', '.join(COLUMNS)}) VALUES ({places})",  # noqa: S608
                map(to_row, entries),
            )
            self._book.execute("DELETE FROM incidents WHERE closed_ms < ?", (forget_before_ms,))
            self._book.execute("COMMIT")
        except BaseException:
            self._book.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Nothing more is written."""
        self._book.close()

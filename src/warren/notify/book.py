"""Writes the book of incidents: all that changed in one snapshot in one transaction, durable when it returns."""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from warren.domain.incidents import Event
from warren.errors import WarrenError
from warren.snapshot.incidents import COLUMNS, FILE, WAIT_S, Entry, to_entry, to_row
from warren.snapshot.letters import COLUMNS as LETTER_COLUMNS
from warren.snapshot.letters import Letter, to_letter
from warren.snapshot.letters import to_row as letter_row

log = logging.getLogger(__name__)

_TO_SEND = "sent_ms IS NULL AND given_up_ms IS NULL"
_TABLE = """
CREATE TABLE IF NOT EXISTS incidents (
    id TEXT PRIMARY KEY, cluster TEXT NOT NULL, name TEXT NOT NULL, opened_ms INTEGER NOT NULL, closed_ms INTEGER,
    worst INTEGER NOT NULL, changes TEXT NOT NULL, told TEXT NOT NULL, acknowledged_ms INTEGER,
    partitions TEXT NOT NULL, partition_count INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS by_time ON incidents (opened_ms);
CREATE INDEX IF NOT EXISTS by_group ON incidents (cluster, name, opened_ms);
CREATE INDEX IF NOT EXISTS still_open ON incidents (opened_ms) WHERE closed_ms IS NULL;
CREATE TABLE IF NOT EXISTS letters (
    key TEXT PRIMARY KEY, listener TEXT NOT NULL, event TEXT NOT NULL, incident TEXT NOT NULL, cluster TEXT NOT NULL,
    name TEXT NOT NULL, opened_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, why TEXT NOT NULL, result TEXT NOT NULL,
    attempts INTEGER NOT NULL, next_ms INTEGER NOT NULL, sent_ms INTEGER, given_up_ms INTEGER, trouble TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS to_send ON letters (listener) WHERE sent_ms IS NULL AND given_up_ms IS NULL;
CREATE INDEX IF NOT EXISTS of_incident ON letters (incident);
CREATE INDEX IF NOT EXISTS by_end ON incidents (closed_ms) WHERE closed_ms IS NOT NULL;
"""


class Book:
    """The one writer of a data directory's incidents."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        # One connection for the keeper and all postmen.
        self._lock = threading.Lock()
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
            # What was not yet in the file belongs to it alone.
            for left in ("-wal", "-shm"):
                Path(f"{self._path}{left}").unlink(missing_ok=True)
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
        with self._lock:
            return [to_entry(row) for row in self._book.execute(query)]

    def write(self, entries: Iterable[Entry], letters: Sequence[Letter], forget_before_ms: int) -> None:
        """Put down what has changed, what is to be sent, and forget what ended long ago: all of it or nothing."""
        with self._writing() as book:
            book.executemany(_insert("INSERT OR REPLACE INTO incidents", COLUMNS), map(to_row, entries))
            # A reminder that nobody has got yet is outdone by a newer one.
            late = [(one.incident, one.listener, Event.REMINDER) for one in letters if one.event is Event.REMINDER]
            book.executemany(
                f"DELETE FROM letters WHERE incident = ? AND listener = ? AND event = ? AND {_TO_SEND}",  # noqa: S608
                late,
            )
            book.executemany(_insert("INSERT OR IGNORE INTO letters", LETTER_COLUMNS), map(letter_row, letters))
            book.execute("DELETE FROM incidents WHERE closed_ms < ?", (forget_before_ms,))
            book.execute(f"DELETE FROM letters WHERE due_ms < ? AND NOT ({_TO_SEND})", (forget_before_ms,))  # noqa: S608

    def next_letter(self, listener: str) -> Letter | None:
        """The oldest letter to a listener that is neither sent nor given up."""
        query = (
            f"SELECT {', '.join(LETTER_COLUMNS)} FROM letters "  # noqa: S608 - our own words
            f"WHERE listener = ? AND {_TO_SEND} ORDER BY rowid LIMIT 1"
        )
        with self._lock:
            found = self._book.execute(query, (listener,)).fetchone()
        return None if found is None else to_letter(found)

    def put_down(self, key: str, **changes: int | str) -> None:
        """What has become of a letter."""
        words = ", ".join(f"{name} = ?" for name in changes)
        with self._writing() as book:
            book.execute(f"UPDATE letters SET {words} WHERE key = ?", (*changes.values(), key))  # noqa: S608

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._book.execute("BEGIN IMMEDIATE")
            try:
                yield self._book
                self._book.execute("COMMIT")
            except BaseException:
                self._book.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            self._book.close()


def _insert(how: str, columns: Sequence[str]) -> str:
    return f"{how} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"

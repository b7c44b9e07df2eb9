"""Writes the book of incidents: all that changed in one snapshot in one transaction, durable when it returns."""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from warren.domain.incidents import Event
from warren.errors import WarrenError
from warren.snapshot.incident_file import FILE, open_to_write, writing
from warren.snapshot.incidents import COLUMNS, Entry, still_open, to_row
from warren.snapshot.letters import COLUMNS as LETTER_COLUMNS
from warren.snapshot.letters import Letter, to_letter
from warren.snapshot.letters import to_row as letter_row

log = logging.getLogger(__name__)

_TO_SEND = "sent_ms IS NULL AND given_up_ms IS NULL"


class Book:
    """The one writer of a data directory's incidents."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        # One connection for the keeper and all postmen.
        self._lock = threading.Lock()
        try:
            self._book = open_to_write(data_dir)
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
            self._book = open_to_write(data_dir)

    def still_open(self) -> list[Entry]:
        """The incidents that have not ended."""
        with self._lock:
            return still_open(self._book)

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
        """The oldest letter to a listener that is neither sent nor given up, with the receipt of the one it follows."""
        query = (
            f"SELECT {', '.join(LETTER_COLUMNS)} FROM letters "  # noqa: S608 - our own words
            f"WHERE listener = ? AND {_TO_SEND} ORDER BY rowid LIMIT 1"
        )
        first = (
            "SELECT receipt FROM letters WHERE incident = ? AND listener = ? AND receipt != '' AND sent_ms IS NOT NULL "
            "ORDER BY rowid LIMIT 1"
        )
        with self._lock:
            found = self._book.execute(query, (listener,)).fetchone()
            letter = None if found is None else to_letter(found)
            if letter is None or not letter.incident:
                return letter
            receipt = self._book.execute(first, (letter.incident, listener)).fetchone()
            return letter if receipt is None else replace(letter, receipt=receipt[0])

    def put_down(self, key: str, **changes: int | str) -> None:
        """What has become of a letter."""
        words = ", ".join(f"{name} = ?" for name in changes)
        with self._writing() as book:
            book.execute(f"UPDATE letters SET {words} WHERE key = ?", (*changes.values(), key))  # noqa: S608

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, writing(self._book) as book:
            yield book

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            self._book.close()


def _insert(how: str, columns: Sequence[str]) -> str:
    return f"{how} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"

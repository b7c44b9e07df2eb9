"""Writes the book of incidents: all that changed in one snapshot in one transaction, durable when it returns."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from warren.domain.incidents import Event
from warren.domain.storms import Storm
from warren.errors import WarrenError
from warren.notify.changes import STORM_COLUMNS, Change, apply, of_entry, of_letter, of_storm, to_storm
from warren.snapshot import wishes
from warren.snapshot.incident_file import FILE, open_to_write, writing
from warren.snapshot.incidents import Entry, still_open
from warren.snapshot.letters import COLUMNS as LETTER_COLUMNS
from warren.snapshot.letters import Letter, to_letter
from warren.snapshot.store import fault_point
from warren.snapshot.wishes import Acknowledgement, Silence

log = logging.getLogger(__name__)

_TO_SEND = "sent_ms IS NULL AND given_up_ms IS NULL"
_LETTERS = f"SELECT {', '.join(LETTER_COLUMNS)} FROM letters"  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Wishes:
    """What people have said: who has which open incident in hand, and of which groups nobody wants to hear."""

    silences: Sequence[Silence] = ()
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """What one snapshot changes: incidents, storms (with whether they are over), and what is to be sent."""

    entries: Sequence[Entry] = ()
    letters: Sequence[Letter] = ()
    storms: Sequence[tuple[Storm, bool]] = ()


class Book:
    """The one writer of a data directory's incidents."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        # One connection for the keeper and all postmen.
        self._lock = threading.RLock()
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

    def storms(self) -> list[Storm]:
        """The storms that are not over."""
        with self._lock:
            found = self._book.execute(f"SELECT {', '.join(STORM_COLUMNS)} FROM storms ORDER BY opened_ms, id")  # noqa: S608
            return [to_storm(row) for row in found]

    def wishes(self, now_ms: int) -> Wishes:
        """What people want at a moment."""
        with self._lock:
            return Wishes(wishes.silences_in(self._book, now_ms), wishes.acknowledgements_in(self._book))

    def write(self, page: Page) -> None:
        """Put down what has changed and what is to be sent: all of it or nothing."""
        with self._lock:
            changes = [of_entry(entry) for entry in page.entries]
            changes += [of_storm(storm, is_over=is_over) for storm, is_over in page.storms]
            for letter in page.letters:
                # A reminder that nobody has got yet is outdone by a newer one.
                if letter.event is Event.REMINDER:
                    changes += [Change("letters", key) for key in self._waiting_reminders(letter)]
                changes.append(of_letter(letter))
            fault_point("before-page")
            self._commit(changes)
            fault_point("after-page")

    def _waiting_reminders(self, letter: Letter) -> list[str]:
        query = f"SELECT key FROM letters WHERE incident = ? AND listener = ? AND event = ? AND {_TO_SEND}"  # noqa: S608
        found = self._book.execute(query, (letter.incident, letter.listener, Event.REMINDER))
        return [key for (key,) in found]

    def forget(self, before_ms: int) -> None:
        """Forget what ended long ago."""
        with self._lock:
            ended = self._book.execute("SELECT id FROM incidents WHERE closed_ms < ?", (before_ms,))
            changes = [Change("incidents", key) for (key,) in ended]
            sent = self._book.execute(f"SELECT key FROM letters WHERE due_ms < ? AND NOT ({_TO_SEND})", (before_ms,))  # noqa: S608
            changes += [Change("letters", key) for (key,) in sent]
            over = self._book.execute("SELECT id FROM silences WHERE until_ms < ?", (before_ms,))
            changes += [Change("silences", key) for (key,) in over]
            heard = self._book.execute("SELECT incident FROM acknowledgements WHERE at_ms < ?", (before_ms,))
            # What somebody has in hand for as long as that is still in hand.
            kept = {entry.incident.id for entry in still_open(self._book)}
            changes += [Change("acknowledgements", key) for (key,) in heard if key not in kept]
            if changes:
                self._commit(changes)

    def next_letter(self, listener: str) -> Letter | None:
        """The oldest letter to a listener that is neither sent nor given up, with the receipt of the one it follows."""
        query = f"{_LETTERS} WHERE listener = ? AND {_TO_SEND} ORDER BY due_ms, key LIMIT 1"
        first = (
            "SELECT receipt FROM letters WHERE incident = ? AND listener = ? AND receipt != '' AND sent_ms IS NOT NULL "
            "ORDER BY due_ms, key LIMIT 1"
        )
        with self._lock:
            found = self._book.execute(query, (listener,)).fetchone()
            letter = None if found is None else to_letter(found)
            if letter is None or not letter.incident:
                return letter
            receipt = self._book.execute(first, (letter.incident, listener)).fetchone()
            return letter if receipt is None else replace(letter, receipt=receipt[0])

    def put_down(self, key: str, become: Callable[[Letter], Letter]) -> None:
        """What has become of a letter; one that was forgotten meanwhile stays so."""
        with self._lock:
            found = self._book.execute(f"{_LETTERS} WHERE key = ?", (key,)).fetchone()
            if found is not None:
                self._commit([of_letter(become(to_letter(found)))])

    def set_duty(self, state: str, since_ms: int, why: str) -> None:
        """Say whether this Warren notifies, and why not."""
        with self._lock:
            self._book.execute("INSERT OR REPLACE INTO duty VALUES (1, ?, ?, ?)", (state, since_ms, why))

    @property
    def is_writable(self) -> bool:
        """Whether it is this one's turn to write, as far as the book knows."""
        return True

    def take_over(self) -> None:
        """Begin to write; nobody else does from now on."""

    def stand_by(self) -> None:
        """Write no more."""

    def follow(self) -> None:
        """Take up what others have written, and let them know what was said here."""

    def _commit(self, changes: Sequence[Change]) -> None:
        """Make changes durable, together."""
        with writing(self._book) as book:
            apply(book, changes)

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            self._book.close()

"""Writes the book of incidents: all that changed in one snapshot in one transaction, durable when it returns."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from warren.errors import WarrenError
from warren.incidents import silences as wishes
from warren.incidents.grouping import Storm
from warren.incidents.model import Event
from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.changes import (
    STORM_COLUMNS,
    RowChange,
    apply,
    of_entry,
    of_notification,
    of_storm,
    to_storm,
)
from warren.incidents.store.database import FILE, open_to_write, writing
from warren.incidents.store.incidents import IncidentRecord, still_open
from warren.incidents.store.notifications import COLUMNS as NOTIFICATION_COLUMNS
from warren.incidents.store.notifications import Notification, to_notification
from warren.snapshot.store import fault_point

log = logging.getLogger(__name__)

WAITING_MOST = 100_000
"""How many letters may wait for a listener."""
_TO_SEND = "sent_ms IS NULL AND given_up_ms IS NULL"
_GIVE_WAY = (Event.REMINDER, Event.REPORT)
_LETTERS = f"SELECT {', '.join(NOTIFICATION_COLUMNS)} FROM letters"  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class OperatorActions:
    """What people have said: who has which open incident in hand, and of which groups nobody wants to hear."""

    silences: Sequence[Silence] = ()
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreUpdate:
    """What one snapshot changes: incidents, storms (with whether they are over), and what is to be sent."""

    entries: Sequence[IncidentRecord] = ()
    letters: Sequence[Notification] = ()
    storms: Sequence[tuple[Storm, bool]] = ()


class IncidentStore:
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

    def still_open(self) -> list[IncidentRecord]:
        """The incidents that have not ended."""
        with self._lock:
            return still_open(self._book)

    def storms(self) -> list[Storm]:
        """The storms that are not over."""
        with self._lock:
            found = self._book.execute(f"SELECT {', '.join(STORM_COLUMNS)} FROM storms ORDER BY opened_ms, id")  # noqa: S608
            return [to_storm(row) for row in found]

    def wishes(self, now_ms: int) -> OperatorActions:
        """What people want at a moment."""
        with self._lock:
            return OperatorActions(wishes.silences_in(self._book, now_ms), wishes.acknowledgements_in(self._book))

    def write(self, page: StoreUpdate) -> None:
        """Put down what has changed and what is to be sent: all of it or nothing."""
        with self._lock:
            changes = [of_entry(entry) for entry in page.entries]
            changes += [of_storm(storm, is_over=is_over) for storm, is_over in page.storms]
            changes += [RowChange("letters", key) for key in self._outdone(page.letters)]
            changes += map(of_notification, page.letters)
            fault_point("before-page")
            self._commit(changes)
            fault_point("after-page")

    def _outdone(self, letters: Sequence[Notification]) -> list[str]:
        """Reminders and reports that nobody has got yet, and of which there are newer ones."""
        newer = {_about(one.listener, one.event, one.incident, one.cluster, one.group) for one in letters}
        wanted = "SELECT key, listener, event, incident, cluster, name FROM letters"
        query = f"{wanted} WHERE listener = ? AND event IN ('reminder', 'report') AND {_TO_SEND}"
        return [
            key
            for listener in {one.listener for one in letters if one.event in _GIVE_WAY}
            for key, *about in self._book.execute(query, (listener,))
            if _about(*about) in newer
        ]

    def forget(self, before_ms: int, repeated_before_ms: int) -> None:
        """Forget what ended long ago, and what was only said again a while ago."""
        with self._lock:
            ended = self._book.execute("SELECT id FROM incidents WHERE closed_ms < ?", (before_ms,))
            changes = [RowChange("incidents", key) for (key,) in ended]
            old = "due_ms < ? OR (due_ms < ? AND event IN ('reminder', 'report'))"
            query = f"SELECT key FROM letters WHERE ({old}) AND NOT ({_TO_SEND})"  # noqa: S608 - our own words
            sent = self._book.execute(query, (before_ms, repeated_before_ms))
            changes += [RowChange("letters", key) for (key,) in sent]
            over = self._book.execute("SELECT id FROM silences WHERE until_ms < ?", (before_ms,))
            changes += [RowChange("silences", key) for (key,) in over]
            heard = self._book.execute("SELECT incident FROM acknowledgements WHERE at_ms < ?", (before_ms,))
            # What somebody has in hand for as long as that is still in hand.
            kept = {entry.incident.id for entry in still_open(self._book)}
            changes += [RowChange("acknowledgements", key) for (key,) in heard if key not in kept]
            changes += self._too_many()
            if changes:
                self._commit(changes)

    def _too_many(self) -> list[RowChange]:
        """The oldest letters to a listener that has not taken any for very long, beyond what is kept for it."""
        counts = self._book.execute(f"SELECT listener, count(*) FROM letters WHERE {_TO_SEND} GROUP BY listener")  # noqa: S608
        changes = []
        for listener, count in counts.fetchall():
            query = f"SELECT key FROM letters WHERE listener = ? AND {_TO_SEND} ORDER BY due_ms, key LIMIT ?"  # noqa: S608
            oldest = self._book.execute(query, (listener, max(count - WAITING_MOST, 0))).fetchall()
            if oldest:
                log.error("notifier %s: %d letters are forgotten unsent: too many wait", listener, len(oldest))
            changes += [RowChange("letters", key) for (key,) in oldest]
        return changes

    def next_notification(self, listener: str, resting: tuple[int, int] = (1, 0)) -> Notification | None:
        """The letter to a listener whose turn it is, with the receipt of the one it follows.

        Of those that were tried least it is the oldest. One that rests until a moment between two holds up no others
        but those that follow it about the same incident.
        """
        earlier = (
            "SELECT 1 FROM letters e WHERE e.incident = letters.incident AND e.listener = letters.listener AND "
            "e.number < letters.number AND e.sent_ms IS NULL AND e.given_up_ms IS NULL"
        )
        query = (
            f"{_LETTERS} WHERE listener = ? AND {_TO_SEND} AND next_ms NOT BETWEEN ? AND ? "
            f"AND (incident = '' OR NOT EXISTS ({earlier})) ORDER BY attempts, due_ms, key LIMIT 1"
        )
        first = (
            "SELECT receipt FROM letters WHERE incident = ? AND listener = ? AND receipt != '' AND sent_ms IS NOT NULL "
            "ORDER BY number LIMIT 1"
        )
        with self._lock:
            found = self._book.execute(query, (listener, *resting)).fetchone()
            letter = None if found is None else to_notification(found)
            if letter is None or not letter.incident:
                return letter
            receipt = self._book.execute(first, (letter.incident, listener)).fetchone()
            return letter if receipt is None else replace(letter, receipt=receipt[0])

    def put_down(self, key: str, become: Callable[[Notification], Notification]) -> None:
        """What has become of a letter; one that was forgotten meanwhile stays so."""
        with self._lock:
            found = self._book.execute(f"{_LETTERS} WHERE key = ?", (key,)).fetchone()
            if found is not None:
                self._commit([of_notification(become(to_notification(found)))])

    def next_time(self, listener: str) -> int | None:
        """When the first letter to a listener that waits may be sent."""
        query = f"SELECT min(next_ms) FROM letters WHERE listener = ? AND {_TO_SEND}"  # noqa: S608 - our own words
        with self._lock:
            found: int | None = self._book.execute(query, (listener,)).fetchone()[0]
        return found

    def set_leadership(self, state: str, since_ms: int, why: str, now_ms: int) -> None:
        """Say whether this Warren notifies, and why not, as it is now."""
        with self._lock:
            self._book.execute("INSERT OR REPLACE INTO duty VALUES (1, ?, ?, ?, ?)", (state, since_ms, why, now_ms))

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

    def _commit(self, changes: Sequence[RowChange]) -> None:
        """Make changes durable, together."""
        with writing(self._book) as book:
            apply(book, changes)

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            self._book.close()


def _about(listener: str, event: str, incident: str, cluster: str, group: str) -> tuple[str, ...]:
    """What a letter says, but for when: of the same only the newest is worth sending."""
    return listener, str(event), incident or f"{cluster}\0{group}"

"""The incident store of one data directory: what one snapshot changes is one durable transaction."""

import contextlib
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import orjson
from msgspec.structs import replace

from warren.errors import Fenced, NoSnapshot, WarrenError
from warren.incidents.evaluation import StormUpdate
from warren.incidents.model import NO_RESULT, Event, Incident, Notification, Storm
from warren.incidents.silences import OperatorActions
from warren.incidents.store.database import FILE, open_database, transaction
from warren.incidents.store.operator_actions import current_actions
from warren.incidents.store.rows import COLUMNS, IS_PENDING, RowChange, apply, read, to_change
from warren.snapshot.status import GroupStatus
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

MAX_PENDING = 100_000
"""How many notifications may wait for one notifier."""
_NOT_CONFIGURED = "the notifier is not configured any more"
_REPLACEABLE = (Event.REMINDER, Event.REPORT)
"""Events of which only the newest is worth sending."""
_IS_REPLACEABLE = f"event IN ({', '.join(repr(event.value) for event in _REPLACEABLE)})"


class IncidentStore:
    """The only writer of a data directory's incidents; its threads share one connection.

    `epoch` is that of this Warren's manifests. When a later Warren opens the store, this one is fenced: from then on it
    writes nothing. Without an epoch there is no such check.
    """

    def __init__(self, data_dir: Path, epoch: int | None = None) -> None:
        self._path = data_dir / FILE
        self._lock = threading.RLock()
        self._epoch = epoch
        self.is_writable = True
        """Whether this Warren may write, as far as the store knows."""
        try:
            self._database = open_database(data_dir)
        except sqlite3.OperationalError as error:
            hint = "check that Warren may write there and that the disk is not full"
            raise WarrenError(f"{self._path} cannot be opened: {error}; {hint}") from None
        except sqlite3.DatabaseError as error:
            broken = self._path.with_suffix(".broken")
            log.error("%s is damaged (%s): renamed to %s, starting with an empty one", self._path, error, broken.name)
            self._path.replace(broken)
            # These two belong to the damaged file.
            for suffix in ("-wal", "-shm"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            self._database = open_database(data_dir)
        if epoch is not None:
            self._claim(Store(data_dir), epoch)

    def _claim(self, snapshots: Store, epoch: int) -> None:
        """Fence the Warren before, unless the data directory has a later one than this already.

        A Warren publishes its first manifest before it claims the store. So of two that start together the later one
        gets it, whichever comes here first; and epochs may start over in a data directory that was emptied.
        """
        with transaction(self._database) as database:
            with contextlib.suppress(NoSnapshot):
                if snapshots.newest().epoch > epoch:
                    raise self._fenced()
            database.execute("INSERT OR REPLACE INTO writer VALUES (1, ?)", (epoch,))

    def is_fenced(self) -> bool:
        """Whether a later Warren has opened the store: then this one may neither write nor send."""
        if self._epoch is None:
            return False
        with self._lock:
            writer: tuple[int] = self._database.execute("SELECT epoch FROM writer").fetchone()
        return writer != (self._epoch,)

    def _fenced(self) -> Fenced:
        return Fenced(f"another Warren has taken over {self._path}: this one writes and sends nothing")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything that is written inside, or nothing; Fenced if a later Warren has opened the store."""
        with transaction(self._database) as database:
            if self.is_fenced():
                raise self._fenced()
            yield database

    def open_incidents(self) -> list[Incident]:
        """The incidents that have not been closed."""
        with self._lock:
            return read(self._database, Incident, "WHERE closed_ms IS NULL")

    def open_storms(self) -> list[Storm]:
        """The storms that have not ended."""
        with self._lock:
            return read(self._database, Storm, "ORDER BY opened_ms, id")

    def operator_actions(self, now_ms: int) -> OperatorActions:
        """The silences and acknowledgements of a time."""
        with self._lock:
            return current_actions(self._database, now_ms)

    def write(
        self,
        incidents: Sequence[Incident] = (),
        notifications: Sequence[Notification] = (),
        storms: Sequence[StormUpdate] = (),
    ) -> None:
        """Store what one snapshot changes: all of it or nothing."""
        with self._lock:
            changes = [*map(to_change, incidents)]
            changes += [
                RowChange("storms", each.storm.id) if each.has_ended else to_change(each.storm) for each in storms
            ]
            for notification in notifications:
                older = self._replaced(notification)
                changes += [RowChange("letters", key) for key, _ in older]
                # The newer one refers to the message that the receiver has got, as the older one did.
                receipt = next((receipt for _, receipt in older if receipt), notification.receipt)
                changes.append(to_change(replace(notification, receipt=receipt)))
            self._commit(changes)

    def _replaced(self, notification: Notification) -> list[tuple[str, str]]:
        """The keys and receipts of the older reminders or reports, sent or not, that a newer one replaces.

        So there is one reminder per incident and notifier, however long the incident lasts.
        """
        if notification.event not in _REPLACEABLE:
            return []
        subject = {"listener": notification.notifier, "event": notification.event, "incident": notification.incident}
        if not notification.incident:
            subject |= {"cluster": notification.cluster, "name": notification.group}
        condition = " AND ".join([_IS_REPLACEABLE, *(f"{column} = ?" for column in subject)])
        query = f"SELECT key, receipt FROM letters WHERE {condition}"
        return self._database.execute(query, [*subject.values()]).fetchall()

    def delete_expired(self, before_ms: int, repeated_before_ms: int) -> None:
        """Delete what ended before a time, sent reminders and reports from before another, and too long a queue."""
        is_closed = "incident NOT IN (SELECT id FROM incidents WHERE closed_ms IS NULL)"
        conditions = {
            "incidents": "closed_ms < :before",
            "letters": f"(due_ms < :before OR (due_ms < :repeated AND {_IS_REPLACEABLE})) AND NOT ({IS_PENDING})",
            "silences": "until_ms < :before",
            "acknowledgements": f"at_ms < :before AND {is_closed}",
        }
        times = {"before": before_ms, "repeated": repeated_before_ms}
        with self._lock:
            changes = self._excess_notifications()
            for table, condition in conditions.items():
                query = f"SELECT {COLUMNS[table][0]} FROM {table} WHERE {condition}"
                changes += [RowChange(table, key) for (key,) in self._database.execute(query, times)]
            if changes:
                self._commit(changes)

    def _excess_notifications(self) -> list[RowChange]:
        """The oldest notifications of notifiers that have more than `MAX_PENDING` of them."""
        age = "row_number() OVER (PARTITION BY listener ORDER BY due_ms DESC, key DESC) AS age"
        query = f"SELECT listener, key FROM (SELECT listener, key, {age} FROM letters WHERE {IS_PENDING}) WHERE age > ?"
        excess = self._database.execute(query, (MAX_PENDING,)).fetchall()
        for notifier, count in Counter(notifier for notifier, _ in excess).items():
            log.error("notifier %s: too many notifications wait; deleted the %d oldest", notifier, count)
        return [RowChange("letters", key) for _, key in excess]

    def next_notification(self, notifier: str, backing_off: tuple[int, int] = (1, 0)) -> Notification | None:
        """The notification to send next, with the receipt of the first one of its incident.

        It is the oldest of those with the fewest attempts. A notification whose next attempt lies in the range
        `backing_off` delays only later notifications of the same incident.
        """
        earlier = (
            "SELECT 1 FROM letters e WHERE e.incident = letters.incident AND e.listener = letters.listener AND "
            "e.number < letters.number AND e.sent_ms IS NULL AND e.given_up_ms IS NULL"
        )
        condition = (
            f"WHERE listener = ? AND {IS_PENDING} AND next_ms NOT BETWEEN ? AND ? "
            f"AND (incident = '' OR NOT EXISTS ({earlier})) ORDER BY attempts, due_ms, key LIMIT 1"
        )
        first_receipt = (
            "SELECT receipt FROM letters WHERE incident = ? AND listener = ? AND receipt != '' AND sent_ms IS NOT NULL "
            "ORDER BY number LIMIT 1"
        )
        with self._lock:
            for notification in read(self._database, Notification, condition, (notifier, *backing_off)):
                incident = notification.incident
                receipt = incident and self._database.execute(first_receipt, (incident, notifier)).fetchone()
                return replace(notification, receipt=receipt[0]) if receipt else notification
        return None

    def update_notification(self, key: str, **changes: int | str | GroupStatus) -> None:
        """Change some fields of a notification, unless it has been deleted meanwhile."""
        with self._lock:
            stored = read(self._database, Notification, "WHERE key = ?", [key])
            if stored:
                self._commit([to_change(replace(stored[0], **changes))])

    def give_up_all_but(self, notifiers: Collection[str], now_ms: int) -> None:
        """Give up what waits for other notifiers than these."""
        condition = f"WHERE {IS_PENDING} AND listener NOT IN ({', '.join('?' * len(notifiers))})"
        with self._lock:
            waiting = read(self._database, Notification, condition, [*notifiers])
            for notifier, count in Counter(notification.notifier for notification in waiting).items():
                log.warning("notifier %s: %d notifications are given up: %s", notifier, count, _NOT_CONFIGURED)
            given_up = {"given_up_ms": now_ms, "last_error": _NOT_CONFIGURED, "result": NO_RESULT}
            if waiting:
                self._commit([to_change(replace(notification, **given_up)) for notification in waiting])

    def next_attempt_ms(self, notifier: str) -> int | None:
        """When the first pending notification of a notifier may be sent."""
        query = f"SELECT min(next_ms) FROM letters WHERE listener = ? AND {IS_PENDING}"
        with self._lock:
            next_ms: int | None = self._database.execute(query, (notifier,)).fetchone()[0]
        return next_ms

    @property
    def rejects(self) -> Mapping[str, int]:
        """How many records of other clients were rejected, by reason."""
        return {}

    def set_leadership(self, state: str, since_ms: int, why: str, now_ms: int, strangers: int = 0) -> None:
        """Record whether this Warren notifies, and how many members of the lock's group are not Warrens."""
        row = (1, state, since_ms, why, now_ms, orjson.dumps(self.rejects).decode(), strangers)
        columns = "one, state, since_ms, why, noted_ms, rejects, lock_strangers"
        with self._lock, self._transaction() as database:
            database.execute(f"INSERT OR REPLACE INTO duty ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def take_over(self) -> None:
        """Become the only writer."""

    def stand_by(self) -> None:
        """Stop writing."""

    def sync(self) -> None:
        """Read what other Warrens wrote, and share the operator actions of this one."""

    def _commit(self, changes: Sequence[RowChange]) -> None:
        with self._transaction() as database:
            apply(database, changes)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._database.close()

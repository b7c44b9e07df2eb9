"""What any process may read from the store: incidents, notifications, and the state of leadership and notifiers."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from msgspec import Struct

from warren.incidents.model import Incident, Notification
from warren.incidents.store.database import open_read_only
from warren.incidents.store.rows import COLUMNS, IS_PENDING, from_row, read

LEADERSHIP_TIMEOUT_MS = 60_000
"""A Warren that has not recorded its leadership state for this long has stopped."""


class IncidentQuery(Struct, frozen=True):
    """Which incidents to read; the newest come first."""

    cluster: str | None = None
    group: str | None = None
    is_open: bool | None = None
    limit: int = 100
    before_ms: int | None = None
    """Only incidents that were opened before this."""
    id: str | None = None


def read_incidents(data_dir: Path, query: IncidentQuery) -> list[Incident]:
    """The incidents that match a query; none where there is no store yet."""
    conditions = {
        "id = ?": query.id,
        "cluster = ?": query.cluster,
        "name = ?": query.group,
        "opened_ms < ?": query.before_ms,
    }
    given = {condition: value for condition, value in conditions.items() if value is not None}
    state = [] if query.is_open is None else ["closed_ms IS NULL" if query.is_open else "closed_ms IS NOT NULL"]
    where = " AND ".join([*given, *state]) or "TRUE"
    with open_read_only(data_dir) as database:
        return read(
            database, Incident, f"WHERE {where} ORDER BY opened_ms DESC, id LIMIT ?", [*given.values(), query.limit]
        )


def count_open_incidents(data_dir: Path) -> dict[str, int]:
    """How many incidents are open, by cluster."""
    with open_read_only(data_dir) as database:
        query = "SELECT cluster, count(*) FROM incidents WHERE closed_ms IS NULL GROUP BY cluster"
        return dict(database.execute(query).fetchall())


def read_notifications(data_dir: Path, ids: Sequence[str], limit: int) -> tuple[list[Notification], int]:
    """The last notifications of some incidents or storms, oldest first, without results; and how many there are."""
    # Results can be large.
    columns = ", ".join("'{}'" if column == "result" else column for column in COLUMNS["letters"])
    of_incidents = f"FROM letters WHERE incident IN ({', '.join('?' * len(ids))})"
    with open_read_only(data_dir) as database:
        newest = f"SELECT {columns} {of_incidents} ORDER BY due_ms DESC, key DESC LIMIT ?"
        rows = database.execute(newest, (*ids, limit)).fetchall()
        count = database.execute(f"SELECT count(*) {of_incidents}", ids).fetchone()[0]
    return [from_row(Notification, row) for row in reversed(rows)], count


class LeadershipState(Struct, frozen=True):
    """Whether this Warren notifies: alone, active, standby, away or stopped; unknown before it has recorded it."""

    state: str = "unknown"
    since_ms: int | None = None
    why: str = ""
    rejects: Mapping[str, int] = {}
    """How many records of the shared incidents topic were rejected since the start, by reason."""
    lock_strangers: int = 0
    """How many members of the lock's group are not Warrens."""

    @property
    def is_active(self) -> bool:
        """Whether this Warren notifies."""
        return self.state in ("alone", "active")


def read_leadership(data_dir: Path, now_ms: int | None = None) -> LeadershipState:
    """The leadership state as last recorded; unknown when it cannot be read, stopped when it was recorded long ago."""
    try:
        with open_read_only(data_dir) as database:
            columns = "state, since_ms, why, rejects, lock_strangers, noted_ms"
            row = database.execute(f"SELECT {columns} FROM duty").fetchone()
    except sqlite3.Error:
        return LeadershipState()
    if row is None:
        return LeadershipState()
    state, since_ms, why, rejects, lock_strangers, recorded_ms = row
    if now_ms is not None and now_ms - recorded_ms > LEADERSHIP_TIMEOUT_MS:
        return LeadershipState("stopped", recorded_ms, "it has not recorded its state since then")
    return LeadershipState(state, since_ms, why, orjson.loads(rejects), lock_strangers)


class DeliveryCounts(Struct, frozen=True):
    """How many notifications of one notifier were sent, given up, or wait."""

    sent: int = 0
    given_up: int = 0
    waiting: int = 0
    last_sent_ms: int | None = None


def read_delivery_counts(data_dir: Path) -> dict[str, DeliveryCounts]:
    """The counts of each notifier that ever had a notification."""
    # A covering index answers this: the notifications themselves are large.
    query = (
        "SELECT listener, count(sent_ms), count(*) FILTER (WHERE sent_ms IS NULL AND given_up_ms IS NOT NULL), "
        f"count(*) FILTER (WHERE {IS_PENDING}), max(sent_ms) FROM letters GROUP BY listener"
    )
    with open_read_only(data_dir) as database:
        return {notifier: DeliveryCounts(*counts) for notifier, *counts in database.execute(query)}


def read_last_errors(data_dir: Path) -> dict[str, str]:
    """Why the oldest waiting notification of each notifier has not been sent yet."""
    # With min(), SQLite takes the other columns from the row that has the minimum.
    query = f"SELECT listener, trouble, min(due_ms) FROM letters WHERE {IS_PENDING} GROUP BY listener"
    with open_read_only(data_dir) as database:
        return {notifier: error for notifier, error, _ in database.execute(query)}

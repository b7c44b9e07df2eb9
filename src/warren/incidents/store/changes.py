"""Changes of the book of incidents: rows that are put in, or taken out, of its tables."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import orjson

from warren.incidents import silences as wishes
from warren.incidents.grouping import Storm
from warren.incidents.silences import OperatorAction
from warren.incidents.store import incidents
from warren.incidents.store import notifications as letters
from warren.incidents.store.incidents import IncidentRecord, notified_values, to_notified
from warren.incidents.store.notifications import Notification

STORM_COLUMNS = ("id", "listener", "cluster", "channel", "opened_ms", "grown_ms", "told", "total", "untold")
COLUMNS: Mapping[str, Sequence[str]] = {
    "incidents": incidents.COLUMNS,
    "letters": letters.COLUMNS,
    "storms": STORM_COLUMNS,
    **{table: (*wishes.columns_of(kind), "is_shared") for kind, table in wishes.TABLE_OF.items()},
}
"""Of each table; the first column is its key."""
WISHES = frozenset(wishes.TABLE_OF.values())
"""What anybody may write; all else is written by the one who notifies."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row of a table as it is from now on; None when it is to be forgotten."""

    table: str
    key: str
    row: Sequence[Any] | None = None


def of_entry(entry: IncidentRecord) -> RowChange:
    """An incident as it is now."""
    return RowChange("incidents", entry.incident.id, incidents.to_row(entry))


def of_notification(letter: Notification) -> RowChange:
    """A letter as it is now."""
    return RowChange("letters", letter.key, letters.to_row(letter))


def of_storm(storm: Storm, *, is_over: bool = False) -> RowChange:
    """A storm as it is now; one that is over is forgotten."""
    told = orjson.dumps(notified_values(storm.told)).decode()
    row = (
        storm.id, storm.listener, storm.cluster, storm.channel, storm.opened_ms, storm.grown_ms, told, storm.total,
        storm.untold,
    )  # fmt: skip
    return RowChange("storms", storm.id, None if is_over else row)


def of_action(wish: OperatorAction) -> RowChange:
    """What somebody wants, as all know it."""
    row = (*astuple(wish), 1)
    return RowChange(wishes.TABLE_OF[type(wish)], row[0], row)


def to_storm(row: Sequence[Any]) -> Storm:
    """A storm back from how it is stored."""
    held = dict(zip(STORM_COLUMNS, row, strict=True))
    return Storm(**{**held, "told": to_notified(orjson.loads(held["told"]))})


def apply(book: sqlite3.Connection, changes: Iterable[RowChange]) -> None:
    """Make changes in the transaction that the connection is in; of several to one row the last counts."""
    by_table: dict[str, dict[str, RowChange]] = {table: {} for table in COLUMNS}
    for change in changes:
        by_table[change.table][change.key] = change
    for table, held in by_table.items():
        names = COLUMNS[table]
        kept = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        # What somebody has said here, and others have not heard yet, is newer than what they say.
        unless = f" WHERE {table}.is_shared = 1" if table in WISHES else ""
        put = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608
        book.executemany(
            f"{put} ON CONFLICT ({names[0]}) DO UPDATE SET {kept}{unless}",
            [change.row for change in held.values() if change.row is not None],
        )
        gone = [(key,) for key, change in held.items() if change.row is None]
        book.executemany(f"DELETE FROM {table} WHERE {names[0]} = ?", gone)  # noqa: S608 - our own words

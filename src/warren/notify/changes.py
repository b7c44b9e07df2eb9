"""Changes of the book of incidents: rows that are put in, or taken out, of its tables."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import orjson

from warren.domain.storms import Storm
from warren.snapshot import incidents, letters, wishes
from warren.snapshot.incidents import Entry, to_told, told_values
from warren.snapshot.letters import Letter
from warren.snapshot.wishes import Wish

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
class Change:
    """A row of a table as it is from now on; None when it is to be forgotten."""

    table: str
    key: str
    row: Sequence[Any] | None = None


def of_entry(entry: Entry) -> Change:
    """An incident as it is now."""
    return Change("incidents", entry.incident.id, incidents.to_row(entry))


def of_letter(letter: Letter) -> Change:
    """A letter as it is now."""
    return Change("letters", letter.key, letters.to_row(letter))


def of_storm(storm: Storm, *, is_over: bool = False) -> Change:
    """A storm as it is now; one that is over is forgotten."""
    told = orjson.dumps(told_values(storm.told)).decode()
    row = (
        storm.id, storm.listener, storm.cluster, storm.channel, storm.opened_ms, storm.grown_ms, told, storm.total,
        storm.untold,
    )  # fmt: skip
    return Change("storms", storm.id, None if is_over else row)


def of_wish(wish: Wish) -> Change:
    """What somebody wants, as all know it."""
    row = (*astuple(wish), 1)
    return Change(wishes.TABLE_OF[type(wish)], row[0], row)


def to_storm(row: Sequence[Any]) -> Storm:
    """A storm back from how it is stored."""
    held = dict(zip(STORM_COLUMNS, row, strict=True))
    return Storm(**{**held, "told": to_told(orjson.loads(held["told"]))})


def apply(book: sqlite3.Connection, changes: Iterable[Change]) -> None:
    """Make changes in the transaction that the connection is in; of several to one row the last counts."""
    by_table: dict[str, dict[str, Change]] = {table: {} for table in COLUMNS}
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

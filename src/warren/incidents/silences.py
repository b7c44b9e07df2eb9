"""What people said about incidents: that they have one in hand, or that they do not want to hear of some for a while.

Written by whoever answers them, beside the book of incidents and in its file; whoever keeps the book reads it.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from warren.incidents.store.database import open_to_write, reading, writing


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody has an incident in hand; who takes that back does so by another of a later time."""

    incident: str
    at_ms: int
    by: str
    why: str
    withdrawn_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody is told about groups that fit the patterns, until it is over; ended early it is over sooner."""

    id: str
    cluster: str
    group: str
    from_ms: int
    until_ms: int
    by: str
    why: str

    def is_in_force(self, now_ms: int) -> bool:
        """Whether it holds at a moment."""
        return self.from_ms <= now_ms < self.until_ms


OperatorAction = Acknowledgement | Silence

TABLE_OF: dict[type, str] = {Acknowledgement: "acknowledgements", Silence: "silences"}
_COLUMN_OF = {"group": "name"}
"""Names that SQL keeps for itself."""


def columns_of(kind: type) -> list[str]:
    """The columns of a kind of wish, its key first."""
    return [_COLUMN_OF.get(one.name, one.name) for one in fields(kind)]


def write_action(data_dir: Path, wish: OperatorAction) -> None:
    """Put down what somebody wants, durably; what was there under the same name gives way."""
    with closing(open_to_write(data_dir)) as book, writing(book):
        put_down(book, [wish])


def put_down(book: sqlite3.Connection, wishes: Sequence[OperatorAction], *, is_shared: bool = False) -> None:
    """Put wishes into their tables, in whatever transaction the connection is."""
    for kind, table in TABLE_OF.items():
        names = [*columns_of(kind), "is_shared"]
        marks = ", ".join("?" * len(names))
        book.executemany(
            f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({marks})",  # noqa: S608 - our own words
            [(*astuple(one), int(is_shared)) for one in wishes if type(one) is kind],
        )


def silences_in(book: sqlite3.Connection, after_ms: int) -> list[Silence]:
    """The silences that are not over at a moment, those that end first first."""
    query = f"SELECT {', '.join(columns_of(Silence))} FROM silences WHERE until_ms > ? ORDER BY until_ms, id"  # noqa: S608
    return [Silence(*row) for row in book.execute(query, (after_ms,))]


def acknowledgements_in(book: sqlite3.Connection) -> dict[str, Acknowledgement]:
    """Who has which open incident in hand."""
    names = ", ".join(f"a.{name}" for name in columns_of(Acknowledgement))
    query = (
        f"SELECT {names} FROM acknowledgements a JOIN incidents i ON i.id = a.incident "  # noqa: S608 - our own words
        "WHERE i.closed_ms IS NULL AND a.withdrawn_ms IS NULL"
    )
    return {row[0]: Acknowledgement(*row) for row in book.execute(query)}


def not_shared(book: sqlite3.Connection) -> list[OperatorAction]:
    """What only this machine knows so far."""
    found: list[OperatorAction] = []
    for kind, table in TABLE_OF.items():
        query = f"SELECT {', '.join(columns_of(kind))} FROM {table} WHERE is_shared = 0"  # noqa: S608 - our own words
        found += [kind(*row) for row in book.execute(query)]
    return found


def read_silences(data_dir: Path, after_ms: int) -> list[Silence]:
    """The silences that are not over at a moment; none where nobody has said anything yet."""
    with reading(data_dir) as book:
        return [] if book is None else silences_in(book, after_ms)


def count_silences(data_dir: Path, now_ms: int) -> int:
    """How many silences are in force; none where that cannot be read just now."""
    try:
        return sum(one.is_in_force(now_ms) for one in read_silences(data_dir, now_ms))
    except sqlite3.Error:
        return 0

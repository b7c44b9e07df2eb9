"""The rows of the tables: which columns store which part of the model, and changes of rows."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, get_type_hints

import msgspec
from msgspec import Struct

from warren.incidents.model import NO_RESULT, Incident, Notification, Storm, StormStatus
from warren.incidents.silences import Acknowledgement, OperatorAction, Silence
from warren.snapshot.status import GroupStatus

Model = TypeVar("Model", bound=Struct)

TABLE_OF: dict[type[Struct], str] = {
    Incident: "incidents",
    Notification: "letters",
    Storm: "storms",
    Acknowledgement: "acknowledgements",
    Silence: "silences",
}
OPERATOR_TABLES = frozenset({"acknowledgements", "silences"})
"""The tables that any Warren may write; the leader alone writes the others."""
IS_PENDING = "sent_ms IS NULL AND given_up_ms IS NULL"
"""The condition of notifications that wait to be sent."""
_COLUMN_OF = {
    "group": "name",
    "last_error": "trouble",
    "next_attempt_ms": "next_ms",
    "notified": "told",
    "notifier": "listener",
    "reason": "why",
    "sequence": "number",
    "unreported": "untold",
}
"""The columns that are named otherwise than the fields they store."""
_ENCODED_FIELDS = frozenset({"changes", "event", "notified", "partitions", "result", "worst"})
"""Fields that are stored as JSON text, or as the value of an enum."""
_JOINED_FIELDS = {
    "acknowledged_ms": "at_ms",
    "acknowledged_by": "ifnull(by, '')",
    "acknowledged_why": "ifnull(why, '')",
}
"""Fields of an incident that are stored with its acknowledgement."""
_JOIN = "LEFT JOIN acknowledgements ON incident = id AND withdrawn_ms IS NULL"
FIELDS: dict[type[Struct], dict[str, str]] = {
    model: {_COLUMN_OF.get(name, name): name for name in model.__struct_fields__ if name not in _JOINED_FIELDS}
    for model in TABLE_OF
}
"""By type the field that each column stores; the first column is the key of the table."""
_TYPES = {model: get_type_hints(model) for model in TABLE_OF}
COLUMNS: Mapping[str, Sequence[str]] = {
    table: (*FIELDS[model], *(["is_shared"] if table in OPERATOR_TABLES else [])) for model, table in TABLE_OF.items()
}


class RowChange(Struct, frozen=True):
    """The new row of a key in a table; None to delete it."""

    table: str
    key: str
    row: Mapping[str, Any] | None = None
    is_own: bool = False
    """Whether it was read from the changelog, and this Warren has written it there as the leader."""


def to_change(value: Incident | Notification | Storm | OperatorAction, *, is_shared: bool = True) -> RowChange:
    """Store a value, by default as it is known to all Warrens."""
    row = to_row(value)
    table = TABLE_OF[type(value)]
    shared = {"is_shared": int(is_shared)} if table in OPERATOR_TABLES else {}
    return RowChange(table, next(iter(row.values())), row | shared)


def to_row(value: Struct) -> dict[str, Any]:
    """A value as it is stored."""
    columns = FIELDS[type(value)]
    row = {column: getattr(value, name) for column, name in columns.items()}
    return row | {column: _encode(row[column]) for column, name in columns.items() if name in _ENCODED_FIELDS}


def _encode(value: object) -> object:
    if value is NO_RESULT:
        return "{}"
    return value.value if isinstance(value, Enum) else msgspec.json.encode(value).decode()


def read(database: sqlite3.Connection, model: type[Model], rest: str, values: Sequence[object] = ()) -> list[Model]:
    """The stored values of a type; `rest` is the rest of the query, such as its condition."""
    columns = ", ".join([*FIELDS[model], *(_JOINED_FIELDS.values() if model is Incident else ())])
    query = f"SELECT {columns} FROM {TABLE_OF[model]} {_JOIN if model is Incident else ''} {rest}"
    return [from_row(model, row) for row in database.execute(query, values)]


def from_row(model: type[Model], row: Sequence[Any]) -> Model:
    """A value back from its row."""
    # The rows of incidents may be read without their acknowledgements.
    values = dict(zip((*FIELDS[model].values(), *_JOINED_FIELDS), row, strict=False))
    decoded = {name: _decode(values[name], _TYPES[model][name]) for name in _ENCODED_FIELDS.intersection(values)}
    return model(**values | decoded)


def _decode(value: Any, type_: Any) -> Any:  # noqa: ANN401 - of any column
    if isinstance(type_, type) and issubclass(type_, Enum):
        return type_(value)
    if type_ is not GroupStatus:
        return msgspec.json.decode(value, type=type_)
    if value == "{}":
        return NO_RESULT
    result = msgspec.json.decode(value)
    return msgspec.convert(result, StormStatus if "groups" in result else GroupStatus)


def read_row(database: sqlite3.Connection, table: str, key: str) -> RowChange:
    """The row of a key as a change that brings it about, its deletion if there is none."""
    columns = COLUMNS[table]
    row = database.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {columns[0]} = ?", [key]).fetchone()
    return RowChange(table, key, None if row is None else dict(zip(columns, row, strict=True)))


def apply(database: sqlite3.Connection, changes: Iterable[RowChange], *, keeps_unshared: bool = True) -> None:
    """Apply changes within the current transaction; of several to one row the last counts."""
    by_table: dict[str, dict[str, RowChange]] = {table: {} for table in COLUMNS}
    for change in changes:
        # In the order of the last change of each row.
        by_table[change.table].pop(change.key, None)
        by_table[change.table][change.key] = change
    for table, by_key in by_table.items():
        columns = COLUMNS[table]
        key = columns[0]
        updates = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
        # What was said here and has not reached the other Warrens is newer than what they have.
        unless_newer = f" WHERE {table}.is_shared = 1" if keeps_unshared and table in OPERATOR_TABLES else ""
        database.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES (:{', :'.join(columns)}) "
            f"ON CONFLICT ({key}) DO UPDATE SET {updates}{unless_newer}",
            [change.row for change in by_key.values() if change.row is not None],
        )
        deleted = [(change.key,) for change in by_key.values() if change.row is None]
        database.executemany(f"DELETE FROM {table} WHERE {key} = ?", deleted)

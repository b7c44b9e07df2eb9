"""The SQLite file of incidents in the data directory: its tables, and how to open it."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

FILE = "incidents.db"
StoreError = sqlite3.Error
"""What the store raises when it cannot be read or written."""
WAIT_S = 5.0
"""How long to wait for another writer's transaction."""


class AddedColumn(NamedTuple):
    """A column that earlier versions of Warren did not have, and its value in their rows."""

    type: str
    default: int | str


ADDED_COLUMNS: Mapping[str, Mapping[str, AddedColumn]] = {
    "incidents": {"lost_messages": AddedColumn("INTEGER", 0)},
    "duty": {"rejects": AddedColumn("TEXT", "{}"), "lock_strangers": AddedColumn("INTEGER", 0)},
}
"""The columns that tables of earlier versions lack, by table."""

_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS incidents (
    id TEXT PRIMARY KEY, cluster TEXT NOT NULL, name TEXT NOT NULL, opened_ms INTEGER NOT NULL, closed_ms INTEGER,
    worst INTEGER NOT NULL, changes TEXT NOT NULL, told TEXT NOT NULL, partitions TEXT NOT NULL,
    partition_count INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS by_time ON incidents (opened_ms);
CREATE INDEX IF NOT EXISTS by_group ON incidents (cluster, name, opened_ms);
CREATE INDEX IF NOT EXISTS still_open ON incidents (opened_ms) WHERE closed_ms IS NULL;
CREATE INDEX IF NOT EXISTS by_end ON incidents (closed_ms) WHERE closed_ms IS NOT NULL;
-- Two Warrens on one data directory could once open an incident each: the older one stays.
UPDATE incidents SET closed_ms = opened_ms WHERE closed_ms IS NULL AND EXISTS (
    SELECT 1 FROM incidents AS older
    WHERE older.cluster = incidents.cluster AND older.name = incidents.name AND older.closed_ms IS NULL
    AND (older.opened_ms, older.id) < (incidents.opened_ms, incidents.id)
);
CREATE UNIQUE INDEX IF NOT EXISTS one_open ON incidents (cluster, name) WHERE closed_ms IS NULL;
CREATE TABLE IF NOT EXISTS letters (
    key TEXT PRIMARY KEY, listener TEXT NOT NULL, event TEXT NOT NULL, incident TEXT NOT NULL, number INTEGER NOT NULL,
    cluster TEXT NOT NULL,
    name TEXT NOT NULL, opened_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, why TEXT NOT NULL, team TEXT NOT NULL,
    channel TEXT NOT NULL, result TEXT NOT NULL, attempts INTEGER NOT NULL, next_ms INTEGER NOT NULL, sent_ms INTEGER,
    given_up_ms INTEGER, trouble TEXT NOT NULL, receipt TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS to_send ON letters (listener, attempts, due_ms, key)
    WHERE sent_ms IS NULL AND given_up_ms IS NULL;
CREATE INDEX IF NOT EXISTS of_incident ON letters (incident, listener, number);
CREATE INDEX IF NOT EXISTS repeated ON letters (listener, incident, cluster, name)
    WHERE event IN ('reminder', 'report');
CREATE INDEX IF NOT EXISTS to_count ON letters (listener, sent_ms, given_up_ms);
CREATE TABLE IF NOT EXISTS storms (
    id TEXT PRIMARY KEY, listener TEXT NOT NULL, cluster TEXT NOT NULL, channel TEXT NOT NULL,
    opened_ms INTEGER NOT NULL, grown_ms INTEGER NOT NULL, told TEXT NOT NULL, total INTEGER NOT NULL,
    untold INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS acknowledgements (
    incident TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL, withdrawn_ms INTEGER,
    is_shared INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS silences (
    id TEXT PRIMARY KEY, cluster TEXT NOT NULL, name TEXT NOT NULL, from_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL,
    by TEXT NOT NULL, why TEXT NOT NULL, is_shared INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS writer (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS duty (
    one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT NOT NULL, since_ms INTEGER NOT NULL, why TEXT NOT NULL,
    noted_ms INTEGER NOT NULL
) STRICT;
COMMIT;
"""


def open_database(data_dir: Path) -> sqlite3.Connection:
    """Open the file for writing, and create it if it is missing; what is committed is durable.

    Threads may share the connection if they take turns.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(data_dir / FILE, timeout=WAIT_S, check_same_thread=False, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(_TABLES)
        with transaction(database):
            _add_columns(database)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _add_columns(database: sqlite3.Connection) -> None:
    """Add the columns that the tables of an earlier version lack."""
    for table, added in ADDED_COLUMNS.items():
        known = _column_names(database, table)
        for name, (type_, default) in added.items():
            if name in known:
                continue
            database.execute(f"ALTER TABLE {table} ADD COLUMN {name} {type_} NOT NULL DEFAULT {default!r}")


def _show_added_columns(database: sqlite3.Connection) -> None:
    """Read the tables of an earlier version, which has not been opened for writing yet, as if they had all columns."""
    for table, added in ADDED_COLUMNS.items():
        if missing := added.keys() - _column_names(database, table):
            columns = ", ".join(f"{added[name].default!r} AS {name}" for name in sorted(missing))
            # A temporary view hides the table of the same name.
            database.execute(f"CREATE TEMP VIEW {table} AS SELECT *, {columns} FROM main.{table}")


def _column_names(database: sqlite3.Connection, table: str) -> set[str]:
    return {name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")}


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit everything that is written inside, or nothing."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        yield database


@contextmanager
def open_read_only(data_dir: Path) -> Iterator[sqlite3.Connection]:
    """Open the file for reading, in any process; an empty database where there is none yet."""
    path = data_dir / FILE
    if path.exists():
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)) as database:
            # The writer creates the file a moment before its tables.
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'duty'").fetchone():
                _show_added_columns(database)
                yield database
                return
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_TABLES)
        _add_columns(database)
        yield database

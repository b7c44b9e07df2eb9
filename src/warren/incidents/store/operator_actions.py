"""Stored silences and acknowledgements: written by the API's process, read by the leader, shared with other Warrens."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from warren.incidents.silences import MAX_SILENCES, Acknowledgement, OperatorAction, OperatorActions, Silence
from warren.incidents.store.database import open_database, open_read_only, transaction
from warren.incidents.store.rows import apply, read, to_change


def write_action(data_dir: Path, action: OperatorAction) -> None:
    """Store an action durably; it replaces an earlier one with the same key."""
    with closing(open_database(data_dir)) as database, transaction(database):
        store_actions(database, [action])


def store_actions(database: sqlite3.Connection, actions: Sequence[OperatorAction], *, is_shared: bool = False) -> None:
    """Store actions within the current transaction, whatever was stored before."""
    apply(database, [to_change(action, is_shared=is_shared) for action in actions], keeps_unshared=False)


def current_actions(database: sqlite3.Connection, now_ms: int) -> OperatorActions:
    """The silences that have not ended, the first to end first, and the acknowledgements of open incidents."""
    is_open = "SELECT 1 FROM incidents WHERE id = acknowledgements.incident AND closed_ms IS NULL"
    acknowledgements = read(database, Acknowledgement, f"WHERE withdrawn_ms IS NULL AND EXISTS ({is_open})")
    # More than the API allows may come from other Warrens.
    silences = read(database, Silence, "WHERE until_ms > ? ORDER BY until_ms, id LIMIT ?", [now_ms, MAX_SILENCES])
    return OperatorActions(silences, {each.incident: each for each in acknowledgements})


def unshared_actions(database: sqlite3.Connection) -> list[OperatorAction]:
    """The actions that the other Warrens do not know yet."""
    condition = "WHERE is_shared = 0"
    return [*read(database, Acknowledgement, condition), *read(database, Silence, condition)]


def read_silences(data_dir: Path, now_ms: int) -> Sequence[Silence]:
    """The silences that have not ended, the first to end first."""
    with open_read_only(data_dir) as database:
        return current_actions(database, now_ms).silences


def count_silences(data_dir: Path, now_ms: int) -> int:
    """How many silences are in force; 0 when the store cannot be read."""
    try:
        return sum(silence.is_active(now_ms) for silence in read_silences(data_dir, now_ms))
    except sqlite3.Error:
        return 0

"""The replicated store: the changelog in Kafka is the truth, and each Warren keeps a copy of it in its own file."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from warren.errors import ReplicationError
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.operator_actions import store_actions, unshared_actions
from warren.incidents.store.records import RecordReject
from warren.incidents.store.rows import COLUMNS, OPERATOR_TABLES, RowChange, apply, read_row, to_change
from warren.incidents.store.store import IncidentStore


class ReplicatedStore(IncidentStore):
    """Writes to the changelog first and then to its file; whenever the two may differ it rebuilds the file."""

    def __init__(self, data_dir: Path, changelog: Changelog, epoch: int | None = None) -> None:
        super().__init__(data_dir, epoch)
        self._changelog = changelog
        self._is_in_sync = False
        # It may write from `take_over` until it knows, or cannot exclude, that another Warren has written.
        self.is_writable = False

    def take_over(self) -> None:
        """Fence the previous writer, and read everything that it wrote."""
        with self._lock:
            self._changelog.begin_to_write()
            replaced = self._rebuild()
            self.is_writable = True
            if replaced:
                self._write(replaced)

    def stand_by(self) -> None:
        """Stop writing, and follow what the other Warrens write."""
        with self._lock:
            self.is_writable = self._is_in_sync = False
            self._changelog.end_writing()

    def sync(self) -> None:
        """Read what other Warrens wrote, and share the operator actions of this one."""
        with self._lock:
            if self.is_writable and not self._is_in_sync:
                # Its own last transaction may not be readable yet. Taking over again waits for that.
                self.stand_by()
                raise ReplicationError("the changelog of incidents could not be read")
            if not self._is_in_sync:
                self._rebuild()
            # After an error the file is rebuilt.
            self._is_in_sync = False
            changes = self._changelog.read_new()
            self._is_in_sync = True
            if self.is_writable:
                self._undo([change for change in changes if change.table not in OPERATOR_TABLES and not change.is_own])
                # The file has its own changes already.
                changes = [change for change in changes if change.table in OPERATOR_TABLES]
            if changes:
                with self._transaction() as database:
                    _apply(database, changes)
            self._share_actions()

    def _undo(self, changes: Sequence[RowChange]) -> None:
        """Write the rows again that another client has changed while this Warren is the only one that may."""
        if not changes:
            return
        keys = dict.fromkeys((change.table, change.key) for change in changes)
        # If another Warren has become the leader and wrote them, this one is fenced, and fails here.
        self._write([read_row(self._database, *key) for key in keys])
        for change in changes:
            self._changelog.count_reject(
                RecordReject.NOT_THE_LEADER, f"a record with the key {f'{change.table}/{change.key}'!r:.200}"
            )

    @property
    def rejects(self) -> Mapping[str, int]:
        """How many records of the changelog were rejected, by reason."""
        return self._changelog.rejects

    def _rebuild(self) -> list[RowChange]:
        """Replace the contents of the file by those of the changelog; readers see the old ones until then.

        Returns the deletions that the changelog lacks: a group has one open incident.
        """
        self._is_in_sync = False
        self._changelog.create_topic()
        # The transaction starts after reading, so that no other writer of the file waits for Kafka.
        changes = self._changelog.read_all()
        with self._transaction() as database:
            for table in COLUMNS:
                shared = " WHERE is_shared = 1" if table in OPERATOR_TABLES else ""
                database.execute(f"DELETE FROM {table}{shared}")
            replaced = _apply(database, changes)
        self._is_in_sync = True
        return replaced

    def _share_actions(self) -> None:
        actions = unshared_actions(self._database)
        if not actions:
            return
        self._changelog.share(map(to_change, actions))
        with self._transaction() as database:
            # An action that has changed meanwhile is shared again.
            unchanged = [action for action in unshared_actions(database) if action in actions]
            store_actions(database, unchanged, is_shared=True)

    def _commit(self, changes: Sequence[RowChange]) -> None:
        if not self.is_writable:
            raise ReplicationError("another Warren writes incidents")
        if self.is_fenced():
            raise self._fenced()
        self._write(changes)
        try:
            super()._commit(changes)
        except sqlite3.Error as error:
            self.stand_by()
            raise ReplicationError(str(error)) from None

    def _write(self, changes: Sequence[RowChange]) -> None:
        """Write changes to the changelog; after an error another Warren may have written, so this one stops."""
        try:
            self._changelog.write(changes)
        except ReplicationError:
            self.stand_by()
            raise

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._changelog.close()


def _apply(database: sqlite3.Connection, changes: Sequence[RowChange]) -> list[RowChange]:
    """Apply changes of the changelog, and delete the open incidents that another one of the same group replaces.

    The leader opens one incident per group at a time, but whoever may write to the topic can open a second one. The
    last one counts. Returns the deletions.
    """
    last: dict[str, RowChange] = {}
    for change in changes:
        if change.table == "incidents":
            last.pop(change.key, None)
            last[change.key] = change
    open_ids: dict[tuple[str, str], str] = {}
    replaced: list[str] = []
    for key, change in last.items():
        if change.row is not None and change.row["closed_ms"] is None:
            group = change.row["cluster"], change.row["name"]
            replaced += [open_ids[group]] if group in open_ids else []
            open_ids[group] = key
    query = "SELECT id FROM incidents WHERE cluster = ? AND name = ? AND closed_ms IS NULL"
    for group in open_ids:
        replaced += [key for (key,) in database.execute(query, group) if key not in last]
    # Rows that change are inserted again, so that their order does not matter.
    database.executemany("DELETE FROM incidents WHERE id = ?", [(key,) for key in [*last, *replaced]])
    deletions = [RowChange("incidents", key) for key in replaced]
    apply(database, [*changes, *deletions])
    return deletions

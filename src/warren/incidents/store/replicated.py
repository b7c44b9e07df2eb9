"""The replicated store: the changelog in Kafka is the truth, and each Warren keeps a copy of it in its own file."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from warren.errors import ReplicationError
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.operator_actions import store_actions, unshared_actions
from warren.incidents.store.rows import COLUMNS, OPERATOR_TABLES, RowChange, apply, to_change
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
            self._rebuild()
            self.is_writable = True

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
                # The file has its own changes already.
                changes = [change for change in changes if change.table in OPERATOR_TABLES]
            if changes:
                super()._commit(changes)
            self._share_actions()

    def _rebuild(self) -> None:
        """Replace the contents of the file by those of the changelog; readers see the old ones until then."""
        self._is_in_sync = False
        self._changelog.create_topic()
        # The transaction starts after reading, so that no other writer of the file waits for Kafka.
        changes = self._changelog.read_all()
        with self._transaction() as database:
            for table in COLUMNS:
                shared = " WHERE is_shared = 1" if table in OPERATOR_TABLES else ""
                database.execute(f"DELETE FROM {table}{shared}")
            apply(database, changes)
        self._is_in_sync = True

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
        try:
            self._changelog.write(changes)
            super()._commit(changes)
        except (ReplicationError, sqlite3.Error) as error:
            self.stand_by()
            raise ReplicationError(str(error)) from None

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._changelog.close()

"""A book of incidents that several Warrens share: the log is the truth, the file of each a copy of it to read from."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from warren.errors import ReplicationError
from warren.incidents import silences as wishes
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.changes import COLUMNS, WISHES, RowChange, apply, of_action
from warren.incidents.store.database import writing
from warren.incidents.store.writer import IncidentStore
from warren.snapshot.store import fault_point


class ReplicatedStore(IncidentStore):
    """Writes to the log first, and to its own file then; whenever the two may differ the file is made anew."""

    def __init__(self, data_dir: Path, journal: Changelog) -> None:
        super().__init__(data_dir)
        self._journal = journal
        self._is_made = False
        self._is_in_step = False
        self._writes = False

    @property
    def is_writable(self) -> bool:
        """Whether nobody else has written since this one took over, as far as it knows."""
        return self._writes

    def take_over(self) -> None:
        """Fence whoever wrote before, and read all that was written."""
        with self._lock:
            self._make()
            self._journal.begin_to_write()
            self._copy()
            self._writes = True

    def stand_by(self) -> None:
        """Write no more; what the others write is read from now on."""
        with self._lock:
            self._writes = self._is_in_step = False
            self._journal.end_writing()

    def follow(self) -> None:
        """Take up what others have written, and let them know what was said here."""
        with self._lock:
            if self._writes and not self._is_in_step:
                # What this one wrote last may not be readable yet: it takes over anew, which waits for that.
                self.stand_by()
                raise ReplicationError("the log of incidents could not be read")
            self._make()
            if not self._is_in_step:
                self._copy()
            found = self._read_on()
            # What this one has written itself it knows.
            news = [one for one in found if one.table in WISHES] if self._writes else found
            if news:
                with writing(self._book) as book:
                    apply(book, news)
            self._share()

    def _make(self) -> None:
        if not self._is_made:
            self._journal.create()
            self._is_made = True

    def _copy(self) -> None:
        """Make the file anew from the log; readers see the old one until it is whole."""
        self._is_in_step = self._is_made = False
        # Read before it is written, so that nobody who writes waits for Kafka.
        found = [change for part in self._journal.read_all() for change in part]
        with writing(self._book) as book:
            for table in COLUMNS:
                unless = " WHERE is_shared = 1" if table in WISHES else ""
                book.execute(f"DELETE FROM {table}{unless}")  # noqa: S608 - our own words
            apply(book, found)
        self._is_in_step = self._is_made = True

    def _read_on(self) -> list[RowChange]:
        try:
            return self._journal.read_on()
        except ReplicationError:
            self._is_in_step = self._is_made = False
            raise

    def _share(self) -> None:
        said = wishes.not_shared(self._book)
        if not said:
            return
        self._journal.tell(map(of_action, said))
        with writing(self._book) as book:
            # What was changed meanwhile is to be told again.
            same = [one for one in wishes.not_shared(book) if one in said]
            wishes.put_down(book, same, is_shared=True)

    def _commit(self, changes: Sequence[RowChange]) -> None:
        if not self._writes:
            raise ReplicationError("another Warren writes incidents")
        try:
            self._journal.write(changes)
            fault_point("after-journal")
            super()._commit(changes)
        except (ReplicationError, sqlite3.Error) as error:
            self.stand_by()
            raise ReplicationError(str(error)) from None

    def close(self) -> None:
        """Nothing more is written."""
        super().close()
        self._journal.close()

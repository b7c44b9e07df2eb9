"""Follows the snapshots one by one, so that no verdict between two of them is passed over, and keeps what they change.

What was told is put down with what is to be told of it, in one step: both are there after a crash, or neither.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from warren.config.sinks import Sink
from warren.domain.text_columns import bytes_of
from warren.errors import CorruptSnapshot
from warren.sinks.delivery import Notes
from warren.sinks.spool import Spool
from warren.sinks.verdict_changes import TOLD, Changes, changes_in, to_records
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

LOOK_S = 1.0
AGAIN_S = 10.0
RECORDS = 20_000
"""In one request."""


@dataclass(frozen=True, slots=True)
class ToldVerdicts:
    """What was told last, by which snapshot, and in which place."""

    table: pa.Table = field(default_factory=TOLD.empty_table)
    sequence: int = 0
    at_ms: int = 0

    def packed(self) -> bytes:
        """As it is kept."""
        held = self.table.replace_schema_metadata({"sequence": str(self.sequence), "at_ms": str(self.at_ms)})
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, held.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(held)
        return bytes(out.getvalue())

    @classmethod
    def unpacked(cls, data: bytes) -> "ToldVerdicts":
        """Back from how it is kept."""
        table = pa.ipc.open_stream(data).read_all()
        said = table.schema.metadata
        return cls(table.replace_schema_metadata(None), int(said[b"sequence"]), int(said[b"at_ms"]))


class ChangeFollower:
    """Keeps what each snapshot changes, in the order of the snapshots."""

    def __init__(self, sink: Sink, spool: Spool, data_dir: Path, tags: Mapping[str, str], notes: Notes) -> None:
        self._sink = sink
        self._spool = spool
        self._store = Store(data_dir)
        self._tags = tags
        self._notes = notes
        self._told = self._remembered()
        self._seen = self._told.sequence
        """The last snapshot that was looked at; one that changes nothing is not put down."""

    def _remembered(self) -> ToldVerdicts:
        note = self._spool.note()
        try:
            return ToldVerdicts() if note is None else ToldVerdicts.unpacked(note)
        except (pa.ArrowException, LookupError, ValueError, TypeError) as error:
            log.error("sink %s: what was told is not known any more, all is told anew: %s", self._sink.name, error)
            return ToldVerdicts()

    def run(self, stop: threading.Event) -> None:
        """Follow until told to stop."""
        wait_s = 0.0
        while not stop.wait(wait_s):
            try:
                self.take_up()
                wait_s = LOOK_S
            except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at again
                log.warning("sink %s: changes could not be kept, it is tried again: %s", self._sink.name, error)
                wait_s = AGAIN_S

    def take_up(self) -> None:
        """Keep what has changed since the last time."""
        sequences = sorted(self._store.sequences())
        if not sequences:
            return
        if sequences[-1] < self._seen:
            # The data was begun anew.
            self._seen = 0
        # To whom nothing was told the past is of no use.
        is_first = not self._told.table.num_rows
        for sequence in sequences[-1:] if is_first else sequences:
            if sequence > self._seen:
                self._take(sequence)
                self._seen = sequence

    def _take(self, sequence: int) -> None:
        try:
            snapshot = Snapshot(self._store, self._store.manifest(sequence))
            if not snapshot.is_judged:
                return
            changes = changes_in(snapshot, self._told.table, self._sink)
            if not changes.found.num_rows:
                return
            records = to_records(changes.found, snapshot, self._tags)
        except (FileNotFoundError, CorruptSnapshot) as error:
            # Too old by now: the next one tells what has become of it.
            log.warning("sink %s: snapshot %d is passed over: %s", self._sink.name, sequence, error)
            return
        self._keep(changes, snapshot, records)

    def _keep(self, changes: Changes, snapshot: Snapshot, records: pa.StringArray) -> None:
        # Also when the clock was set back: a place is never taken twice.
        at_ms = max(snapshot.manifest.now_ms, self._told.at_ms + 1)
        told = ToldVerdicts(changes.told, snapshot.manifest.sequence, at_ms)
        requests = (bytes_of(records.slice(at, RECORDS)) for at in range(0, len(records), RECORDS))
        dropped = self._spool.put(at_ms, requests, told.packed())
        self._told = told
        if dropped:
            log.error("sink %s: no more room: changes of %d snapshots were dropped unsent", self._sink.name, dropped)
        self._notes.note(self._spool, dropped=dropped)

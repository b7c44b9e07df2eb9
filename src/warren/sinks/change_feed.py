"""Follows every snapshot, so that no verdict between two of them is missed, and spools the changes of verdicts.

The verdicts that were sent are the cursor of the spool: they are stored together with the changes, in one step.
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
from warren.sinks.delivery import StatusReporter
from warren.sinks.spool import RequestSpool
from warren.sinks.verdict_changes import VERDICTS, changes_in, to_records
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

RECORDS_PER_REQUEST = 20_000


@dataclass(frozen=True, slots=True)
class SentVerdicts:
    """The verdicts that were sent last, the snapshot they are from, and the time of their interval in the spool."""

    table: pa.Table = field(default_factory=VERDICTS.empty_table)
    sequence: int = 0
    at_ms: int = 0

    def to_bytes(self) -> bytes:
        """As Arrow's IPC stream."""
        table = self.table.replace_schema_metadata({"sequence": str(self.sequence), "at_ms": str(self.at_ms)})
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        return bytes(out.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> "SentVerdicts":
        """From Arrow's IPC stream."""
        table = pa.ipc.open_stream(data).read_all()
        metadata = table.schema.metadata
        return cls(table.replace_schema_metadata(None), int(metadata[b"sequence"]), int(metadata[b"at_ms"]))


@dataclass(eq=False)
class ChangeFeed:
    """Spools what each snapshot changes, in the order of the snapshots."""

    sink: Sink
    spool: RequestSpool
    data_dir: Path
    tags: Mapping[str, str]
    status: StatusReporter

    def __post_init__(self) -> None:
        self._sent = self._read_cursor()
        # A sink that has sent nothing yet begins with the newest snapshot.
        after = self._sent.sequence if self._sent.table.num_rows else None
        self._follower = SnapshotFollower(
            f"sink {self.sink.name}", Store(self.data_dir), self._take, mode="every", after=after
        )
        self.poll = self._follower.poll

    def run(self, stop: threading.Event) -> None:
        """Follow the snapshots until told to stop."""
        self._follower.start()
        stop.wait()
        self._follower.close()

    def _read_cursor(self) -> SentVerdicts:
        cursor = self.spool.cursor()
        try:
            return SentVerdicts() if cursor is None else SentVerdicts.from_bytes(cursor)
        except (pa.ArrowException, LookupError, ValueError, TypeError) as error:
            log.error("sink %s: the verdicts sent last cannot be read, sending all again: %s", self.sink.name, error)
            return SentVerdicts()

    def _take(self, snapshot: Snapshot) -> None:
        sequence = snapshot.manifest.sequence
        try:
            changes, verdicts = changes_in(snapshot, self._sent.table, self.sink)
            if not changes.num_rows:
                return
            records = to_records(changes, snapshot, self.tags)
        except (FileNotFoundError, CorruptSnapshot) as error:
            # The next snapshot has the changes of both.
            log.warning("sink %s: snapshot %d is skipped: %s", self.sink.name, sequence, error)
            return
        # Intervals must rise even when the clock is set back.
        sent = SentVerdicts(verdicts, sequence, max(snapshot.manifest.now_ms, self._sent.at_ms + 1))
        starts = range(0, len(records), RECORDS_PER_REQUEST)
        requests = (bytes_of(records.slice(start, RECORDS_PER_REQUEST)) for start in starts)
        dropped = self.spool.put(sent.at_ms, requests, sent.to_bytes())
        self._sent = sent
        if dropped:
            log.error("sink %s: its spool is full: changes of %d snapshots were dropped", self.sink.name, dropped)
        self.status.report(self.spool, dropped=dropped)

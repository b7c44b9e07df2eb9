"""A lake at work: snapshots are kept as they are, and every so often Spark writes all that wait as one job.

A job is put down before it is begun and again when it is done, so that one which a crash has cut short is finished, and
none is written twice.
"""

import datetime as dt
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from warren.config.sinks import LakeSink
from warren.delivery.sink_status import SinkStatus, sink_folder
from warren.sinks.delivery import Delivery, Notes, in_short
from warren.sinks.lake import tables
from warren.sinks.lake.commits import OffsetsTopic, commits
from warren.sinks.lake.parquet import ParquetTables
from warren.sinks.lake.progress import Job, read_progress, write_progress
from warren.sinks.lake.samples import Sample, Samples
from warren.sinks.lake.session import lake_session
from warren.sinks.lake.tables import Scope, Table
from warren.sinks.lake.transactional import TransactionalTables
from warren.sinks.worker import Sampler, Worker, wall_clock_ms
from warren.snapshot.reader import Snapshot

log = logging.getLogger(__name__)

TIDY_EVERY_MS = 3_600_000


class LakeTables(Protocol):
    """Where the tables are, in some format."""

    def begin(self, job: str) -> None:
        """Finish or clear up what was left behind, all but this job."""
        ...

    def append(self, table: Table, rows: DataFrame, job: str, *, is_again: bool = False) -> None:
        """Write rows of a job, all or none; `is_again` says that it was begun before."""
        ...

    def finish(self, job: str) -> None:
        """Clear up after a job that has been noted as done."""
        ...

    def tidy(self, today: dt.date, keep_days: int) -> None:
        """Make small files fewer, and remove days that are too old."""
        ...

    def read(self, table: Table) -> DataFrame | None:
        """All of a table; None where nothing was written yet."""
        ...


def open_tables(spark: SparkSession, sink: LakeSink, owner: str, folder: Path) -> LakeTables:
    """The tables of a sink."""
    if sink.format == "parquet":
        assert sink.path is not None
        return ParquetTables(spark, sink.path, owner, folder)
    return TransactionalTables(spark, sink)


class LakeWorker(Worker):
    """Keeps snapshots and has Spark write them."""

    def __init__(
        self,
        sink: LakeSink,
        sources: Sequence[OffsetsTopic],
        data_dir: Path,
        clock_ms: Callable[[], int] = wall_clock_ms,
        start: Callable[[LakeSink], SparkSession] = lake_session,
    ) -> None:
        folder = sink_folder(data_dir, sink.name)
        samples = Samples(folder / "spool", sink.spool * 1_000_000)
        notes = Notes(folder, SinkStatus(sink.name, sink.class_name), clock_ms)

        def keep(snapshot: Snapshot, at_ms: int) -> tuple[int, int]:
            rows = sum(bucket.group_rows + bucket.partition_rows for bucket in snapshot.manifest.buckets)
            return rows, samples.keep(snapshot, sink, at_ms)

        sampler = Sampler(sink, samples, notes, data_dir, clock_ms, keep)
        super().__init__(sampler, [Jobs(sink, sources, samples, folder, notes, clock_ms, start)])


class Jobs(Delivery):
    """Has Spark write the snapshots that wait, a job at a time."""

    def __init__(
        self,
        sink: LakeSink,
        sources: Sequence[OffsetsTopic],
        samples: Samples,
        folder: Path,
        notes: Notes,
        clock_ms: Callable[[], int],
        start: Callable[[LakeSink], SparkSession],
    ) -> None:
        super().__init__(sink.name, samples, notes)
        self._sink = sink
        self._sources = sources
        self._samples = samples
        self._folder = folder
        self._clock_ms = clock_ms
        self._start = start
        self._scope = Scope.of(sink)
        self._spark: SparkSession | None = None
        self._tidied_ms = 0
        self._progress = read_progress(folder)
        self._is_again = self._progress.job is not None
        self._forget()

    def deliver_next(self) -> bool:
        """Write what waits, if it is time; says whether it was."""
        if self._progress.job is None and not self._begin():
            return False
        job = self._progress.job
        assert job is not None
        held = open_tables(self._session(), self._sink, self._progress.owner, self._folder)
        is_again, self._is_again = self._is_again, True
        began = time.monotonic()
        held.begin(job.name)
        self._write(held, job, is_again=is_again)
        self._save_ended()
        self._forget()
        self._notes.note(self._samples, delivered_ms=job.intervals[-1], trouble="")
        took_s = time.monotonic() - began
        log.info("sink %s: %d intervals were written in %.1f s", self._name, len(job.intervals), took_s)
        held.finish(job.name)
        if self._clock_ms() - self._tidied_ms >= TIDY_EVERY_MS:
            self._tidy(held)
        return True

    def _tidy(self, held: LakeTables) -> None:
        try:
            held.tidy(self._today(), self._sink.keep_days)
            self._tidied_ms = self._clock_ms()
        except Exception as error:  # noqa: BLE001 - all that was to be written is
            log.warning("sink %s: its files could not be tidied up: %s", self._name, in_short(error))

    def _begin(self) -> bool:
        waiting = self._samples.waiting()
        least_ms = (self._sink.write_interval - self._sink.interval) * 1000
        if not waiting or (waiting[-1] - waiting[0] < least_ms and not self._samples.is_filling_up):
            return False
        samples = [sample for at_ms in waiting if (sample := self._samples.read(at_ms))]
        if not samples:
            return False
        progress = self._progress.begun(samples, with_commits=self._sink.commits)
        write_progress(self._folder, progress)
        self._progress, self._is_again = progress, False
        return True

    def _write(self, held: LakeTables, job: Job, *, is_again: bool) -> None:
        spark, scope = self._session(), self._scope
        samples = [sample for at_ms in job.intervals if (sample := self._samples.read(at_ms))]
        for table, make in _MAKERS.items():
            if samples and self._sink.detail in _DETAILS[table]:
                rows = make(spark, samples, self._samples.path, scope)
                self._append(held, table, rows, job, is_again=is_again)
        made = commits(spark, job.stretches, self._sources, scope)
        if made is not None:
            self._append(held, Table.COMMITS, made, job, is_again=is_again)

    def _append(self, held: LakeTables, table: Table, rows: DataFrame, job: Job, *, is_again: bool) -> None:
        whole = tables.finished(rows, table, platform.node(), self._sink.tags)
        held.append(table, whole, job.name, is_again=is_again)

    def _save_ended(self) -> None:
        progress = self._progress.ended()
        write_progress(self._folder, progress)
        self._progress, self._is_again = progress, False

    def _forget(self) -> None:
        """Let go of what the last job has written."""
        self._samples.written = frozenset(self._progress.done)
        for at_ms in self._progress.done:
            self._samples.forget(at_ms)

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._start(self._sink)
        if not _lives(self._spark):
            log.error("sink %s: its Spark has died; it starts anew", self._name)
            os._exit(1)
        return self._spark

    def _today(self) -> dt.date:
        return dt.datetime.fromtimestamp(self._clock_ms() / 1000, dt.UTC).date()

    def close(self) -> None:
        """Nothing is to be done: Spark ends with this process, and a job that is cut short is finished later."""


Make = Callable[[SparkSession, Sequence[Sample], Callable[[int], Path], Scope], DataFrame]
_MAKERS: dict[Table, Make] = {
    Table.GROUPS: tables.groups,
    Table.TOPICS: tables.topics,
    Table.PARTITIONS: tables.partitions,
}
_DETAILS = {
    Table.GROUPS: ("group", "topic", "partition"),
    Table.TOPICS: ("topic", "partition"),
    Table.PARTITIONS: ("partition",),
}


def _lives(spark: SparkSession) -> bool:
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except (Py4JError, OSError, AttributeError):
        return False

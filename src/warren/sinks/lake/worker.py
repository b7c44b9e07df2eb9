"""A lake at work: snapshots wait in a spool, and every `write-interval` Spark writes them as one job.

A job is recorded before it starts and when it is done, so that a job interrupted by a crash is finished and none is
written twice.
"""

import datetime as dt
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from warren.config.sinks import DETAILS, LakeSink
from warren.delivery.sink_status import SinkStatus, sink_folder
from warren.sinks.delivery import Delivery, StatusReporter, short_message
from warren.sinks.lake.commits import OffsetsTopic, commits
from warren.sinks.lake.parquet import ParquetTables
from warren.sinks.lake.progress import Job, Progress, read_progress, write_progress
from warren.sinks.lake.session import lake_session
from warren.sinks.lake.spool import SnapshotSpool
from warren.sinks.lake.tables import LakeTable, finished, rows_of
from warren.sinks.lake.transactional import TransactionalTables
from warren.sinks.worker import Sampler, SinkWorker, wall_clock_ms
from warren.snapshot.reader import Snapshot

log = logging.getLogger(__name__)

TIDY_EVERY_MS = 3_600_000


LakeTables = ParquetTables | TransactionalTables


def open_tables(spark: SparkSession, sink: LakeSink, owner: str, folder: Path) -> LakeTables:
    """The tables of a sink."""
    if sink.format == "parquet":
        assert sink.path is not None
        return ParquetTables(spark, sink.path, owner, folder)
    return TransactionalTables(spark, sink)


def lake_worker(
    sink: LakeSink,
    sources: Sequence[OffsetsTopic],
    data_dir: Path,
    clock_ms: Callable[[], int] = wall_clock_ms,
    start: Callable[[LakeSink], SparkSession] = lake_session,
) -> SinkWorker:
    """The worker of a lake: it spools snapshots, and has Spark write them."""
    folder = sink_folder(data_dir, sink.name)
    spool = SnapshotSpool(folder / "spool", sink.spool * 1_000_000)
    status = StatusReporter(folder, SinkStatus(sink.name, sink.class_name), clock_ms)

    def put(snapshot: Snapshot, at_ms: int) -> tuple[int, int]:
        rows = sum(bucket.group_rows + bucket.partition_rows for bucket in snapshot.manifest.buckets)
        return rows, spool.put(snapshot, sink, at_ms)

    sampler = Sampler(sink, spool, status, data_dir, clock_ms, put)
    return SinkWorker(sampler, [LakeJobs(sink.name, spool, status, sink, sources, folder, clock_ms, start)])


@dataclass(eq=False)
class LakeJobs(Delivery):
    """Has Spark write the snapshots that wait, one job at a time; one that is interrupted is finished later."""

    spool: SnapshotSpool
    sink: LakeSink
    sources: Sequence[OffsetsTopic]
    folder: Path
    clock_ms: Callable[[], int]
    start: Callable[[LakeSink], SparkSession]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._spark: SparkSession | None = None
        self._tidied_ms = 0
        self._progress = read_progress(self.folder)
        self._is_retry = self._progress.job is not None
        self._remove_written()

    def deliver_next(self) -> bool:
        """Run a job if one is due; returns whether it was."""
        if self._progress.job is None and not self._start_job():
            return False
        job = self._progress.job
        assert job is not None
        lake = open_tables(self._session(), self.sink, self._progress.owner, self.folder)
        is_retry, self._is_retry = self._is_retry, True
        started = time.monotonic()
        lake.clean_up(except_job=job.name)
        self._write(lake, job, is_retry=is_retry)
        self._save(self._progress.with_job_done())
        self._remove_written()
        self.status.report(self.spool, delivered_ms=job.intervals[-1], error="")
        took_s = time.monotonic() - started
        log.info("sink %s: %d intervals were written in %.1f s", self.name, len(job.intervals), took_s)
        lake.clean_up()
        if self.clock_ms() - self._tidied_ms >= TIDY_EVERY_MS:
            self._tidy(lake)
        return True

    def _tidy(self, lake: LakeTables) -> None:
        try:
            today = dt.datetime.fromtimestamp(self.clock_ms() / 1000, dt.UTC).date()
            lake.tidy(today, self.sink.keep_days)
            self._tidied_ms = self.clock_ms()
        except Exception as error:  # noqa: BLE001 - the job itself is done
            log.warning("sink %s: its files could not be merged or removed: %s", self.name, short_message(error))

    def _start_job(self) -> bool:
        waiting = self.spool.waiting()
        min_ms = (self.sink.write_interval - self.sink.interval) * 1000
        if not waiting or (waiting[-1] - waiting[0] < min_ms and not self.spool.is_filling_up):
            return False
        samples = [sample for at_ms in waiting if (sample := self.spool.read(at_ms))]
        if not samples:
            return False
        self._save(self._progress.with_job(samples, has_commits=self.sink.commits))
        return True

    def _write(self, lake: LakeTables, job: Job, *, is_retry: bool) -> None:
        spark, wanted = self._session(), self.sink.filters
        samples = [sample for at_ms in job.intervals if (sample := self.spool.read(at_ms))]
        # Each value of `detail` adds a table.
        written = (LakeTable.GROUPS, LakeTable.TOPICS, LakeTable.PARTITIONS)[: DETAILS.index(self.sink.detail) + 1]
        rows = {table: rows_of(table, spark, samples, self.spool.path, wanted) for table in written if samples}
        if (commit_rows := commits(spark, job.ranges, self.sources, wanted)) is not None:
            rows[LakeTable.COMMITS] = commit_rows
        for table, selected in rows.items():
            whole = finished(selected, table, platform.node(), self.sink.tags)
            lake.append(table, whole, job.name, is_retry=is_retry)

    def _save(self, progress: Progress) -> None:
        write_progress(self.folder, progress)
        self._progress, self._is_retry = progress, False

    def _remove_written(self) -> None:
        """Remove what the last job has written from the spool."""
        self.spool.written = frozenset(self._progress.done)
        for at_ms in self._progress.done:
            self.spool.remove(at_ms)

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark = self.start(self.sink)
        if not _is_alive(self._spark):
            log.error("sink %s: its Spark has died; the sink restarts", self.name)
            os._exit(1)
        return self._spark


def _is_alive(spark: SparkSession) -> bool:
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except (Py4JError, OSError, AttributeError):
        return False

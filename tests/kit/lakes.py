"""A lake for tests: snapshots made by hand, written by the Spark of the run, read as anybody reads them."""

import contextlib
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from tests.kit.plans import cluster_state
from tests.kit.reference import read_topic
from tests.kit.servers import Town
from tests.kit.sink_workers import sample
from warren.config.sinks import LakeSink
from warren.sinks.lake import worker as worker_module
from warren.sinks.lake.commits import OffsetsTopic
from warren.sinks.lake.parquet import ParquetTables
from warren.sinks.lake.progress import Progress, write_progress
from warren.sinks.lake.session import CONF
from warren.sinks.lake.tables import LakeTable
from warren.sinks.lake.worker import lake_worker
from warren.snapshot.manifest import ClusterState, Position, Source

MINUTE = 60_000
_OFFSETS = "__consumer_offsets"


def lake_session_of(spark: SparkSession) -> SparkSession:
    """The session of the run, with a lake's settings for queries."""
    session = spark.newSession()
    for key, value in CONF.items():
        if key.startswith("spark.sql"):
            session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", "4")
    return session


def ask(home: Path, sql: str) -> list[dict[str, Any]]:
    """What `warren history` answers."""
    command = [sys.executable, "-m", "warren.cli", "history", "--config-dir", str(home), "--format", "json", sql]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def when(at_ms: int) -> dt.datetime:
    """A moment as the lake has it."""
    return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC)


@contextlib.contextmanager
def interrupted_job(instant: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interrupt the job of a lake as a crash does: "groups appended", all "written", or that "recorded" as well."""
    append, record = ParquetTables.append, write_progress

    def append_and_stop(self: ParquetTables, table: LakeTable, *arguments: Any, **options: Any) -> None:
        append(self, table, *arguments, **options)
        if instant == "groups appended" and table == LakeTable.GROUPS:
            raise KeyboardInterrupt

    def record_and_stop(folder: Path, progress: Progress) -> None:
        has_ended = progress.job is None
        if instant == "written" and has_ended:
            raise KeyboardInterrupt
        record(folder, progress)
        if instant == "recorded" and has_ended:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ParquetTables, "append", append_and_stop)
        patched.setattr(worker_module, "write_progress", record_and_stop)
        with pytest.raises(KeyboardInterrupt):
            yield


class Lake:
    """A town whose snapshots go to a lake."""

    def __init__(self, root: Path, spark: SparkSession, sources: Sequence[OffsetsTopic] = (), **settings: Any) -> None:
        self.path = root / "the lake [1]"
        self.town = Town(root / "data").grow()
        self.clock_ms = self.town.now_ms
        self._spark = spark
        self._sources = sources
        self.sink = LakeSink("l", path=str(self.path), **{"write_interval": 120.0, "tags": {"usage": "x"}, **settings})
        self.restart()

    def restart(self) -> None:
        """Begin as after a kill."""
        self.worker = lake_worker(
            self.sink, self._sources, self.town.data, lambda: self.clock_ms, lambda _: self._spark
        )

    def sample(self, at_ms: int, **changes: Any) -> None:
        """A cycle, and its snapshot kept for a moment."""
        self.town.now_ms = at_ms - 1000
        self.town.turn([(0, "healthy", "orders", 0, 2000)])
        self.town.publish(**changes)
        self.clock_ms = at_ms
        sample(self.worker, at_ms)

    def rows(self, table: LakeTable) -> list[dict[str, Any]]:
        """A table as anybody reads it."""
        read = ds.dataset(self.path / table, partitioning="hive", exclude_invalid_files=True)
        rows: list[dict[str, Any]] = read.to_table().to_pylist()
        return rows

    def files(self, table: LakeTable) -> list[Path]:
        """The files of a table."""
        return sorted((self.path / table).rglob("*.parquet"))


def minutes(lake: Lake, count: int, start_ms: int | None = None) -> list[int]:
    """The next minutes after the town has grown."""
    first = (lake.town.now_ms if start_ms is None else start_ms) // MINUTE * MINUTE + MINUTE
    return [first + MINUTE * number for number in range(count)]


def read_to_the_end(bootstrap: str, topic_id: str = "id") -> dict[str, ClusterState]:
    """Clusters of which one has been read as far as it goes."""
    ends: dict[int, int] = {}
    for record in read_topic(bootstrap, _OFFSETS):
        ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
    positions = {partition: Position(end, end, end, end) for partition, end in ends.items()}
    return {"one": cluster_state(sources={_OFFSETS: Source(topic_id, positions)}), "two": cluster_state()}

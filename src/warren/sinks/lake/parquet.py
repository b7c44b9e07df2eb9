"""The lake as plain Parquet files: each appears once and as a whole, and small ones are merged.

Spark writes to a staging directory beside the tables. When that is complete, its files are moved to the tables, under
names that follow from the job. After a crash, complete files are moved on and others are written again. All of it uses
Hadoop's file systems, so a lake can be wherever Spark can write.
"""

import datetime as dt
import logging
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from warren.durable import replace_file
from warren.sinks.lake.tables import PARTITIONED_BY, LakeTable, plain_path

log = logging.getLogger(__name__)

SMALL, MERGED, DAY = "b", "m", "d"
"""Prefixes of file names: written by a job, merged within a day, merged after the day."""
MAX_MERGED_BYTES = 128_000_000
"""Files of that size are not merged any more."""
MERGE_FROM = 16
"""So many small files of a cluster within a day are merged into one."""
MERGED_DAYS = 3
MERGE_FILE = "merge.json"


class Merge(msgspec.Struct, frozen=True):
    """The merge under way: files of a table that become one file per cluster."""

    root: str
    name: str
    table: str
    kind: str
    sources: tuple[str, ...]


class ParquetTables:
    """Writes the tables below one path, and keeps them tidy."""

    def __init__(self, spark: SparkSession, root: str, owner: str, folder: Path) -> None:
        self._spark = spark
        self._root = root.rstrip("/")
        self._owner = owner
        self._merge_path = folder / MERGE_FILE
        self._files = Files(spark, self._root)

    def clean_up(self, except_job: str = "") -> None:
        """Finish a merge that a crash has interrupted, and clean up after jobs that are recorded as done."""
        self._finish_merge()
        for name in self._files.names(self._staging("")):
            if name != except_job:
                self._files.delete(self._staging(name))

    def append(self, table: LakeTable, rows: DataFrame, job: str, *, is_retry: bool = False) -> None:
        """Write rows of a job, all or none even after a crash; rows that were moved already are not written again."""
        del is_retry
        self._stage(job, table, rows)
        self._move(job, table, SMALL)

    def tidy(self, today: dt.date, keep_days: int) -> None:
        """Merge small files, and remove days that are too old."""
        self._finish_merge()
        for table in LakeTable:
            for day in self._days(table):
                if keep_days and (today - day).days > keep_days:
                    self._files.delete(self._folder_of(table, day))
                elif (today - day).days <= MERGED_DAYS:
                    # One cluster at a time, which keeps Spark's memory small.
                    for sources in self._small(table, day, today):
                        name = f"{day.isoformat()}-{uuid.uuid4().hex[:6]}"
                        merge = Merge(self._root, name, table, DAY if day < today else MERGED, tuple(sources))
                        replace_file(self._merge_path, msgspec.json.encode(merge))
                        self._finish_merge()

    def read(self, table: LakeTable) -> DataFrame | None:
        """A whole table; None when nothing was written yet."""
        folder = f"{self._root}/{table}"
        if not self._files.exists(folder):
            return None
        return self._read(folder, folder)

    def _read(self, folder: str, *paths: str) -> DataFrame:
        """Files of a table, with the columns of all of them: an earlier version of Warren wrote fewer."""
        reader = self._spark.read.option("basePath", folder).option("mergeSchema", "true")
        return reader.parquet(*map(plain_path, paths))

    def _stage(self, job: str, table: LakeTable, rows: DataFrame) -> None:
        staging = self._staging(job, table)
        if not self._files.exists(f"{staging}/_SUCCESS"):
            rows.write.mode("overwrite").partitionBy(*PARTITIONED_BY).option("compression", "zstd").parquet(staging)

    def _move(self, job: str, table: LakeTable, kind: str) -> None:
        staging = self._staging(job, table)
        for path in self._files.below(staging):
            folder, _, name = path.removeprefix(staging + "/").rpartition("/")
            if name.endswith(".parquet"):
                self._files.move(path, f"{self._root}/{table}/{folder}/{kind}-{self._owner}-{job}-{name}")

    def _small(self, table: LakeTable, day: dt.date, today: dt.date) -> list[list[str]]:
        """The files of a day that are to be merged, by cluster."""
        by_folder, has_unmerged = defaultdict[str, list[str]](list), defaultdict[str, bool](bool)
        for path in self._files.below(self._folder_of(table, day), smaller_than=MAX_MERGED_BYTES):
            folder, _, name = path.rpartition("/")
            kind, _, rest = name.partition("-")
            # Another Warren merges its own files.
            if rest.startswith(f"{self._owner}-") and (day < today or kind == SMALL):
                by_folder[folder].append(path)
                has_unmerged[folder] |= kind != DAY
        min_files = 2 if day < today else MERGE_FROM
        return [paths for folder, paths in by_folder.items() if len(paths) >= min_files and has_unmerged[folder]]

    def _finish_merge(self) -> None:
        """Carry out the merge under way, from wherever it was interrupted."""
        try:
            merge = msgspec.json.decode(self._merge_path.read_bytes(), type=Merge)
        except FileNotFoundError:
            return
        if merge.root != self._root:
            # The lake was moved; the files at its old path stay as they are.
            self._merge_path.unlink()
            return
        table = LakeTable(merge.table)
        folder = f"{self._root}/{table}"
        if not self._files.exists(f"{self._staging(merge.name, table)}/_SUCCESS"):
            if not all(map(self._files.exists, merge.sources)):
                # Somebody has removed some of the files; the others stay as they are.
                self._drop(merge)
                return
            rows = (
                self._read(folder, *merge.sources).hint("rebalance", *PARTITIONED_BY).sortWithinPartitions(*table.order)
            )
            self._stage(merge.name, table, rows)
        self._move(merge.name, table, merge.kind)
        for path in merge.sources:
            self._files.delete(path)
        log.debug("lake: merged %d files of %s", len(merge.sources), table)
        self._drop(merge)

    def _drop(self, merge: Merge) -> None:
        self._files.delete(self._staging(merge.name))
        self._merge_path.unlink(missing_ok=True)

    def _days(self, table: LakeTable) -> list[dt.date]:
        names = self._files.names(f"{self._root}/{table}")
        days = [name.removeprefix("date=") for name in names if name.startswith("date=")]
        return sorted(map(dt.date.fromisoformat, days))

    def _folder_of(self, table: LakeTable, day: dt.date) -> str:
        return f"{self._root}/{table}/date={day.isoformat()}"

    def _staging(self, job: str, table: str = "") -> str:
        return "/".join(part for part in (f"{self._root}/_staging/{self._owner}", job, table) if part)


class Files:
    """The operations of Hadoop's file system that are needed, for the file system of a path."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._jvm: Any = spark._jvm
        self._system = self._path(root).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        return bool(self._system.exists(self._path(path)))

    def below(self, path: str, smaller_than: int | None = None) -> Iterator[str]:
        """All files below a directory, or only those below a size."""
        if not self.exists(path):
            return
        prefix = self._path(path).toUri().getPath()
        listed = self._system.listFiles(self._path(path), True)
        while listed.hasNext():
            file = listed.next()
            if smaller_than is None or file.getLen() < smaller_than:
                yield path + file.getPath().toUri().getPath().removeprefix(prefix)

    def names(self, path: str) -> list[str]:
        """The names in a directory."""
        if not self.exists(path):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._path(path))]

    def move(self, path: str, target: str) -> None:
        """Move a file; a target that exists already is from a move that was interrupted."""
        if self.exists(target):
            self.delete(path)
            return
        self._system.mkdirs(self._path(target.rpartition("/")[0]))
        if not self._system.rename(self._path(path), self._path(target)):
            raise OSError(f"{path} could not be moved to {target}")

    def delete(self, path: str) -> None:
        """Remove a file or directory with its content, if it exists."""
        self._system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:  # noqa: ANN401
        return self._jvm.org.apache.hadoop.fs.Path(path)

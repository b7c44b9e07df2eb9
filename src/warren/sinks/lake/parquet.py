"""The lake as plain Parquet files: each appears whole, once, and many small ones become few.

Spark writes to a staging directory beside the tables; when that is whole its files are moved into their places, each
under a name that follows from the job. After a crash nothing is lost or there twice: what is whole is moved on, what is
not is written again. All of it goes through Hadoop's file systems, so a lake may lie wherever Spark can write.
"""

import datetime as dt
import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession

from warren.durable import replace_file
from warren.sinks.lake.tables import PARTITIONED_BY, Table, plain_path

log = logging.getLogger(__name__)

SMALL, MERGED, DAY = "b", "m", "d"
"""What file names begin with: written by a job, merged within a day, merged after it."""
LARGE_BYTES = 128_000_000
"""Files of that size are left as they are."""
MERGE_FROM = 16
"""Small files of a cluster within a day that become one."""
LOOK_BACK_DAYS = 3
JOURNAL = "merge.json"


@dataclass(frozen=True, slots=True)
class Merge:
    """Files of a table that become one file a cluster."""

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
        self._journal = folder / JOURNAL
        self._files = Files(spark, self._root)

    def begin(self, job: str) -> None:
        """Finish the merge that a crash has cut short, and clear up after jobs that were noted as done."""
        self._go_on()
        for name in self._files.names(self._staging("")):
            if name != job:
                self._files.delete(self._staging(name))

    def append(self, table: Table, rows: DataFrame, job: str, *, is_again: bool = False) -> None:
        """Write rows of a job, all or none as far as a crash goes; a job that was moved already is left alone."""
        del is_again
        self._stage(job, table, rows)
        self._move(job, table, SMALL)

    def finish(self, job: str) -> None:
        """Clear up after a job that has been noted as done."""
        self._files.delete(self._staging(job))

    def tidy(self, today: dt.date, keep_days: int) -> None:
        """Merge small files, and remove days that are too old."""
        self._go_on()
        for table in Table:
            for day in self._days(table):
                if keep_days and (today - day).days > keep_days:
                    self._files.delete(self._home(table, day))
                elif (today - day).days <= LOOK_BACK_DAYS:
                    self._merge(table, day, today)

    def _merge(self, table: Table, day: dt.date, today: dt.date) -> None:
        kind = DAY if day < today else MERGED
        # A cluster at a time: what Spark holds at once stays small.
        for sources in self._small(table, day, today):
            name = f"{day.isoformat()}-{uuid.uuid4().hex[:6]}"
            merge = Merge(self._root, name, table, kind, tuple(sources))
            replace_file(self._journal, orjson.dumps(asdict(merge)))
            self._go_on()

    def read(self, table: Table) -> DataFrame | None:
        """All of a table; None where nothing was written yet."""
        home = f"{self._root}/{table}"
        if not self._files.exists(home):
            return None
        return self._spark.read.option("basePath", home).parquet(plain_path(home))

    def _stage(self, job: str, table: Table, rows: DataFrame) -> None:
        staging = self._staging(job, table)
        if not self._files.exists(f"{staging}/_SUCCESS"):
            rows.write.mode("overwrite").partitionBy(*PARTITIONED_BY).option("compression", "zstd").parquet(staging)

    def _move(self, job: str, table: Table, kind: str) -> None:
        staging = self._staging(job, table)
        for path in self._files.below(staging):
            place, _, name = path.removeprefix(staging + "/").rpartition("/")
            if name.endswith(".parquet"):
                self._files.move(path, f"{self._root}/{table}/{place}/{kind}-{self._owner}-{job}-{name}")

    def _small(self, table: Table, day: dt.date, today: dt.date) -> list[list[str]]:
        """The files of a day that are to become fewer, by cluster."""
        by_place: dict[str, list[str]] = {}
        for path in self._files.below(self._home(table, day), smaller_than=LARGE_BYTES):
            place, _, name = path.rpartition("/")
            kind, _, rest = name.partition("-")
            # Files of another Warren are its own business.
            if rest.startswith(f"{self._owner}-") and (day < today or kind == SMALL):
                by_place.setdefault(place, []).append(path)
        if day < today:
            return [paths for paths in by_place.values() if _is_split(paths)]
        return [paths for paths in by_place.values() if len(paths) >= MERGE_FROM]

    def _go_on(self) -> None:
        """Carry out the merge that is under way, from wherever it was left."""
        try:
            raw = orjson.loads(self._journal.read_bytes())
        except FileNotFoundError:
            return
        merge = Merge(raw["root"], raw["name"], raw["table"], raw["kind"], tuple(raw["sources"]))
        if merge.root != self._root:
            # The lake was moved; what lies at its old place stays as it is.
            self._journal.unlink()
            return
        table = Table(merge.table)
        home = f"{self._root}/{table}"
        if not self._files.exists(f"{self._staging(merge.name, table)}/_SUCCESS"):
            if not all(map(self._files.exists, merge.sources)):
                # Somebody has removed some of them; what is left stays as it is.
                self._drop(merge)
                return
            rows = self._spark.read.option("basePath", home).parquet(*map(plain_path, merge.sources))
            rows = rows.hint("rebalance", *PARTITIONED_BY).sortWithinPartitions(*table.order)
            self._stage(merge.name, table, rows)
        self._move(merge.name, table, merge.kind)
        for path in merge.sources:
            self._files.delete(path)
        log.debug("lake: %d files of %s have become fewer", len(merge.sources), table)
        self._drop(merge)

    def _drop(self, merge: Merge) -> None:
        self._files.delete(self._staging(merge.name))
        self._journal.unlink(missing_ok=True)

    def _days(self, table: Table) -> list[dt.date]:
        names = self._files.names(f"{self._root}/{table}")
        found = [name.removeprefix("date=") for name in names if name.startswith("date=")]
        return sorted(map(dt.date.fromisoformat, found))

    def _home(self, table: Table, day: dt.date) -> str:
        return f"{self._root}/{table}/date={day.isoformat()}"

    def _staging(self, job: str, table: str = "") -> str:
        return "/".join(part for part in (f"{self._root}/_staging/{self._owner}", job, table) if part)


def _is_split(paths: Sequence[str]) -> bool:
    """Whether a day that is over has files that were not merged yet."""
    return len(paths) > 1 and any(not path.rpartition("/")[2].startswith(f"{DAY}-") for path in paths)


class Files:
    """Hadoop's file system of a path, by the few things that are needed of it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._jvm: Any = spark._jvm
        self._system = self._path(root).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return bool(self._system.exists(self._path(path)))

    def below(self, path: str, smaller_than: int | None = None) -> Iterator[str]:
        """All files below a directory, or those that are smaller than some size."""
        if not self.exists(path):
            return
        prefix = self._path(path).toUri().getPath()
        listed = self._system.listFiles(self._path(path), True)
        while listed.hasNext():
            found = listed.next()
            if smaller_than is None or found.getLen() < smaller_than:
                yield path + found.getPath().toUri().getPath().removeprefix(prefix)

    def names(self, path: str) -> list[str]:
        """What a directory holds."""
        if not self.exists(path):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._path(path))]

    def move(self, path: str, target: str) -> None:
        """Give a file another place; one that is there already was left by a move that was cut short."""
        if self.exists(target):
            self.delete(path)
            return
        self._system.mkdirs(self._path(target.rpartition("/")[0]))
        if not self._system.rename(self._path(path), self._path(target)):
            raise OSError(f"{path} could not be moved to {target}")

    def delete(self, path: str) -> None:
        """Remove a file or a directory with all it holds, if it is there."""
        self._system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:  # noqa: ANN401
        return self._jvm.org.apache.hadoop.fs.Path(path)

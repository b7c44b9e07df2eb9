"""History as others read it: Parquet files of groups over time, each named by what it holds."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warren.domain.buckets import bucket_of

HISTORY = pa.schema(
    [
        ("time_ms", pa.int64()),
        ("cluster", pa.string()),
        ("group", pa.string()),
        ("status", pa.int8()),
        ("worst_status", pa.int8()),
        ("since_ms", pa.int64()),
        ("totallag", pa.int64()),
        ("maxlag", pa.int64()),
    ]
)
"""One row a group and moment, sorted by cluster, group, time; `since_ms` says when its status began."""


class Span(StrEnum):
    """How much time a file covers."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One file of the lake: the groups of one bucket, from one moment to another, both included."""

    path: Path
    span: Span
    bucket: int
    buckets: int
    from_ms: int
    to_ms: int


_FILE = re.compile(r"(minute|hour|day)-(\d+)-of-(\d+)-(\d+)-(\d+)\.parquet")


def lake_folder(data_dir: Path) -> Path:
    """Where the history of groups lies."""
    return data_dir / "lake" / "groups"


def file_name(span: Span, bucket: int, buckets: int, from_ms: int, to_ms: int) -> str:
    """The name of a file by what it holds."""
    return f"{span}-{bucket:04d}-of-{buckets:04d}-{from_ms:013d}-{to_ms:013d}.parquet"


def lake_files(data_dir: Path) -> list[LakeFile]:
    """All files of the history, oldest first; others in the folder are nobody's business."""
    try:
        paths = list(lake_folder(data_dir).iterdir())
    except FileNotFoundError:
        return []
    found = []
    for path in paths:
        if named := _FILE.fullmatch(path.name):
            span, bucket, buckets, from_ms, to_ms = named.groups()
            found.append(LakeFile(path, Span(span), int(bucket), int(buckets), int(from_ms), int(to_ms)))
    return sorted(found, key=lambda file: (file.from_ms, file.path.name))


def group_history(data_dir: Path, cluster: str, group: str, since_ms: int) -> pa.Table:
    """A group's history since a moment, oldest first, each moment once."""
    name = pa.array([group])
    homes: dict[int, int] = {}
    tables = []
    for file in lake_files(data_dir):
        home = homes.setdefault(file.buckets, int(bucket_of(cluster, name, file.buckets)[0]))
        if file.bucket != home or file.to_ms < since_ms:
            continue
        wanted = (pc.field("cluster") == cluster) & (pc.field("group") == group) & (pc.field("time_ms") >= since_ms)
        try:
            tables.append(pq.read_table(file.path, schema=HISTORY, filters=wanted, memory_map=True))
        except FileNotFoundError:
            # It has just become part of a longer one, which holds what it held; the next look finds that.
            continue
    table = pa.concat_tables([HISTORY.empty_table(), *tables]).sort_by("time_ms")
    return without_doubles(table)


def without_doubles(table: pa.Table) -> pa.Table:
    """Rows of one group sorted by time, each moment once: a file and the longer one made of it may both be there."""
    if table.num_rows < 2:
        return table
    time_ms = table["time_ms"].combine_chunks()
    is_new = pc.not_equal(time_ms[1:], time_ms[:-1])
    return table.filter(pa.concat_arrays([pa.array([True]), is_new]))

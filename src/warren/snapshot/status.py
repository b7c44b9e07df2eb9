"""The status of groups and partitions in Burrow's shape, which the API and notifications share.

Keys that Burrow does not have follow its own; statuses that were stored before a key existed have its default.
"""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta, structs

from warren.domain.arrays import Floats, Ints, SmallInts
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.snapshot.manifest import Bucket, Manifest
from warren.snapshot.schemas import Row
from warren.snapshot.store import Store
from warren.snapshot.time_lag import (
    METHOD_NAMES,
    BehindMethod,
    CatchUpAtMost,
    CatchUpSeconds,
    IsFallingBehind,
    LostMessages,
    OldestUnreadAge,
    RetentionLeft,
    SecondsBehind,
    TimeLag,
    known_or_none,
    to_time_lag,
)

GroupName = tuple[str, str]
"""A group's cluster and its own name."""

MAX_PARTITIONS = 100_000
"""How many partitions are read for all groups together, so that a storm takes no longer than a cycle."""
MIN_PARTITIONS_PER_GROUP = 20
"""How many partitions of each group are read however many groups there are, the most severe first."""
_COLUMNS = [
    "topic", "partition", "owner", "client_id", "status", "complete", "current_lag",
    "start_offset", "start_ms", "start_lag", "end_offset", "end_ms", "end_lag",
    "seconds_behind", "oldest_unread_age_s", "catch_up_low_s", "retention_left_s",
]  # fmt: skip

StatusName = Annotated[
    str, Meta(title="Status", extra_json_schema={"enum": [status.name for status in sorted(Status)]})
]
"""The name of a status; the schema lists the names in the order of severity."""
Complete = Annotated[float, Meta(description="Share of the window that is filled")]
TimeMs = Annotated[int, Meta(description="Milliseconds since 1970")]


class Slot(msgspec.Struct, frozen=True):
    """A commit in a window."""

    offset: int
    timestamp: TimeMs
    observed_at: Annotated[int, Meta(description="The timestamp in whole seconds, in milliseconds since 1970")] = (
        msgspec.field(name="observedAt")
    )
    lag: Annotated[int | None, Meta(description="Lag at that time; null if it is unknown")]


class PartitionStatus(msgspec.Struct, frozen=True):
    """A partition that a group consumes, with its status."""

    topic: str
    partition: int
    owner: Annotated[str, Meta(description="Host of the member that the partition is assigned to; empty if unknown")]
    client_id: Annotated[str, Meta(description="Client id of that member; empty if unknown")]
    status: StatusName
    start: Annotated[Slot | None, Meta(description="First commit in the window")]
    end: Annotated[Slot | None, Meta(description="Last commit in the window")]
    current_lag: Annotated[int, Meta(description="Lag behind the newest head; 0 also if it is unknown")]
    complete: Complete
    seconds_behind: SecondsBehind = None
    oldest_unread_age_seconds: OldestUnreadAge = None
    catch_up_seconds: CatchUpSeconds = None
    retention_left_seconds: RetentionLeft = None


class GroupStatus(msgspec.Struct, frozen=True):
    """A consumer group with its status."""

    cluster: str
    group: str
    status: StatusName
    complete: Complete
    partitions: Annotated[list[PartitionStatus], Meta(description="All partitions, or only those that are not OK")]
    partition_count: int
    maxlag: Annotated[PartitionStatus | None, Meta(description="The partition with the largest lag")]
    totallag: Annotated[int, Meta(description="Sum of the lags of all partitions")]
    seconds_behind: SecondsBehind = None
    seconds_behind_method: BehindMethod = METHOD_NAMES[0]
    oldest_unread_age_seconds: OldestUnreadAge = None
    catch_up_seconds: CatchUpSeconds = None
    catch_up_seconds_at_most: CatchUpAtMost = None
    is_falling_behind: IsFallingBehind = False
    retention_left_seconds: RetentionLeft = None
    lost_messages: LostMessages = 0


class GroupResult(msgspec.Struct, frozen=True):
    """A group's status with details that Burrow's answer does not have."""

    status: GroupStatus
    bad_partitions: int = 0
    """How many partitions are not OK; `status` may list fewer of them."""
    lags: tuple[int | None, ...] = ()
    """The lags of the listed partitions, None if unknown (Burrow's answer has 0 there)."""


def missing_group(name: GroupName) -> GroupStatus:
    """The status of a group that does not exist."""
    return GroupStatus(*name, Status.NOTFOUND.name, 1.0, [], 0, None, 0)


def read_group_results(store: Store, manifest: Manifest, rows: Iterable[Row]) -> dict[GroupName, GroupResult]:
    """The results of some groups, given by their rows; they list the partitions that are not OK."""
    by_bucket: dict[int, list[Row]] = {}
    for row in rows:
        by_bucket.setdefault(int(row["bucket"]), []).append(row)
    group_count = sum(map(len, by_bucket.values()))
    limit = max(MAX_PARTITIONS // max(group_count, 1), MIN_PARTITIONS_PER_GROUP)
    results: dict[GroupName, GroupResult] = {}
    for index, bucket_rows in by_bucket.items():
        results |= _read_bucket(store, manifest.buckets[index], bucket_rows, limit)
    return results


def _read_bucket(store: Store, bucket: Bucket, rows: list[Row], limit: int) -> dict[GroupName, GroupResult]:
    table = store.read_parquet(bucket.partitions, _COLUMNS)
    status, seconds, lag = (table[name].to_numpy() for name in ("status", "seconds_behind", "current_lag"))
    bad = [_bad_partitions(status, seconds, lag, row["first_row"], row["partitions"]) for row in rows]
    listed = [positions[:limit] for positions in bad]
    # The listed partitions of all groups, then each group's partition with the largest lag.
    wanted = np.concatenate([*listed, np.array([row["maxlag_row"] for row in rows], dtype=np.int64)])
    partitions = [_partition_status(row) for row in table.take(pa.array(np.maximum(wanted, 0))).to_pylist()]
    ends = np.cumsum([positions.size for positions in listed]).tolist()
    results = {}
    for index, row in enumerate(rows):
        group_status = GroupStatus(
            row["cluster"],
            row["group"],
            Status(row["status"]).name,
            row["complete"],
            partitions[ends[index] - listed[index].size : ends[index]],
            row["partitions"],
            partitions[ends[-1] + index] if row["maxlag_row"] >= 0 and row["partitions"] else None,
            row["totallag"],
            **without_rates(to_time_lag(row)),
        )
        lags = tuple(None if value == UNKNOWN else value for value in lag[listed[index]].tolist())
        results[row["cluster"], row["group"]] = GroupResult(group_status, bad[index].size, lags)
    return results


def _bad_partitions(status: SmallInts, seconds: Floats, lag: Ints, first: int, count: int) -> Ints:
    """The positions of a group's partitions that are not OK, worst first: by severity, then by lag in time."""
    positions = first + np.flatnonzero(status[first : first + count] > int(Status.OK))
    return positions[np.lexsort((-lag[positions], -seconds[positions], -status[positions]))]


def _partition_status(row: Row) -> PartitionStatus:
    return PartitionStatus(
        row["topic"],
        row["partition"],
        row["owner"] or "",
        row["client_id"] or "",
        Status(row["status"]).name,
        _slot(row, "start"),
        _slot(row, "end"),
        max(row["current_lag"], 0),
        row["complete"],
        known_or_none(row["seconds_behind"]),
        known_or_none(row["oldest_unread_age_s"]),
        known_or_none(row["catch_up_low_s"]),
        known_or_none(row["retention_left_s"]),
    )


def without_rates(lag: TimeLag) -> dict[str, Any]:
    """The keys of a time lag that the status of a group has."""
    return {name: value for name, value in structs.asdict(lag).items() if name != "rates"}


def _slot(row: Row, edge: str) -> Slot | None:
    offset, at_ms, lag = (row[f"{edge}_{column}"] for column in ("offset", "ms", "lag"))
    return None if at_ms == UNKNOWN else Slot(offset, at_ms, at_ms // 1000 * 1000, None if lag == UNKNOWN else lag)

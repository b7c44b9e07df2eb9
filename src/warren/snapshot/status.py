"""Groups as the API's `status` shows them, many at once: their verdict and the partitions that are not OK."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.snapshot.manifest import Bucket, Manifest
from warren.snapshot.store import Store

Name = tuple[str, str]
"""A group's cluster and its own name."""
Result = dict[str, Any]
Row = Mapping[str, Any]
"""A group as a snapshot holds it."""

PARTITIONS_MOST = 100_000
"""How many partitions are shown of all groups together, so that a storm is told of within a cycle."""
PARTITIONS_LEAST = 20
"""How many of one group are shown, the worst, however many groups there are."""
_COLUMNS = [
    "topic", "partition", "owner", "client_id", "status", "complete", "current_lag",
    "start_offset", "start_ms", "start_lag", "end_offset", "end_ms", "end_lag",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A group's result, how many of its partitions are not OK, and the lags of those that are shown."""

    result: Result
    bad: int = 0
    lags: tuple[int | None, ...] = ()
    """None where it is not known; the API shows 0 there, as Burrow does."""


def results_of(store: Store, manifest: Manifest, rows: Iterable[Row]) -> dict[Name, GroupStatus]:
    """What there is to say of some groups."""
    by_bucket: dict[int, list[Row]] = {}
    for row in rows:
        by_bucket.setdefault(int(row["bucket"]), []).append(row)
    count = sum(len(held) for held in by_bucket.values())
    most = max(PARTITIONS_MOST // max(count, 1), PARTITIONS_LEAST)
    found: dict[Name, GroupStatus] = {}
    for number, held in by_bucket.items():
        found |= _of_bucket(store, manifest.buckets[number], held, most)
    return found


def gone(name: Name) -> GroupStatus:
    """What there is to say of a group that is not there any more."""
    return GroupStatus({
        "cluster": name[0], "group": name[1], "status": Status.NOTFOUND.name, "complete": 1.0, "partitions": [],
        "partition_count": 0, "maxlag": None, "totallag": 0,
    })  # fmt: skip


def _of_bucket(store: Store, bucket: Bucket, rows: list[Row], most: int) -> dict[Name, GroupStatus]:
    table = store.read_parquet(bucket.partitions, _COLUMNS)
    status, lag = table["status"].to_numpy(), table["current_lag"].to_numpy()
    bad = [_bad(status, lag, row["first_row"], row["partitions"]) for row in rows]
    shown = [places[:most] for places in bad]
    # The first bad ones of all groups, then of each the partition that lags most.
    wanted = np.concatenate([*shown, np.array([row["maxlag_row"] for row in rows], dtype=np.int64)])
    partitions = [_partition(held) for held in table.take(pa.array(np.maximum(wanted, 0))).to_pylist()]
    ends = np.cumsum([places.size for places in shown])
    found = {}
    for number, row in enumerate(rows):
        own = partitions[int(ends[number] - shown[number].size) : int(ends[number])]
        farthest = partitions[int(ends[-1]) + number] if row["maxlag_row"] >= 0 and row["partitions"] else None
        found[row["cluster"], row["group"]] = GroupStatus(
            {
                "cluster": row["cluster"],
                "group": row["group"],
                "status": Status(row["status"]).name,
                "complete": row["complete"],
                "partitions": own,
                "partition_count": row["partitions"],
                "maxlag": farthest,
                "totallag": row["totallag"],
            },
            int(bad[number].size),
            tuple(None if held == UNKNOWN else held for held in lag[shown[number]].tolist()),
        )
    return found


def _bad(status: NDArray[np.int8], lag: NDArray[np.int64], first: int, count: int) -> NDArray[np.int64]:
    """The rows of a group that are not OK, the worst first."""
    places = first + np.flatnonzero(status[first : first + count] > int(Status.OK))
    return places[np.lexsort((-lag[places], -status[places]))]


def _partition(row: Row) -> Result:
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "owner": row["owner"] or "",
        "client_id": row["client_id"] or "",
        "status": Status(row["status"]).name,
        "start": _slot(row, "start"),
        "end": _slot(row, "end"),
        "current_lag": max(row["current_lag"], 0),
        "complete": row["complete"],
    }


def _slot(row: Row, which: str) -> Result | None:
    at, lag = row[f"{which}_ms"], row[f"{which}_lag"]
    if at == UNKNOWN:
        return None
    return {
        "offset": row[f"{which}_offset"],
        "timestamp": at,
        "observedAt": at // 1000 * 1000,
        "lag": None if lag == UNKNOWN else lag,
    }

"""Keeps the book of incidents: looks at each snapshot, decides what has changed, and writes it down."""

import uuid
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.incidents import Known, decide
from warren.domain.rules import Status
from warren.domain.windows import UNKNOWN
from warren.notify.book import Book
from warren.snapshot.incidents import BadPartition, Entry
from warren.snapshot.manifest import Bucket, Manifest
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

Name = tuple[str, str]
"""A group's cluster and its own name."""

PARTITIONS_MOST = 20
"""How many of an incident's partitions are put down by name."""
DAY_MS = 86_400_000


class IncidentKeeper:
    """Holds the open incidents in memory and all of them in the book."""

    def __init__(self, book: Book, store: Store, keep_days: int) -> None:
        self._book = book
        self._store = store
        self._keep_ms = max(keep_days, 1) * DAY_MS
        self._open = {_name(entry): entry for entry in book.still_open()}

    def take(self, manifest: Manifest) -> None:
        """What a snapshot opens, changes and closes."""
        groups = Snapshot(self._store, manifest).groups()
        bad = groups.filter(pc.greater(groups["status"], int(Status.OK)))
        rows = {(row["cluster"], row["group"]): row for row in bad.to_pylist()}
        verdicts = {name: Status(row["status"]) for name, row in rows.items()}
        verdicts |= _of_others(groups, [name for name in self._open if name not in rows])
        changed = [
            entry
            for name, status in verdicts.items()
            if not _is_away(manifest, name[0]) and (entry := self._after(name, status, manifest.now_ms)) is not None
        ]
        if not changed:
            return
        found = self._partitions(manifest, [rows[_name(entry)] for entry in changed if _name(entry) in rows])
        written = [_with_partitions(entry, found.get(_name(entry))) for entry in changed]
        self._book.write(written, manifest.now_ms - self._keep_ms)
        for entry in written:
            if entry.incident.closed_ms is None:
                self._open[_name(entry)] = entry
            else:
                self._open.pop(_name(entry), None)

    def _after(self, name: Name, status: Status, now_ms: int) -> Entry | None:
        """A group's incident if this verdict changes anything about it."""
        held = self._open.get(name)
        made = decide(Known(held.incident if held else None), *name, status, (), now_ms, lambda: str(uuid.uuid4()))
        incident = made.closed or made.known.incident
        if incident is None or (held is not None and incident == held.incident):
            return None
        return Entry(incident, held.partitions if held else (), held.partition_count if held else 0)

    def _partitions(
        self, manifest: Manifest, rows: Iterable[Mapping[str, int | str]]
    ) -> dict[Name, tuple[tuple[BadPartition, ...], int]]:
        """The partitions of some groups that are not OK, the worst first, and how many they are."""
        by_bucket: dict[int, list[Mapping[str, int | str]]] = {}
        for row in rows:
            by_bucket.setdefault(int(row["bucket"]), []).append(row)
        found: dict[Name, tuple[tuple[BadPartition, ...], int]] = {}
        for number, held in by_bucket.items():
            found |= self._of_bucket(manifest.buckets[number], held)
        return found

    def _of_bucket(
        self, bucket: Bucket, rows: Sequence[Mapping[str, int | str]]
    ) -> dict[Name, tuple[tuple[BadPartition, ...], int]]:
        table = self._store.read_parquet(bucket.partitions, ["topic", "partition", "status", "current_lag"])
        status, lag = table["status"].to_numpy(), table["current_lag"].to_numpy()
        topic, partition = table["topic"].combine_chunks(), table["partition"].to_numpy()
        found = {}
        for row in rows:
            first, count = int(row["first_row"]), int(row["partitions"])
            bad = first + np.flatnonzero(status[first : first + count] > int(Status.OK))
            worst = bad[np.lexsort((-lag[bad], -status[bad]))][:PARTITIONS_MOST]
            found[str(row["cluster"]), str(row["group"])] = (
                tuple(_partition(topic, partition, status, lag, int(place)) for place in worst),
                int(bad.size),
            )
        return found


def _is_away(manifest: Manifest, cluster: str) -> bool:
    """Whether a cluster cannot be judged; one that is not configured any more is not away but gone."""
    state = manifest.clusters.get(cluster)
    return state is not None and state.unknown_since_ms is not None


def _of_others(groups: pa.Table, names: Sequence[Name]) -> dict[Name, Status]:
    """The verdicts of groups that are not bad: OK, or NOTFOUND when they are not there any more."""
    if not names:
        return {}
    keys = pc.binary_join_element_wise(groups["cluster"], groups["group"], "\0")
    is_there = pc.is_in(pa.array(["\0".join(name) for name in names]), value_set=keys.combine_chunks()).to_pylist()
    return {name: Status.OK if found else Status.NOTFOUND for name, found in zip(names, is_there, strict=True)}


def _partition(
    topic: pa.Array,
    partition: NDArray[np.int32],
    status: NDArray[np.int8],
    lag: NDArray[np.int64],
    row: int,
) -> BadPartition:
    held = int(lag[row])
    return BadPartition(
        str(topic[row].as_py()), int(partition[row]), Status(int(status[row])), None if held == UNKNOWN else held
    )


def _with_partitions(entry: Entry, found: tuple[tuple[BadPartition, ...], int] | None) -> Entry:
    return entry if found is None else Entry(entry.incident, *found)


def _name(entry: Entry) -> Name:
    return entry.incident.cluster, entry.incident.group

"""What the index does not have of partitions: their windows and the numbers behind their verdicts.

A row group of the snapshot's files is read when one of its groups is first requested, and then in advance for each new
snapshot, as long as requests come.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warren.domain.arrays import Ints, to_array
from warren.snapshot.schemas import RATES
from warren.web.chunks import Chunks

if TYPE_CHECKING:
    from warren.web.index import Index

MAX_BYTES = 96 << 20
"""How much the details of a snapshot may take: those of about 300,000 partitions with 10 commits each."""
_WINDOW_COLUMNS = ("offsets", "times_ms", "lags")
_COLUMNS = (
    "reason", "since_ms", "committed_offset", "head", "head_ms", "log_start", "offsets_log", "trend_floor",
    "behind_method", *RATES, "catch_up_high_s", "lost",
)  # fmt: skip

RowGroup = tuple[int, int]
"""A bucket, and the number of a row group in its file."""


@dataclass(frozen=True, slots=True)
class PartitionDetails:
    """The details of consecutive partitions; the slots of all windows follow each other, oldest first."""

    columns: dict[str, NDArray[np.generic]]
    slots: dict[str, Ints]
    edges: Ints
    """Where the slots of each partition begin, and where the last ones end."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return sum(column.nbytes for column in (*self.columns.values(), *self.slots.values(), self.edges))

    def between(self, begin: int, end: int) -> "PartitionDetails":
        """The details of some of the partitions, without a copy."""
        first, last = int(self.edges[begin]), int(self.edges[end])
        return PartitionDetails(
            {name: column[begin:end] for name, column in self.columns.items()},
            {name: column[first:last] for name, column in self.slots.items()},
            self.edges[begin : end + 1] - first,
        )

    def row(self, position: int) -> dict[str, Any]:
        """The details of one partition, as in a row of the snapshot's table."""
        slots = slice(*self.edges[position : position + 2].tolist())
        values = {name: column[position].item() for name, column in self.columns.items()}
        return values | {name: column[slots].tolist() for name, column in self.slots.items()}


class Details:
    """The details of all groups of an index, as far as they are requested."""

    def __init__(self, index: "Index") -> None:
        self._snapshot = index.snapshot
        self._bucket, self._first, self._count = (
            index.group_columns[name] for name in ("bucket", "first_row", "partitions")
        )
        self._row_groups: dict[int, Ints] = {}
        """Where the row groups of each bucket begin, and where the last one ends."""
        self._chunks: Chunks[RowGroup, PartitionDetails] = Chunks(MAX_BYTES)
        self._reading = threading.Lock()

    def are_in_memory(self, group_row: int) -> bool:
        """Whether nothing needs to be read to have those of a group."""
        bucket = int(self._bucket[group_row])
        return bucket in self._row_groups and all(key in self._chunks for key, _, _ in self._places(bucket, group_row))

    def of(self, group_row: int) -> PartitionDetails:
        """The details of a group's partitions."""
        bucket = int(self._bucket[group_row])
        if bucket not in self._row_groups:
            self._row_groups[bucket] = self._snapshot.row_groups(bucket)
        pieces = [self._row_group(key).between(begin, end) for key, begin, end in self._places(bucket, group_row)]
        return pieces[0] if len(pieces) == 1 else _concatenated(pieces)

    def warm_up(self, previous: "Details") -> None:
        """Read the row groups that were requested of late, so that no request waits for them."""
        for (bucket, number), used_s in previous._chunks.recently_used().items():
            if bucket >= len(self._snapshot.manifest.buckets) or self._chunks.is_full:
                continue
            self._row_groups[bucket] = edges = self._snapshot.row_groups(bucket)
            if number < edges.size - 1:
                self._row_group((bucket, number), used_s)

    def _places(self, bucket: int, group_row: int) -> list[tuple[RowGroup, int, int]]:
        """The row groups that have a group's partitions, and where those begin and end in each."""
        edges = self._row_groups[bucket]
        first = int(self._first[group_row])
        last = first + int(self._count[group_row])
        begin, end = np.searchsorted(edges, [first, max(last - 1, first)], side="right").tolist()
        places = []
        for number in range(begin - 1, end):
            start, stop = edges[number : number + 2].tolist()
            places.append(((bucket, number), max(first, start) - start, min(last, stop) - start))
        return places

    def _row_group(self, key: RowGroup, used_s: float | None = None) -> PartitionDetails:
        """A row group that is requested, or was at a time."""
        details = self._chunks.get(key)
        if details is not None:
            return details
        with self._reading:
            # Another thread may have read it meanwhile.
            details = self._chunks.get(key)
            if details is None:
                details = self._read(key)
                self._chunks.drop_oldest()
                self._chunks.put(key, details, details.size, used_s)
        return details

    def _read(self, key: RowGroup) -> PartitionDetails:
        table = self._snapshot.read_row_group(*key, [*_COLUMNS, *_WINDOW_COLUMNS])
        windows = {name: to_array(table[name]) for name in _WINDOW_COLUMNS}
        return PartitionDetails(
            {name: to_array(table[name]).to_numpy() for name in _COLUMNS},
            {name: window.values.to_numpy() for name, window in windows.items()},
            windows["offsets"].offsets.to_numpy(),
        )


def _concatenated(pieces: Sequence[PartitionDetails]) -> PartitionDetails:
    counts = np.concatenate([np.diff(piece.edges) for piece in pieces])
    return PartitionDetails(
        {name: np.concatenate([piece.columns[name] for piece in pieces]) for name in _COLUMNS},
        {name: np.concatenate([piece.slots[name] for piece in pieces]) for name in _WINDOW_COLUMNS},
        np.concatenate([[0], np.cumsum(counts)]),
    )

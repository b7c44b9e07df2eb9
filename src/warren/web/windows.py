"""The windows of a group by topic and partition number, as Burrow lists them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

import numpy as np
import pyarrow as pa
from msgspec import Meta, Struct

from warren.domain.windows import UNKNOWN
from warren.snapshot.status import Slot
from warren.web.details import PartitionDetails
from warren.web.go_json import dumps
from warren.web.index import Index

WINDOWS_AT_ONCE = 1_000
"""How many windows are encoded while holding the interpreter lock."""


class PartitionWindow(Struct, rename={"current_lag": "current-lag"}):
    """The window of a group's commits to a partition."""

    offsets: Annotated[list[Slot | None], Meta(description="Oldest first; null where the window is not filled")]
    owner: str
    client_id: str
    current_lag: int


_NO_WINDOW = PartitionWindow([], "", "", 0)


def group_windows(index: Index, group_row: int) -> bytes:
    """The windows of a group as JSON: the members of an object that has a list per topic."""
    first = int(index.first_row[group_row])
    windows, partition = list(_windows(index, group_row)), index.columns["partition"]
    topics = []
    for run in range(*index.runs.first_of_group[group_row : group_row + 2].tolist()):
        begin, size = int(index.runs.first[run]), int(index.runs.size[run])
        own = windows[begin - first : begin - first + size]
        # A topic that does not exist any more is listed up to the highest partition that has a commit.
        listed = max(int(index.runs.listed[run]), int(partition[begin + size - 1]) + 1)
        if listed != size:
            # Partitions that the group never committed to are listed as well.
            committed, own = own, [_NO_WINDOW] * listed
            for number, window in zip(partition[begin : begin + size].tolist(), committed, strict=True):
                own[number] = window
        parts = [dumps(own[start : start + WINDOWS_AT_ONCE])[1:-1] for start in range(0, listed, WINDOWS_AT_ONCE)]
        topic = index.names["topic"][index.codes["topic"][begin]].as_py()
        topics.append(b"%b:[%b]" % (dumps(topic), b",".join(parts)))
    return b",".join(topics)


def _windows(index: Index, group_row: int) -> Iterator[PartitionWindow]:
    """The window of each row of a group, padded with nulls as Burrow's rings are."""
    rows = slice(*index.first_row[group_row : group_row + 2].tolist())
    owners, client_ids = (
        index.names[name].take(pa.array(index.codes[name][rows])).to_pylist() for name in ("owner", "client_id")
    )
    lags = np.maximum(index.columns["current_lag"][rows], 0).tolist()
    details, intervals = index.details.of(group_row), index.snapshot.manifest.intervals
    slots = window_slots(details)
    for (begin, end), owner, client_id, lag in zip(
        pairwise(details.edges.tolist()), owners, client_ids, lags, strict=True
    ):
        padding = [None] * (intervals - (end - begin)) if end > begin else []
        yield PartitionWindow([*padding, *slots[begin:end]], owner, client_id, lag)


def window_slots(details: PartitionDetails) -> list[Slot]:
    """The slots of all windows, one window after the other, oldest first."""
    offsets, times_ms, lags = (details.slots[name] for name in ("offsets", "times_ms", "lags"))
    lag: list[int | None] = lags.tolist()
    for unknown in np.flatnonzero(lags == UNKNOWN).tolist():
        lag[unknown] = None
    return list(map(Slot, offsets.tolist(), times_ms.tolist(), (times_ms // 1000 * 1000).tolist(), lag))

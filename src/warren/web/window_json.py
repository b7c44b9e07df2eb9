"""The windows of a group as JSON bytes, equal to `burrow.PartitionWindow` by topic and partition number."""

import numpy as np
import pyarrow as pa

from warren.domain.text_columns import as_text, bytes_of, joined, lists, null_where
from warren.domain.windows import UNKNOWN
from warren.web.details import PartitionDetails
from warren.web.index import Index

_NO_WINDOW = pa.array(['{"offsets":[],"owner":"","client_id":"","current-lag":0}'])


def group_windows(index: Index, group_row: int) -> memoryview:
    """The windows of a group: the members of an object that has a list per topic."""
    first, last = index.first_row[group_row : group_row + 2].tolist()
    runs = slice(*index.runs.first_of_group[group_row : group_row + 2].tolist())
    names, codes = index.status_json.names, index.codes
    lag = index.columns["current_lag"][first:last]
    lines = joined(
        '{"offsets":[', _windows(index.details.of(group_row), index.snapshot.manifest.intervals),
        '],"owner":', names["owner"].take(pa.array(codes["owner"][first:last])),
        ',"client_id":', names["client_id"].take(pa.array(codes["client_id"][first:last])),
        ',"current-lag":', as_text(np.maximum(lag, 0)), "}",
    )  # fmt: skip
    begin, size = index.runs.first[runs], index.runs.size[runs]
    partition = index.columns["partition"]
    # A topic that does not exist any more is listed up to the highest partition that has a commit.
    listed = np.maximum(index.runs.listed[runs], partition[begin + size - 1] + 1)
    edges = np.concatenate([[0], np.cumsum(listed)])
    if edges[-1] != last - first:
        # Partitions that the group never committed to are listed as well.
        position = np.full(int(edges[-1]), last - first)
        position[np.repeat(edges[:-1], size) + partition[first:last]] = np.arange(last - first)
        lines = pa.concat_arrays([lines, _NO_WINDOW]).take(pa.array(position))
    topics = names["topic"].take(pa.array(codes["topic"][begin]))
    return bytes_of(joined(",", topics, ":[", lists(edges, lines), "]"))[1:]


def _windows(details: PartitionDetails, intervals: int) -> pa.StringArray:
    """The slots of each window, padded with nulls as Burrow's rings are."""
    offsets, times_ms, lags = details.slots["offsets"], details.slots["times_ms"], details.slots["lags"]
    slots = lags.size
    numbers = as_text(np.concatenate([offsets, times_ms, times_ms // 1000 * 1000, lags]))
    windows = lists(
        details.edges,
        joined(
            '{"offset":', numbers.slice(0, slots),
            ',"timestamp":', numbers.slice(slots, slots),
            ',"observedAt":', numbers.slice(2 * slots, slots),
            ',"lag":', null_where(lags == UNKNOWN, numbers.slice(3 * slots, slots)), "}",
        ),
    )  # fmt: skip
    count = np.diff(details.edges)
    missing = np.where(count > 0, np.maximum(intervals - count, 0), 0)
    if not missing.any():
        return windows
    distinct, position = np.unique(missing, return_inverse=True)
    return joined(pa.array(["null," * number for number in distinct.tolist()]).take(pa.array(position)), windows)

"""Burrow's status of groups and partitions as JSON bytes, equal to `snapshot.status.GroupStatus`.

Arrow builds the partitions of some thousand rows at a time, when one of their groups is first requested. A group's
answer is then a slice of these bytes. Answers about many groups are built part by part and not kept.
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import structs
from numpy.typing import NDArray

from warren.domain.arrays import Ints, ranges, sums
from warren.domain.status import Status
from warren.domain.text_columns import as_json, as_text, bytes_of, joined, lists, null_where, replace_matching
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.snapshot.status import missing_group
from warren.snapshot.time_lag import METHOD_NAMES, known_values
from warren.web.chunks import Chunks
from warren.web.go_json import dumps, to_number

if TYPE_CHECKING:
    from warren.web.index import Index

ROWS_PER_CHUNK = 2_048
ROWS_PER_PART = 8_192
"""How many groups and partitions a part of an answer about many groups has: about 3 MB."""
MAX_BYTES = 96 << 20
"""How much the chunks of a snapshot may take; beyond that each answer is built on its own."""
_OK = int(Status.OK)
_STATUS = pa.array([status.name for status in Status])
_METHOD = pa.array(METHOD_NAMES)
_TO_ESCAPE = '["\\\\<>&\\x00-\\x1f\u2028\u2029]'


def group_status(index: "Index", group_row: int, *, show_all: bool) -> bytes:
    """The status of a group with all its partitions, or with those that are not OK."""
    found = index.status_json.of(group_row)
    if found is None:
        return bytes(index.status_json.of_groups(np.array([group_row]), show_all=show_all))
    chunk, begin, end = found
    head, tail = chunk.groups[group_row - chunk.first_group]
    if show_all:
        return head + chunk.slice(begin, end) + tail
    if index.group_columns["status"][group_row] == _OK:
        return head + tail
    first, last = index.first_row[group_row : group_row + 2].tolist()
    return head + chunk.rows(np.flatnonzero(index.columns["status"][first:last] != _OK) + first) + tail


def not_found(cluster: str, group: str) -> bytes:
    """The status of a group that does not exist."""
    # Go writes no fraction here.
    return dumps(structs.replace(missing_group((cluster, group)), complete=1))


@dataclass(frozen=True, slots=True)
class JsonChunk:
    """The partitions of consecutive groups, each followed by a comma; `edges` are where they begin and end."""

    data: memoryview
    edges: Ints
    first_group: int
    first_row: int
    position_of_row: Ints
    groups: list[tuple[bytes, bytes]] = field(default_factory=list)
    """What comes before and after the partitions of each group."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        texts = sum(len(head) + len(tail) for head, tail in self.groups)
        return self.data.nbytes + self.edges.nbytes + self.position_of_row.nbytes + texts

    def slice(self, begin: int, end: int) -> bytes:
        """The partitions from one position to another."""
        return bytes(self.data[int(self.edges[begin]) : int(self.edges[end]) - 1]) if end > begin else b""

    def rows(self, rows: Ints) -> bytes:
        """The partitions of some rows of the index."""
        positions = self.position_of_row[rows - self.first_row]
        edges = zip(self.edges[positions].tolist(), self.edges[positions + 1].tolist(), strict=True)
        return b",".join([self.data[begin : end - 1] for begin, end in edges])


class StatusJson:
    """The chunks of an index, each built once and only when it is needed."""

    def __init__(self, index: "Index") -> None:
        # The index refers to it: a cycle would keep the memory of old snapshots until the next garbage collection.
        self._index: Index = weakref.proxy(index)
        self.names = {name: json_names(names) for name, names in index.names.items()}
        self._clusters = json_names(pa.array(index.clusters, pa.string()))
        self._starts: Ints = np.concatenate([[0], np.cumsum(index.partition_count)])
        self._chunk_of_group = self._starts[:-1] // ROWS_PER_CHUNK
        self._chunks: Chunks[int, JsonChunk] = Chunks(MAX_BYTES)

    def of(self, group_row: int) -> tuple[JsonChunk, int, int] | None:
        """The chunk with a group's partitions, and the positions where they begin and end; None if there is no room."""
        number = int(self._chunk_of_group[group_row])
        chunk = self._chunks.get(number)
        if chunk is None:
            if self._chunks.is_full:
                return None
            chunk = self._build(number)
            self._chunks.put(number, chunk, chunk.size)
        base = int(self._starts[chunk.first_group])
        return chunk, int(self._starts[group_row]) - base, int(self._starts[group_row + 1]) - base

    def warm_up(self, previous: "StatusJson") -> None:
        """Build the chunks that were requested of late, so that no request waits for them."""
        existing = set(np.unique(self._chunk_of_group).tolist())
        for number, used_s in previous._chunks.recently_used().items():
            if number in existing and not self._chunks.is_full:
                chunk = self._build(number)
                self._chunks.put(number, chunk, chunk.size, used_s)

    def parts(self, groups: Ints, *, show_all: bool) -> Iterator[memoryview]:
        """The statuses of many groups, separated by commas, some thousand partitions at a time."""
        index = self._index
        if not groups.size:
            return
        count = index.partition_count if show_all else sums(index.columns["status"] != _OK, index.first_row)
        part = np.cumsum(count[groups] + 1) // ROWS_PER_PART
        for number, own in enumerate(np.split(groups, np.flatnonzero(np.diff(part)) + 1)):
            if number:
                yield memoryview(b",")
            yield self.of_groups(own, show_all=show_all)

    def of_groups(self, groups: Ints, *, show_all: bool) -> memoryview:
        """The statuses of some groups, separated by commas."""
        index = self._index
        if show_all:
            first_run, end_run = index.runs.first_of_group[groups], index.runs.first_of_group[groups + 1]
            own_runs = ranges(first_run, end_run - first_run)
            run, partition, row = index.runs.listed_rows(own_runs, index.columns["partition"])
            count = index.partition_count[groups]
        else:
            first, end = index.first_row[groups], index.first_row[groups + 1]
            size = np.where(index.group_columns["status"][groups] == _OK, 0, end - first)
            row = ranges(first, size)
            is_bad = index.columns["status"][row] != _OK
            count, row = sums(is_bad, np.concatenate([[0], np.cumsum(size)])), row[is_bad]
            run = np.searchsorted(index.runs.first, row, side="right") - 1
            partition = index.columns["partition"][row].astype(np.int64)
        partitions = lists(np.concatenate([[0], np.cumsum(count)]), self._lines(run, partition, row))
        return bytes_of(joined(",", self._heads(groups), partitions, self._tails(groups)))[1:]

    def _build(self, number: int) -> JsonChunk:
        index, runs = self._index, self._index.runs
        begin, end = np.searchsorted(self._chunk_of_group, [number, number + 1]).tolist()
        own_runs = np.arange(runs.first_of_group[begin], runs.first_of_group[end])
        run, partition, row = runs.listed_rows(own_runs, index.columns["partition"])
        lines = joined(self._lines(run, partition, row), ",")
        _, ends, data = lines.buffers()
        edges = np.frombuffer(ends, dtype=np.int32)[: len(lines) + 1].astype(np.int64)
        chunk = JsonChunk(memoryview(data), edges, begin, int(index.first_row[begin]), np.flatnonzero(row >= 0))
        groups = np.arange(begin, end)
        heads, tails = (texts.cast(pa.binary()).to_pylist() for texts in (self._heads(groups), self._tails(groups)))
        chunk.groups.extend(zip(heads, tails, strict=True))
        return chunk

    def _lines(self, run: Ints, partition: Ints, row: Ints) -> pa.StringArray:
        """The status of each partition; a row of -1 is a partition without a commit."""
        index, runs = self._index, self._index.runs
        status = np.where(row < 0, Status.OK, index.columns["status"][row])
        return joined(
            '{"topic":', self.names["topic"].take(pa.array(index.codes["topic"][runs.first[run]])),
            ',"partition":', as_text(partition),
            ',"owner":', self._name("owner", row),
            ',"client_id":', self._name("client_id", row),
            ',"status":"', _STATUS.take(pa.array(status)),
            '","start":', self._slot("start", row),
            ',"end":', self._slot("end", row),
            ',"current_lag":', as_text(np.where(row < 0, 0, np.maximum(index.columns["current_lag"][row], 0))),
            ',"complete":', self._complete(row),
            ',"seconds_behind":', self._seconds("seconds_behind", row),
            ',"oldest_unread_age_seconds":', self._seconds("oldest_unread_age_s", row),
            ',"catch_up_seconds":', self._seconds("catch_up_low_s", row),
            ',"retention_left_seconds":', self._seconds("retention_left_s", row), "}",
        )  # fmt: skip

    def _heads(self, groups: Ints) -> pa.StringArray:
        """What comes before the partitions of each group."""
        index = self._index
        return joined(
            '{"cluster":', self._clusters.take(pa.array(index.group_cluster[groups])),
            ',"group":', json_names(index.group_names.take(pa.array(groups))),
            ',"status":"', _STATUS.take(pa.array(index.group_columns["status"][groups])),
            '","complete":', _shares(index.complete[groups]), ',"partitions":[',
        )  # fmt: skip

    def _tails(self, groups: Ints) -> pa.StringArray:
        """What comes after the partitions of each group."""
        index = self._index
        # `first_row` and `maxlag_row` count the rows of the bucket's file.
        first = index.first_row[groups] - index.group_columns["first_row"][groups]
        maxlag_row = first + index.group_columns["maxlag_row"][groups]
        run = np.searchsorted(index.runs.first, maxlag_row, side="right") - 1
        return joined(
            '],"partition_count":', as_text(index.partition_count[groups]),
            ',"maxlag":', self._lines(run, index.columns["partition"][maxlag_row].astype(np.int64), maxlag_row),
            ',"totallag":', as_text(index.group_columns["totallag"][groups]),
            self._time_lags(groups),
        )  # fmt: skip

    def _time_lags(self, groups: Ints) -> pa.StringArray:
        """The last keys of some groups and the end of each object."""
        lag = self._index.time_lag
        return joined(
            ',"seconds_behind":', as_json(lag.seconds_behind[groups]),
            ',"seconds_behind_method":"', _METHOD.take(pa.array(lag.method[groups] - int(TimeLagMethod.UNKNOWN))),
            '","oldest_unread_age_seconds":', as_json(lag.oldest_unread_age_seconds[groups]),
            ',"catch_up_seconds":', as_json(lag.catch_up_seconds[groups]),
            ',"catch_up_seconds_at_most":', as_json(lag.catch_up_seconds_at_most[groups]),
            ',"is_falling_behind":', as_text(lag.is_falling_behind[groups]),
            ',"retention_left_seconds":', as_json(lag.retention_left_seconds[groups]),
            ',"lost_messages":', as_text(lag.lost_messages[groups]), "}",
        )  # fmt: skip

    def _seconds(self, column: str, row: Ints) -> pa.StringArray:
        return as_json(np.where(row < 0, np.nan, known_values(self._index.columns[column][row])))

    def _name(self, column: str, row: Ints) -> pa.StringArray:
        # The last name is the empty one.
        names = self.names[column]
        return names.take(pa.array(np.where(row < 0, len(names) - 1, self._index.codes[column][row])))

    def _slot(self, which: str, row: Ints) -> pa.StringArray:
        """The first or the last commit of each window."""
        offset, at_ms, lag = (self._index.columns[f"{which}_{name}"][row] for name in ("offset", "ms", "lag"))
        at_ms = np.where(row < 0, UNKNOWN, at_ms)
        text = joined(
            '{"offset":', as_text(offset),
            ',"timestamp":', as_text(at_ms),
            ',"observedAt":', as_text(at_ms // 1000),
            '000,"lag":', null_where(lag == UNKNOWN, as_text(lag)), "}",
        )  # fmt: skip
        return null_where(at_ms == UNKNOWN, text)

    def _complete(self, row: Ints) -> pa.StringArray:
        return _shares(np.where(row < 0, np.float32(0), self._index.columns["complete"][row]))


def _shares(shares: NDArray[np.float32]) -> pa.StringArray:
    distinct, position = np.unique(shares, return_inverse=True)
    return pa.array([str(to_number(value)) for value in distinct], pa.string()).take(pa.array(position))


def json_names(names: pa.StringArray) -> pa.StringArray:
    """Names as Go writes them in JSON; only those with special characters are encoded one by one."""
    return replace_matching(names, joined('"', names, '"'), _TO_ESCAPE, lambda name: dumps(name).decode())

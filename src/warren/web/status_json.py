"""Burrow's status of groups and partitions as JSON bytes, equal to `snapshot.status.GroupStatus`.

Arrow builds the partitions of some thousand rows at a time, when one of their groups is first requested. A group's
answer is then a slice of these bytes.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from warren.domain.arrays import Ints
from warren.domain.status import Status
from warren.domain.text_columns import as_json, as_text, joined, replace_matching
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.snapshot.status import missing_group
from warren.snapshot.time_lag import METHOD_NAMES, known_values
from warren.web.go_json import dumps, to_number

if TYPE_CHECKING:
    from warren.web.index import Index

ROWS_PER_CHUNK = 2_048
_OK = int(Status.OK)
_STATUS = pa.array([status.name for status in Status])
_METHOD = pa.array(METHOD_NAMES)
_TO_ESCAPE = '["\\\\<>&\\x00-\\x1f\u2028\u2029]'


def group_status(index: "Index", group_row: int, *, show_all: bool) -> bytes:
    """The status of a group with all its partitions, or with those that are not OK."""
    chunk, begin, end = index.status_json.of(group_row)
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
        self._index = index
        self._names = {name: _quoted(names) for name, names in index.names.items()}
        self._starts: Ints = np.concatenate([[0], np.cumsum(index.partition_count)])
        self._chunk_of_group = self._starts[:-1] // ROWS_PER_CHUNK
        self._chunks: dict[int, JsonChunk] = {}

    def of(self, group_row: int) -> tuple[JsonChunk, int, int]:
        """The chunk with a group's partitions, and the positions where they begin and end."""
        number = int(self._chunk_of_group[group_row])
        chunk = self._chunks.get(number)
        if chunk is None:
            chunk = self._chunks[number] = self._build(number)
        base = int(self._starts[chunk.first_group])
        return chunk, int(self._starts[group_row]) - base, int(self._starts[group_row + 1]) - base

    def warm_up(self, previous: "StatusJson") -> None:
        """Build the chunks that were requested of the previous snapshot, so that no request waits for them."""
        for number in set(previous._chunks.copy()).intersection(self._chunk_of_group.tolist()):
            self._chunks[number] = self._build(number)

    def _build(self, number: int) -> JsonChunk:
        index, runs = self._index, self._index.runs
        begin, end = np.searchsorted(self._chunk_of_group, [number, number + 1]).tolist()
        first_run, last_run = int(runs.first_of_group[begin]), int(runs.first_of_group[end])
        run, partition, row = runs.listed_rows(first_run, last_run, index.columns["partition"])
        status = np.where(row < 0, Status.OK, index.columns["status"][row])
        lines = joined(
            '{"topic":', self._names["topic"].take(pa.array(index.codes["topic"][runs.first[run]])),
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
            ',"retention_left_seconds":', self._seconds("retention_left_s", row), "},",
        )  # fmt: skip
        _, ends, data = lines.buffers()
        edges = np.frombuffer(ends, dtype=np.int32)[: len(lines) + 1].astype(np.int64)
        chunk = JsonChunk(memoryview(data), edges, begin, int(index.first_row[begin]), np.flatnonzero(row >= 0))
        time_lags = self._time_lags(begin, end)
        chunk.groups.extend(self._group(chunk, begin + i, time_lag) for i, time_lag in enumerate(time_lags))
        return chunk

    def _group(self, chunk: JsonChunk, group_row: int, time_lag: bytes) -> tuple[bytes, bytes]:
        index = self._index
        column = {name: int(values[group_row]) for name, values in index.group_columns.items()}
        # `first_row` and `maxlag_row` count the rows of the bucket's file.
        maxlag_row = index.first_row[group_row] + column["maxlag_row"] - column["first_row"]
        cluster, group = index.group_key(group_row)
        head = b'{"cluster":%b,"group":%b,"status":"%b","complete":%b,"partitions":[' % (
            dumps(cluster),
            dumps(group),
            Status(column["status"]).name.encode(),
            str(to_number(index.complete[group_row])).encode(),
        )
        tail = b'],"partition_count":%d,"maxlag":%b,"totallag":%d%b' % (
            index.partition_count[group_row],
            chunk.rows(np.array([maxlag_row])),
            column["totallag"],
            time_lag,
        )
        return head, tail

    def _time_lags(self, begin: int, end: int) -> list[bytes]:
        """The last keys of some groups and the end of each object."""
        lag, own = self._index.time_lag, slice(begin, end)
        text = joined(
            ',"seconds_behind":', as_json(lag.seconds_behind[own]),
            ',"seconds_behind_method":"', _METHOD.take(pa.array(lag.method[own] - int(TimeLagMethod.UNKNOWN))),
            '","oldest_unread_age_seconds":', as_json(lag.oldest_unread_age_seconds[own]),
            ',"catch_up_seconds":', as_json(lag.catch_up_seconds[own]),
            ',"catch_up_seconds_at_most":', as_json(lag.catch_up_seconds_at_most[own]),
            ',"is_falling_behind":', as_text(lag.is_falling_behind[own]),
            ',"retention_left_seconds":', as_json(lag.retention_left_seconds[own]),
            ',"lost_messages":', as_text(lag.lost_messages[own]), "}",
        )  # fmt: skip
        keys: list[bytes] = text.cast(pa.binary()).to_pylist()
        return keys

    def _seconds(self, column: str, row: Ints) -> pa.StringArray:
        return as_json(np.where(row < 0, np.nan, known_values(self._index.columns[column][row])))

    def _name(self, column: str, row: Ints) -> pa.StringArray:
        # The last name is the empty one.
        names = self._names[column]
        return names.take(pa.array(np.where(row < 0, len(names) - 1, self._index.codes[column][row])))

    def _slot(self, which: str, row: Ints) -> pa.StringArray:
        """The first or the last commit of each window."""
        offset, at_ms, lag = (self._index.columns[f"{which}_{name}"][row] for name in ("offset", "ms", "lag"))
        at_ms = np.where(row < 0, UNKNOWN, at_ms)
        text = joined(
            '{"offset":', as_text(offset),
            ',"timestamp":', as_text(at_ms),
            ',"observedAt":', as_text(at_ms // 1000),
            '000,"lag":', pc.if_else(pa.array(lag == UNKNOWN), "null", as_text(lag)), "}",
        )  # fmt: skip
        return pc.if_else(pa.array(at_ms == UNKNOWN), "null", text)

    def _complete(self, row: Ints) -> pa.StringArray:
        share = np.where(row < 0, np.float32(0), self._index.columns["complete"][row])
        distinct, position = np.unique(share, return_inverse=True)
        return pa.array([str(to_number(value)) for value in distinct], pa.string()).take(pa.array(position))


def _quoted(names: pa.StringArray) -> pa.StringArray:
    """Names as Go writes them in JSON; only those with special characters are encoded one by one."""
    return replace_matching(names, joined('"', names, '"'), _TO_ESCAPE, lambda name: dumps(name).decode())

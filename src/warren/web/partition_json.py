"""The JSON of partitions, made for some thousand of them at a time by whole columns, when one is first asked for."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.domain.text_columns import as_text, joined, replace_matching
from warren.domain.windows import UNKNOWN
from warren.web.go_json import dumps, to_number

if TYPE_CHECKING:
    from warren.web.index import Index

Ints = NDArray[np.int64]

ROWS_AT_ONCE = 2_048
_STATUS = pa.array([status.name for status in Status])
_TO_ESCAPE = '["\\\\<>&\\x00-\\x1f\u2028\u2029]'


@dataclass(frozen=True, slots=True)
class JsonChunk:
    """The partitions of some groups in a row, each with a comma after it; `edges` has one more than there are."""

    data: memoryview
    edges: Ints
    first_group: int
    first_row: int
    place_of_row: Ints
    groups: list[tuple[bytes, bytes]] = field(default_factory=list)
    """What stands before and after the partitions of each group."""

    def whole(self, begin: int, end: int) -> bytes:
        """The partitions from one place to another."""
        return bytes(self.data[int(self.edges[begin]) : int(self.edges[end]) - 1]) if end > begin else b""

    def one(self, row: int) -> bytes:
        """The partition of one row of the index."""
        place = self.place_of_row[row - self.first_row]
        return bytes(self.data[int(self.edges[place]) : int(self.edges[place + 1]) - 1])

    def some(self, rows: Ints) -> bytes:
        """The partitions of some rows of the index."""
        places = self.place_of_row[rows - self.first_row]
        return b",".join(
            [
                self.data[begin : end - 1]
                for begin, end in zip(self.edges[places].tolist(), self.edges[places + 1].tolist(), strict=True)
            ]
        )


class PartitionJson:
    """Gives the texts that hold a group; they are made once for an index, and only where somebody looks."""

    def __init__(self, index: "Index") -> None:
        self._index = index
        self._names = {name: _quoted(names) for name, names in index.names.items()}
        self._starts: Ints = np.concatenate([[0], np.cumsum(index.partition_count)])
        self._chunk = self._starts[:-1] // ROWS_AT_ONCE
        self._made: dict[int, JsonChunk] = {}

    def of(self, number: int) -> tuple[JsonChunk, int, int]:
        """The texts with a group's partitions, and where among them they begin and end."""
        chunk = int(self._chunk[number])
        texts = self._made.get(chunk)
        if texts is None:
            texts = self._made[chunk] = self._make(chunk)
        base = int(self._starts[texts.first_group])
        return texts, int(self._starts[number]) - base, int(self._starts[number + 1]) - base

    def warm_up(self, before: "PartitionJson") -> None:
        """Make what was asked for of the snapshot before, so that nobody has to wait for it."""
        for chunk in set(before._made.copy()).intersection(self._chunk.tolist()):
            self._made[chunk] = self._make(chunk)

    def _make(self, chunk: int) -> JsonChunk:
        index = self._index
        begin, end = np.searchsorted(self._chunk, [chunk, chunk + 1]).tolist()
        runs = index.runs
        first_run, last_run = int(runs.first_of_group[begin]), int(runs.first_of_group[end])
        run, number, row = runs.padded_rows(first_run, last_run, index.columns["partition"])
        topic = self._names["topic"].take(pa.array(index.topic[runs.first[run]]))
        lines = joined(
            '{"topic":',
            topic,
            ',"partition":',
            as_text(number),
            ',"owner":',
            self._named("owner", index.owner, row),
            ',"client_id":',
            self._named("client_id", index.client_id, row),
            ',"status":"',
            _STATUS.take(pa.array(np.where(row < 0, Status.OK, index.columns["status"][row]))),
            '","start":',
            self._slot("start", row),
            ',"end":',
            self._slot("end", row),
            ',"current_lag":',
            as_text(np.where(row < 0, 0, np.maximum(index.columns["current_lag"][row], 0))),
            ',"complete":',
            self._complete(row),
            "},",
        )
        _, ends, data = lines.buffers()
        edges = np.frombuffer(ends, dtype=np.int32)[: len(lines) + 1].astype(np.int64)
        texts = JsonChunk(memoryview(data), edges, begin, int(index.first[begin]), np.flatnonzero(row >= 0))
        texts.groups.extend(self._group(texts, number) for number in range(begin, end))
        return texts

    def _group(self, texts: JsonChunk, number: int) -> tuple[bytes, bytes]:
        index = self._index
        of_groups = index.of_groups
        most = int(index.first[number] - of_groups["first_row"][number] + of_groups["maxlag_row"][number])
        head = b'{"cluster":%b,"group":%b,"status":"%b","complete":%b,"partitions":[' % (
            dumps(index.clusters[index.group_cluster[number]]),
            dumps(index.group_names[number].as_py()),
            Status(of_groups["status"][number]).name.encode(),
            str(to_number(index.complete[number])).encode(),
        )
        tail = b'],"partition_count":%d,"maxlag":%b,"totallag":%d}' % (
            index.partition_count[number],
            texts.one(most),
            of_groups["totallag"][number],
        )
        return head, tail

    def _named(self, name: str, codes: NDArray[np.int32], row: Ints) -> pa.StringArray:
        # The last of the names is the empty one.
        names = self._names[name]
        return names.take(pa.array(np.where(row < 0, len(names) - 1, codes[row])))

    def _slot(self, which: str, row: Ints) -> pa.StringArray:
        """The first or the last commit of each window."""
        columns = self._index.columns
        at_ms = np.where(row < 0, UNKNOWN, columns[f"{which}_ms"][row])
        lag = pc.if_else(
            pa.array(columns[f"{which}_lag"][row] == UNKNOWN), "null", as_text(columns[f"{which}_lag"][row])
        )
        text = joined(
            '{"offset":', as_text(columns[f"{which}_offset"][row]),
            ',"timestamp":', as_text(at_ms),
            ',"observedAt":', as_text(at_ms // 1000),
            '000,"lag":', lag, "}",
        )  # fmt: skip
        return pc.if_else(pa.array(at_ms == UNKNOWN), "null", text)

    def _complete(self, row: Ints) -> pa.StringArray:
        share = np.where(row < 0, np.float32(0), self._index.columns["complete"][row])
        known, place = np.unique(share, return_inverse=True)
        return pa.array([str(to_number(one)) for one in known], pa.string()).take(pa.array(place))


def _quoted(names: pa.StringArray) -> pa.StringArray:
    """Names as Go writes them in JSON; only those that need it are looked at one by one."""
    return replace_matching(names, joined('"', names, '"'), _TO_ESCAPE, lambda name: dumps(name).decode())

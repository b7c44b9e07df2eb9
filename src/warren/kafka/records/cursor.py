"""Reading binary records a column at a time: one call takes the same field out of every record.

A record that is broken never raises. It gets a reject reason, and what is read of it afterwards means nothing
but still comes from within it; the other records go on.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warren.kafka.records.rejects import Reject
from warren.kafka.records.utf8 import is_not_utf8

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

# Zero bytes behind the data: the widest field can be read at any place, and broken records read zeros there.
PADDING = 8

# No schema comes near it, and a crafted record with a million empty tagged fields must not hold up the rest.
MOST_TAGGED_FIELDS = 127


class FieldSpan(NamedTuple):
    """Where a string or byte field lies in the data, one per record; a length of -1 is null."""

    start: Ints
    length: Ints


class Cursor:
    """A place in each of many records; each read takes one field of all of them and moves past it."""

    __slots__ = ("data", "end", "pos", "reject", "row", "truncated")

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        pos: Ints,
        end: Ints,
        truncated: Reject,
        row: Ints | None = None,
        reject: Codes | None = None,
    ) -> None:
        """Stand at `pos` in each record of the padded `data`; `row` and `reject` tie a part to its whole."""
        self.data = data
        self.pos = pos
        self.end = end
        self.truncated = truncated
        self.row = np.arange(len(pos)) if row is None else row
        self.reject = np.zeros(len(pos), np.int8) if reject is None else reject

    @classmethod
    def over(cls, column: pa.BinaryArray, truncated: Reject) -> Self:
        """Stand at the first byte of each record of a binary column; nulls are records of no bytes."""
        offsets, data = _offsets_and_bytes(column)
        pos, end = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
        if column.null_count:
            end = np.where(is_null(column), pos, end)
        padded = np.zeros(offsets[-1] - offsets[0] + PADDING, np.uint8)
        padded[:-PADDING] = data[offsets[0] : offsets[-1]]
        return cls(padded, pos, end, truncated)

    def __len__(self) -> int:
        return len(self.pos)

    @property
    def is_alive(self) -> Bools:
        """The records that have not been rejected."""
        is_alive: Bools = self.reject[self.row] == Reject.NONE
        return is_alive

    def take(self, rows: Ints | Bools) -> "Cursor":
        """A cursor of its own over some of the records; it rejects into the same whole."""
        return Cursor(self.data, self.pos[rows], self.end[rows], self.truncated, self.row[rows], self.reject)

    def fail(self, rows: Ints | Bools, reason: Reject) -> None:
        """Reject records that have not been rejected before: the first reason is the one that counts."""
        failed = self.row[rows]
        self.reject[failed[self.reject[failed] == Reject.NONE]] = reason

    def int16(self) -> npt.NDArray[np.int16]:
        return self._integers(">i2").astype(np.int16)

    def int32(self) -> npt.NDArray[np.int32]:
        return self._integers(">i4").astype(np.int32)

    def int64(self) -> Ints:
        return self._integers(">i8").astype(np.int64)

    def skip(self, size: int) -> None:
        """Move past a field of a known size."""
        self._move(size)

    def unsigned_varint(self) -> Ints:
        """A number of seven bits a byte, lowest first, in up to five bytes."""
        value = self._integers("B").astype(np.int64)
        rows = np.flatnonzero(value >= 0x80)
        value[rows] &= 0x7F
        for shift in (7, 14, 21, 28):
            if not rows.size:
                return value
            part = self.take(rows)
            byte = part._integers("B").astype(np.int64)
            self.pos[rows] = part.pos
            value[rows] |= (byte & 0x7F) << shift
            rows = rows[byte >= 0x80]
        self.fail(rows, Reject.BAD_LENGTH)
        return value

    def string(self, *, nullable: bool = False) -> FieldSpan:
        """A string with an int16 length."""
        return self._span(self._integers(">i2").astype(np.int64), nullable)

    def binary(self, *, nullable: bool = False) -> FieldSpan:
        """Bytes with an int32 length."""
        return self._span(self._integers(">i4").astype(np.int64), nullable)

    def compact(self, *, nullable: bool = False) -> FieldSpan:
        """A string or bytes of a flexible version, with a varint of the length plus one."""
        return self._span(self.unsigned_varint() - 1, nullable)

    def array_length(self, *, is_flexible: bool = False) -> Ints:
        """How many elements follow; a null array is as broken as a negative length."""
        length = self.unsigned_varint() - 1 if is_flexible else self._integers(">i4").astype(np.int64)
        is_negative = length < 0
        if is_negative.any():
            self.fail(is_negative, Reject.BAD_LENGTH)
            length[is_negative] = 0
        return length

    def skip_int32s(self, count: Ints) -> Ints:
        """Move past `count` numbers of four bytes in each record; gives where they begin."""
        return self._span(count * 4, nullable=False).start

    def skip_tagged_fields(self) -> None:
        """Move past the tagged fields that end each structure of a flexible version."""
        count = self.unsigned_varint()
        self.fail(count > MOST_TAGGED_FIELDS, Reject.BAD_LENGTH)
        rows = np.flatnonzero((count > 0) & self.is_alive)
        while rows.size:
            part = self.take(rows)
            part.unsigned_varint()
            part._span(part.unsigned_varint(), nullable=False)
            self.pos[rows] = part.pos
            count[rows] -= 1
            rows = rows[(count[rows] > 0) & part.is_alive]

    def text(self, span: FieldSpan) -> pa.StringArray:
        """The strings of a field; null where it is null or the record is rejected, as it is for bad UTF-8."""
        strings, is_bad = _text(self.data, span, self.is_alive)
        self.fail(is_bad, Reject.BAD_UTF8)
        return strings

    def _integers(self, kind: str) -> npt.NDArray[np.integer[Any]]:
        return _integers_at(self.data, kind, self._move(np.dtype(kind).itemsize))

    def _move(self, size: int) -> Ints:
        """Move on by a fixed size; gives where to read, which is the zero padding for a record too short."""
        start, after = self.pos, self.pos + size
        is_short = after > self.end
        self.pos = after
        if is_short.any():
            self.fail(is_short, self.truncated)
            self.pos = np.where(is_short, start, after)
            start = np.where(is_short, len(self.data) - PADDING, start)
        return start

    def _span(self, length: Ints, nullable: bool) -> FieldSpan:
        start = self.pos
        after = start + length
        is_bad = (length < 0) | (after > self.end)
        self.pos = after
        if is_bad.any():
            is_null = (length == -1) & nullable
            self.fail((length < 0) & ~is_null, Reject.BAD_LENGTH)
            self.fail(is_bad & ~is_null, self.truncated)
            self.pos = np.where(is_bad, start, after)
            length = np.where(is_bad, -1, length)
        return FieldSpan(start, length)


def int32_at(data: npt.NDArray[np.uint8], start: Ints) -> npt.NDArray[np.int32]:
    """The numbers of four bytes at some places of the padded data."""
    return _integers_at(data, ">i4", start).astype(np.int32)


def _integers_at(data: npt.NDArray[np.uint8], kind: str, start: Ints) -> npt.NDArray[np.integer[Any]]:
    # One element at every byte of the data, so that a field can lie anywhere.
    at_every_byte: npt.NDArray[np.integer[Any]] = np.ndarray(
        (len(data) - PADDING + 1,), np.dtype(kind), data, strides=(1,)
    )
    return at_every_byte[start]


def _text(data: npt.NDArray[np.uint8], span: FieldSpan, is_wanted: Bools) -> tuple[pa.StringArray, Bools]:
    """The wanted strings at some places of the data, and which of them are not UTF-8 and therefore null."""
    is_given = is_wanted & (span.length >= 0)
    count = len(is_given)
    if not count:
        return pa.array([], pa.string()), is_given
    # Each wanted string and each gap between two of them become the elements of one array over the data as
    # it lies; Arrow then picks the strings out far faster than numpy gathers single bytes.
    order = np.argsort(span.start, kind="stable")
    is_large = len(data) > np.iinfo(np.int32).max
    bounds = np.empty(2 * count, np.int64 if is_large else np.int32)
    bounds[0::2] = span.start[order]
    bounds[1::2] = bounds[0::2] + np.where(is_given, span.length, 0)[order]
    pieces = pa.Array.from_buffers(
        pa.large_binary() if is_large else pa.binary(),
        2 * count - 1,
        [None, pa.py_buffer(bounds), pa.py_buffer(data)],
    )
    place = np.empty(count, np.int64)
    place[order] = np.arange(0, 2 * count, 2)
    found = pieces.take(pa.array(place, mask=~is_given))
    try:
        return found.cast(pa.string()), np.zeros(count, np.bool_)
    except pa.ArrowInvalid:
        is_bad = is_not_utf8(*_offsets_and_bytes(found))
        good = pieces.take(pa.array(place, mask=~is_given | is_bad))
        return good.cast(pa.string()), is_bad


def is_null(column: pa.Array) -> Bools:
    """Which records of a column are null."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _offsets_and_bytes(column: pa.BinaryArray) -> tuple[Ints, npt.NDArray[np.uint8]]:
    _, offsets, data = column.buffers()
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    if offsets is None or not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
    return bounds.astype(np.int64), np.frombuffer(data or b"", np.uint8)

"""Reads a column of binary records field by field: one call reads the same field of every record.

A malformed record never raises. It gets a reject reason; what is read from it afterwards is meaningless, but never
comes from outside the column. The other records are not affected.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warren.domain.arrays import Bools, Ints, SmallInts, offsets_and_bytes, to_bools
from warren.kafka.records.rejects import Reject

# Zero bytes after the data: the widest field can be read at any position, and malformed records read zeros there.
PADDING = 8

# No schema has nearly as many, and a crafted record with a million empty tagged fields must not delay the rest.
MAX_TAGGED_FIELDS = 127


class FieldSpan(NamedTuple):
    """The position of a string or bytes field in the data, for each record; a length of -1 is null."""

    start: Ints
    length: Ints


@dataclass(slots=True, eq=False, repr=False)
class ColumnReader:
    """A read position in each record of a column; each call reads one field of all records and moves past it.

    `data` is padded. A record that ends too early is rejected as `truncated`. `row` is the index of each record in the
    whole column, `reject` the reject reasons of the whole column.
    """

    data: npt.NDArray[np.uint8]
    position: Ints
    end: Ints
    truncated: Reject
    row: Ints
    reject: SmallInts

    @classmethod
    def at(cls, data: npt.NDArray[np.uint8], position: Ints, end: Ints, truncated: Reject) -> Self:
        """Read records that are between these positions of the padded data."""
        return cls(data, position, end, truncated, np.arange(len(position)), np.zeros(len(position), np.int8))

    @classmethod
    def over(cls, column: pa.BinaryArray, truncated: Reject) -> Self:
        """Start at the first byte of each record of a binary column; a null is a record without bytes."""
        offsets, data = offsets_and_bytes(column)
        position, end = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
        if column.null_count:
            end = np.where(is_null(column), position, end)
        padded = np.zeros(offsets[-1] - offsets[0] + PADDING, np.uint8)
        padded[:-PADDING] = data[offsets[0] : offsets[-1]]
        return cls.at(padded, position, end, truncated)

    def __len__(self) -> int:
        return len(self.position)

    @property
    def is_valid(self) -> Bools:
        """The records that have not been rejected."""
        is_valid: Bools = self.reject[self.row] == Reject.NONE
        return is_valid

    def select(self, rows: Ints | Bools) -> "ColumnReader":
        """A reader of some of the records, with positions of its own; rejects go to the whole column."""
        return ColumnReader(self.data, self.position[rows], self.end[rows], self.truncated, self.row[rows], self.reject)

    def reject_rows(self, rows: Ints | Bools, reason: Reject) -> None:
        """Reject these records; a record keeps the first reason it is rejected for."""
        failed = self.row[rows]
        self.reject[failed[self.reject[failed] == Reject.NONE]] = reason

    def int16(self) -> npt.NDArray[np.int16]:
        return self._integers(">i2").astype(np.int16)

    def int32(self) -> npt.NDArray[np.int32]:
        return self._integers(">i4").astype(np.int32)

    def int64(self) -> Ints:
        return self._integers(">i8").astype(np.int64)

    def unsigned_varint(self) -> Ints:
        """A varint: seven bits per byte, lowest first, in up to five bytes."""
        value = self._integers("B").astype(np.int64)
        rows = np.flatnonzero(value >= 0x80)
        value[rows] &= 0x7F
        for shift in (7, 14, 21, 28):
            if not rows.size:
                return value
            part = self.select(rows)
            byte = part._integers("B").astype(np.int64)
            self.position[rows] = part.position
            value[rows] |= (byte & 0x7F) << shift
            rows = rows[byte >= 0x80]
        self.reject_rows(rows, Reject.BAD_LENGTH)
        return value

    def string(self, *, is_flexible: bool = False, nullable: bool = False) -> FieldSpan:
        """A string with an int16 length, or in a flexible version with its length plus one as a varint."""
        return self._span(self._length(">i2", is_flexible), nullable)

    def binary(self, *, is_flexible: bool = False, nullable: bool = False) -> FieldSpan:
        """Bytes with an int32 length, or in a flexible version with their length plus one as a varint."""
        return self._span(self._length(">i4", is_flexible), nullable)

    def array_length(self, *, is_flexible: bool = False) -> Ints:
        """How many elements follow; a null array is rejected like any negative length."""
        length = self._length(">i4", is_flexible)
        is_negative = length < 0
        if is_negative.any():
            self.reject_rows(is_negative, Reject.BAD_LENGTH)
            length[is_negative] = 0
        return length

    def skip_int32s(self, count: Ints) -> Ints:
        """Move past `count` int32 values in each record; gives the position of the first."""
        return self._span(count * 4, nullable=False).start

    def skip_tagged_fields(self) -> None:
        """Move past the tagged fields that end each structure of a flexible version."""
        count = self.unsigned_varint()
        self.reject_rows(count > MAX_TAGGED_FIELDS, Reject.BAD_LENGTH)
        rows = np.flatnonzero((count > 0) & self.is_valid)
        while rows.size:
            part = self.select(rows)
            part.unsigned_varint()
            part._span(part.unsigned_varint(), nullable=False)
            self.position[rows] = part.position
            count[rows] -= 1
            rows = rows[(count[rows] > 0) & part.is_valid]

    def strings(self, span: FieldSpan) -> pa.StringArray:
        """The strings of a field; null where it is null or the record is rejected. Bad UTF-8 is rejected."""
        strings, is_bad = _to_strings(self.data, span, self.is_valid)
        self.reject_rows(is_bad, Reject.BAD_UTF8)
        return strings

    def _integers(self, dtype: str) -> npt.NDArray[np.integer[Any]]:
        return _integers_at(self.data, dtype, self.skip(np.dtype(dtype).itemsize))

    def skip(self, size: int) -> Ints:
        """Move past a field of a fixed size; gives where to read it: in the padding if the record is too short."""
        start, after = self.position, self.position + size
        is_short = after > self.end
        self.position = after
        if is_short.any():
            self.reject_rows(is_short, self.truncated)
            self.position = np.where(is_short, start, after)
            start = np.where(is_short, len(self.data) - PADDING, start)
        return start

    def _length(self, dtype: str, is_flexible: bool) -> Ints:
        return self.unsigned_varint() - 1 if is_flexible else self._integers(dtype).astype(np.int64)

    def _span(self, length: Ints, nullable: bool) -> FieldSpan:
        start = self.position
        after = start + length
        is_bad = (length < 0) | (after > self.end)
        self.position = after
        if is_bad.any():
            is_null = (length == -1) & nullable
            self.reject_rows((length < 0) & ~is_null, Reject.BAD_LENGTH)
            self.reject_rows(is_bad & ~is_null, self.truncated)
            self.position = np.where(is_bad, start, after)
            length = np.where(is_bad, -1, length)
        return FieldSpan(start, length)


def split_versions(
    values: pa.BinaryArray, versions: range
) -> tuple[ColumnReader, Bools, list[tuple[int, ColumnReader]]]:
    """A reader of all values, which of them are tombstones, and a reader for each value version that occurs."""
    reader = ColumnReader.over(values, Reject.VALUE_TRUNCATED)
    is_tombstone = is_null(values)
    with_value = reader.select(~is_tombstone)
    version = with_value.int16()
    with_value.reject_rows((version < versions[0]) | (version > versions[-1]), Reject.VALUE_VERSION)
    is_valid = with_value.is_valid
    readers = [(known, with_value.select((version == known) & is_valid)) for known in versions]
    return reader, is_tombstone, [(known, of_version) for known, of_version in readers if len(of_version)]


def int32_at(data: npt.NDArray[np.uint8], start: Ints) -> npt.NDArray[np.int32]:
    """The int32 values at some positions of the padded data."""
    return _integers_at(data, ">i4", start).astype(np.int32)


def _integers_at(data: npt.NDArray[np.uint8], dtype: str, start: Ints) -> npt.NDArray[np.integer[Any]]:
    # A view with one element per byte of the data, because fields are not aligned.
    at_every_byte: npt.NDArray[np.integer[Any]] = np.ndarray(
        (len(data) - PADDING + 1,), np.dtype(dtype), data, strides=(1,)
    )
    return at_every_byte[start]


def _to_strings(data: npt.NDArray[np.uint8], span: FieldSpan, is_selected: Bools) -> tuple[pa.StringArray, Bools]:
    """The selected strings, and which of them are not UTF-8 and therefore null."""
    is_given = is_selected & (span.length >= 0)
    count = len(is_given)
    if not count:
        return pa.array([], pa.string()), is_given
    # Each string and each gap between two strings become elements of one array over the data, without a copy. Arrow
    # then takes the strings from it, far faster than numpy would gather single bytes.
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
    index = np.empty(count, np.int64)
    index[order] = np.arange(0, 2 * count, 2)
    strings = pieces.take(pa.array(index, mask=~is_given))
    try:
        return strings.cast(pa.string()), np.zeros(count, np.bool_)
    except pa.ArrowInvalid:
        is_bad = np.array([not _is_utf8(value) for value in strings.to_pylist()], np.bool_)
        valid = pieces.take(pa.array(index, mask=~is_given | is_bad))
        return valid.cast(pa.string()), is_bad


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def is_null(column: pa.Array) -> Bools:
    """Which records of a column are null."""
    return to_bools(column.is_null())

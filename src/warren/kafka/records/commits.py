"""Decodes the keys of Kafka's offsets topic and the values of offset commits.

The first two bytes of a key, its version, tell what the record is: 0 and 1 an offset commit, 2 a classic group, 3-8 and
16 a group of the consumer protocol (KIP-848), 9-15 a share group, 17-23 a streams group. Values have versions of their
own. Kafka 4.1 writes commits as key 1 with value 4 (value 1 if they have an expiry), and classic groups as key 2 with
value 3; it does not know keys 9 and 18 of older brokers. Bytes after the last field are ignored, as the broker does.

A group that moves from the classic to the consumer protocol leaves a tombstone under key 2, like a deleted group, but
keeps its offsets: a value under key 3 follows the tombstone at once. On the way back it leaves a tombstone under key 3,
and a value under key 2 may follow only when its members have joined.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.arrays import Bools, Ints, SmallInts
from warren.kafka.records.column_reader import ColumnReader, FieldSpan, is_null, split_versions
from warren.kafka.records.rejects import Reject

# The end of the year 9999: later times cannot be formatted, and may overflow when added to.
_LAST_TIME_MS: Final = 253_402_300_799_999

_COMMIT_VERSIONS: Final = range(5)


class RecordKind(IntEnum):
    """What a record is, by the version of its key."""

    COMMIT = 0
    GROUP = 1
    OTHER = 2
    REJECT = 3


_KIND_OF_VERSION: Final = np.full(24, RecordKind.OTHER, np.int8)
_KIND_OF_VERSION[:3] = RecordKind.COMMIT, RecordKind.COMMIT, RecordKind.GROUP


@dataclass(frozen=True, slots=True)
class Keys:
    """Decoded keys; COMMIT and GROUP have a group, only COMMIT a topic and a partition (else null and -1)."""

    kind: SmallInts
    version: npt.NDArray[np.int16]
    group: pa.StringArray
    topic: pa.StringArray
    partition: npt.NDArray[np.int32]
    reject: SmallInts


@dataclass(frozen=True, slots=True)
class CommitValues:
    """Decoded values of commits; offset and time are -1 for tombstones and rejects."""

    offset: Ints
    time_ms: Ints
    reject: SmallInts
    is_tombstone: Bools


def decode_keys(keys: pa.BinaryArray) -> Keys:
    """Decode keys; a key that cannot be decoded has the kind REJECT and a reason."""
    reader = ColumnReader.over(keys, Reject.KEY_TRUNCATED)
    if keys.null_count:
        reader.reject_rows(is_null(keys), Reject.NO_KEY)
    version = reader.int16()
    is_known = (version >= 0) & (version < len(_KIND_OF_VERSION))
    reader.reject_rows(~is_known, Reject.KEY_VERSION)
    kind = _KIND_OF_VERSION[np.where(is_known, version, 0)]

    named = reader.select((kind <= RecordKind.GROUP) & reader.is_valid)
    group = named.string()
    commits = named.select(kind[named.row] == RecordKind.COMMIT)
    topic = commits.string()
    commit_partition = commits.int32()
    commits.reject_rows(commit_partition < 0, Reject.BAD_PARTITION)

    partition = np.full(len(reader), -1, np.int32)
    partition[commits.row] = commit_partition
    groups = reader.strings(_scatter(group, named, reader))
    topics = reader.strings(_scatter(topic, commits, reader))
    is_reject = ~reader.is_valid
    if is_reject.any():
        kind[is_reject] = RecordKind.REJECT
        partition[is_reject] = -1
        groups = pc.if_else(pa.array(is_reject), None, groups)
    return Keys(kind, version, groups, topics, partition, reader.reject)


def decode_group_names(keys: pa.BinaryArray) -> pa.StringArray:
    """The group, with which keys of every known version begin; null where it cannot be decoded."""
    reader = ColumnReader.over(keys, Reject.KEY_TRUNCATED)
    version = reader.int16()
    reader.reject_rows((version < 0) | (version >= len(_KIND_OF_VERSION)), Reject.KEY_VERSION)
    return reader.strings(reader.string())


def decode_commits(values: pa.BinaryArray) -> CommitValues:
    """The offset and time of each commit; a null value is a tombstone."""
    reader, is_tombstone, versions = split_versions(values, _COMMIT_VERSIONS)
    offset = np.full(len(reader), -1, np.int64)
    time_ms = np.full(len(reader), -1, np.int64)
    for version, commits in versions:
        offset[commits.row], time_ms[commits.row] = _decode_version(commits, version)
    is_reject = reader.reject != Reject.NONE
    offset[is_reject] = -1
    time_ms[is_reject] = -1
    return CommitValues(offset, time_ms, reader.reject, is_tombstone)


def _decode_version(commits: ColumnReader, version: int) -> tuple[Ints, Ints]:
    is_flexible = version >= 4
    offset = commits.int64()
    commits.reject_rows(offset < 0, Reject.BAD_OFFSET)
    if version >= 3:
        commits.skip(4)  # leader epoch
    commits.string(is_flexible=is_flexible)  # metadata
    time_ms = commits.int64()
    commits.reject_rows((time_ms < 0) | (time_ms > _LAST_TIME_MS), Reject.BAD_TIME)
    if version == 1:
        commits.skip(8)  # expire time
    if is_flexible:
        commits.skip_tagged_fields()
    return offset, time_ms


def _scatter(span: FieldSpan, part: ColumnReader, column: ColumnReader) -> FieldSpan:
    """The field of some records as a field of the whole column, null for the other records."""
    start, length = column.position.copy(), np.full(len(column), -1, np.int64)
    start[part.row], length[part.row] = span
    return FieldSpan(start, length)

"""The records of Kafka's offsets topic as columns: who committed which offset of what, and when.

The first two bytes of a key, its version, say what the record is: 0 and 1 an offset, 2 a classic group, 3-8
and 16 a group of the consumer protocol (KIP-848), 9-15 a share group, 17-23 a streams group. Values carry
versions of their own. Kafka 4.1 writes offsets as key 1 with value 4 (value 1 if they have an expiry), and
classic groups as key 2 with value 3; it does not know keys 9 and 18, which older brokers have. As in the
broker, bytes behind the last field are ignored.

A group that moves from the classic to the consumer protocol leaves a tombstone under key 2, as a deleted one
does, but its offsets live on: the tombstone is followed at once by a value under key 3.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warren.kafka.records.cursor import Bools, Codes, Cursor, FieldSpan, Ints, is_null
from warren.kafka.records.groups import GroupValues, decode_groups
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject

__all__ = [
    "REJECT_DESCRIPTIONS",
    "CommitValues",
    "GroupValues",
    "Keys",
    "RecordKind",
    "Reject",
    "decode_commits",
    "decode_group_names",
    "decode_groups",
    "decode_keys",
]

# The end of the year 9999: later times can neither be shown nor safely be added to.
_LAST_TIME_MS: Final = 253_402_300_799_999

_COMMIT_VERSIONS: Final = range(5)


class RecordKind(IntEnum):
    """What a record is about, as its key says."""

    COMMIT = 0
    GROUP = 1
    OTHER = 2
    REJECT = 3


_KIND_OF_VERSION: Final = np.full(24, RecordKind.OTHER, np.int8)
_KIND_OF_VERSION[:3] = RecordKind.COMMIT, RecordKind.COMMIT, RecordKind.GROUP


@dataclass(frozen=True, slots=True)
class Keys:
    """Decoded keys; COMMIT and GROUP have a group, only COMMIT a topic and a partition (else null and -1)."""

    kind: Codes
    version: npt.NDArray[np.int16]
    group: pa.StringArray
    topic: pa.StringArray
    partition: npt.NDArray[np.int32]
    reject: Codes


@dataclass(frozen=True, slots=True)
class CommitValues:
    """Decoded values of commits; offset and time are -1 for tombstones and rejects."""

    offset: Ints
    time_ms: Ints
    reject: Codes
    is_tombstone: Bools


def decode_keys(keys: pa.BinaryArray) -> Keys:
    """What each key names; a key that names nothing we know is of kind REJECT with its reason."""
    cursor = Cursor.over(keys, Reject.KEY_TRUNCATED)
    if keys.null_count:
        cursor.fail(is_null(keys), Reject.NO_KEY)
    version = cursor.int16()
    is_known = (version >= 0) & (version < len(_KIND_OF_VERSION))
    cursor.fail(~is_known, Reject.KEY_VERSION)
    kind = _KIND_OF_VERSION[np.where(is_known, version, 0)]

    named = cursor.take((kind <= RecordKind.GROUP) & cursor.is_alive)
    group = named.string()
    commits = named.take(kind[named.row] == RecordKind.COMMIT)
    topic = commits.string()
    commit_partition = commits.int32()
    commits.fail(commit_partition < 0, Reject.BAD_PARTITION)

    partition = np.full(len(cursor), -1, np.int32)
    partition[commits.row] = commit_partition
    groups = cursor.text(_spread(group, named, cursor))
    topics = cursor.text(_spread(topic, commits, cursor))
    is_reject = ~cursor.is_alive
    if is_reject.any():
        kind[is_reject] = RecordKind.REJECT
        partition[is_reject] = -1
        groups = pc.if_else(pa.array(is_reject), None, groups)
    return Keys(kind, version, groups, topics, partition, cursor.reject)


def decode_group_names(keys: pa.BinaryArray) -> pa.StringArray:
    """The group that keys of any known version begin with; null where it cannot be read."""
    cursor = Cursor.over(keys, Reject.KEY_TRUNCATED)
    version = cursor.int16()
    cursor.fail((version < 0) | (version >= len(_KIND_OF_VERSION)), Reject.KEY_VERSION)
    return cursor.text(cursor.string())


def decode_commits(values: pa.BinaryArray) -> CommitValues:
    """The offset and time of each commit; a null value is a tombstone."""
    whole = Cursor.over(values, Reject.VALUE_TRUNCATED)
    is_tombstone = is_null(values)
    given = whole.take(~is_tombstone)
    version = given.int16()
    given.fail((version < 0) | (version > _COMMIT_VERSIONS[-1]), Reject.VALUE_VERSION)
    is_alive = given.is_alive

    offset = np.full(len(whole), -1, np.int64)
    time_ms = np.full(len(whole), -1, np.int64)
    for each in _COMMIT_VERSIONS:
        commits = given.take((version == each) & is_alive)
        if len(commits):
            offset[commits.row], time_ms[commits.row] = _decode_version(commits, each)
    is_reject = whole.reject != Reject.NONE
    offset[is_reject] = -1
    time_ms[is_reject] = -1
    return CommitValues(offset, time_ms, whole.reject, is_tombstone)


def _decode_version(commits: Cursor, version: int) -> tuple[Ints, Ints]:
    is_flexible = version >= 4
    offset = commits.int64()
    commits.fail(offset < 0, Reject.BAD_OFFSET)
    if version >= 3:
        commits.skip(4)  # leader epoch
    if is_flexible:
        commits.compact()  # metadata
    else:
        commits.string()
    time_ms = commits.int64()
    commits.fail((time_ms < 0) | (time_ms > _LAST_TIME_MS), Reject.BAD_TIME)
    if version == 1:
        commits.skip(8)  # expire time
    if is_flexible:
        commits.skip_tagged_fields()
    return offset, time_ms


def _spread(span: FieldSpan, part: Cursor, whole: Cursor) -> FieldSpan:
    """The places of a part's field for the whole it was taken from, null for the other records."""
    start, length = whole.pos.copy(), np.full(len(whole), -1, np.int64)
    start[part.row], length[part.row] = span
    return FieldSpan(start, length)

"""The values of classic groups: which member, on which host, has which partitions.

Kafka 4.1 writes version 3 and reads 0-4; 4 is the flexible form of 3. An assignment is in the consumer
protocol's own format, and only groups of the protocol type "consumer" have one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warren.kafka.records.cursor import Bools, Codes, Cursor, FieldSpan, Ints, int32_at, is_null
from warren.kafka.records.rejects import Reject

MEMBERS_SCHEMA: Final = pa.schema(
    [
        ("record", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("owner", pa.string()),
        ("client_id", pa.string()),
    ]
)

_GROUP_VERSIONS: Final = range(5)
_CONSUMER: Final = np.frombuffer(b"consumer", np.uint8)


@dataclass(frozen=True, slots=True)
class GroupValues:
    """Decoded values of groups, and a row of `members` for every partition that has an owner.

    `record` is the place of the group in the column. Owners are hosts as the broker writes them, "/10.0.0.7".
    A record rejected with BAD_MEMBER keeps the members that do parse; one rejected otherwise has none.
    """

    reject: Codes
    is_tombstone: Bools
    members: pa.Table


def decode_groups(values: pa.BinaryArray) -> GroupValues:
    """The owner of every partition of every group; a null value is a tombstone."""
    whole = Cursor.over(values, Reject.VALUE_TRUNCATED)
    is_tombstone = is_null(values)
    given = whole.take(~is_tombstone)
    version = given.int16()
    given.fail((version < 0) | (version > _GROUP_VERSIONS[-1]), Reject.VALUE_VERSION)
    is_alive = given.is_alive

    found = [np.empty((0, 7), np.int64)]
    for each in _GROUP_VERSIONS:
        found += _read_members(given.take((version == each) & is_alive), each)
    members = np.concatenate(found)
    members = members[whole.reject[members[:, 0]] == Reject.NONE]
    owned, is_bad = _to_partitions(whole.data, members)
    whole.fail(members[is_bad, 0], Reject.BAD_MEMBER)
    return GroupValues(whole.reject, is_tombstone, owned)


def _read_members(groups: Cursor, version: int) -> Iterator[Ints]:
    """The first members of all groups of one version, then the second ones, and so on.

    A member is a row of seven: its record, then start and length of its client id, host and assignment.
    """
    if not len(groups):
        return
    is_flexible = version >= 4
    is_consumer = _is_consumer(groups, _string(groups, is_flexible))
    groups.skip(4)  # generation
    _string(groups, is_flexible, nullable=True)  # protocol
    _string(groups, is_flexible, nullable=True)  # leader
    if version >= 2:
        groups.skip(8)  # time of the last change of state
    left = groups.array_length(is_flexible=is_flexible)
    while True:
        has_more = (left > 0) & groups.is_alive
        if not has_more.all():
            if is_flexible:
                groups.take(left == 0).skip_tagged_fields()
            groups, left, is_consumer = groups.take(has_more), left[has_more], is_consumer[has_more]
        if not len(groups):
            return
        left = left - 1
        yield _read_member(groups, version)[is_consumer & groups.is_alive]


def _read_member(groups: Cursor, version: int) -> Ints:
    is_flexible = version >= 4
    _string(groups, is_flexible)  # member id
    if version >= 3:
        _string(groups, is_flexible, nullable=True)  # group instance id
    client_id = _string(groups, is_flexible)
    host = _string(groups, is_flexible)
    groups.skip(8 if version >= 1 else 4)  # rebalance timeout, session timeout
    _bytes(groups, is_flexible)  # subscription
    assignment = _bytes(groups, is_flexible)
    if is_flexible:
        groups.skip_tagged_fields()
    return np.column_stack((groups.row, *client_id, *host, *assignment))


def _to_partitions(data: npt.NDArray[np.uint8], members: Ints) -> tuple[pa.Table, Bools]:
    """A row for every partition of every member, and which members are broken and therefore have none."""
    record, client_start, client_length, host_start, host_length, start, length = members.T
    cursor = Cursor(data, start, start + length, Reject.BAD_MEMBER)
    client_ids = cursor.text(FieldSpan(client_start, client_length))
    hosts = cursor.text(FieldSpan(host_start, host_length))

    # A member that has joined and still waits for its assignment has one of no bytes.
    found = [np.empty((0, 5), np.int64)]
    found += _read_topics(cursor.take((length > 0) & cursor.is_alive))
    topics = np.concatenate(found)
    topics = topics[cursor.is_alive[topics[:, 0]]]
    member, name_start, name_length, first, count = topics.T
    names = cursor.take(member).text(FieldSpan(name_start, name_length))

    topic = np.repeat(np.arange(len(topics)), count)
    nth = np.arange(len(topic)) - (np.cumsum(count) - count)[topic]
    partition = int32_at(data, first[topic] + 4 * nth)
    cursor.fail(member[topic[partition < 0]], Reject.BAD_PARTITION)

    is_kept = cursor.is_alive[member[topic]]
    topic, partition = topic[is_kept], partition[is_kept]
    member = member[topic]
    columns = [
        pa.array(record[member]),
        names.take(pa.array(topic)),
        pa.array(partition),
        hosts.take(pa.array(member)),
        client_ids.take(pa.array(member)),
    ]
    return pa.Table.from_arrays(columns, schema=MEMBERS_SCHEMA), ~cursor.is_alive


def _read_topics(assignments: Cursor) -> Iterator[Ints]:
    """The first topics of all assignments, then the second ones, and so on.

    A topic is a row of five: its member, start and length of its name, where its partitions begin, how many.
    """
    # Later versions only append fields, so every version can be read as the first one.
    assignments.fail(assignments.int16() < 0, Reject.VALUE_VERSION)
    left = assignments.array_length()
    while True:
        has_more = (left > 0) & assignments.is_alive
        if not has_more.all():
            assignments.take(left == 0).binary(nullable=True)  # user data
            assignments, left = assignments.take(has_more), left[has_more]
        if not len(assignments):
            return
        left = left - 1
        name = assignments.string()
        count = assignments.array_length()
        first = assignments.skip_int32s(count)
        yield np.column_stack((assignments.row, *name, first, count))


def _is_consumer(groups: Cursor, protocol_type: FieldSpan) -> Bools:
    is_consumer: Bools = protocol_type.length == len(_CONSUMER)
    letters = protocol_type.start[is_consumer, None] + np.arange(len(_CONSUMER))
    is_consumer[is_consumer] = (groups.data[letters] == _CONSUMER).all(axis=1)
    return is_consumer


def _string(cursor: Cursor, is_flexible: bool, *, nullable: bool = False) -> FieldSpan:
    return cursor.compact(nullable=nullable) if is_flexible else cursor.string(nullable=nullable)


def _bytes(cursor: Cursor, is_flexible: bool) -> FieldSpan:
    return cursor.compact() if is_flexible else cursor.binary()

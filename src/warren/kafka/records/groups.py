"""Decodes the values of classic groups: which member, on which host, owns which partitions.

Kafka 4.1 writes version 3 and reads 0-4; 4 is the flexible form of 3. An assignment has the format of the consumer
protocol, and only groups of the protocol type "consumer" have one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warren.domain.arrays import Bools, Ints, SmallInts
from warren.kafka.records.column_reader import ColumnReader, FieldSpan, int32_at, split_versions
from warren.kafka.records.rejects import Reject
from warren.kafka.samples import OWNERS

MEMBERS_SCHEMA: Final = pa.schema([("record", pa.int64()), *list(OWNERS)[1:]])
_GROUP_VERSIONS: Final = range(5)
_CONSUMER: Final = np.frombuffer(b"consumer", np.uint8)


@dataclass(frozen=True, slots=True)
class GroupValues:
    """Decoded values of groups; `members` has one row per partition that has an owner.

    `record` is the index of the group in the column. Owners are hosts as the broker writes them, "/10.0.0.7".
    A record rejected with BAD_MEMBER keeps its other members; a record rejected for another reason has none.
    """

    reject: SmallInts
    is_tombstone: Bools
    members: pa.Table


def decode_groups(values: pa.BinaryArray) -> GroupValues:
    """Decode the owners of all partitions of all groups; a null value is a tombstone."""
    reader, is_tombstone, versions = split_versions(values, _GROUP_VERSIONS)
    rounds = [members for version, groups in versions for members in _read_members(groups, version)]
    members = np.concatenate([np.empty((0, 7), np.int64), *rounds])
    members = members[reader.reject[members[:, 0]] == Reject.NONE]
    owned, is_bad = _to_partitions(reader.data, members)
    reader.reject_rows(members[is_bad, 0], Reject.BAD_MEMBER)
    return GroupValues(reader.reject, is_tombstone, owned)


def _read_members(groups: ColumnReader, version: int) -> Iterator[Ints]:
    """The first members of all groups of one version, then the second members, and so on.

    A member is a row of seven numbers: its record, then start and length of its client id, host and assignment.
    """
    is_flexible = version >= 4
    is_consumer = _is_consumer(groups, groups.string(is_flexible=is_flexible))
    groups.skip(4)  # generation
    groups.string(is_flexible=is_flexible, nullable=True)  # protocol
    groups.string(is_flexible=is_flexible, nullable=True)  # leader
    if version >= 2:
        groups.skip(8)  # time of the last change of state
    left = groups.array_length(is_flexible=is_flexible)
    while True:
        has_more = (left > 0) & groups.is_valid
        if not has_more.all():
            if is_flexible:
                groups.select(left == 0).skip_tagged_fields()
            groups, left, is_consumer = groups.select(has_more), left[has_more], is_consumer[has_more]
        if not len(groups):
            return
        left = left - 1
        yield _read_member(groups, version)[is_consumer & groups.is_valid]


def _read_member(groups: ColumnReader, version: int) -> Ints:
    is_flexible = version >= 4
    groups.string(is_flexible=is_flexible)  # member id
    if version >= 3:
        groups.string(is_flexible=is_flexible, nullable=True)  # group instance id
    client_id = groups.string(is_flexible=is_flexible)
    host = groups.string(is_flexible=is_flexible)
    groups.skip(8 if version >= 1 else 4)  # rebalance timeout, session timeout
    groups.binary(is_flexible=is_flexible)  # subscription
    assignment = groups.binary(is_flexible=is_flexible)
    if is_flexible:
        groups.skip_tagged_fields()
    return np.column_stack((groups.row, *client_id, *host, *assignment))


def _to_partitions(data: npt.NDArray[np.uint8], members: Ints) -> tuple[pa.Table, Bools]:
    """One row per partition of every member, and which members are malformed and therefore have none."""
    record, client_start, client_length, host_start, host_length, start, length = members.T
    reader = ColumnReader.at(data, start, start + length, Reject.BAD_MEMBER)
    client_ids = reader.strings(FieldSpan(client_start, client_length))
    hosts = reader.strings(FieldSpan(host_start, host_length))

    # The assignment of a member that has joined and still waits for it is empty.
    topics = np.concatenate([np.empty((0, 5), np.int64), *_read_topics(reader.select((length > 0) & reader.is_valid))])
    topics = topics[reader.is_valid[topics[:, 0]]]
    member, name_start, name_length, first, count = topics.T
    names = reader.select(member).strings(FieldSpan(name_start, name_length))

    topic = np.repeat(np.arange(len(topics)), count)
    nth = np.arange(len(topic)) - (np.cumsum(count) - count)[topic]
    partition = int32_at(data, first[topic] + 4 * nth)
    reader.reject_rows(member[topic[partition < 0]], Reject.BAD_PARTITION)

    is_kept = reader.is_valid[member[topic]]
    topic, partition = topic[is_kept], partition[is_kept]
    member = member[topic]
    columns = [
        pa.array(record[member]),
        names.take(pa.array(topic)),
        pa.array(partition),
        hosts.take(pa.array(member)),
        client_ids.take(pa.array(member)),
    ]
    return pa.Table.from_arrays(columns, schema=MEMBERS_SCHEMA), ~reader.is_valid


def _read_topics(assignments: ColumnReader) -> Iterator[Ints]:
    """The first topics of all assignments, then the second topics, and so on.

    A topic is a row of five numbers: its member, start and length of its name, start and number of its partitions.
    """
    # Later versions only append fields, so every version can be read as the first one.
    assignments.reject_rows(assignments.int16() < 0, Reject.VALUE_VERSION)
    left = assignments.array_length()
    while True:
        has_more = (left > 0) & assignments.is_valid
        if not has_more.all():
            assignments.select(left == 0).binary(nullable=True)  # user data
            assignments, left = assignments.select(has_more), left[has_more]
        if not len(assignments):
            return
        left = left - 1
        name = assignments.string()
        count = assignments.array_length()
        first = assignments.skip_int32s(count)
        yield np.column_stack((assignments.row, *name, first, count))


def _is_consumer(groups: ColumnReader, protocol_type: FieldSpan) -> Bools:
    is_consumer: Bools = protocol_type.length == len(_CONSUMER)
    positions = protocol_type.start[is_consumer, None] + np.arange(len(_CONSUMER))
    is_consumer[is_consumer] = (groups.data[positions] == _CONSUMER).all(axis=1)
    return is_consumer

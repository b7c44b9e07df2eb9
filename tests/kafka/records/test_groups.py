"""Owners are decoded from group records of every version; a malformed member loses only its own partitions."""

import struct

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.records import Member, assignment, binary, commit_value, group_value, string
from warren.kafka.records.groups import GroupValues, decode_groups
from warren.kafka.records.rejects import Reject

Owned = tuple[int, str, int, str, str]
Assigned = dict[str | bytes, list[int]]

# A busy machine must not fail a test.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

names = st.text(max_size=20)
assignments = st.dictionaries(names, st.lists(st.integers(0, 2**31 - 1), max_size=4), max_size=3)
members = st.lists(st.tuples(names, names, assignments), max_size=3)
group_values = st.builds(
    lambda members_of_group, version, protocol_type: group_value(
        [member(*each) for each in members_of_group], version, protocol_type=protocol_type
    ),
    members,
    st.integers(0, 4),
    st.sampled_from(["consumer", "connect", ""]),
)

TWO_TOPICS: Assigned = {"orders": [0, 1, 2], "audit": [7]}


def member(client_id: str, host: str, partitions: Assigned) -> Member:
    return Member(client_id=client_id, host=host, assignment=assignment(partitions))


def decode(*values: bytes | None) -> GroupValues:
    return decode_groups(pa.array(values, pa.binary()))


def owned(groups: GroupValues) -> list[Owned]:
    return sorted(tuple(row.values()) for row in groups.members.to_pylist())


def rows(record: int, client_id: str, host: str, partitions: Assigned) -> list[Owned]:
    return [
        (record, str(topic), partition, host, client_id)
        for topic, partition_ids in partitions.items()
        for partition in partition_ids
    ]


@pytest.mark.parametrize("version", range(5))
def test_each_partition_has_its_owner(version: int) -> None:
    members_of_group = [member("app-1", "/10.0.0.1", TWO_TOPICS), member("app-2", "/10.0.0.2", {"orders": [3]})]
    groups = decode(
        group_value(members_of_group, version), group_value([], version), group_value(members_of_group[:1], version)
    )
    assert not groups.reject.any()
    assert owned(groups) == sorted(
        rows(0, "app-1", "/10.0.0.1", TWO_TOPICS)
        + rows(0, "app-2", "/10.0.0.2", {"orders": [3]})
        + rows(2, "app-1", "/10.0.0.1", TWO_TOPICS)
    )
    assert groups.members.schema.names == ["record", "topic", "partition", "owner", "client_id"]


@unhurried
@given(st.lists(st.tuples(st.integers(0, 4), members), max_size=4))
def test_decoding_gives_back_what_was_encoded(groups: list[tuple[int, list[tuple[str, str, Assigned]]]]) -> None:
    values = [
        group_value([member(*each) for each in members_of_group], version) for version, members_of_group in groups
    ]
    decoded = decode(*values)
    assert not decoded.reject.any()
    assert owned(decoded) == sorted(
        row
        for record, (_, members_of_group) in enumerate(groups)
        for each in members_of_group
        for row in rows(record, *each)
    )


@pytest.mark.parametrize("version", range(4))
def test_nullable_fields_may_be_null(version: int) -> None:
    static = Member(instance_id="box-1", assignment=assignment({"t": [1]}, version=0, user_data=b"sticky"))
    plain = Member(instance_id=None, assignment=assignment({"t": [2]}, version=1), subscription=b"s" * 200)
    value = group_value([static, plain], version, protocol=None, leader=None)
    assert [row[2] for row in owned(decode(value))] == [1, 2]


def test_tagged_fields_are_skipped() -> None:
    tagged = Member(assignment=assignment({"t": [1]}), tags={0: b"x" * 300})
    groups = decode(group_value([tagged, tagged], 4, tags={3: b"", 9: b"yes"}), group_value([tagged], 4))
    assert not groups.reject.any()
    assert [row[0] for row in owned(groups)] == [0, 0, 1]


@pytest.mark.parametrize("protocol_type", ["", "connect", "consumes", "consumer2"])
def test_groups_of_other_protocols_have_no_owners(protocol_type: str) -> None:
    groups = decode(group_value([Member(assignment=b"\x00\x01not ours")], protocol_type=protocol_type))
    assert not groups.reject.any()
    assert owned(groups) == []


def test_a_member_that_waits_for_its_assignment_owns_nothing() -> None:
    groups = decode(group_value([Member(assignment=b""), member("c", "/h", {"t": [0]})]))
    assert not groups.reject.any()
    assert owned(groups) == [(0, "t", 0, "/h", "c")]


def test_a_null_value_is_a_tombstone() -> None:
    groups = decode(None, group_value([member("c", "/h", {"t": [0]})]), None)
    assert groups.is_tombstone.tolist() == [True, False, True]
    assert not groups.reject.any()
    assert owned(groups) == [(1, "t", 0, "/h", "c")]
    assert decode(None).members.num_rows == decode().members.num_rows == 0


GOOD = assignment(TWO_TOPICS)


@pytest.mark.parametrize(
    "bad",
    [
        *[Member(assignment=GOOD[:size]) for size in range(1, len(GOOD))],
        Member(assignment=struct.pack(">hi", -1, 0) + binary(None)),
        Member(assignment=struct.pack(">hi", 0, -1) + binary(None)),
        Member(assignment=struct.pack(">hi", 0, 2**31 - 1) + binary(None)),
        Member(assignment=struct.pack(">hi", 0, 1) + string("t") + struct.pack(">i", 2**31 - 1)),
        Member(assignment=struct.pack(">hi", 0, 1) + string("t") + struct.pack(">i", -1) + binary(None)),
        Member(assignment=struct.pack(">hi", 0, 1) + string(None) + struct.pack(">ii", 1, 0) + binary(None)),
        Member(assignment=struct.pack(">hi", 0, 0) + struct.pack(">i", -2)),
        Member(assignment=assignment({"t": [0, -1]})),
        Member(assignment=assignment({"t": [0], b"\xff": [1]})),
    ],
)
def test_a_malformed_assignment_rejects_only_its_member(bad: Member) -> None:
    good = member("c", "/h", {"t": [5]})
    groups = decode(group_value([good, bad, good]), group_value([good]))
    assert groups.reject.tolist() == [Reject.BAD_MEMBER, Reject.NONE]
    assert owned(groups) == [(0, "t", 5, "/h", "c")] * 2 + [(1, "t", 5, "/h", "c")]


def test_a_host_or_client_id_that_is_not_utf8_rejects_only_its_member() -> None:
    good = group_value([member("c", "/h", {"t": [5]}), member("client-é", "/host-é", {"t": [6]})])
    for name in ("client-é", "/host-é"):
        raw = name.encode()
        groups = decode(good.replace(raw, raw[:-1] + b"\xff"))
        assert groups.reject.tolist() == [Reject.BAD_MEMBER]
        assert owned(groups) == [(0, "t", 5, "/h", "c")]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reject.VALUE_TRUNCATED),
        (struct.pack(">h", 5) + bytes(50), Reject.VALUE_VERSION),
        (struct.pack(">h", -1) + bytes(50), Reject.VALUE_VERSION),
        (struct.pack(">hh", 3, -1) + bytes(50), Reject.BAD_LENGTH),
        (group_value([])[:-4] + struct.pack(">i", -1), Reject.BAD_LENGTH),
        (group_value([])[:-4] + struct.pack(">i", 2**31 - 1), Reject.VALUE_TRUNCATED),
        (group_value([Member()])[:-4] + struct.pack(">i", -1), Reject.BAD_LENGTH),
        (group_value([Member()])[:-4] + struct.pack(">i", 2**31 - 1), Reject.VALUE_TRUNCATED),
    ],
)
def test_a_malformed_group_is_rejected_and_its_neighbours_are_not(value: bytes, reason: Reject) -> None:
    good = group_value([member("c", "/h", {"t": [5]})])
    groups = decode(good, value, None, good)
    assert groups.reject.tolist() == [Reject.NONE, reason, Reject.NONE, Reject.NONE]
    assert owned(groups) == [(0, "t", 5, "/h", "c"), (3, "t", 5, "/h", "c")]


@unhurried
@given(group_values)
def test_a_group_truncated_at_any_byte_is_rejected(value: bytes) -> None:
    groups = decode(*[value[:size] for size in range(len(value))])
    assert set(groups.reject) == {Reject.VALUE_TRUNCATED}
    assert groups.members.num_rows == 0


@unhurried
@given(st.lists(st.one_of(st.none(), st.binary(max_size=60), group_values), max_size=6), st.data())
def test_a_group_decodes_the_same_beside_any_other_records(values: list[bytes | None], data: st.DataObject) -> None:
    values = [*values, commit_value(1, 1)]
    for index, value in enumerate(values):
        if value and data.draw(st.booleans()):
            position = data.draw(st.integers(0, len(value) - 1))
            values[index] = value[:position] + data.draw(st.binary(min_size=1, max_size=4)) + value[position + 1 :]
    together, alone = decode(*values), [decode(value) for value in values]
    assert together.reject.tolist() == [reject for each in alone for reject in each.reject]
    assert owned(together) == sorted((index, *row[1:]) for index, each in enumerate(alone) for row in owned(each))


def test_many_members_and_many_topics_are_all_decoded() -> None:
    many_members = group_value([member(f"c{i}", "/h", {"t": [i]}) for i in range(300)])
    many_topics = group_value([member("c", "/h", {f"t{i:03}": [i, 2 * i] for i in range(300)})])
    assert [row[0] for row in owned(decode(many_members, many_topics))] == [0] * 300 + [1] * 600

"""Owners come out of group records of every version; a broken member costs only itself."""

import struct

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.records import Member, assignment, binary, commit_value, group_value, string
from warren.kafka.records.commits import GroupValues, Reject, decode_groups

Owned = tuple[int, str, int, str, str]
Shares = dict[str | bytes, list[int]]

# A busy machine is no mistake.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

names = st.text(max_size=20)
shares = st.dictionaries(names, st.lists(st.integers(0, 2**31 - 1), max_size=4), max_size=3)
members = st.lists(st.tuples(names, names, shares), max_size=3)
group_values = st.builds(
    lambda people, version, kind: group_value([member(*each) for each in people], version, protocol_type=kind),
    members,
    st.integers(0, 4),
    st.sampled_from(["consumer", "connect", ""]),
)

TWO_TOPICS: Shares = {"orders": [0, 1, 2], "audit": [7]}


def member(client_id: str, host: str, partitions: Shares) -> Member:
    return Member(client_id=client_id, host=host, assignment=assignment(partitions))


def decode(*values: bytes | None) -> GroupValues:
    return decode_groups(pa.array(values, pa.binary()))


def owned(groups: GroupValues) -> list[Owned]:
    return sorted(tuple(row.values()) for row in groups.members.to_pylist())


def rows(record: int, client_id: str, host: str, partitions: Shares) -> list[Owned]:
    return [
        (record, str(topic), number, host, client_id) for topic, numbers in partitions.items() for number in numbers
    ]


@pytest.mark.parametrize("version", range(5))
def test_each_partition_has_its_owner(version: int) -> None:
    people = [member("app-1", "/10.0.0.1", TWO_TOPICS), member("app-2", "/10.0.0.2", {"orders": [3]})]
    groups = decode(group_value(people, version), group_value([], version), group_value(people[:1], version))
    assert not groups.reject.any()
    assert owned(groups) == sorted(
        rows(0, "app-1", "/10.0.0.1", TWO_TOPICS)
        + rows(0, "app-2", "/10.0.0.2", {"orders": [3]})
        + rows(2, "app-1", "/10.0.0.1", TWO_TOPICS)
    )
    assert groups.members.schema.names == ["record", "topic", "partition", "owner", "client_id"]


@unhurried
@given(st.lists(st.tuples(st.integers(0, 4), members), max_size=4))
def test_groups_come_back(groups: list[tuple[int, list[tuple[str, str, Shares]]]]) -> None:
    values = [group_value([member(*each) for each in people], version) for version, people in groups]
    decoded = decode(*values)
    assert not decoded.reject.any()
    assert owned(decoded) == sorted(
        row for record, (_, people) in enumerate(groups) for each in people for row in rows(record, *each)
    )


@pytest.mark.parametrize("version", range(4))
def test_fields_that_may_be_missing_may_be(version: int) -> None:
    static = Member(instance_id="box-1", assignment=assignment({"t": [1]}, version=0, user_data=b"sticky"))
    plain = Member(instance_id=None, assignment=assignment({"t": [2]}, version=1), subscription=b"s" * 200)
    value = group_value([static, plain], version, protocol=None, leader=None)
    assert [row[2] for row in owned(decode(value))] == [1, 2]


def test_tagged_fields_are_passed_over() -> None:
    tagged = Member(assignment=assignment({"t": [1]}), tags={0: b"x" * 300})
    groups = decode(group_value([tagged, tagged], 4, tags={3: b"", 9: b"yes"}), group_value([tagged], 4))
    assert not groups.reject.any()
    assert [row[0] for row in owned(groups)] == [0, 0, 1]


@pytest.mark.parametrize("kind", ["", "connect", "consumes", "consumer2"])
def test_groups_of_other_protocols_have_no_owners(kind: str) -> None:
    groups = decode(group_value([Member(assignment=b"\x00\x01not ours")], protocol_type=kind))
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
def test_a_broken_assignment_costs_only_its_member(bad: Member) -> None:
    good = member("c", "/h", {"t": [5]})
    groups = decode(group_value([good, bad, good]), group_value([good]))
    assert groups.reject.tolist() == [Reject.BAD_MEMBER, Reject.NONE]
    assert owned(groups) == [(0, "t", 5, "/h", "c")] * 2 + [(1, "t", 5, "/h", "c")]


def test_a_host_or_client_id_that_is_no_text_costs_only_its_member() -> None:
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
def test_a_broken_group_is_a_reject_and_its_neighbours_are_not(value: bytes, reason: Reject) -> None:
    good = group_value([member("c", "/h", {"t": [5]})])
    groups = decode(good, value, None, good)
    assert groups.reject.tolist() == [Reject.NONE, reason, Reject.NONE, Reject.NONE]
    assert owned(groups) == [(0, "t", 5, "/h", "c"), (3, "t", 5, "/h", "c")]


@unhurried
@given(group_values)
def test_a_group_cut_at_any_byte_is_a_reject(value: bytes) -> None:
    groups = decode(*[value[:size] for size in range(len(value))])
    assert set(groups.reject) == {Reject.VALUE_TRUNCATED}
    assert groups.members.num_rows == 0


@unhurried
@given(st.lists(st.one_of(st.none(), st.binary(max_size=60), group_values), max_size=6), st.data())
def test_a_group_means_the_same_in_any_company(values: list[bytes | None], data: st.DataObject) -> None:
    values = [*values, commit_value(1, 1)]
    for at, value in enumerate(values):
        if value and data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(value) - 1))
            values[at] = value[:place] + data.draw(st.binary(min_size=1, max_size=4)) + value[place + 1 :]
    together, alone = decode(*values), [decode(value) for value in values]
    assert together.reject.tolist() == [reject for each in alone for reject in each.reject]
    assert owned(together) == sorted((at, *row[1:]) for at, each in enumerate(alone) for row in owned(each))


def test_many_members_and_many_topics_are_all_found() -> None:
    crowd = group_value([member(f"c{i}", "/h", {"t": [i]}) for i in range(300)])
    heap = group_value([member("c", "/h", {f"t{i:03}": [i, 2 * i] for i in range(300)})])
    assert [row[0] for row in owned(decode(crowd, heap))] == [0] * 300 + [1] * 600

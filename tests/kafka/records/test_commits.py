"""Keys and commits decode to what was encoded; a malformed record is rejected, and only that one."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.records import commit_key, commit_value, group_key, member_key, unsigned_varint
from warren.kafka.records.commits import (
    CommitValues,
    Keys,
    RecordKind,
    decode_commits,
    decode_group_names,
    decode_keys,
)
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))

# A busy machine must not fail a test.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

names = st.text(max_size=40)
partitions = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
times = st.integers(0, 253_402_300_799_999)
commit_keys = st.builds(commit_key, names, names, partitions, st.sampled_from([0, 1]))
commit_values = st.builds(
    commit_value,
    offsets,
    times,
    st.integers(0, 4),
    metadata=st.one_of(st.text(max_size=300), st.integers(120, 20_000).map(lambda size: "m" * size)),
    leader_epoch=st.integers(-1, 2**31 - 1),
    expire_ms=st.integers(-1, 2**63 - 1),
    tags=st.dictionaries(st.integers(0, 2**31 - 1), st.binary(max_size=200), max_size=4),
)
anything = st.one_of(st.none(), st.binary(max_size=60))


def column(records: list[bytes | None]) -> pa.BinaryArray:
    return pa.array(records, pa.binary())


def corrupted(record: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A valid record with a few bytes overwritten."""

    def overwrite(raw: bytes, position: int, patch: bytes) -> bytes:
        position %= len(raw)
        return raw[:position] + patch + raw[position + len(patch) :]

    return st.builds(overwrite, record, st.integers(0, 10_000), st.binary(min_size=1, max_size=4))


def key_rows(keys: Keys) -> list[tuple[object, ...]]:
    columns = (keys.kind, keys.group.to_pylist(), keys.topic.to_pylist(), keys.partition, keys.reject)
    return list(zip(*columns, strict=True))


def commit_rows(commits: CommitValues) -> list[tuple[object, ...]]:
    return list(zip(commits.offset, commits.time_ms, commits.reject, commits.is_tombstone, strict=True))


@unhurried
@given(st.lists(st.tuples(names, names, partitions, st.sampled_from([0, 1])), max_size=8))
def test_decoding_gives_back_commit_keys(rows: list[tuple[str, str, int, int]]) -> None:
    keys = decode_keys(column([commit_key(*row) for row in rows]))
    expected = [(RecordKind.COMMIT, group, topic, partition, Reject.NONE) for group, topic, partition, _ in rows]
    assert key_rows(keys) == expected
    assert keys.version.tolist() == [version for *_, version in rows]


@unhurried
@given(st.lists(names, max_size=8))
def test_decoding_gives_back_group_keys(groups: list[str]) -> None:
    keys = decode_keys(column([group_key(group) for group in groups]))
    assert key_rows(keys) == [(RecordKind.GROUP, group, None, -1, Reject.NONE) for group in groups]


@pytest.mark.parametrize("version", range(3, 24))
@pytest.mark.parametrize("make", [group_key, lambda group, version: member_key(group, "m", version)])
def test_keys_of_newer_groups_are_of_kind_other(make: object, version: int) -> None:
    assert callable(make)
    keys = column([make("orders", version=version)])
    assert key_rows(decode_keys(keys)) == [(RecordKind.OTHER, None, None, -1, Reject.NONE)]
    assert decode_keys(keys).version.tolist() == [version]
    assert decode_group_names(keys).to_pylist() == ["orders"]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, Reject.NO_KEY),
        (b"", Reject.KEY_TRUNCATED),
        (b"\x00", Reject.KEY_TRUNCATED),
        (struct.pack(">h", 24), Reject.KEY_VERSION),
        (struct.pack(">h", 32767) + b"rest", Reject.KEY_VERSION),
        (struct.pack(">h", -1) + b"rest", Reject.KEY_VERSION),
        (struct.pack(">hh", 1, -1) + b"rest", Reject.BAD_LENGTH),
        (struct.pack(">hh", 2, -32768) + b"rest", Reject.BAD_LENGTH),
        (struct.pack(">hh", 2, 32767) + b"rest", Reject.KEY_TRUNCATED),
        (struct.pack(">hhhi", 1, 0, -2, 7), Reject.BAD_LENGTH),
        (commit_key("g", "t", -1), Reject.BAD_PARTITION),
        (commit_key(b"\xff", "t", 0), Reject.BAD_UTF8),
        (commit_key("g", b"\xed\xa0\x80", 0), Reject.BAD_UTF8),
        (group_key(b"caf\xe9"), Reject.BAD_UTF8),
    ],
)
def test_a_malformed_key_is_rejected_and_its_neighbours_are_not(key: bytes | None, reason: Reject) -> None:
    good = commit_key("grüße", "t", 3)
    keys = decode_keys(column([good, key, group_key("g"), key, good]))
    commit = (RecordKind.COMMIT, "grüße", "t", 3, Reject.NONE)
    reject = (RecordKind.REJECT, None, None, -1, reason)
    assert key_rows(keys) == [commit, reject, (RecordKind.GROUP, "g", None, -1, Reject.NONE), reject, commit]


@unhurried
@given(st.one_of(commit_keys, st.builds(group_key, names)))
def test_a_key_truncated_at_any_byte_is_rejected(key: bytes) -> None:
    keys = decode_keys(column([key[:size] for size in range(len(key))]))
    assert set(keys.kind) == {RecordKind.REJECT}
    assert set(keys.reject) == {Reject.KEY_TRUNCATED}
    assert keys.group.null_count == keys.topic.null_count == len(key)


@unhurried
@given(st.lists(st.one_of(anything, commit_keys, corrupted(commit_keys)), max_size=12))
def test_a_key_decodes_the_same_beside_any_other_keys(keys: list[bytes | None]) -> None:
    alone = [row for key in keys for row in key_rows(decode_keys(column([key])))]
    assert key_rows(decode_keys(column(keys))) == alone


def test_columns_may_be_slices_or_large() -> None:
    keys = [commit_key("group", "topic", partition) for partition in range(10)]
    for whole in (column([*keys]), pa.array(keys, pa.large_binary())):
        part = decode_keys(whole[3:7])
        assert part.partition.tolist() == [3, 4, 5, 6]
        assert part.group.to_pylist() == ["group"] * 4
    assert key_rows(decode_keys(column([]))) == []
    assert commit_rows(decode_commits(column([]))) == []
    assert key_rows(decode_keys(pa.nulls(1, pa.binary()))) == [(RecordKind.REJECT, None, None, -1, Reject.NO_KEY)]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 300, 16_383, 16_384, 32_767])
def test_metadata_of_any_length_does_not_shift_the_time(version: int, size: int) -> None:
    value = commit_value(42, NOW_MS, version, metadata="m" * size)
    assert commit_rows(decode_commits(column([value]))) == [(42, NOW_MS, Reject.NONE, False)]


def test_metadata_may_be_longer_than_two_bytes_of_varint() -> None:
    values = [commit_value(1, NOW_MS, metadata=b"\xff" * size) for size in (2**21 - 2, 2**21 - 1, 2**21)]
    assert decode_commits(column([*values])).time_ms.tolist() == [NOW_MS] * 3


@pytest.mark.parametrize(
    "tags", [{0: TOPIC_ID}, {0: TOPIC_ID, 1: b"", 300: b"x" * 200}, dict.fromkeys(range(127), b"")]
)
def test_tagged_fields_are_skipped(tags: dict[int, bytes]) -> None:
    values = [commit_value(1, NOW_MS), commit_value(2, NOW_MS, tags=tags), commit_value(3, NOW_MS)]
    assert decode_commits(column([*values])).offset.tolist() == [1, 2, 3]


@unhurried
@given(st.lists(st.tuples(offsets, times, st.integers(0, 4), st.text(max_size=200)), max_size=8))
def test_decoding_gives_back_commits(rows: list[tuple[int, int, int, str]]) -> None:
    values = [commit_value(offset, time, version, metadata=text) for offset, time, version, text in rows]
    commits = decode_commits(column([*values]))
    assert commit_rows(commits) == [(offset, time, Reject.NONE, False) for offset, time, *_ in rows]


def test_a_null_value_is_a_tombstone() -> None:
    commits = decode_commits(column([None, commit_value(5, NOW_MS), None]))
    assert commits.is_tombstone.tolist() == [True, False, True]
    assert commits.offset.tolist() == [-1, 5, -1]
    assert not commits.reject.any()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reject.VALUE_TRUNCATED),
        (struct.pack(">h", 5) + bytes(30), Reject.VALUE_VERSION),
        (struct.pack(">h", -1) + bytes(30), Reject.VALUE_VERSION),
        (commit_value(-1, NOW_MS), Reject.BAD_OFFSET),
        (commit_value(5, -1), Reject.BAD_TIME),
        (commit_value(5, 2**62), Reject.BAD_TIME),
        (struct.pack(">hqhq", 0, 5, -1, NOW_MS), Reject.BAD_LENGTH),
        (struct.pack(">hqhq", 2, 5, 32767, NOW_MS), Reject.VALUE_TRUNCATED),
        (struct.pack(">hqi", 4, 5, -1) + b"\x00" + bytes(9), Reject.BAD_LENGTH),
        (struct.pack(">hqi", 4, 5, -1) + unsigned_varint(2**32 - 1) + bytes(9), Reject.VALUE_TRUNCATED),
        (struct.pack(">hqi", 4, 5, -1) + b"\xff" * 20, Reject.BAD_LENGTH),
        (commit_value(5, NOW_MS)[:-1] + unsigned_varint(128) + bytes(256), Reject.BAD_LENGTH),
        (commit_value(5, NOW_MS)[:-1] + b"\x01\x00" + unsigned_varint(2**31), Reject.VALUE_TRUNCATED),
    ],
)
def test_a_malformed_commit_is_rejected_and_its_neighbours_are_not(value: bytes, reason: Reject) -> None:
    commits = decode_commits(column([commit_value(1, NOW_MS), value, None, value, commit_value(2, NOW_MS, 1)]))
    reject = (-1, -1, reason, False)
    assert commit_rows(commits) == [
        (1, NOW_MS, Reject.NONE, False),
        reject,
        (-1, -1, Reject.NONE, True),
        reject,
        (2, NOW_MS, Reject.NONE, False),
    ]


@unhurried
@given(commit_values.filter(lambda value: len(value) < 2000))
def test_a_commit_truncated_at_any_byte_is_rejected(value: bytes) -> None:
    commits = decode_commits(column([value[:size] for size in range(len(value))]))
    assert set(commits.reject) == {Reject.VALUE_TRUNCATED}
    assert set(commits.offset) == {-1}
    assert decode_commits(column([value, value + b"more"])).reject.tolist() == [Reject.NONE] * 2


@unhurried
@given(st.lists(st.one_of(anything, commit_values, corrupted(commit_values)), max_size=12))
def test_a_commit_decodes_the_same_beside_any_other_records(values: list[bytes | None]) -> None:
    alone = [row for value in values for row in commit_rows(decode_commits(column([value])))]
    assert commit_rows(decode_commits(column(values))) == alone


def test_the_bytes_under_a_null_are_not_read() -> None:
    raw = commit_value(1, NOW_MS)
    ends = np.array([0, len(raw), 2 * len(raw)], np.int32)
    buffers = [pa.py_buffer(b"\x02"), pa.py_buffer(ends), pa.py_buffer(raw * 2)]
    values = pa.Array.from_buffers(pa.binary(), 2, buffers)
    assert decode_commits(values).offset.tolist() == [-1, 1]
    assert decode_keys(values).reject.tolist() == [Reject.NO_KEY, Reject.NONE]


def test_every_reject_has_a_description() -> None:
    assert list(REJECT_DESCRIPTIONS) == list(Reject)

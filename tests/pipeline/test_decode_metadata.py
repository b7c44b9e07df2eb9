"""Group metadata of a map task: only the newest record of each key counts, however much of it there is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.plans import Record, addressed_rows, mapped, plan, raw
from tests.kit.records import Member, assignment, group_key, group_value
from warren.pipeline import decode, wanted
from warren.pipeline.decode import compact_records, decode_records
from warren.pipeline.flow import map_records
from warren.pipeline.schemas import TableKind

MADE = plan(Path("nowhere"))


def members(host: str, *, metadata: bytes = b"") -> bytes:
    return group_value([Member(f"m-{host}", f"client-{host}", f"/{host}", assignment({"t": [0]}, user_data=metadata))])


def life_of_groups() -> list[list[Record]]:
    """Batches in which groups change, move to the new protocol, come back and go; with two offsets partitions."""
    batches = []
    for n in range(6):
        order = 100 * n
        batches.append(
            [
                Record(order + 1, group_key("changes"), members(f"a{n}")),
                Record(order + 2, group_key("moves"), members("m") if n < 2 else None),
                Record(order + 3, group_key("moves", 3), b"\0\0" if n >= 2 else None),
                Record(order + 4, group_key("goes"), None if n >= 3 else members("g")),
                Record(order + 5, group_key("changes"), members(f"b{n}"), partition=1),
                Record(order + 6, group_key(f"new-{n}"), members(f"n{n}")),
            ]
        )
    return batches


def rows_of(batches: list[list[Record]]) -> dict[TableKind, list[Any]]:
    return {kind: sorted(map(str, rows)) for kind, rows in mapped(MADE, *batches).items()}


@pytest.mark.parametrize("at", [0, 1_000])
def test_compaction_changes_nothing_of_what_follows(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    expected = rows_of(life_of_groups())
    assert expected[TableKind.OWNERS]
    assert expected[TableKind.COMMITS], "the group that goes"
    monkeypatch.setattr(decode, "COMPACT_METADATA_AT", at)
    monkeypatch.setattr(wanted, "MAX_BYTES", at)
    assert rows_of(life_of_groups()) == expected


def test_only_the_newest_value_and_tombstone_of_a_key_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "COMPACT_METADATA_AT", 0)
    batches = [[Record(2 * n, group_key("g"), members("a")), Record(2 * n + 1, group_key("g"), None)] for n in range(9)]
    records = compact_records((decode_records(raw(batch), MADE) for batch in batches), MADE)
    assert pa.concat_tables(records.metadata)["offset"].to_pylist() == [16, 17]


def test_more_metadata_than_32_bit_offsets_can_address(monkeypatch: pytest.MonkeyPatch) -> None:
    value = members("newest", metadata=bytes(2**20))

    def batches() -> Iterator[pa.RecordBatch]:
        for n in range(70):
            yield raw(Record(32 * n + i, group_key(f"g-{i % 4}"), value) for i in range(32))

    # What is left of it is decoded in parts.
    monkeypatch.setattr(wanted, "MAX_BYTES", 2**21)
    tables = addressed_rows(map_records(MADE)(batches()))
    owners = [row for rows in tables[TableKind.OWNERS].values() for row in rows if row["topic"]]
    assert sorted((row["group"], row["owner"]) for row in owners) == [(f"g-{n}", "/newest") for n in range(4)]

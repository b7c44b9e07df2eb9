"""The map side: raw records in, decoded commits, owners, tombstones and rejects out, addressed to their buckets."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from tests.kit.plans import Record, addressed_rows, mapped, plan, raw
from tests.kit.records import Member, assignment, commit_key, commit_value, group_key, group_value, member_key
from warren.domain.matching import GroupFilter
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject
from warren.pipeline import decode
from warren.pipeline.flow import map_records
from warren.pipeline.plan import PlannedCluster, PlannedSource
from warren.pipeline.schemas import COMMITS, OWNERS, RAW_RECORDS, REJECTS, SEEDS, TableKind
from warren.pipeline.wanted import keep_wanted_groups

ROOT = Path("nowhere")
T = 1_700_000_000_000


def commit(order: int, group: str = "g", topic: str = "t", partition: int = 0, **more: Any) -> Record:
    return Record(order, commit_key(group, topic, partition), commit_value(order * 10, T + order), **more)


def tombstone(order: int, group: str = "g", topic: str = "t", partition: int = 0) -> Record:
    return Record(order, commit_key(group, topic, partition), None)


def members(*held: tuple[str, dict[str | bytes, list[int]]]) -> bytes:
    return group_value([Member(f"m-{host}", f"client-{host}", f"/{host}", assignment(own)) for host, own in held])


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("group", "topic", "partition", "offset", "order", "is_tombstone")
    return sorted((tuple(row[name] for name in names) for row in rows), key=lambda row: row[4])


def owned(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("group", "topic", "partition", "owner", "client_id")
    return sorted((tuple(row[name] for name in names) for row in rows), key=str)


def test_raw_records_have_the_schema_that_spark_reads() -> None:
    batch = raw([commit(1)])
    assert [(f.name, f.dataType.simpleString()) for f in from_arrow_schema(RAW_RECORDS)] == [
        (f.name, {pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary"}[f.type]) for f in batch.schema
    ]


def test_no_records_make_no_tables() -> None:
    assert list(map_records(plan(ROOT))([])) == []
    assert list(map_records(plan(ROOT))([raw([])])) == []


def test_commits_are_decoded_with_their_time_and_order() -> None:
    rows_of = mapped(plan(ROOT), [commit(1), commit(2, partition=3), commit(5, "h", "ü")])
    assert rows_of[TableKind.COMMITS] == [
        {
            "cluster": 0, "group": group, "topic": topic, "partition": partition,
            "offset": order * 10, "time_ms": T + order, "order": order, "log": 0, "is_tombstone": False,
        }
        for order, group, topic, partition in ((1, "g", "t", 0), (2, "g", "t", 3), (5, "h", "ü", 0))
    ]  # fmt: skip
    assert rows_of[TableKind.OWNERS] == rows_of[TableKind.REJECTS] == []


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_commit(version: int) -> None:
    record = Record(7, commit_key("g", "t", 1, min(version, 1)), commit_value(42, T, version, metadata="m" * 200))
    assert shown(mapped(plan(ROOT), [record])[TableKind.COMMITS]) == [("g", "t", 1, 42, 7, False)]


def test_only_what_the_windows_need_is_passed_on() -> None:
    made = plan(ROOT, intervals=3)
    batches = [[commit(order) for order in range(start, start + 4)] for start in (1, 5, 9)]
    assert [row[4] for row in shown(mapped(made, *batches)[TableKind.COMMITS])] == [10, 11, 12]


def test_a_task_that_gathers_much_compacts_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "COMPACT_AT", 5)
    made = plan(ROOT, intervals=2)
    batches = [[commit(order, f"g{order % 3}")] for order in range(1, 40)]
    assert [row[4] for row in shown(mapped(made, *batches)[TableKind.COMMITS])] == [34, 35, 36, 37, 38, 39]


def test_commits_of_one_key_from_several_sources_are_kept_apart() -> None:
    made = plan(
        ROOT,
        intervals=2,
        clusters=(PlannedCluster("one", is_judged=True), PlannedCluster("two", is_judged=True)),
        sources=(PlannedSource(1, (GroupFilter(),)), PlannedSource(0, (GroupFilter(),))),
        slots=tuple(range(4)),
    )
    records = [commit(order, source=source) for order in range(1, 5) for source in (0, 1)]
    rows = mapped(made, records[:3], records[3:])[TableKind.COMMITS]
    assert sorted((row["cluster"], row["order"]) for row in rows) == [(0, 3), (0, 4), (1, 3), (1, 4)]


def test_a_tombstone_takes_what_is_older_and_is_passed_on() -> None:
    rows = mapped(plan(ROOT), [commit(1), commit(2), tombstone(3)], [commit(4), tombstone(5, "h")])[TableKind.COMMITS]
    assert [(row[0], row[4], row[5]) for row in shown(rows)] == [("g", 3, True), ("g", 4, False), ("h", 5, True)]


def test_owners_come_from_the_newest_metadata_of_a_group() -> None:
    records = [
        Record(1, group_key("g"), members(("old", {"t": [0, 1]}))),
        Record(2, group_key("g"), members(("a", {"t": [0], "u": [2]}), ("b", {"t": [1]}))),
    ]
    rows_of = mapped(plan(ROOT), records[:1], records[1:])
    assert owned(rows_of[TableKind.OWNERS]) == [
        ("g", "t", 0, "/a", "client-a"),
        ("g", "t", 1, "/b", "client-b"),
        ("g", "u", 2, "/a", "client-a"),
        ("g", None, -1, None, None),
    ]
    assert rows_of[TableKind.COMMITS] == rows_of[TableKind.REJECTS] == []


def test_a_group_without_members_says_so() -> None:
    rows_of = mapped(plan(ROOT), [Record(1, group_key("g"), members())])
    assert owned(rows_of[TableKind.OWNERS]) == [("g", None, -1, None, None)]


def test_a_group_of_another_protocol_type_has_no_owners_and_is_no_reject() -> None:
    value = group_value([Member(assignment=b"\x00")], protocol_type="connect")
    rows_of = mapped(plan(ROOT), [Record(1, group_key("g"), value)])
    assert owned(rows_of[TableKind.OWNERS]) == [("g", None, -1, None, None)]
    assert rows_of[TableKind.REJECTS] == []


def test_a_tombstone_of_a_group_takes_the_group() -> None:
    records = [commit(1), Record(2, group_key("g"), members(("a", {"t": [0]}))), Record(3, group_key("g"), None)]
    rows_of = mapped(plan(ROOT), records)
    assert shown(rows_of[TableKind.COMMITS])[1:] == [("g", None, -1, 0, 3, True)]
    assert owned(rows_of[TableKind.OWNERS]) == [("g", None, -1, None, None)], "and its owners"


@pytest.mark.parametrize("version", [3, 17])
def test_a_group_that_moves_to_a_new_protocol_is_not_taken(version: int) -> None:
    records = [commit(1), Record(2, group_key("g"), None), Record(3, group_key("g", version), b"\x00\x00")]
    rows_of = mapped(plan(ROOT), records)
    assert [row[4] for row in shown(rows_of[TableKind.COMMITS])] == [1]
    assert rows_of[TableKind.OWNERS] == [], "what the brokers said of its owners stays"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("the new kind of another group", Record(3, group_key("h", 3), b"\x00\x00")),
        ("the tombstone of the new kind, too", Record(3, group_key("g", 3), None)),
        ("the new kind from before the tombstone", Record(1, group_key("g", 3), b"\x00\x00")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_group_that_did_not_move_is_taken(name: str, other: Record) -> None:
    records = sorted([Record(2, group_key("g"), None), other], key=lambda record: record.offset)
    assert shown(mapped(plan(ROOT), records)[TableKind.COMMITS]) == [("g", None, -1, 0, 2, True)], name


@pytest.mark.parametrize("version", [3, 17])
def test_a_tombstone_of_a_new_protocol_group_takes_its_owners_and_no_commits(version: int) -> None:
    records = [commit(1), Record(2, group_key("g", version), b"\x00\x00"), Record(3, group_key("g", version), None)]
    rows_of = mapped(plan(ROOT), records)
    assert [row[4] for row in shown(rows_of[TableKind.COMMITS])] == [1]
    assert owned(rows_of[TableKind.OWNERS]) == [("g", None, -1, None, None)]
    unwanted = plan(ROOT, sources=(PlannedSource(0, (GroupFilter(denylist="g"),)),))
    assert mapped(unwanted, records)[TableKind.OWNERS] == []
    recreated = [*records, Record(4, group_key("g", version), b"\x00\x00")]
    assert mapped(plan(ROOT), recreated)[TableKind.OWNERS] == []


@pytest.mark.parametrize("version", [3, 17])
def test_a_group_that_moves_to_the_classic_protocol_keeps_its_commits_and_has_its_members(version: int) -> None:
    records = [
        commit(1),
        Record(2, group_key("g", version), None),
        Record(3, group_key("g"), members(("a", {"t": [0]}))),
    ]
    for batches in ([records], [records[:2], records[2:]]):
        rows_of = mapped(plan(ROOT), *batches)
        assert [row[4] for row in shown(rows_of[TableKind.COMMITS])] == [1]
        assert set(owned(rows_of[TableKind.OWNERS])) == {("g", "t", 0, "/a", "client-a"), ("g", None, -1, None, None)}


def test_records_of_new_protocols_are_skipped_quietly() -> None:
    records = [
        *(Record(v, group_key("g", v), b"\x00\x00\x01") for v in (3, 4, 6, 11, 17)),
        *(Record(v, member_key("g", "m", v), b"\x00\x00\x01") for v in (5, 7, 8, 10, 19)),
        commit(50),
    ]
    rows_of = mapped(plan(ROOT), records)
    assert [row[4] for row in shown(rows_of[TableKind.COMMITS])] == [50]
    assert rows_of[TableKind.OWNERS] == rows_of[TableKind.REJECTS] == []


def test_rejects_are_counted_by_reason_with_a_sample() -> None:
    records = [
        Record(1, None, b"x"),
        Record(2, b"\x00", b"x"),
        Record(3, commit_key("g", "t", 0)[:-1], commit_value(1, T)),
        Record(4, commit_key("g", "t", 0)[:-2], commit_value(1, T)),
        Record(5, commit_key("g", "t", 0), commit_value(1, T)[:-1]),
        Record(6, commit_key("g", "t", 0), commit_value(-5, T)),
        Record(7, commit_key(b"\xff", "t", 0), commit_value(1, T)),
        Record(8, commit_key("g", "t", -1), commit_value(1, T)),
        Record(9, (99).to_bytes(2, "big"), b""),
        Record(10, group_key("g"), b"\x00\x09"),
        commit(11),
        tombstone(12, partition=1),
    ]
    rows_of = mapped(plan(ROOT), records)
    counts = {row["reason"]: row["count"] for row in rows_of[TableKind.REJECTS]}
    assert counts == {
        REJECT_DESCRIPTIONS[Reject.NO_KEY]: 1,
        REJECT_DESCRIPTIONS[Reject.KEY_TRUNCATED]: 3,
        REJECT_DESCRIPTIONS[Reject.VALUE_TRUNCATED]: 1,
        REJECT_DESCRIPTIONS[Reject.BAD_OFFSET]: 1,
        REJECT_DESCRIPTIONS[Reject.BAD_UTF8]: 1,
        REJECT_DESCRIPTIONS[Reject.BAD_PARTITION]: 1,
        REJECT_DESCRIPTIONS[Reject.KEY_VERSION]: 1,
        REJECT_DESCRIPTIONS[Reject.VALUE_VERSION]: 1,
    }
    samples = {row["reason"]: row["sample"] for row in rows_of[TableKind.REJECTS]}
    assert samples[REJECT_DESCRIPTIONS[Reject.NO_KEY]] == "partition 0 offset 1 key  value 78"
    assert samples[REJECT_DESCRIPTIONS[Reject.KEY_TRUNCATED]] == "partition 0 offset 2 key 00 value 78"
    assert [row[4] for row in shown(rows_of[TableKind.COMMITS])] == [11, 12]


def test_a_huge_reject_is_sampled_in_part_and_belongs_to_its_cluster() -> None:
    made = plan(
        ROOT,
        clusters=(PlannedCluster("one", is_judged=True), PlannedCluster("two", is_judged=True)),
        sources=(PlannedSource(1, (GroupFilter(),)),),
    )
    [reject] = mapped(made, [Record(1, b"\x63" * 100_000, b"v" * 100_000)])[TableKind.REJECTS]
    assert reject["cluster"] == 1
    assert len(reject["sample"]) < 400


def test_a_member_that_does_not_parse_costs_only_its_own_partitions() -> None:
    good = Member("m", "c", "/a", assignment({"t": [0]}))
    value = group_value([good, Member("n", "d", "/b", b"\x00\x03\xff\xff\xff\xff")])
    rows_of = mapped(plan(ROOT), [Record(1, group_key("g"), value)])
    assert owned(rows_of[TableKind.OWNERS]) == [("g", "t", 0, "/a", "c"), ("g", None, -1, None, None)]
    assert [row["reason"] for row in rows_of[TableKind.REJECTS]] == [REJECT_DESCRIPTIONS[Reject.BAD_MEMBER]]


def test_metadata_that_cannot_be_read_leaves_owners_as_they_were() -> None:
    rows_of = mapped(plan(ROOT), [Record(1, group_key("g"), members(("a", {"t": [0]}))[:-3])])
    assert rows_of[TableKind.OWNERS] == []
    assert len(rows_of[TableKind.REJECTS]) == 1


@pytest.mark.parametrize(
    ("name", "filters", "storage", "expected"),
    [
        ("no lists", (GroupFilter(),), GroupFilter(), {"app-a", "app-b", "console-1", "other"}),
        ("allow", (GroupFilter("^app-"),), GroupFilter(), {"app-a", "app-b"}),
        ("deny", (GroupFilter(None, "^console-"),), GroupFilter(), {"app-a", "app-b", "other"}),
        ("allow and deny", (GroupFilter("^app-", "b$"),), GroupFilter(), {"app-a"}),
        (
            "two sections on one topic: what either wants",
            (GroupFilter("^app-a$"), GroupFilter("^other$")),
            GroupFilter(),
            {"app-a", "other"},
        ),
        ("storage denies", (GroupFilter("^app-"),), GroupFilter(None, "a$"), {"app-b"}),
        ("storage allows", (GroupFilter(),), GroupFilter("^o"), {"other"}),
        ("nobody wants anything", (GroupFilter("^$"),), GroupFilter(), set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lists_of_groups(name: str, filters: tuple[GroupFilter, ...], storage: GroupFilter, expected: set[str]) -> None:
    clusters = (PlannedCluster("local", is_judged=True, filters=filters),)
    sources = (PlannedSource(0, filters),)
    made = plan(ROOT, clusters=clusters, sources=sources, storage_filter=storage, slots=(0, 1, 2))
    groups = ("app-a", "app-b", "console-1", "other")
    records = [
        *(commit(n, group) for n, group in enumerate(groups)),
        *(Record(10 + n, group_key(group), members(("h", {"t": [0]}))) for n, group in enumerate(groups)),
    ]
    rows_of = mapped(made, records)
    assert {row["group"] for row in rows_of[TableKind.COMMITS]} == expected, name
    assert {row["group"] for row in rows_of[TableKind.OWNERS]} == expected, name
    gone = mapped(made, [Record(n, group_key(group), None) for n, group in enumerate(groups)])
    assert {row["group"] for row in gone[TableKind.COMMITS]} == expected, name
    held = [{"cluster": 0, "group": group, "topic": "t", "partition": 0, "offset": 1} for group in groups]
    seeds = keep_wanted_groups(pa.Table.from_pylist(held, schema=SEEDS), made)
    assert set(seeds["group"].to_pylist()) == expected, f"{name}, in what the brokers say"


def test_each_source_has_lists_of_its_own() -> None:
    made = plan(ROOT, sources=(PlannedSource(0, (GroupFilter("^a"),)), PlannedSource(0, (GroupFilter("^b"),))))
    records = [commit(n, group, source=source) for n, (group, source) in enumerate(
        [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    )]  # fmt: skip
    rows = mapped(made, records)[TableKind.COMMITS]
    assert [(row["group"], row["order"]) for row in rows] == [("a", 0), ("b", 3)]


def test_what_brokers_say_goes_by_the_lists_of_their_cluster() -> None:
    filters = {"one": (GroupFilter("^a"), GroupFilter("^b")), "two": (GroupFilter(),), "without consumers": ()}
    clusters = tuple(PlannedCluster(name, is_judged=True, filters=own) for name, own in filters.items())
    held = [{"cluster": cluster, "group": group} for cluster in range(3) for group in ("a", "b", "c")]
    kept = keep_wanted_groups(pa.Table.from_pylist(held, schema=OWNERS), plan(ROOT, clusters=clusters))
    assert [(row["cluster"], row["group"]) for row in kept.to_pylist()] == [
        (0, "a"), (0, "b"), (1, "a"), (1, "b"), (1, "c"),
    ]  # fmt: skip
    nothing = SEEDS.empty_table()
    assert keep_wanted_groups(nothing, plan(ROOT)) == nothing


def test_tables_go_to_the_slot_of_their_bucket_and_carry_only_their_names() -> None:
    made = plan(ROOT, slots=(40, 41, 42, 43))
    batches = list(map_records(made)([raw([commit(n, f"group-{n}", f"topic-{n}") for n in range(50)])]))
    assert all(row["slot"] == 40 + row["bucket"] for batch in batches for row in batch.to_pylist())
    for row in (row for batch in batches for row in batch.to_pylist()):
        table = pa.ipc.open_stream(row["table"]).read_all()
        assert table.schema == COMMITS
        assert len(table["group"].combine_chunks().dictionary) == table.num_rows
    assert sum(len(rows) for rows in addressed_rows(batches)[TableKind.COMMITS].values()) == 50


def test_addressed_tables_have_their_schemas() -> None:
    records = [
        Record(1, group_key("g"), members(("a", {"t": [0]}))),
        Record(2, None, None),
        Record(3, group_key("h"), None),
    ]
    schemas = {}
    for batch in map_records(plan(ROOT))([raw(records)]):
        for row in batch.to_pylist():
            schemas[TableKind(row["kind"])] = pa.ipc.open_stream(row["table"]).schema
    assert schemas == {TableKind.COMMITS: COMMITS, TableKind.OWNERS: OWNERS, TableKind.REJECTS: REJECTS}

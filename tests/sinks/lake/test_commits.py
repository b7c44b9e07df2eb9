"""Commits of offsets topics, decoded for the lake."""

import datetime as dt

import pyarrow as pa

from tests.kit.records import commit_key, commit_value
from warren.config.sinks import SinkFilters
from warren.domain.matching import GroupFilter
from warren.sinks.lake.commits import OffsetsTopic, decode

AT_MS = 1_700_000_000_000
RECORDED = dt.datetime.fromtimestamp(AT_MS / 1000 + 5, dt.UTC)
EVERYTHING: SinkFilters = {}


def source(cluster: str, *filters: GroupFilter, storage: GroupFilter | None = None) -> OffsetsTopic:
    return OffsetsTopic(cluster, f"offsets-of-{cluster}", filters or (GroupFilter(),), storage or GroupFilter())


def records(*given: tuple[int, bytes | None, bytes | None]) -> pa.RecordBatch:
    """Records of offsets topics as Spark hands them over: the number of the source, key and value."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([number for number, _, _ in given], pa.int32()),
            pa.array([3] * len(given), pa.int32()),
            pa.array(range(100, 100 + len(given)), pa.int64()),
            pa.array([key for _, key, _ in given], pa.binary()),
            pa.array([value for _, _, value in given], pa.binary()),
            pa.array([RECORDED] * len(given), pa.timestamp("us", "UTC")),
        ],
        names=["source", "partition", "offset", "key", "value", "timestamp"],
    )


def rows(batch: pa.RecordBatch, *sources: OffsetsTopic, scope: SinkFilters = EVERYTHING) -> list[dict[str, object]]:
    return [row for made in decode([batch], sources, scope) for row in made.to_pylist()]


def test_a_commit_a_tombstone_and_what_is_neither() -> None:
    found = rows(
        records(
            (0, commit_key("g", "t", 7), commit_value(42, AT_MS)),
            (0, commit_key("g", "t", 7), None),
            (0, commit_key("g", "t", 7)[:-2], commit_value(1, AT_MS)),
            (0, commit_key("g", "t", 7), commit_value(1, AT_MS)[:-3]),
            (0, None, None),
            (1, commit_key("é\n", "t", 0), commit_value(0, AT_MS)),
        ),
        source("one"),
        source("two"),
    )
    assert found[0] == {
        "at_ms": AT_MS,
        "cluster": "one",
        "group": "g",
        "topic": "t",
        "partition": 7,
        "offset": 42,
        "is_tombstone": False,
        "source": "offsets-of-one",
        "source_partition": 3,
        "source_offset": 100,
    }
    assert (found[1]["at_ms"], found[1]["offset"], found[1]["is_tombstone"]) == (AT_MS + 5000, None, True)
    assert [(row["cluster"], row["group"], row["source_offset"]) for row in found[2:]] == [("two", "é\n", 105)]


def test_groups_that_no_section_wants_are_left_out() -> None:
    batch = records(*((0, commit_key(name, "t", 0), commit_value(1, AT_MS)) for name in ("ab", "ac", "b", "secret")))
    either = source("one", GroupFilter("^a", "c$"), GroupFilter("^b"), storage=GroupFilter(None, "x"))
    assert [row["group"] for row in rows(batch, either)] == ["ab", "b"]
    scope = {"group": (("a*", "s*"), ("*c",))}
    assert [row["group"] for row in rows(batch, source("one"), scope=scope)] == ["ab", "secret"]


def test_nothing_makes_nothing() -> None:
    assert rows(records(), source("one")) == []

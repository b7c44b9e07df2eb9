"""How far to read: from positions and ends to ranges, in every state an offsets topic can be in."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from warren.domain.offsets_logs import RECONNECT_MS
from warren.kafka.samples import PartitionEnds
from warren.pipeline.offset_ranges import TopicRead, admit, plan_topic_read
from warren.snapshot.manifest import Position, Source
from warren.sources.offsets_topic import OffsetRange

NOW = 1_000_000
Ends = tuple[int, int, int]  # log start, last stable offset, end


def planned(
    before: Source | None,
    ends: Mapping[int, Ends],
    *,
    topic_id: str = "id",
    from_latest: bool = False,
    now_ms: int = NOW,
) -> TopicRead:
    held = {partition: PartitionEnds(*end) for partition, end in ends.items()}
    return plan_topic_read(
        "c", "t", before, held, topic_id, from_latest=from_latest, now_ms=now_ms, sampled_ms=(now_ms - 2, now_ms - 1)
    )  # fmt: skip


def read_to(*offsets: int, topic_id: str = "id") -> Source:
    positions = {p: Position(offset, offset, offset) for p, offset in enumerate(offsets)}
    return Source(topic_id, positions)


@dataclass(frozen=True)
class Case:
    """One partition: what was read, what there is, and the span and position that follow."""

    before: Source | None
    end: Ends
    span: OffsetRange | None
    next_offset: int
    from_latest: bool = False


CASES = {
    "first look, from the earliest": Case(None, (5, 20, 20), OffsetRange(5, 20), 20),
    "first look, from the latest": Case(None, (5, 20, 20), None, 20, from_latest=True),
    "first look at an empty log": Case(None, (0, 0, 0), None, 0),
    "first look while a transaction is open: up to what is stable": Case(None, (5, 12, 20), OffsetRange(5, 12), 12),
    "latest while a transaction is open: what is not stable is still to come": Case(
        None, (5, 12, 20), None, 12, from_latest=True
    ),
    "nothing new": Case(read_to(20), (5, 20, 20), None, 20),
    "something new": Case(read_to(20), (5, 25, 25), OffsetRange(20, 25), 25),
    "latest counts only for the first look": Case(read_to(20), (5, 25, 25), OffsetRange(20, 25), 25, from_latest=True),
    "a partition that is new in a known topic is read from its start": Case(
        Source("id", {7: Position(1, 1, 1)}), (0, 9, 9), OffsetRange(0, 9), 9, from_latest=True
    ),
    "records that are gone from the log are passed over": Case(read_to(20), (30, 40, 40), OffsetRange(30, 40), 40),
    "all that is left is gone": Case(read_to(20), (30, 30, 30), None, 30),
    "the last stable offset went back": Case(read_to(20), (5, 15, 25), None, 20),
}


@pytest.mark.parametrize("name", CASES)
def test_a_partition(name: str) -> None:
    case = CASES[name]
    read = planned(case.before, {0: case.end}, from_latest=case.from_latest)
    assert read.ranges.get(0) == case.span
    position = read.after.positions[0]
    assert (position.next_offset, position.stable_end, position.end) == (case.next_offset, *case.end[1:])
    assert not read.is_another_log
    assert not read.is_catching_up


def test_records_that_are_gone_unread_are_told() -> None:
    assert planned(read_to(20), {0: (30, 40, 40)}).warnings == ("c/t/0: offsets 20 to 30 are gone from the log",)


def test_a_partition_that_does_not_answer_keeps_its_position() -> None:
    read = planned(read_to(10, 20), {1: (0, 25, 25)})
    assert read.ranges == {1: OffsetRange(20, 25)}
    assert read.after.positions[0] == structs.replace(read_to(10, 20).positions[0], away_from_ms=0)


@pytest.mark.parametrize("ends", [{}, {0: (0, 3, 3)}])
def test_a_topic_that_was_created_again_is_another_log(ends: Mapping[int, Ends]) -> None:
    read = planned(read_to(20), ends, topic_id="new")
    assert read.is_another_log
    assert "created again" in read.warnings[0]
    anew = planned(None, ends, topic_id="new")
    assert anew.after.topic_id == "new"
    assert anew.ranges == {p: OffsetRange(start, end) for p, (start, _, end) in ends.items()}


def test_a_log_that_ends_before_the_position_is_another_log() -> None:
    assert planned(read_to(20), {0: (0, 19, 19)}).is_another_log
    assert not planned(read_to(20), {0: (0, 20, 20)}).is_another_log


def test_a_topic_that_cannot_be_seen_for_a_while_is_still_known() -> None:
    away = planned(read_to(20), {}, topic_id="")
    assert not away.is_another_log
    assert away.after.positions[0].next_offset == 20
    assert away.after.topic_id == "id"
    assert planned(away.after, {0: (0, 30, 30)}, topic_id="new").is_another_log


def test_a_topic_that_appears_after_the_start_is_read_whole() -> None:
    nothing = planned(None, {}, topic_id="", from_latest=True)
    assert (nothing.ranges, nothing.is_catching_up) == ({}, False)
    assert planned(nothing.after, {0: (0, 9, 9)}, from_latest=True).ranges == {0: OffsetRange(0, 9)}


def test_catching_up_ends_where_the_topic_ends() -> None:
    first = admit([planned(None, {0: (0, 100, 100)})], 40)[0]
    assert (first.ranges, first.is_catching_up) == ({0: OffsetRange(0, 40)}, True)
    second = admit([planned(first.after, {0: (0, 150, 150)})], 70)[0]
    assert (second.ranges, second.is_catching_up) == ({0: OffsetRange(40, 110)}, True)
    third = admit([planned(second.after, {0: (0, 160, 160)})], 70)[0]
    assert (third.ranges, third.is_catching_up) == ({0: OffsetRange(110, 160)}, False)


Look = tuple[Ends | None, int]
"""The ends of a partition, or None if it did not answer, and how many records a cycle may read."""


@pytest.mark.parametrize(
    ("name", "looks", "seen"),
    [
        ("read to its end", [((0, 9, 9), 99)], [0]),
        ("nothing new", [((0, 9, 9), 99), ((0, 9, 9), 99)], [0, 1]),
        ("cut short", [((0, 9, 9), 99), ((0, 99, 99), 10), ((0, 99, 99), 99)], [0, None, 2]),
        ("no answer", [((0, 9, 9), 99), (None, 99), ((0, 19, 19), 99)], [0, None, 2]),
        ("an open transaction", [((0, 9, 9), 99), ((0, 9, 19), 99), ((0, 9, 29), 99), ((0, 29, 29), 99)],
         [0, None, None, 3]),
        ("short transactions, one after the other", [((0, 9, 9), 99), ((0, 9, 19), 99), ((0, 19, 29), 99),
         ((0, 29, 39), 99), ((0, 39, 49), 99)], [0, None, 1, 2, 3]),
        ("one that is open at the first look", [((0, 5, 9), 99), ((0, 5, 9), 99), ((0, 9, 12), 99)], [None, None, 0]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_partition_is_seen_up_to_the_look_whose_end_was_read(
    name: str, looks: list[Look], seen: list[int | None]
) -> None:
    source: Source | None = None
    expected = 0
    for number, ((ends, max_records), seen_look) in enumerate(zip(looks, seen, strict=True)):
        now_ms = NOW + number * 10_000
        [read] = admit([planned(source, {0: ends} if ends else {}, now_ms=now_ms)], max_records)
        source = read.after
        expected = expected if seen_look is None else NOW + seen_look * 10_000 - 2
        assert source.positions[0].seen_until_ms == expected, (name, number)


def test_an_open_transaction_is_stuck_since_it_was_first_seen_to_be() -> None:
    free = planned(read_to(20), {0: (0, 20, 20)}).after
    assert free.positions[0].stuck_since_ms is None
    moved = planned(free, {0: (0, 25, 30)}, now_ms=NOW + 1).after
    assert moved.positions[0].stuck_since_ms is None, "it still moves"
    held = planned(moved, {0: (0, 25, 40)}, now_ms=NOW + 2).after
    assert held.positions[0].stuck_since_ms == NOW + 2
    still = planned(held, {0: (0, 25, 50)}, now_ms=NOW + 3).after
    assert still.positions[0].stuck_since_ms == NOW + 2
    done = planned(still, {0: (0, 50, 50)}, now_ms=NOW + 4)
    assert (done.after.positions[0].stuck_since_ms, done.ranges) == (None, {0: OffsetRange(25, 50)})


def test_what_fits_is_not_cut() -> None:
    reads = [planned(None, {0: (0, 60, 60)}), planned(None, {0: (0, 40, 40)})]
    assert [read.ranges for read in admit(reads, 100)] == [read.ranges for read in reads]


sizes = st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 1_000), max_size=5), min_size=1, max_size=4)


@given(sizes, st.integers(1, 500))
def test_cut_readings_fit_move_on_and_lose_nothing(topics: list[dict[int, int]], max_records: int) -> None:
    sources: list[Source | None] = [None] * len(topics)
    seen: list[dict[int, int]] = [dict.fromkeys(topic, 0) for topic in topics]
    for _ in range(10_000):
        reads = [
            planned(source, {p: (0, size, size) for p, size in topic.items()})
            for source, topic in zip(sources, topics, strict=True)
        ]
        cut = admit(reads, max_records)
        # At least one offset of every partition is read, however small the share is.
        assert sum(read.records for read in cut) <= max_records + sum(len(r.ranges) for r in reads)
        for number, read in enumerate(cut):
            for partition, span in read.ranges.items():
                assert span.start == seen[number][partition]
                assert span.start < span.end == read.after.positions[partition].next_offset
                seen[number][partition] = span.end
            assert read.is_catching_up == (seen[number] != topics[number])
        sources = [read.after for read in cut]
        if seen == topics:
            return
    pytest.fail("it never ends")


def test_a_partition_that_cannot_be_heard_is_away_until_a_while_after_it_is_back() -> None:
    def look(before: Source, now_ms: int, end: PartitionEnds | None, *, was_unavailable: bool = False) -> Source:
        ends = {0: PartitionEnds(0, 20, 20)} | ({1: end} if end else {})
        read = plan_topic_read(
            "c", "t", before, ends, "id",
            from_latest=False, now_ms=now_ms, last_sampled_ms=now_ms - 10_000, was_unavailable=was_unavailable,
        )  # fmt: skip
        return read.after

    def away(source: Source) -> list[tuple[int | None, int | None]]:
        return [(p.away_from_ms, p.away_to_ms) for _, p in sorted(source.positions.items())]

    heard = PartitionEnds(0, 20, 20)
    source = look(read_to(20, 20), NOW, None)
    assert away(source) == [(None, None), (NOW - 10_000, None)]
    source = look(source, NOW + 10_000, PartitionEnds(0, 20, 20, is_held_back=True))
    assert away(source) == [(None, None), (NOW - 10_000, None)], "heard, but held back"
    source = look(source, NOW + 20_000, heard)
    assert away(source) == [(None, None), (NOW - 10_000, NOW + 20_000)]
    source = look(source, NOW + 20_000 + RECONNECT_MS, heard)
    assert away(source) == [(None, None), (NOW - 10_000, NOW + 20_000)]
    again = look(source, NOW + 20_000 + RECONNECT_MS, None)
    assert away(again) == [(None, None), (NOW - 10_000, None)], "gone again while it is hardly back"
    source = look(source, NOW + 20_001 + RECONNECT_MS, heard)
    assert away(source) == [(None, None), (None, None)]
    source = look(source, NOW, heard, was_unavailable=True)
    assert away(source) == [(NOW - 10_000, NOW)] * 2, "the whole cluster was away"

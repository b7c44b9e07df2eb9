"""Heads of the past: bounds that hold whatever records are stamped with, and nothing where they would not."""

from collections.abc import Sequence

import numpy as np
import pytest

from warren.domain.arrays import Ints
from warren.domain.past_heads import (
    AHEAD_MS,
    APPENDED_WITHIN_MS,
    MAX_DELAY_MS,
    NOTHING_SINCE,
    TimedAnswer,
    heads_by_record_time,
)
from warren.domain.windows import UNKNOWN

NOW = 1_700_000_000_000
SECOND, MINUTE = 1_000, 60_000
TIMES = [NOW + SECOND, NOW, *(NOW - age_s * SECOND for age_s in (1, 3, 6, 10, 20, 30, 60, 120, 300, 600))]
STEADY = np.arange(NOW - 10 * MINUTE, NOW, 100)
"""When records are appended, ten per second."""


def ask(stamps_ms: Ints, times_ms: Sequence[int] = TIMES) -> list[TimedAnswer]:
    """What a broker says of a log with one partition, given the timestamps of its records."""
    answers = []
    for time_ms in times_ms:
        index = int(np.searchsorted(np.maximum.accumulate(stamps_ms), time_ms))
        found = (index, stamps_ms[index]) if index < stamps_ms.size else (NOTHING_SINCE, UNKNOWN)
        answers.append(TimedAnswer(time_ms, NOW, NOW, *(np.array([number], np.int64) for number in found)))
    return answers


def bounds(stamps_ms: Ints) -> list[tuple[int, int]]:
    """The highest and the lowest head at each time."""
    found = heads_by_record_time(ask(stamps_ms), np.array([stamps_ms.size]))
    return [(int(highest[0]), int(lowest[0])) for highest, lowest in found]


def late(most_ms: int) -> Ints:
    return STEADY - np.random.default_rng(1).integers(0, most_ms, STEADY.size)


@pytest.mark.parametrize(
    ("stamps_ms", "is_trusted"),
    [
        (STEADY, True),
        (STEADY + 500, True),
        (STEADY - 900, True),
        (late(5 * MINUTE), True),
        (STEADY - 10 * SECOND, True),
        (STEADY - MAX_DELAY_MS - SECOND, False),
        (STEADY - 86_400_000, False),
    ],
    ids=["at once", "a little ahead", "a little late", "out of order", "10 s late", "31 s late", "a day late"],
)
def test_the_head_was_within_the_bounds(stamps_ms: Ints, is_trusted: bool) -> None:
    for time_ms, (highest, lowest) in list(zip(TIMES, bounds(stamps_ms), strict=True))[2:-2]:
        assert highest >= np.searchsorted(STEADY, time_ms - AHEAD_MS)
        assert (lowest != UNKNOWN) == is_trusted
        if is_trusted:
            assert lowest <= np.searchsorted(STEADY, time_ms + APPENDED_WITHIN_MS, side="right")


def test_bounds_are_close_where_records_are_appended_at_once() -> None:
    for time_ms, (highest, lowest) in list(zip(TIMES, bounds(STEADY), strict=True))[2:-1]:
        assert highest == np.searchsorted(STEADY, time_ms)
        assert lowest == highest + 1


@pytest.mark.parametrize("ahead_ms", [1_200, 5 * SECOND, 86_400_000])
def test_nothing_is_known_where_records_are_stamped_ahead(ahead_ms: int) -> None:
    assert set(bounds(STEADY + ahead_ms)) == {(UNKNOWN, UNKNOWN)}
    one = STEADY.copy()
    one[100] += ahead_ms + 10 * MINUTE
    assert set(bounds(one)) == {(UNKNOWN, UNKNOWN)}


def test_old_records_between_new_ones_are_not_taken_for_older_heads() -> None:
    """A record per 10 s, and 5,000 old ones that were appended between the last two."""
    stamps_ms = np.concatenate(
        [np.arange(NOW - 10 * MINUTE, NOW - 11 * SECOND, 10 * SECOND), np.full(5_000, NOW - MINUTE * 90)]
    )
    stamps_ms = np.append(stamps_ms, NOW - 2 * SECOND)
    first_old = stamps_ms.size - 5_001
    for time_ms, (highest, lowest) in list(zip(TIMES, bounds(stamps_ms), strict=True))[2:]:
        assert lowest <= first_old, "they may have been appended just now"
        assert highest >= np.searchsorted(stamps_ms[:first_old], time_ms)


def test_a_log_without_records_of_late_proves_nothing() -> None:
    idle = STEADY - 40 * SECOND
    assert {lowest for _, lowest in bounds(idle)} == {UNKNOWN}
    assert bounds(idle)[2][0] == idle.size
    assert {lowest for _, lowest in bounds(np.empty(0, np.int64))} == {UNKNOWN}


def test_nothing_is_known_where_a_log_was_cut_while_it_was_asked() -> None:
    answers = ask(STEADY)
    answers[5].offsets[0] = answers[4].offsets[0] + 1
    assert all((a[0], b[0]) == (UNKNOWN, UNKNOWN) for a, b in heads_by_record_time(answers, np.array([STEADY.size])))


def test_a_broker_that_does_not_answer_a_question_leaves_only_that_head_unknown() -> None:
    answers = ask(STEADY)
    answers[5].offsets[0] = answers[5].stamps_ms[0] = UNKNOWN
    found = [(int(a[0]), int(b[0])) for a, b in heads_by_record_time(answers, np.array([STEADY.size]))]
    assert found[5][0] == UNKNOWN
    assert found[4] == bounds(STEADY)[4]
    assert found[5][1] == bounds(STEADY)[6][1], "its lowest is that of the head before"

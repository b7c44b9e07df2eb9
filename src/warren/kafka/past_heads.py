"""Heads of the past, asked from the brokers by time: where each log ended then, by the timestamps of its records."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from warren.domain.arrays import Ints
from warren.domain.past_heads import AHEAD_MS, TimedAnswer, heads_by_record_time
from warren.kafka.admin import READ_UNCOMMITTED, Admin
from warren.kafka.samples import Topic
from warren.kafka.topics import OffsetQuery, PartitionLayout

_CHECKED_AHEAD_MS = (10 * AHEAD_MS, AHEAD_MS)
"""So far ahead of our clock there must be no record; the farther one is for brokers that take seconds to answer."""


@dataclass(frozen=True, slots=True)
class PastHeads:
    """The heads of all partitions of a cluster at some times, newest first: the highest and the lowest possible.

    UNKNOWN where no broker answered, or where the timestamps of records prove nothing.
    """

    topics: tuple[Topic, ...]
    times_ms: Sequence[int]
    heads: Sequence[Ints]
    lowest: Sequence[Ints]


def read_past_heads(
    admin: Admin, layout: PartitionLayout, heads: Ints, times_ms: Sequence[int], deadline: float
) -> PastHeads:
    """The heads at some times, newest first; without those for which there was no time before the deadline."""

    def ask(time_ms: int) -> TimedAnswer:
        asked_ms = _now_ms()
        offsets, stamps_ms = OffsetQuery(layout, time_ms).send_by_time(admin, READ_UNCOMMITTED, deadline)()
        return TimedAnswer(time_ms, asked_ms, _now_ms(), offsets, stamps_ms)

    answers = [ask(_now_ms() + ahead_ms) for ahead_ms in _CHECKED_AHEAD_MS]
    for time_ms in times_ms:
        if time.monotonic() >= deadline:
            break
        answers.append(ask(time_ms))
    return to_past_heads(layout.topics, answers, heads, len(_CHECKED_AHEAD_MS))


def to_past_heads(topics: tuple[Topic, ...], answers: Sequence[TimedAnswer], heads: Ints, checks: int = 0) -> PastHeads:
    """The heads by some answers, newest first; the first `checks` only show whether timestamps are ahead."""
    bounds = heads_by_record_time(answers, heads)[checks:]
    times_ms = [answer.time_ms for answer in answers[checks:]]
    return PastHeads(topics, times_ms, [highest for highest, _ in bounds], [lowest for _, lowest in bounds])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""Heads of the past by the timestamps of records, and how far they can be trusted.

A broker tells the first record that is stamped with a time or a later one. If records are appended in the order of
their timestamps and soon, the log ended there at that time. They are not always: a mirror is behind, an import or a
job that starts over writes records of days ago, several producers write out of order, and clocks differ.

What holds is this. If no record is stamped ahead of our clock, the log did not end later than at the record that was
told: that is the highest that the head can have been. And once that record was appended, the head was beyond it: that
gives the lowest. How late records are appended is not told, but no record can be later than it is old, so the newest
one shows how late they are at most now. Where they are out of order, it takes longer until one is stamped with a later
time than all before it, and that counts as well. A partition without a record of late shows nothing: a topic that
nobody writes to looks the same as one that records of long ago have just been imported to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warren.domain.arrays import Bools, Ints
from warren.domain.windows import UNKNOWN

NOTHING_SINCE = -2
"""The offset where there is no record from a time on."""

AHEAD_MS = 1_000
"""How far ahead of our clock timestamps may be."""
APPENDED_WITHIN_MS = 2_000
"""How long after a time its head is sure to be reached, where records are appended at once."""
MIN_DELAY_MS = 1_000
"""How late records may be appended even where the newest one is younger."""
MAX_DELAY_MS = 30_000
"""If records may be later, the timestamps of a partition prove nothing."""
LATELY_MS = 60_000
"""For how long the order of timestamps shows how late records are appended."""


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """The first record of each partition from a time on: its offset and its timestamp, and when that was asked.

    An offset is NOTHING_SINCE where there is no such record, UNKNOWN where no broker answered.
    """

    time_ms: int
    asked_ms: int
    received_ms: int
    offsets: Ints
    stamps_ms: Ints

    @property
    def is_found(self) -> Bools:
        """Which partitions have such a record."""
        return np.asarray(self.offsets >= 0)


def heads_by_record_time(answers: Sequence[TimedAnswer], heads: Ints) -> list[tuple[Ints, Ints]]:
    """For each answer, newest first, the highest and the lowest head of each partition; `heads` are those of now.

    The highest is of AHEAD_MS before the time of the answer, the lowest of APPENDED_WITHIN_MS after it. Both are
    UNKNOWN where timestamps contradict our clock or each other, the lowest also where they prove nothing.
    """
    highest = [np.where(answer.offsets == NOTHING_SINCE, heads, answer.offsets) for answer in answers]
    is_wrong, delay_ms = _is_ahead(answers, heads.size) | _is_out_of_order(highest), _delays(answers, heads.size)
    bounds = []
    for index, answer in enumerate(answers):
        lowest = np.full(heads.size, UNKNOWN, dtype=np.int64)
        pending = np.flatnonzero(~is_wrong & (delay_ms <= MAX_DELAY_MS))
        for older in answers[index:]:
            appended_ms = older.stamps_ms[pending] + delay_ms[pending]
            is_reached = older.is_found[pending] & (appended_ms <= answer.time_ms + APPENDED_WITHIN_MS)
            lowest[pending[is_reached]] = older.offsets[pending[is_reached]] + 1
            pending = pending[~is_reached]
        bounds.append((np.where(is_wrong, UNKNOWN, highest[index]), lowest))
    return bounds


def _is_ahead(answers: Sequence[TimedAnswer], size: int) -> Bools:
    """Whether a record was stamped with a time that had not come, by more than clocks may differ."""
    is_ahead = np.zeros(size, dtype=np.bool_)
    for answer in answers:
        earliest_ms = max(answer.received_ms + 1, answer.asked_ms + AHEAD_MS)
        is_ahead |= answer.is_found & (answer.stamps_ms >= earliest_ms)
    return is_ahead


def _is_out_of_order(heads: Sequence[Ints]) -> Bools:
    """Whether an older head is beyond a newer one: the log is another one, or was cut, while it was asked."""
    is_out_of_order = np.zeros(heads[0].size if heads else 0, dtype=np.bool_)
    for newer, older in pairwise(heads):
        is_out_of_order |= (newer != UNKNOWN) & (older != UNKNOWN) & (older > newer)
    return is_out_of_order


def _delays(answers: Sequence[TimedAnswer], size: int) -> Ints:
    """How late the records of each partition are appended at most, by the newest one and the order of those of late."""
    age_ms = np.full(size, np.iinfo(np.int64).max // 4, dtype=np.int64)
    wait_ms = np.full(size, MIN_DELAY_MS, dtype=np.int64)
    for answer in answers:
        age_ms = np.where(answer.is_found, np.minimum(age_ms, answer.received_ms - answer.stamps_ms), age_ms)
        if answer.time_ms >= answer.asked_ms - LATELY_MS:
            own_wait_ms = np.where(answer.is_found, answer.stamps_ms - answer.time_ms, 0)
            wait_ms = np.maximum(wait_ms, own_wait_ms)
    return np.maximum(age_ms, wait_ms)

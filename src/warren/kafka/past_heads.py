"""Heads of the past, asked from the brokers by time: where each log ended then, by the timestamps of its records."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warren.domain.arrays import Ints
from warren.kafka.admin import NOTHING_SINCE, READ_UNCOMMITTED, Admin
from warren.kafka.samples import Topic
from warren.kafka.topics import OffsetQuery, PartitionLayout

AGES_S = (
    *range(10, 60, 10),
    *range(60, 300, 30),
    *range(300, 1_200, 60),
    *(1_200, 1_800, 2_700, 3_600, 5_400, 7_200, 10_800, 14_400, 21_600),
)
"""How old the heads are that are asked for: close together for as long as windows reach back, then fewer."""


@dataclass(frozen=True, slots=True)
class PastHeads:
    """The heads of all partitions of a cluster at some times, newest first; UNKNOWN where no broker answered."""

    topics: tuple[Topic, ...]
    times_ms: Sequence[int]
    heads: Sequence[Ints]


def read_past_heads(admin: Admin, layout: PartitionLayout, heads: Ints, now_ms: int, deadline: float) -> PastHeads:
    """The heads at all ages; without those for which there was no time before the deadline.

    Where there is no record from a time on, the head was what it is now.
    """
    times_ms: list[int] = []
    past: list[Ints] = []
    for age_s in AGES_S:
        if time.monotonic() >= deadline:
            break
        query = OffsetQuery(layout, now_ms - age_s * 1000)
        offsets = query.send(admin, READ_UNCOMMITTED, deadline)()
        times_ms.append(now_ms - age_s * 1000)
        past.append(np.where(offsets == NOTHING_SINCE, heads, offsets))
    return PastHeads(layout.topics, times_ms, past)

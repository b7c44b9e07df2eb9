"""For how long a group is known to have committed nothing.

A group commits to one partition of the offsets topic. While that partition has no leader that answers, or a broker in
its ISR does not answer, the group cannot commit, or its commits cannot be read. That time does not count as silence of
the group, nor does the time until its clients have reconnected.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.arrays import Codes, Ints

RECONNECT_MS = 60_000
"""How long groups have to commit again after their offsets partition is back; then the outage counts as silence."""


@dataclass(frozen=True, slots=True)
class Outage:
    """When one of the `partitions` of an offsets topic could not be read; `to_ms` is None while it still cannot."""

    partition: int
    partitions: int
    from_ms: int
    to_ms: int | None


def observed_until(now_ms: int, last_ms: Ints, groups: pa.StringArray, group: Codes, outages: Sequence[Outage]) -> Ints:
    """For each row the time up to which its silence counts: now, or the start of an outage without a commit since."""
    until = np.full(last_ms.size, now_ms, dtype=np.int64)
    for partitions in {outage.partitions for outage in outages}:
        partition = offsets_partition_of(groups, partitions)[group]
        for outage in (outage for outage in outages if outage.partitions == partitions):
            rows = np.flatnonzero(partition == outage.partition)
            is_silent = last_ms[rows] < (outage.to_ms or now_ms)
            before_ms = np.maximum(last_ms[rows], outage.from_ms)
            until[rows] = np.where(is_silent, np.minimum(until[rows], before_ms), until[rows])
    return until


def offsets_partition_of(groups: pa.StringArray, partitions: int) -> Ints:
    """Which partition of the offsets topic each group commits to: by Java's hash of its name, sign bit cleared."""
    text: str = "".join(groups.to_pylist())
    units = np.frombuffer(text.encode("utf-16-le"), dtype=np.uint16)
    # Java counts a character beyond the basic plane as two.
    lengths = pc.add(pc.utf8_length(groups), pc.count_substring_regex(groups, "[\U00010000-\U0010ffff]"))
    ends = np.cumsum(np.asarray(lengths), dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    hashed = np.zeros(len(groups), dtype=np.uint32)
    for position in range(int((ends - starts).max(initial=0))):
        longer = np.flatnonzero(ends - starts > position)
        hashed[longer] = hashed[longer] * np.uint32(31) + units[starts[longer] + position]
    return (hashed & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions

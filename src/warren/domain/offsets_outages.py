"""How long a group has been heard to say nothing.

A group commits into one partition of the offsets topic, its home. While that partition has no leader, or none that can
be asked, or cannot move on because a broker in sync with it is gone, the group cannot commit, or we cannot hear it:
that time is not its silence. Nor is the time until its clients have found their way back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]

RETURN_MS = 60_000
"""How long after its home is back a group is given to be heard again; then the time away counts like any other."""


@dataclass(frozen=True, slots=True)
class Outage:
    """When one of the `partitions` of an offsets topic could not be heard; `to_ms` is None while it still cannot."""

    home: int
    partitions: int
    from_ms: int
    to_ms: int | None


def observed_until(
    now_ms: int, last_ms: Ints, groups: pa.StringArray, group: NDArray[np.int32], away: Sequence[Outage]
) -> Ints:
    """For each row the moment up to which its silence counts: now, or when its home went if it is unheard since."""
    until = np.full(last_ms.size, now_ms, dtype=np.int64)
    for partitions in {one.partitions for one in away}:
        home = offsets_partition_of(groups, partitions)[group]
        for one in (one for one in away if one.partitions == partitions):
            rows = np.flatnonzero(home == one.home)
            is_unheard = last_ms[rows] < (one.to_ms or now_ms)
            before_ms = np.maximum(last_ms[rows], one.from_ms)
            until[rows] = np.where(is_unheard, np.minimum(until[rows], before_ms), until[rows])
    return until


def offsets_partition_of(groups: pa.StringArray, partitions: int) -> Ints:
    """Which partition of the offsets topic each group commits into: by Java's hash of its name, sign bit cleared."""
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

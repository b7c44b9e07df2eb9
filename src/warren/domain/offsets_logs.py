"""The offsets partitions of a cluster: when the commits in each were made, and for how long a group has been silent.

A group commits to one offsets partition. What cannot be read of that partition is not silence of the group: not while
the partition has no leader that answers, not while an open transaction holds it back, not while a backlog is read. Then
the group is unknown. After an outage of brokers its clients also need time to reconnect.

A group that commits to ZooKeeper has a log of the same kind: all znodes of its consumer section, in the order of
ZooKeeper's transactions.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warren.domain.arrays import Codes, Ints
from warren.domain.clock_skew import to_our_clock
from warren.domain.windows import NEVER, UNKNOWN

RECONNECT_MS = 60_000
"""How long groups have to commit again after their offsets partition is back; then the outage counts as silence."""

UNSEEN_MS = 60_000
"""How far reading may be behind the end of an offsets partition before its groups are unknown."""

NO_LOG = -1
"""The offsets partition of a group whose commits have not been read."""

_MAX_PARTITIONS = 2**20

FIRST_ZOOKEEPER_LOG = 2**30
"""From here on the numbers are of consumer sections that commit to ZooKeeper: one log each."""


def offsets_log_id(topic: int, partition: int = 0) -> int:
    """The number of an offsets partition within its cluster; `topic` counts the cluster's offsets topics."""
    return topic * _MAX_PARTITIONS + partition


def zookeeper_log_id(section: str) -> int:
    """The number of a consumer section that commits to ZooKeeper, whatever other sections there are."""
    return FIRST_ZOOKEEPER_LOG + zlib.crc32(section.encode()) % FIRST_ZOOKEEPER_LOG


@dataclass(frozen=True, slots=True)
class OffsetsLog:
    """An offsets partition in one cycle; all times are of our clock.

    The commits that this cycle reads appeared between `read_from_ms` and `read_to_ms`. After it, all commits that were
    made before `seen_until_ms` have been read. `unknown_since_ms` is set if that is too long ago to judge. An outage of
    brokers lasted from `away_from_ms` to `away_to_ms`, or lasts still. `is_another_log`: orders start over.
    """

    id: int
    read_from_ms: int
    read_to_ms: int
    seen_until_ms: int
    skew_ms: int = 0
    skew_error_ms: int = 0
    unknown_since_ms: int | None = None
    away_from_ms: int | None = None
    away_to_ms: int | None = None
    is_another_log: bool = False


class OffsetsLogs:
    """The offsets partitions of one cluster, looked up for many rows at once."""

    def __init__(self, logs: Sequence[OffsetsLog]) -> None:
        self._logs = sorted(logs, key=lambda log: log.id)
        self._ids = np.array([log.id for log in self._logs], dtype=np.int64)

    def _take(self, name: str, ids: Codes, missing: int) -> Ints:
        """One number of the log of each row; `missing` where it is None and for rows whose log is not known."""
        values = [getattr(log, name) for log in self._logs]
        known = np.array([missing if value is None else value for value in [*values, None]], dtype=np.int64)
        index = np.searchsorted(self._ids, ids)
        is_known = np.append(self._ids, NO_LOG)[index] == ids
        return known[np.where(is_known, index, -1)]

    def commit_times(self, ids: Codes, times_ms: Ints) -> tuple[Ints, Ints]:
        """The times of commits by our clock, and how far off each may be."""
        first, last = self._take("read_from_ms", ids, NEVER // 2), self._take("read_to_ms", ids, -NEVER // 2)
        skew, error = self._take("skew_ms", ids, 0), self._take("skew_error_ms", ids, 0)
        return to_our_clock(times_ms, skew, error, first, last)

    def unknown_since(self, ids: Codes) -> Ints:
        """Since when the groups that commit to each log are unknown; UNKNOWN if they are not."""
        return self._take("unknown_since_ms", ids, UNKNOWN)

    def observed_until(self, ids: Codes, last_ms: Ints, now_ms: int) -> Ints:
        """The time up to which the silence of each row counts; `last_ms` are the times of their last commits."""
        until = np.minimum(self._take("seen_until_ms", ids, now_ms), now_ms)
        away_from = self._take("away_from_ms", ids, now_ms)
        away_to = self._take("away_to_ms", ids, now_ms)
        is_silent = (away_from < now_ms) & (last_ms < away_to)
        return np.where(is_silent, np.minimum(until, np.maximum(last_ms, away_from)), until)

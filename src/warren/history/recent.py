"""The last hour of every group, in memory: what a list of groups shows beside the numbers of now."""

import logging
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.arrays import Floats, Ints, SmallInts
from warren.domain.windows import UNKNOWN
from warren.history.read import groups_at, moments_since
from warren.snapshot.reader import group_keys

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000
MAX_MOMENTS = 64
SPARK_POINTS = 24
SPARK_LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""A sparkline is a text of one level per point, with - where nothing is known."""
GROWTH_MS = 300_000
"""Over how long growth is measured, if the history is that long."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Moments of the last hour, oldest first, each with the lag and status of every group of one index."""

    keys: pa.StringArray
    times_ms: Ints
    lag: Ints
    """By moment and group; UNKNOWN where a group was not there."""
    status: SmallInts

    def growth(self, lag_now: Ints, now_ms: int) -> Floats:
        """The growth of each group's lag in messages per second; NaN where its past is not known."""
        grown = np.full(lag_now.size, np.nan)
        # Since the oldest moment within reach; for a group that was not there then, since it was.
        for moment in np.flatnonzero((self.times_ms >= now_ms - GROWTH_MS) & (self.times_ms < now_ms)):
            is_first = np.isnan(grown) & (self.lag[moment] != UNKNOWN) & (lag_now != UNKNOWN)
            rise = lag_now[is_first] - self.lag[moment][is_first]
            grown[is_first] = rise * 1000.0 / (now_ms - self.times_ms[moment])
        return grown

    def sparklines(self, lag_now: Ints, now_ms: int) -> pa.StringArray:
        """The lag of each group over the hour, as levels between 0 and its own maximum."""
        if not self.times_ms.size:
            return pa.array([""] * lag_now.size, pa.string())
        start_ms = int(self.times_ms[0])
        wanted = np.linspace(start_ms, max(now_ms, start_ms), SPARK_POINTS)
        moment = np.searchsorted(self.times_ms, wanted, side="right") - 1
        lag = self.lag[moment]
        lag[-1] = lag_now
        highest = np.maximum(lag.max(axis=0), 1)
        level = np.where(lag == UNKNOWN, len(SPARK_LEVELS), lag * (len(SPARK_LEVELS) - 1) // highest)
        letters = np.frombuffer((SPARK_LEVELS + "-").encode(), np.uint8)[level.T]
        offsets = np.arange(lag_now.size + 1, dtype=np.int32) * SPARK_POINTS
        return pa.StringArray.from_buffers(lag_now.size, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))

    def status_before(self, since_ms: Ints) -> SmallInts:
        """The status of each group before the one that it has had since a given time; 0 where that is not known."""
        moment = np.searchsorted(self.times_ms, since_ms, side="left") - 1
        status = self.status[np.maximum(moment, 0), np.arange(since_ms.size)] if self.times_ms.size else moment
        return np.where(moment < 0, 0, status).astype(np.int8)


def nothing_recent(keys: pa.StringArray, times_ms: Ints | None = None) -> Recent:
    """A past that is not known, of no moments or of these."""
    times_ms = np.zeros(0, np.int64) if times_ms is None else times_ms
    shape = times_ms.size, len(keys)
    return Recent(keys, times_ms, np.full(shape, UNKNOWN, np.int64), np.zeros(shape, np.int8))


@dataclass(slots=True)
class RecentReader:
    """Keeps the last hour up to date by reading only what is new in the history."""

    data_dir: Path
    _seen_ms: int = 0
    _recent: Recent = field(default_factory=lambda: nothing_recent(pa.array([], pa.string())))

    def advance(self, keys: pa.StringArray, now_ms: int) -> Recent:
        """The recent past of these groups, in their order."""
        try:
            self._recent = self._advanced(keys, now_ms)
        except (OSError, pa.ArrowException) as error:
            log.debug("cannot read the history, trying again with the next snapshot: %s", error)
            self._recent = _aligned(self._recent, keys)
        return self._recent

    def _advanced(self, keys: pa.StringArray, now_ms: int) -> Recent:
        recent = _aligned(self._recent, keys)
        since_ms = max(now_ms - HOUR_MS, self._seen_ms + 1)
        times = moments_since(self.data_dir, since_ms)
        # A clock that was ahead once must not end the hour.
        times = _spread(times[times <= now_ms], MAX_MOMENTS)
        is_kept = recent.times_ms >= now_ms - HOUR_MS
        if not times.size and is_kept.all():
            return recent
        table = groups_at(self.data_dir, times)
        column = _positions(group_keys(table["cluster"], table["group"]), keys)
        is_wanted = column >= 0
        cells = np.searchsorted(times, table["time_ms"].to_numpy())[is_wanted], column[is_wanted]
        new = nothing_recent(keys, times)
        new.lag[cells] = table["totallag"].to_numpy()[is_wanted]
        new.status[cells] = table["status"].to_numpy()[is_wanted]
        self._seen_ms = int(times[-1]) if times.size else self._seen_ms
        merged = Recent(
            keys,
            np.concatenate([recent.times_ms[is_kept], times]),
            np.concatenate([recent.lag[is_kept], new.lag]),
            np.concatenate([recent.status[is_kept], new.status]),
        )
        _fill_forward(merged)
        if merged.times_ms.size <= 2 * MAX_MOMENTS:
            return merged
        is_kept = np.isin(merged.times_ms, _spread(merged.times_ms, MAX_MOMENTS))
        return Recent(keys, merged.times_ms[is_kept], merged.lag[is_kept], merged.status[is_kept])


def _aligned(recent: Recent, keys: pa.StringArray) -> Recent:
    """The same past for other groups, or in another order; groups that are gone are dropped."""
    if recent.keys.equals(keys):
        return recent
    column = _positions(keys, recent.keys)
    is_known = column >= 0
    aligned = nothing_recent(keys, recent.times_ms)
    aligned.lag[:, is_known] = recent.lag[:, column[is_known]]
    aligned.status[:, is_known] = recent.status[:, column[is_known]]
    return aligned


def _positions(wanted: pa.Array, keys: pa.Array) -> Ints:
    """Where each wanted key is among the keys, -1 for nowhere."""
    return np.asarray(pc.fill_null(pc.index_in(wanted, keys), -1), dtype=np.int64)


def _fill_forward(merged: Recent) -> None:
    """Fill moments that were kept for the change of another group with the values of the moment before."""
    for moment in range(1, merged.times_ms.size):
        is_missing = merged.status[moment] == 0
        merged.lag[moment, is_missing] = merged.lag[moment - 1, is_missing]
        merged.status[moment, is_missing] = merged.status[moment - 1, is_missing]


def _spread(times_ms: Ints, maximum: int) -> Ints:
    """At most this many of the times, evenly spread, the last one included."""
    if times_ms.size <= maximum:
        return times_ms
    wanted = np.linspace(times_ms[0], times_ms[-1], maximum)
    return times_ms[np.unique(np.searchsorted(times_ms, wanted))]

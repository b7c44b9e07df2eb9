"""The last hour of every group, in memory: what a list of groups shows beside the numbers of now."""

import logging
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.windows import UNKNOWN
from warren.history.read import groups_at, moments_since
from warren.snapshot.reader import group_keys

log = logging.getLogger(__name__)

Ints = NDArray[np.int64]

HOUR_MS = 3_600_000
MOMENTS_MOST = 64
SPARK_POINTS = 24
SPARK_LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""A sparkline is a text: a level a point, - where nothing is known."""
GROWTH_MS = 300_000
"""Over how long growth is measured, if the history is that long."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Moments of the last hour, oldest first, each with the lag and status of every group of one index."""

    keys: pa.StringArray
    times_ms: Ints
    lag: NDArray[np.int64]
    """By moment and group; UNKNOWN where a group was not there."""
    status: NDArray[np.int8]

    def growth(self, lag_now: Ints, now_ms: int) -> NDArray[np.float64]:
        """By how much each group's lag grows, in messages a second; NaN where its past is not known."""
        grown = np.full(lag_now.size, np.nan)
        # From the oldest moment within reach on; a group that was not there then is taken from when it was.
        for moment in np.flatnonzero((self.times_ms >= now_ms - GROWTH_MS) & (self.times_ms < now_ms)):
            is_first = np.isnan(grown) & (self.lag[moment] != UNKNOWN) & (lag_now != UNKNOWN)
            rise = lag_now[is_first] - self.lag[moment][is_first]
            grown[is_first] = rise * 1000.0 / (now_ms - self.times_ms[moment])
        return grown

    def sparklines(self, lag_now: Ints, now_ms: int) -> pa.StringArray:
        """The way of each group's lag up to now, as levels between 0 and its own highest."""
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

    def status_before(self, since_ms: Ints) -> NDArray[np.int8]:
        """The status each group had before the one it has since a moment; 0 where that is not known."""
        moment = np.searchsorted(self.times_ms, since_ms, side="left") - 1
        found = self.status[np.maximum(moment, 0), np.arange(since_ms.size)] if self.times_ms.size else moment
        return np.where(moment < 0, 0, found).astype(np.int8)


def nothing_recent(keys: pa.StringArray) -> Recent:
    """No past at all."""
    return Recent(keys, np.zeros(0, np.int64), np.zeros((0, len(keys)), np.int64), np.zeros((0, len(keys)), np.int8))


@dataclass(slots=True)
class RecentReader:
    """Reads what the history has got since it was last asked."""

    data_dir: Path
    _seen_ms: int = 0
    _held: Recent = field(default_factory=lambda: nothing_recent(pa.array([], pa.string())))

    def advance(self, keys: pa.StringArray, now_ms: int) -> Recent:
        """The recent past of these groups, in their order."""
        try:
            self._held = self._advanced(keys, now_ms)
        except (OSError, pa.ArrowException) as error:
            log.debug("history cannot be read just now: %s", error)
            self._held = _aligned(self._held, keys)
        return self._held

    def _advanced(self, keys: pa.StringArray, now_ms: int) -> Recent:
        held = _aligned(self._held, keys)
        since_ms = max(now_ms - HOUR_MS, self._seen_ms + 1)
        times = moments_since(self.data_dir, since_ms)
        # A clock that was ahead once must not end the hour.
        times = _spread(times[times <= now_ms], MOMENTS_MOST)
        is_kept = held.times_ms >= now_ms - HOUR_MS
        if not times.size and is_kept.all():
            return held
        table = groups_at(self.data_dir, times)
        time_ms = table["time_ms"].to_numpy()
        place = pc.fill_null(pc.index_in(group_keys(table["cluster"], table["group"]), keys), -1)
        place = place.to_numpy().astype(np.int64)
        moment = np.searchsorted(times, time_ms)
        is_wanted = place >= 0
        lag = np.full((times.size, len(keys)), UNKNOWN, dtype=np.int64)
        status = np.zeros((times.size, len(keys)), dtype=np.int8)
        lag[moment[is_wanted], place[is_wanted]] = table["totallag"].to_numpy()[is_wanted]
        status[moment[is_wanted], place[is_wanted]] = table["status"].to_numpy()[is_wanted]
        self._seen_ms = int(times[-1]) if times.size else self._seen_ms
        whole = Recent(
            keys,
            np.concatenate([held.times_ms[is_kept], times]),
            np.concatenate([held.lag[is_kept], lag]),
            np.concatenate([held.status[is_kept], status]),
        )
        _fill_forward(whole)
        if whole.times_ms.size <= 2 * MOMENTS_MOST:
            return whole
        fewer = np.isin(whole.times_ms, _spread(whole.times_ms, MOMENTS_MOST))
        return Recent(keys, whole.times_ms[fewer], whole.lag[fewer], whole.status[fewer])


def _aligned(held: Recent, keys: pa.StringArray) -> Recent:
    """The same past in another order of groups; those that are gone are forgotten."""
    if held.keys.equals(keys):
        return held
    place = pc.fill_null(pc.index_in(keys, held.keys), -1).to_numpy().astype(np.int64)
    is_known = place >= 0
    lag = np.full((held.times_ms.size, len(keys)), UNKNOWN, dtype=np.int64)
    status = np.zeros((held.times_ms.size, len(keys)), dtype=np.int8)
    lag[:, is_known] = held.lag[:, place[is_known]]
    status[:, is_known] = held.status[:, place[is_known]]
    return Recent(keys, held.times_ms, lag, status)


def _fill_forward(whole: Recent) -> None:
    """Where a moment has nothing of a group, as it was kept for another's change, the one before it counts on."""
    for moment in range(1, whole.times_ms.size):
        is_missing = whole.status[moment] == 0
        whole.lag[moment, is_missing] = whole.lag[moment - 1, is_missing]
        whole.status[moment, is_missing] = whole.status[moment - 1, is_missing]


def _spread(times_ms: Ints, most: int) -> Ints:
    """So many of these times at most, evenly over the time they cover, the last one among them."""
    if times_ms.size <= most:
        return times_ms
    wanted = np.linspace(times_ms[0], times_ms[-1], most)
    return times_ms[np.unique(np.searchsorted(times_ms, wanted))]

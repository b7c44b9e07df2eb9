"""Head history as a task sees it: samples mapped from disk, and the rows of its partitions in each of them."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.lag import lag_bounds
from warren.domain.windows import UNKNOWN
from warren.pipeline.plan import CyclePlan
from warren.pipeline.state import State
from warren.snapshot.manifest import HeadSample
from warren.snapshot.store import Store

Ints = NDArray[np.int64]
LOOK_BACK = 5
"""How many samples back a head is looked for when the newest has none: without a leader nothing is produced either."""


class HeadHistory:
    """Answers what the head of each row was, by sample."""

    def __init__(self, plan: CyclePlan, state: State) -> None:
        self._store = Store(Path(plan.root))
        self._samples = plan.heads
        self._clusters = [c.name for c in plan.clusters]
        self._state = state
        self._rows: dict[str, Ints] = {}
        pair = state.rows.cluster.astype(np.int64) * (len(state.topics.values) + 1) + state.rows.topic
        self._pairs, self._pair_of_row = np.unique(pair, return_inverse=True)

    def times(self, cluster: str) -> tuple[list[int], Ints, Ints]:
        """Which samples hold this cluster, and when each was begun and ended, oldest first."""
        held = [i for i, sample in enumerate(self._samples) if cluster in sample.taken_ms]
        taken = np.array([self._samples[i].taken_ms[cluster] for i in held], dtype=np.int64).reshape(-1, 2)
        return held, taken[:, 0], taken[:, 1]

    def at(self, sample: int, rows: Ints, column: str = "head") -> Ints:
        """A sample's heads (or log starts) of some rows; UNKNOWN where it has none."""
        chosen = self._samples[sample]
        place = self._places(chosen)[rows]
        values = _column(self._store.path(chosen.heads), column)
        found = values[np.maximum(place, 0)] if values.size else np.full(place.size, UNKNOWN, dtype=np.int64)
        return np.where(place >= 0, found, UNKNOWN)

    def _places(self, sample: HeadSample) -> Ints:
        """Where each row of the state stands in the samples of one layout; -1 where it does not."""
        path = sample.layout.path
        if path not in self._rows:
            first, partitions, _ = self._find_topics(sample)
            partition = self._state.rows.partition
            first, partitions = first[self._pair_of_row], partitions[self._pair_of_row]
            is_there = (first >= 0) & (partition < partitions) & self._is_same_topic(sample)[self._pair_of_row]
            self._rows[path] = np.where(is_there, first + partition, -1)
        return self._rows[path]

    def _find_topics(self, sample: HeadSample) -> tuple[Ints, Ints, pa.StringArray]:
        layout = _layout(self._store.path(sample.layout))
        wide = len(self._state.topics.values) + 1
        topics = self._state.topics.values.take(pa.array(self._pairs % wide))
        first = np.full(self._pairs.size, -1, dtype=np.int64)
        partitions = np.zeros(self._pairs.size, dtype=np.int64)
        ids = np.full(self._pairs.size, "", dtype=object)
        for number in np.unique(self._pairs // wide):
            own = layout.filter(pc.equal(layout["cluster"], self._clusters[int(number)]))
            mine = np.flatnonzero(self._pairs // wide == number)
            at = pc.index_in(topics.take(pa.array(mine)), value_set=own["topic"].combine_chunks())
            is_found = np.asarray(at.is_valid())
            place = pa.array(at.drop_null().to_numpy())
            first[mine[is_found]] = own["first_row"].take(place).to_numpy()
            partitions[mine[is_found]] = own["partitions"].take(place).to_numpy()
            ids[mine[is_found]] = own["topic_id"].take(place).to_numpy(zero_copy_only=False)
        return first, partitions, ids

    def _is_same_topic(self, sample: HeadSample) -> NDArray[np.bool_]:
        """A topic that was deleted and made again has another id: its old heads say nothing about the new one."""
        newest = self._samples[-1]
        if sample.layout.path == newest.layout.path:
            return np.ones(self._pairs.size, dtype=np.bool_)
        now, then = self._find_topics(newest)[2], self._find_topics(sample)[2]
        same: NDArray[np.bool_] = (now == then) | (now == "")
        return same

    def newest(self, rows: Ints, column: str = "head") -> Ints:
        """The last known head (or log start) of each row."""
        known = np.full(rows.size, UNKNOWN, dtype=np.int64)
        for sample in range(len(self._samples) - 1, max(len(self._samples) - 1 - LOOK_BACK, -1), -1):
            missing = np.flatnonzero(known == UNKNOWN)
            if missing.size == 0:
                break
            known[missing] = self.at(sample, rows[missing], column)
        return known

    def recent(self, rows: Ints, cluster: str, since_ms: int) -> tuple[Ints, NDArray[np.bool_]]:
        """The smallest head of each row since a moment, and whether its head was known back then already.

        Heads only grow, so the smallest is the first one known, counted from the last sample before that moment: where
        samples are missing (a cluster or Warren was away) the head may still have been what it was then.
        """
        held, begun, _ = self.times(cluster)
        first = max(int(np.searchsorted(begun, since_ms, side="right")) - 1, 0)
        reaches_back = bool(begun.size and begun[0] <= since_ms)
        is_whole = np.zeros(rows.size, dtype=np.bool_)
        smallest = np.full(rows.size, UNKNOWN, dtype=np.int64)
        for sample in held[first:]:
            missing = np.flatnonzero(smallest == UNKNOWN)
            if missing.size == 0:
                break
            smallest[missing] = self.at(sample, rows[missing])
            if sample == held[first]:
                is_whole = (smallest != UNKNOWN) & reaches_back
        newest = self.newest(rows)
        smallest = np.where((smallest == UNKNOWN) | (newest == UNKNOWN), smallest, np.minimum(smallest, newest))
        return smallest, is_whole

    def lags(self, rows: Ints, cluster: str, offset: Ints, time_ms: Ints) -> tuple[Ints, Ints, Ints]:
        """Lag and its bounds of commits of one cluster, their times already on our clock."""
        held, begun, ended = self.times(cluster)
        if not held:
            unknown = np.full(rows.size, UNKNOWN, dtype=np.int64)
            return unknown, unknown.copy(), unknown.copy()
        # Commits were read up to an end that was fixed before the newest sample, so none is younger than it.
        time_ms = np.minimum(time_ms, begun[-1])
        before = np.searchsorted(ended, time_ms, side="right") - 1
        after = np.searchsorted(begun, time_ms, side="left")
        before_head = np.full(rows.size, UNKNOWN, dtype=np.int64)
        after_head = np.full(rows.size, UNKNOWN, dtype=np.int64)
        for number, into in ((before, before_head), (after, after_head)):
            for sample in np.unique(number[number >= 0]):
                chosen = np.flatnonzero(number == sample)
                into[chosen] = self.at(held[int(sample)], rows[chosen])
        before_ms = np.where(before >= 0, ended[np.maximum(before, 0)], 0)
        return lag_bounds(offset, time_ms, before_ms, before_head, begun[after], after_head)


@lru_cache(maxsize=16)
def _layout(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


@lru_cache(maxsize=64)
def _column(path: Path, column: str) -> Ints:
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    whole = table[column].combine_chunks()
    return whole.to_numpy() if len(whole) else np.zeros(0, dtype=np.int64)

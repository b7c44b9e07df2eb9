"""Head history as the steps of a bucket use it: the head of each row in the samples."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Bools, Codes, Floats, Ints, to_array, to_ints
from warren.domain.lag import lag_bounds
from warren.domain.past_heads import AHEAD_MS
from warren.domain.time_lag import TimeLagMethod, UnreadSince, passing_time, unknown_since
from warren.domain.windows import UNKNOWN
from warren.pipeline.head_samples import HeadHistory, MappedSample

MAX_SAMPLES_BACK = 5
"""How many samples back a head is searched when the newest has none; rows remember their head for longer."""

MAX_PAST_GAP_MS = 60_000
"""How far apart samples by record time may be. No sample is missing between them: they were asked for no more often."""

_MIN_LOG_START_SPAN_MS = 600_000
"""How much history it takes to tell how fast log starts move: they move a segment at a time."""

_SCANNED_SAMPLES = 3
"""How many of the newest samples are scanned for a passing before the rest is searched: most lags are short."""


class RowHeads:
    """The heads of rows, by sample; rows have a cluster (an index into the plan's), a topic (a code), a partition."""

    def __init__(
        self, history: HeadHistory, cluster: Codes, topic: Codes, partition: Codes, topics: pa.StringArray
    ) -> None:
        self._samples = history.samples
        self._clusters = history.clusters
        self._topics = topics
        self._partition = partition
        self._index_by_layout: dict[str, Ints] = {}
        self._times: dict[str, tuple[list[int], Ints, Ints]] = {}
        self._is_by_record_time = np.array([sample.by_record_time for sample in history.samples], dtype=np.bool_)
        pair = cluster.astype(np.int64) * (len(topics) + 1) + topic
        self._pairs, self._pair_of_row = np.unique(pair, return_inverse=True)

    def times(self, cluster: str) -> tuple[list[int], Ints, Ints]:
        """Which samples cover this cluster, and when each started and ended, oldest first."""
        if cluster not in self._times:
            covering = [index for index, sample in enumerate(self._samples) if cluster in sample.taken_ms]
            taken = np.array([self._samples[i].taken_ms[cluster] for i in covering], dtype=np.int64).reshape(-1, 2)
            self._times[cluster] = covering, taken[:, 0], taken[:, 1]
        return self._times[cluster]

    def at(self, sample: int, rows: Ints, column: str = "head") -> Ints:
        """The heads (or lowest heads, or log starts) of some rows in one sample; UNKNOWN where it has none.

        Only samples by record time tell the lowest possible head from the highest.
        """
        index, table = self._index(self._samples[sample])[rows], self._samples[sample].heads
        values = to_ints(table[column if column in table.column_names else "head"])
        if not values.size:
            return np.full(index.size, UNKNOWN, dtype=np.int64)
        return np.where(index >= 0, values[np.maximum(index, 0)], UNKNOWN)

    def _index(self, sample: MappedSample) -> Ints:
        """Where each row is in the samples of one layout; -1 where it is not."""
        path = sample.layout_path
        if path not in self._index_by_layout:
            first, partitions, _ = self._find_topics(sample)
            first, partitions = first[self._pair_of_row], partitions[self._pair_of_row]
            is_covered = (first >= 0) & (self._partition < partitions) & self._is_same_topic(sample)[self._pair_of_row]
            self._index_by_layout[path] = np.where(is_covered, first + self._partition, -1)
        return self._index_by_layout[path]

    def _find_topics(self, sample: MappedSample) -> tuple[Ints, Ints, NDArray[np.object_]]:
        """The first row, the number of partitions and the id of each topic in a layout."""
        layout, width = sample.layout, len(self._topics) + 1
        clusters = pa.array(self._clusters, pa.string()).take(pa.array(self._pairs // width))
        wanted = _qualified(clusters, self._topics.take(pa.array(self._pairs % width)))
        found = pc.index_in(wanted, value_set=_qualified(to_array(layout["cluster"]), to_array(layout["topic"])))
        pairs, index = np.flatnonzero(np.asarray(found.is_valid())), pa.array(found.drop_null().to_numpy())
        first = np.full(self._pairs.size, -1, dtype=np.int64)
        partitions = np.zeros(self._pairs.size, dtype=np.int64)
        ids = np.full(self._pairs.size, "", dtype=object)
        first[pairs] = layout["first_row"].take(index).to_numpy()
        partitions[pairs] = layout["partitions"].take(index).to_numpy()
        ids[pairs] = layout["topic_id"].take(index).to_numpy(zero_copy_only=False)
        return first, partitions, ids

    def _is_same_topic(self, sample: MappedSample) -> Bools:
        """A topic that was deleted and created again has another id: its old heads say nothing about the new one."""
        newest = self._samples[-1]
        if sample.layout_path == newest.layout_path:
            return np.ones(self._pairs.size, dtype=np.bool_)
        now, then = self._find_topics(newest)[2], self._find_topics(sample)[2]
        return np.asarray((now == then) | (now == ""))

    def newest(self, rows: Ints, column: str = "head") -> tuple[Ints, Ints]:
        """The head (or log start) of each row in the newest samples, and when it was sampled; UNKNOWN without one."""
        newest_first = range(len(self._samples) - 1, -1, -1)
        return self._first_known(newest_first[:MAX_SAMPLES_BACK], rows, column)

    def _first_known(self, samples: Sequence[int], rows: Ints, column: str = "head") -> tuple[Ints, Ints]:
        """The head (or log start) of each row in the first of some samples that has it, and the time of that sample."""
        known, known_ms = np.full((2, rows.size), UNKNOWN, dtype=np.int64)
        for sample in samples:
            missing = np.flatnonzero(known == UNKNOWN)
            if missing.size == 0:
                break
            known[missing] = self.at(sample, rows[missing], column)
            taken_ms = self._samples[sample].taken_ms.values()
            known_ms[missing] = max((end for _, end in taken_ms), default=UNKNOWN)
        return known, known_ms

    def recent(self, rows: Ints, cluster: str, since_ms: int) -> tuple[Ints, Bools]:
        """The lowest head of each row since a time, and whether its head was already known then.

        Heads only grow, so the lowest is the first one known, starting with the last sample before that time: where
        samples are missing (a cluster or Warren was down) the head may still have been what it was then.
        """
        covering, _, ended = self.times(cluster)
        first = max(int(np.searchsorted(ended, since_ms, side="right")) - 1, 0)
        is_complete, before = np.zeros(rows.size, dtype=np.bool_), covering[first : first + 1]
        if covering and ended[0] <= since_ms:
            # Where the timestamps of records prove nothing, the last head that was sampled then counts.
            before += [sample for sample in covering[first::-1] if not self._is_by_record_time[sample]][:1]
            is_complete = self._first_known(before, rows, "lowest_head")[0] != UNKNOWN
        lowest, _ = self._first_known([*before, *covering[first + 1 :]], rows, "lowest_head")
        newest, _ = self.newest(rows)
        is_known = (lowest != UNKNOWN) & (newest != UNKNOWN)
        return np.where(is_known, np.minimum(lowest, newest), lowest), is_complete

    def lags(
        self, rows: Ints, cluster: str, offset: Ints, time_ms: Ints, error_ms: Ints, max_gap_ms: int
    ) -> tuple[Ints, Ints, Ints]:
        """The lag of commits of one cluster and its bounds; UNKNOWN where the samples around it are too far apart.

        `error_ms` is how far off each time may be.
        """
        covering, started, ended = self.times(cluster)
        if not covering:
            unknown = np.full(rows.size, UNKNOWN, dtype=np.int64)
            return unknown, unknown.copy(), unknown.copy()
        # Commits were read up to an end that was fixed before the newest sample, so none is younger than it.
        latest_ms = np.minimum(time_ms + error_ms, started[-1])
        time_ms = np.minimum(time_ms, latest_ms)
        before = np.searchsorted(ended, time_ms - error_ms, side="right") - 1
        after = np.searchsorted(started, latest_ms, side="left")
        before_head, after_head = self._at_each(covering, before, rows), self._at_each(covering, after, rows)
        is_past, lowest_head = self._is_by_record_time[covering], before_head.copy()
        if (past := np.flatnonzero((before >= 0) & is_past[before])).size:
            lowest_head[past] = self._at_each(covering, before[past], rows[past], "lowest_head")
        # Heads by record time are told for a time, within which records are appended a little earlier or later.
        before_ms = np.where(is_past, started + AHEAD_MS, ended)[before]
        after_ms = np.where(is_past, started + AHEAD_MS, started)[after]
        is_between_past = is_past[before] | is_past[after]
        gap_ms = np.where(is_between_past, max(max_gap_ms, MAX_PAST_GAP_MS), max_gap_ms)
        is_far = (before < 0) | (started[after] - ended[before] > gap_ms)
        after_head[is_far] = UNKNOWN
        return lag_bounds(offset, time_ms, before_ms, before_head, after_ms, after_head, lowest_head)

    def unread_since(self, rows: Ints, cluster: str, offset: Ints) -> UnreadSince:
        """When the head of each row passed an offset that it is beyond now.

        Where it was beyond it in the oldest sample already, the time is that of the sample: AT_LEAST. If older samples
        lack the partition, the error is how much longer its log can have existed at most.
        """
        covering, started, ended = self.times(cluster)
        since = unknown_since(rows.size)
        if not covering or not rows.size:
            return since
        before, after = self._around_passing(covering, rows, offset)
        before_head, after_head = self._at_each(covering, before, rows), self._at_each(covering, after, rows)
        is_passed = (after_head != UNKNOWN) & (after_head > offset)
        is_between = is_passed & (before_head != UNKNOWN)
        is_before = is_passed & ~is_between
        before, after = np.maximum(before, 0), np.maximum(after, 0)
        between_ms = passing_time(offset, started[before], before_head, ended[after], after_head)
        since.since_ms = np.where(is_between, between_ms[0], np.where(is_before, ended[after], UNKNOWN))
        since.error_ms = np.where(is_between, between_ms[1], UNKNOWN)
        since.error_ms[is_before] = self._age_beyond_ms(covering, after[is_before], rows[is_before], started, ended)
        by_record_time = self._is_by_record_time[covering][before[is_between]]
        since.method[is_between] = np.where(by_record_time, TimeLagMethod.RECORD_TIME, TimeLagMethod.HEAD_HISTORY)
        since.method[is_before] = TimeLagMethod.AT_LEAST
        return since

    def _age_beyond_ms(self, covering: Sequence[int], first: Ints, rows: Ints, started: Ints, ended: Ints) -> Ints:
        """How long each log can have existed before the first sample that has it; UNKNOWN if no sample lacks it."""
        age_ms = np.full(rows.size, UNKNOWN, dtype=np.int64)
        for position in np.unique(first[first > 0]).tolist():
            own = np.flatnonzero(first == position)
            is_missing = self._index(self._samples[covering[position - 1]])[rows[own]] < 0
            age_ms[own[is_missing]] = ended[position] - started[position - 1]
        return age_ms

    def _around_passing(self, covering: Sequence[int], rows: Ints, offset: Ints) -> tuple[Ints, Ints]:
        """The last sample in which the head of each row was known and not beyond an offset, and the first after it.

        Samples are positions in `covering`; -1 where there is none. Heads only grow, so that they can be searched.
        """
        before, after = np.full((2, rows.size), -1, dtype=np.int64)
        older = max(len(covering) - _SCANNED_SAMPLES, 0)
        pending = self._scan(covering, range(len(covering) - 1, older - 1, -1), rows, offset, before, after)
        low, high = np.full(pending.size, -1, dtype=np.int64), np.full(pending.size, older, dtype=np.int64)
        for _ in range(older.bit_length()):
            middle = (low + high) // 2
            is_beyond = self._at_each(covering, middle, rows[pending]) > offset[pending]
            high, low = np.where(is_beyond, middle, high), np.where(is_beyond, low, np.maximum(middle, low))
        before[pending] = low
        after[pending[high < older]] = high[high < older]
        # Where a sample has no head of a row, it counted as one from before the passing.
        in_doubt = np.flatnonzero((before >= 0) & (self._at_each(covering, before, rows) == UNKNOWN))
        if in_doubt.size:
            own_before, own_after = before[in_doubt], after[in_doubt]
            own_before[:] = -1
            all_samples = range(len(covering) - 1, -1, -1)
            self._scan(covering, all_samples, rows[in_doubt], offset[in_doubt], own_before, own_after)
            before[in_doubt], after[in_doubt] = own_before, own_after
        return before, after

    def _scan(
        self, covering: Sequence[int], positions: range, rows: Ints, offset: Ints, before: Ints, after: Ints
    ) -> Ints:
        """Look for the passings in some samples, newest first; gives the rows whose passing is older than them."""
        pending = np.arange(rows.size)
        for position in positions:
            head = self.at(covering[position], rows[pending])
            is_known, is_beyond = head != UNKNOWN, head > offset[pending]
            after[pending[is_known & is_beyond]] = position
            before[pending[is_known & ~is_beyond]] = position
            pending = pending[~is_known | is_beyond]
        return pending

    def _at_each(self, covering: Sequence[int], position: Ints, rows: Ints, column: str = "head") -> Ints:
        """The head of each row in a sample of its own, given by its position in `covering`; UNKNOWN for -1."""
        heads = np.full(rows.size, UNKNOWN, dtype=np.int64)
        for sample in np.unique(position[position >= 0]):
            own = np.flatnonzero(position == sample)
            heads[own] = self.at(covering[int(sample)], rows[own], column)
        return heads

    def log_start_rate(self, rows: Ints, cluster: str) -> Floats:
        """How many offsets per second the log start of each row has moved in all of the history; NaN if unknown."""
        covering, started, _ = self.times(cluster)
        rate = np.full(rows.size, np.nan)
        sampled = np.flatnonzero(~self._is_by_record_time[covering])
        if sampled.size > 1 and (span_ms := started[sampled[-1]] - started[sampled[0]]) >= _MIN_LOG_START_SPAN_MS:
            first, last = (self.at(covering[sampled[index]], rows, "log_start") for index in (0, -1))
            is_known = (first != UNKNOWN) & (last != UNKNOWN) & (last >= first)
            rate = np.where(is_known, (last - first) * 1000.0 / span_ms, np.nan)
        return rate


def _qualified(clusters: pa.StringArray, topics: pa.StringArray) -> pa.StringArray:
    """Names of topics that are unique in all clusters."""
    return pc.binary_join_element_wise(clusters, topics, "\0")

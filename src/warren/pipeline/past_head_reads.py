"""Heads of the past for clusters that were not sampled for a while, or never, so that their next verdicts are right.

They are read beside the cycle, once per gap. The cluster takes part in a cycle when they are there, or could not be
read in time: then its verdicts wait until enough heads are sampled.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from warren.domain.past_heads import AHEAD_MS
from warren.errors import ClusterError
from warren.kafka.past_heads import PastHeads
from warren.kafka.samples import ClusterSample
from warren.pipeline.background import in_background
from warren.pipeline.cluster_reads import Reading
from warren.pipeline.head_files import HeadFiles
from warren.snapshot.manifest import HeadSample, Manifest

log = logging.getLogger(__name__)

AGES_S = (
    *(0, 1, 3, 6, 10),
    *range(15, 60, 5),
    *range(60, 300, 30),
    *range(300, 1_200, 60),
    *(1_200, 1_800, 2_700, 3_600, 5_400, 7_200, 10_800, 14_400, 21_600),
)
"""How old the heads are that are asked for: close together for as long as windows reach back, then fewer."""

MIN_GAP_MS = 30_000
"""A shorter gap is never worth the questions."""
MIN_PAUSE_MS = 300_000
"""How long a cluster that comes and goes is not asked again."""

ReadPastHeads = Callable[[str, Sequence[int]], PastHeads]
"""Reads the heads of a cluster at some times, newest first."""


class PastHeadReads:
    """Reads the heads of the past of clusters whose history lacks them."""

    def __init__(self, read: ReadPastHeads | None) -> None:
        self._read = read
        self._read_at_ms: dict[str, int] = {}

    def start(
        self, before: Manifest, samples: Mapping[str, ClusterSample], max_gap_ms: Callable[[str], int]
    ) -> dict[str, Future[PastHeads]]:
        """Start to read the heads of the clusters that have a gap, or nothing, before their samples.

        The samples have times of the wall clock. `max_gap_ms` says which gap samples bridge.
        """
        started = {}
        for name, sample in samples.items():
            now_ms = sample.heads_at_ms[0]
            last_ms = max((own.taken_ms[name][1] for own in before.heads if name in own.taken_ms), default=None)
            is_due = last_ms is None or self._is_due(name, now_ms, last_ms, max_gap_ms(name))
            if self._read is not None and is_due:
                times_ms = times_to_read(now_ms, last_ms)
                started[name] = in_background("heads of the past", self._read, name, times_ms)
        return started

    def _is_due(self, cluster: str, now_ms: int, last_ms: int, max_gap_ms: int) -> bool:
        """Whether samples do not bridge a gap, and the cluster was not asked a short while ago."""
        pause_ms = abs(now_ms - self._read_at_ms.get(cluster, 0))
        return now_ms - last_ms > max(max_gap_ms, MIN_GAP_MS) and pause_ms >= MIN_PAUSE_MS

    def write(
        self,
        parts: Mapping[str, Reading],
        samples: Mapping[str, ClusterSample],
        files: HeadFiles,
        sequence: int,
    ) -> list[HeadSample]:
        """Write what was read; clusters whose heads could not be read do without."""
        written = []
        for cluster, part in parts.items():
            if part.past_heads is None:
                continue
            self._read_at_ms[cluster] = samples[cluster].heads_at_ms[0]
            try:
                written += files.write_past(sequence, samples[cluster], part.past_heads.result())
            except ClusterError as error:
                log.warning("%s: heads of the past could not be read: %s", cluster, error)
        return written


def times_to_read(now_ms: int, last_ms: int | None) -> list[int]:
    """The times at which heads are asked for, newest first: none from before the last sample, if there is one."""
    times_ms = [now_ms - age_s * 1000 for age_s in AGES_S]
    return [time_ms for time_ms in times_ms if last_ms is None or time_ms - AHEAD_MS > last_ms]

"""Heads of the past for clusters that have no head history yet, so that their first verdicts are right.

They are read once per cluster, beside the cycle. The cluster takes part in a cycle when they are there, or could not be
read in time: then its first verdicts wait until enough heads are sampled.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from warren.errors import ClusterError
from warren.kafka.past_heads import PastHeads
from warren.kafka.samples import ClusterSample
from warren.pipeline.background import in_background
from warren.pipeline.cluster_reads import Reading
from warren.pipeline.head_files import HeadFiles
from warren.snapshot.manifest import HeadSample, Manifest

log = logging.getLogger(__name__)

ReadPastHeads = Callable[[str], PastHeads]
"""Reads the heads of the last hours of a cluster."""


class PastHeadReads:
    """Reads the heads of the past of clusters that have none."""

    def __init__(self, read: ReadPastHeads | None) -> None:
        self._read = read

    def start(self, before: Manifest, clusters: Iterable[str]) -> dict[str, Future[PastHeads]]:
        """Start to read the heads of those clusters that have no history."""
        if self._read is None:
            return {}
        known = {name for sample in before.heads for name in sample.taken_ms}
        return {name: in_background("heads of the past", self._read, name) for name in clusters if name not in known}

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
            try:
                if part.past_heads is not None:
                    written += files.write_past(sequence, samples[cluster], part.past_heads.result())
            except ClusterError as error:
                log.warning("%s: heads of the past could not be read: %s", cluster, error)
        return written

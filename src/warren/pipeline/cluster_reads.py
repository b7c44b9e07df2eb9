"""The reads of all clusters, side by side: a cluster that takes longer than the others does not hold them up.

A cluster takes part in a cycle with one sample and what was read up to it. If its read has not ended when the cycle
goes on, the cluster is late: it keeps its verdicts, and takes part in a later cycle, by the same sample.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

import pyarrow as pa

from warren.kafka.past_heads import PastHeads
from warren.kafka.samples import ClusterSample
from warren.pipeline.engine import ClusterRead, Engine
from warren.pipeline.offset_ranges import TopicRead
from warren.pipeline.patience import wait_for_most
from warren.pipeline.plan import CyclePlan

LONGEST_READ_S = 240.0


@dataclass(slots=True)
class Reading:
    """One cluster's part of a cycle: its sample as it was taken, what to read, and the read."""

    sample: ClusterSample
    topics: Sequence[TopicRead]
    began: float
    read: ClusterRead | None = None
    """None if there is nothing new to read."""
    seeds: Future[pa.Table] | None = None
    """The offsets of silent groups, if they are listed for this part."""
    past_heads: Future[PastHeads] | None = None
    """The heads of the past, if they are read for this part."""
    is_ended: bool = False

    @property
    def error(self) -> str | None:
        """Why the read has failed, if it has."""
        return self.read.error if self.read else None

    def has_ended(self, timeout_s: float) -> bool:
        """Whether everything is there, at the latest after so long."""
        if not self.is_ended and (self.read is None or self.read.wait(timeout_s)):
            self.is_ended = all(answer is None or answer.done() for answer in (self.seeds, self.past_heads))
        return self.is_ended


class ClusterReads:
    """The clusters that are being read, or have been read for a cycle that is not published yet."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._readings: dict[str, Reading] = {}
        self.slow: set[str] = set()
        """The clusters that were late last time: nobody waits for them until they keep up with the others again."""

    def __contains__(self, cluster: object) -> bool:
        return cluster in self._readings

    @property
    def late(self) -> list[str]:
        """The clusters whose read has not ended."""
        return [name for name, reading in self._readings.items() if not reading.is_ended]

    @property
    def ended(self) -> dict[str, Reading]:
        """The clusters that have been read."""
        return {name: reading for name, reading in self._readings.items() if reading.is_ended and not reading.error}

    def samples(self, newest: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
        """The samples of a cycle; a cluster that is being read keeps the sample that it is read by."""
        samples = dict(newest)
        for name in [name for name in self._readings if name not in newest or newest[name].error is not None]:
            self.drop([name])
        for name, reading in self._readings.items():
            if newest[name].owners is not None:  # they are sent only once
                owners, groups = newest[name].owners, newest[name].consumer_groups
                reading.sample = replace(reading.sample, owners=owners, consumer_groups=groups)
            samples[name] = reading.sample
        return samples

    def start(
        self,
        engine: Engine,
        samples: Mapping[str, ClusterSample],
        topics: Sequence[TopicRead],
        plan: CyclePlan,
        seeds: Mapping[str, Future[pa.Table]],
        past_heads: Mapping[str, Future[PastHeads]],
    ) -> None:
        """Start to read these clusters; `topics` are in the order of the plan's sources."""
        reads = engine.read(topics, plan)
        for name, sample in samples.items():
            own = [topic for topic in topics if topic.cluster == name]
            beside = seeds.get(name), past_heads.get(name)
            self._readings[name] = Reading(sample, own, self._clock(), reads.get(name), *beside)

    def wait(self, engine: Engine, *, for_all: bool = False) -> dict[str, str]:
        """Wait for all clusters, or those that take about as long as most; gives the errors of those that failed."""
        engine.wait(self._wait_for_all if for_all else self._wait)
        now = self._clock()
        errors = {name: reading.error for name, reading in self._readings.items() if reading.error}
        for name in self.late:
            if now - self._readings[name].began > LONGEST_READ_S:
                errors[name] = f"not within {LONGEST_READ_S:g} s"
        self.drop(errors)
        self.slow = set(self.late)
        return errors

    def _wait(self) -> None:
        clusters = list(self._readings)
        ended = [name for name in clusters if self._has_ended(name, 0.0)]
        # If there is nothing to publish otherwise, slow clusters are waited for too.
        if not ended or not self.slow.issuperset(clusters):
            wait_for_most(clusters, self._has_ended, self._has_failed, self.slow, self._clock)
        for name in self._readings:
            self._has_ended(name, 0.0)

    def _wait_for_all(self) -> None:
        deadline = self._clock() + LONGEST_READ_S
        while self._clock() < deadline and not all(self._has_ended(name, 1.0) for name in self._readings):
            pass

    def _has_ended(self, name: str, timeout_s: float) -> bool:
        return self._readings[name].has_ended(timeout_s)

    def _has_failed(self, name: str) -> bool:
        return self._readings[name].error is not None

    def drop(self, clusters: Iterable[str] | None = None) -> None:
        """Forget what was read of some clusters, or of all; what is not published is read again."""
        for name in list(self._readings if clusters is None else clusters):
            reading = self._readings.pop(name, None)
            if reading is not None and reading.read is not None:
                reading.read.release()

"""Clusters that made a cycle fail: they are left out for a while, and then tried again."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from warren.delivery.backoff import Backoff
from warren.kafka.samples import ClusterSample

RETRIES = Backoff(first_s=5.0, longest_s=60.0)


@dataclass(frozen=True, slots=True)
class _Failure:
    error: str
    failures: int
    retry_at: float


class FailingClusters:
    """The clusters that failed last, each with its error and when to try again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failing: dict[str, _Failure] = {}

    def add(self, errors: Mapping[str, str]) -> None:
        """Leave clusters out from now on, longer after each failure."""
        for cluster, error in errors.items():
            failures = self._failing[cluster].failures + 1 if cluster in self._failing else 0
            self._failing[cluster] = _Failure(error, failures, self._clock() + RETRIES.wait_s(failures))

    def forgive(self, clusters: Iterable[str]) -> None:
        """These were in a cycle that was published."""
        for cluster in clusters:
            self._failing.pop(cluster, None)

    def leave_out(self, samples: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
        """The samples, with an error on each cluster that is not to be tried again yet."""
        waiting = {name: f.error for name, f in self._failing.items() if self._clock() < f.retry_at}
        return {
            name: ClusterSample(name, error=waiting[name]) if name in waiting and sample.error is None else sample
            for name, sample in samples.items()
        }

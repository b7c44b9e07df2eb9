"""Samples of all clusters, each taken ahead of the cycle by as long as it takes."""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from warren.kafka.samples import ClusterSample
from warren.pipeline.patience import wait_for_most

MAX_THREADS = 256


@dataclass(eq=False, slots=True)
class _Request:
    """A sample of a cluster that is to be taken, or is being taken."""

    cluster: str
    start: float
    sample: Future[ClusterSample] = field(default_factory=Future)
    is_begun: bool = False
    is_late: bool = False
    is_dropped: threading.Event = field(default_factory=threading.Event)


class SamplePrefetch:
    """Samples each cluster so that it is there when the next cycle is due; a cluster that is late holds up no other."""

    def __init__(self, sample: Callable[[str], ClusterSample], clusters: Callable[[], Sequence[str]]) -> None:
        self._sample = sample
        self._clusters = clusters
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="prefetch of samples")
        self._lock = threading.Lock()
        self._took_s: dict[str, float] = {}
        self._requests: dict[str, _Request] = {}
        self._unreliable: set[str] = set()
        """The clusters whose last sample was late or failed: nobody waits for them until one is there in time."""

    def prepare(self, due: float) -> None:
        """Start to sample in time to be done when the monotonic clock shows `due`; a sample that was begun stays."""
        self._drop_unstarted()
        for cluster in self._clusters():
            if cluster not in self._requests:
                request = _Request(cluster, due - 1.2 * self._took_s.get(cluster, 0.0))
                self._requests[cluster] = request
                self._pool.submit(self._run, request)

    def take(self) -> dict[str, ClusterSample]:
        """The samples that were prepared, or new ones; a cluster that takes much longer than the others is late."""
        self.prepare(0.0)
        clusters = self._clusters()
        wait_for_most(clusters, self._is_done, self._has_failed, self._unreliable)
        samples = {cluster: self._taken(self._requests[cluster]) for cluster in clusters}
        is_timely = {
            cluster: sample.is_answer and not self._requests[cluster].is_late for cluster, sample in samples.items()
        }
        self._unreliable = {cluster for cluster in clusters if not is_timely[cluster]}
        self._requests = {cluster: request for cluster, request in self._requests.items() if samples[cluster].is_late}
        return samples

    def _taken(self, request: _Request) -> ClusterSample:
        """The sample of a cluster, or that it is late."""
        if self._is_done(request.cluster, 0.0):
            return request.sample.result()
        request.is_late = True
        return ClusterSample(request.cluster, is_late=True)

    def discard(self) -> None:
        """Forget what was prepared; sampling under way is awaited."""
        self._drop_unstarted()
        concurrent.futures.wait([request.sample for request in self._requests.values()])
        self._requests.clear()
        self._unreliable.clear()

    def close(self) -> None:
        """Stop waiting; sampling under way ends by its own timeout."""
        self._drop_unstarted()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _drop_unstarted(self) -> None:
        with self._lock:
            for request in [request for request in self._requests.values() if not request.is_begun]:
                request.is_dropped.set()
                del self._requests[request.cluster]

    def _is_done(self, cluster: str, timeout_s: float) -> bool:
        return bool(concurrent.futures.wait([self._requests[cluster].sample], timeout_s).done)

    def _has_failed(self, cluster: str) -> bool:
        return self._requests[cluster].sample.result().error is not None

    def _run(self, request: _Request) -> None:
        request.is_dropped.wait(max(request.start - time.monotonic(), 0.0))
        with self._lock:
            if request.is_dropped.is_set():
                return
            request.is_begun = True
        started = time.monotonic()
        try:
            sample = self._sample(request.cluster)
        except Exception as error:  # noqa: BLE001 - raised again where the sample is taken
            request.sample.set_exception(error)
        else:
            self._took_s[request.cluster] = time.monotonic() - started
            request.sample.set_result(sample)

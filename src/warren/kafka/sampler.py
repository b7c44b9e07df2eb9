"""Samples all clusters at once, in supervised processes, so that no cluster can hold up the cycle."""

import contextlib
import itertools
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from warren.errors import ClusterError
from warren.kafka.past_heads import PastHeads
from warren.kafka.sampler_process import Listing, ListingRequest, SampleRequest, SamplerResponse, main
from warren.kafka.samples import ClusterSample, SampleQuestions, SampleVersions, SamplingTarget
from warren.processes import SupervisedProcess

# A process finishes a little before the timeout, so that its response arrives in time.
_RETURN_SHARE = 0.1
_MAX_RETURN_S = 0.5
# A process that does not respond to any request for so long is stuck.
_MAX_SILENCE_S = 120.0


_LISTED = {
    Listing.COMMITTED: "committed offsets",
    Listing.GROUPS: "groups",
    Listing.WITHOUT_OFFSETS: "committed offsets",
    Listing.PAST_HEADS: "heads of the past",
}


class ClusterSamplers:
    """The processes that sample the clusters; may be used from several threads."""

    def __init__(self, targets: Sequence[SamplingTarget], processes: int) -> None:
        self._max_processes = max(processes, 1)
        self._processes: list[_SamplingProcess] = []
        self._process_numbers = itertools.count()
        self._request_ids = itertools.count(1)
        self._lock = threading.Lock()
        self._last_samples: dict[str, ClusterSample] = {}
        self._questions: dict[str, SampleQuestions] = {}
        self.change(targets)

    def change(self, targets: Sequence[SamplingTarget]) -> None:
        """Sample these clusters from now on; those that have not changed keep their connections.

        Not to be called while a sample is taken.
        """
        with self._lock:
            # The last sample may have been discarded, and with it what is only sent once.
            self._last_samples = {}
        new = {target.cluster: target for target in targets}
        shares = [[new.pop(name) for name in process.clusters if name in new] for process in self._processes]
        for target in new.values():
            if len(shares) < self._max_processes:
                shares.append([target])
            else:
                min(shares, key=len).append(target)
        changed = []
        for process, share in itertools.zip_longest(self._processes, shares):
            if process is None:
                changed.append(_SamplingProcess(f"sampler {next(self._process_numbers)}", share))
            elif share:
                process.change(share)
                changed.append(process)
            else:
                process.close()
        self._processes = changed

    def ask(self, questions: Mapping[str, SampleQuestions]) -> None:
        """What the next samples are to find out, by cluster; it replaces what no sample has taken up yet."""
        with self._lock:
            self._questions = dict(questions)

    @property
    def clusters(self) -> list[str]:
        """The clusters that can be sampled."""
        return [cluster for process in self._processes for cluster in process.clusters]

    def sample(self, timeout_s: float, clusters: Collection[str] | None = None) -> dict[str, ClusterSample]:
        """Sample all clusters, or some, at once; one that does not answer in time has a sample with an error."""
        clusters = self.clusters if clusters is None else clusters
        with self._lock:
            last = {cluster: self._last_samples[cluster] for cluster in clusters if cluster in self._last_samples}
            questions = {cluster: self._questions.pop(cluster, SampleQuestions()) for cluster in clusters}
        deadline = time.monotonic() + timeout_s
        known = {cluster: last[cluster].versions if cluster in last else SampleVersions() for cluster in clusters}
        request = SampleRequest(next(self._request_ids), _response_deadline(timeout_s), known, questions)
        with contextlib.ExitStack() as requests:
            responses: dict[str, Future[Any]] = {}
            for process in self._processes:
                if not known.keys().isdisjoint(process.clusters):
                    responses |= requests.enter_context(process.request(request))
            samples = {}
            for cluster in clusters:
                try:
                    sample: ClusterSample = _await(responses[cluster], deadline, timeout_s)
                    samples[cluster] = self._complete(sample, last.get(cluster))
                except ClusterError as error:
                    samples[cluster] = ClusterSample(cluster, error=str(error))
            return samples

    def committed(self, cluster: str, timeout_s: float) -> pa.Table:
        """The committed offsets of all groups of a cluster: group, topic, partition, offset."""
        return self._list(cluster, timeout_s, Listing.COMMITTED)

    def groups(self, cluster: str, timeout_s: float) -> list[str]:
        """The names of all groups that the brokers of a cluster list; raises if any broker did not answer."""
        listed: list[str] = self._list(cluster, timeout_s, Listing.GROUPS)
        return listed

    def groups_without_offsets(self, cluster: str, groups: Sequence[str], timeout_s: float) -> list[str]:
        """Those of some groups of a cluster that have nothing committed."""
        without: list[str] = self._list(cluster, timeout_s, Listing.WITHOUT_OFFSETS, tuple(groups))
        return without

    def past_heads(self, cluster: str, times_ms: Sequence[int], timeout_s: float) -> PastHeads:
        """The heads of all partitions of a cluster at some times, newest first, by the timestamps of records."""
        past: PastHeads = self._list(cluster, timeout_s, Listing.PAST_HEADS, times_ms=tuple(times_ms))
        return past

    def close(self) -> None:
        """Stop the processes."""
        for process in self._processes:
            process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _list(
        self,
        cluster: str,
        timeout_s: float,
        listing: Listing,
        groups: tuple[str, ...] = (),
        times_ms: tuple[int, ...] = (),
    ) -> Any:  # noqa: ANN401
        deadline = time.monotonic() + timeout_s
        process = next((process for process in self._processes if cluster in process.clusters), None)
        if process is None:
            raise ClusterError(f"cluster {cluster}: it is not configured any more")
        response_deadline = _response_deadline(timeout_s)
        request = ListingRequest(next(self._request_ids), response_deadline, cluster, listing, groups, times_ms)
        with process.request(request) as responses:
            try:
                return _await(responses[cluster], deadline, timeout_s)
            except ClusterError as error:
                raise ClusterError(f"cluster {cluster}: {_LISTED[listing]}: {error}") from error

    def _complete(self, sample: ClusterSample, last: ClusterSample | None) -> ClusterSample:
        """Put in what the process left out because the last sample has it."""
        if last is not None and last.versions.layout == sample.versions.layout:
            sample = replace(sample, topics=last.topics, log_starts=last.log_starts)
        with self._lock:
            self._last_samples[sample.cluster] = sample
        return sample


class _SamplingProcess:
    """A supervised process for some of the clusters, and the requests that wait for its responses."""

    def __init__(self, name: str, targets: Sequence[SamplingTarget]) -> None:
        self.clusters = [target.cluster for target in targets]
        self._lock = threading.Lock()
        self._pending: dict[int, tuple[SampleRequest | ListingRequest, dict[str, Future[Any]]]] = {}
        self._silent_since: float | None = None
        self._targets = targets
        self._process = SupervisedProcess(name, main, targets, self._receive, on_restart=self._resend)
        self.close = self._process.close

    def change(self, targets: Sequence[SamplingTarget]) -> None:
        """Sample these clusters from now on."""
        if targets != self._targets:
            self._targets, self.clusters = targets, [target.cluster for target in targets]
            self._process.change_argument(targets)

    @contextlib.contextmanager
    def request(self, request: SampleRequest | ListingRequest) -> Iterator[dict[str, Future[Any]]]:
        """Send a request; gives the future response of each cluster. A response after the block is dropped."""
        futures: dict[str, Future[Any]] = {cluster: Future() for cluster in self.clusters}
        now = time.monotonic()
        with self._lock:
            self._pending[request.id] = request, futures
            self._silent_since = self._silent_since or now
            is_stuck = now - self._silent_since > _MAX_SILENCE_S
        if is_stuck:
            self._process.kill()
        self._process.send(request)
        try:
            yield futures
        finally:
            with self._lock:
                del self._pending[request.id]

    def _receive(self, response: object) -> None:
        assert isinstance(response, SamplerResponse)
        with self._lock:
            self._silent_since = None
            _, futures = self._pending.get(response.request_id, (None, {}))
        future = futures.get(response.cluster)
        if future is None or future.done():
            return
        if isinstance(response.body, ClusterError):
            future.set_exception(response.body)
        else:
            future.set_result(response.body)

    def _resend(self) -> None:
        with self._lock:
            self._silent_since = None
            requests = [request for request, _ in self._pending.values()]
        for request in requests:
            self._process.send(request)


def _response_deadline(timeout_s: float) -> float:
    return time.monotonic() + timeout_s - min(timeout_s * _RETURN_SHARE, _MAX_RETURN_S)


def _await(response: Future[Any], deadline: float, timeout_s: float) -> Any:  # noqa: ANN401
    try:
        return response.result(max(deadline - time.monotonic(), 0.0))
    except TimeoutError as error:
        raise ClusterError(f"no answer within {timeout_s:g} s") from error

"""The process that samples clusters: it receives requests through a pipe and answers each cluster's in threads."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing.connection import Connection
from typing import TypeAlias

import pyarrow as pa

from warren.errors import ClusterError
from warren.kafka.cluster_sampler import ClusterSampler
from warren.kafka.past_heads import PastHeads
from warren.kafka.samples import ClusterSample, SampleQuestions, SampleVersions, SamplingTarget

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """Sample clusters by the deadline, on the monotonic clock that all processes share.

    `known` are the clusters, with the versions that the requester has: the response leaves out what has not changed.
    """

    id: int
    deadline: float
    known: Mapping[str, SampleVersions]
    questions: Mapping[str, SampleQuestions]


class Listing(Enum):
    """What can be listed of a cluster."""

    COMMITTED = auto()
    """The committed offsets of all groups."""
    GROUPS = auto()
    WITHOUT_OFFSETS = auto()
    """Those of some groups that have nothing committed."""
    PAST_HEADS = auto()
    """The heads at some times."""


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """List something of one cluster by the deadline."""

    id: int
    deadline: float
    cluster: str
    listing: Listing
    groups: tuple[str, ...] = ()
    times_ms: tuple[int, ...] = ()


Body: TypeAlias = ClusterSample | pa.Table | list[str] | PastHeads


@dataclass(frozen=True, slots=True)
class SamplerResponse:
    """The response of one cluster to the request of that id."""

    request_id: int
    cluster: str
    body: Body | ClusterError


Targets: TypeAlias = Sequence[SamplingTarget]
"""The clusters to sample from now on."""


def main(connection: Connection, send: Callable[[object], None], targets: Targets) -> None:
    """Serve requests until the parent process is gone, even if it was killed."""
    clusters = _change({}, targets, send)
    with contextlib.suppress(EOFError, OSError):
        while True:
            request: SampleRequest | ListingRequest | Targets = connection.recv()
            if isinstance(request, ListingRequest):
                # In a thread of its own, as it may take long and samples must go on.
                if request.cluster in clusters:
                    threading.Thread(target=clusters[request.cluster].answer, args=(request,), daemon=True).start()
            elif isinstance(request, SampleRequest):
                for name in clusters.keys() & request.known.keys():
                    clusters[name].samples.submit(clusters[name].answer, request)
            else:
                clusters = _change(clusters, request, send)


def _change(
    clusters: Mapping[str, "_ClusterRequests"], targets: Targets, send: Callable[[object], None]
) -> dict[str, "_ClusterRequests"]:
    """Those of the clusters that are targets as they are, and new ones for the other targets."""
    kept = {target.cluster for target in targets if target in [cluster.target for cluster in clusters.values()]}
    for name in clusters.keys() - kept:
        clusters[name].close()
    return {
        target.cluster: clusters[target.cluster] if target.cluster in kept else _ClusterRequests(target, send)
        for target in targets
    }


class _ClusterRequests:
    """Answers the requests for one cluster; samples are taken one after the other."""

    def __init__(self, target: SamplingTarget, send: Callable[[object], None]) -> None:
        self.samples = ThreadPoolExecutor(1)
        self.target = target
        self._cluster = target.cluster
        self._send = send
        self._sampler = ClusterSampler(target)
        threading.Thread(target=self._sampler.refresh_forever, daemon=True).start()

    def close(self) -> None:
        """End all threads, each after the request that it answers."""
        self.samples.shutdown(wait=False, cancel_futures=True)
        if isinstance(self._sampler, ClusterSampler):
            self._sampler.close()

    def answer(self, request: SampleRequest | ListingRequest) -> None:
        """Send a response, unless it would be too late."""
        if request.deadline < time.monotonic():
            return
        body: Body | ClusterError
        try:
            body = self._run(request)
        except ClusterError as error:
            body = error
        except Exception as error:  # noqa: BLE001 - it is reported, and must not disturb the other clusters
            _log.exception("cluster %s: %s", self._cluster, type(request).__name__)
            body = ClusterError(f"{type(error).__name__}: {error}")
        with contextlib.suppress(OSError):  # the parent process is gone
            self._send(SamplerResponse(request.id, self._cluster, body))

    def _run(self, request: SampleRequest | ListingRequest) -> Body:
        if isinstance(request, ListingRequest):
            match request.listing:
                case Listing.COMMITTED:
                    return self._sampler.committed(request.deadline)
                case Listing.GROUPS:
                    return self._sampler.groups(request.deadline)
                case Listing.WITHOUT_OFFSETS:
                    return self._sampler.groups_without_offsets(request.groups, request.deadline)
                case Listing.PAST_HEADS:
                    return self._sampler.past_heads(request.times_ms, request.deadline)
        known = request.known[self._cluster]
        return self._sampler.sample(request.deadline, known, request.questions[self._cluster])

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
from warren.kafka.samples import ClusterSample, Partition, SampleVersions, SamplingTarget

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """Sample every cluster of the process by the deadline, on the monotonic clock that all processes share.

    `known` are the versions that the requester has; the response leaves out what has not changed since.
    """

    id: int
    deadline: float
    known: Mapping[str, SampleVersions]
    unverified_tails: Mapping[str, Sequence[Partition]]


class Listing(Enum):
    """What can be listed of a cluster."""

    COMMITTED = auto()
    """The committed offsets of all groups."""
    GROUPS = auto()
    WITHOUT_OFFSETS = auto()
    """Those of some groups that have nothing committed."""


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """List something of one cluster by the deadline."""

    id: int
    deadline: float
    cluster: str
    listing: Listing
    groups: tuple[str, ...] = ()


Body: TypeAlias = ClusterSample | pa.Table | list[str]


@dataclass(frozen=True, slots=True)
class SamplerResponse:
    """The response of one cluster to the request of that id."""

    request_id: int
    cluster: str
    body: Body | ClusterError


def main(connection: Connection, send: Callable[[object], None], targets: Sequence[SamplingTarget]) -> None:
    """Serve requests until the parent process is gone, even if it was killed."""
    clusters = {target.cluster: _ClusterRequests(target, send) for target in targets}
    with contextlib.suppress(EOFError, OSError):
        while True:
            request: SampleRequest | ListingRequest = connection.recv()
            if isinstance(request, ListingRequest):
                # In a thread of its own, as it may take long and samples must go on.
                threading.Thread(target=clusters[request.cluster].answer, args=(request,), daemon=True).start()
            else:
                for cluster in clusters.values():
                    cluster.samples.submit(cluster.answer, request)


class _ClusterRequests:
    """Answers the requests for one cluster; samples are taken one after the other."""

    def __init__(self, target: SamplingTarget, send: Callable[[object], None]) -> None:
        self.samples = ThreadPoolExecutor(1)
        self._cluster = target.cluster
        self._send = send
        self._sampler: ClusterSampler | ClusterError
        try:
            self._sampler = ClusterSampler(target)
        except ClusterError as error:  # librdkafka refuses a setting
            self._sampler = error
        else:
            threading.Thread(target=self._sampler.refresh_forever, daemon=True).start()

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
        if isinstance(self._sampler, ClusterError):
            raise self._sampler
        if isinstance(request, ListingRequest):
            match request.listing:
                case Listing.COMMITTED:
                    return self._sampler.committed(request.deadline)
                case Listing.GROUPS:
                    return self._sampler.groups(request.deadline)
                case Listing.WITHOUT_OFFSETS:
                    return self._sampler.groups_without_offsets(request.groups, request.deadline)
        known = request.known.get(self._cluster, SampleVersions())
        return self._sampler.sample(request.deadline, known, request.unverified_tails.get(self._cluster, ()))

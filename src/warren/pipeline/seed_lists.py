"""Seeds: the offsets that brokers hold for groups that stay silent after a start at the latest commits.

They are listed once per cluster, beside the cycle, by a call that may take a minute. The cluster takes part in a cycle
again when it is answered, by the sample from before the call: what is committed after that sample is read, so that no
commit falls between the two.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

import pyarrow as pa

from warren.errors import ClusterError
from warren.pipeline.background import in_background

log = logging.getLogger(__name__)

ListCommitted = Callable[[str], pa.Table]
"""Lists the offsets that a cluster's brokers hold for all its groups."""

AT_ONCE = 8
RETRY_S = 60.0


class SeedLists:
    """Lists the seeds of clusters, of some at the same time."""

    def __init__(self, list_committed: ListCommitted, clock: Callable[[], float] = time.monotonic) -> None:
        self._list_committed = list_committed
        self._clock = clock
        self._at_once = threading.BoundedSemaphore(AT_ONCE)
        self._retry_at: dict[str, float] = {}

    def start(self, cluster: str) -> Future[pa.Table] | None:
        """Start to list the seeds of a cluster; None if that has failed a short while ago."""
        if self._clock() < self._retry_at.get(cluster, 0.0):
            return None
        return in_background("list of committed offsets", self._list, cluster)

    def _list(self, cluster: str) -> pa.Table:
        with self._at_once:
            return self._list_committed(cluster)

    def listed(self, answers: Mapping[str, Future[pa.Table] | None]) -> dict[str, pa.Table]:
        """The seeds that were listed; clusters whose call has failed are judged without them, and asked again later."""
        seeds = {}
        for cluster, answer in answers.items():
            try:
                if answer is not None:
                    seeds[cluster] = answer.result()
            except ClusterError as error:
                self._retry_at[cluster] = self._clock() + RETRY_S
                message = "%s: committed offsets could not be listed, next try in %.0f s: %s"
                log.warning(message, cluster, RETRY_S, error)
        return seeds

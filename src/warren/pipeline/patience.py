"""How long to wait for clusters that are asked, or read, at the same time."""

import math
import time
from collections.abc import Callable, Collection, Sequence

LEAST_GRACE_S = 1.0
"""How long the slower half of the clusters has at least, after the faster half is done."""
_POLL_S = 0.1


def wait_for_most(
    clusters: Sequence[str],
    is_done: Callable[[str, float], bool],
    has_failed: Callable[[str], bool],
    not_awaited: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until all clusters are done, or the slower half has had as long again as the faster half has taken.

    `is_done` says whether a cluster is done, at the latest after so many seconds. One that is done and `has_failed`
    says nothing about how long the others may take. Nobody waits for those that are `not_awaited`, unless all are.
    """
    began, deadline = clock(), math.inf
    awaited = [name for name in clusters if name not in not_awaited] or clusters
    while open_ := [name for name in awaited if not is_done(name, 0.0)]:
        now = clock()
        succeeded = [name for name in clusters if is_done(name, 0.0) and not has_failed(name)]
        if deadline == math.inf and len(open_) <= len(succeeded):
            deadline = now + max(now - began, LEAST_GRACE_S)
        if now >= deadline:
            return
        # Whoever is done in the meantime is passed over, and not all are asked again each time.
        until = min(deadline, now + _POLL_S)
        while open_ and is_done(open_[0], max(until - clock(), 0.0)):
            del open_[0]

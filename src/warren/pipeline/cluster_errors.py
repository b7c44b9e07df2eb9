"""Logs clusters that cannot be judged any more, or whose topics are hidden, each once per error, and the end of it."""

import logging

from warren.pipeline.next_manifest import state_of
from warren.snapshot.manifest import Manifest

log = logging.getLogger(__name__)


def log_cluster_errors(before: Manifest, after: Manifest) -> None:
    """Log what has changed between two manifests."""
    for name, cluster in after.clusters.items():
        last = state_of(before, name)
        if cluster.error is not None and cluster.error != last.error:
            log.error("%s is unknown: %s", name, cluster.error)
        elif cluster.error is None and last.error is not None:
            log.info("%s answers again", name)
        if cluster.missing_right is not None and cluster.missing_right != last.missing_right:
            log.error("%s: the lag of some topics is unknown: %s", name, cluster.missing_right)
        elif cluster.missing_right is None and last.missing_right is not None:
            log.info("%s: all of its topics can be seen again", name)

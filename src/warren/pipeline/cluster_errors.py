"""Logs clusters that cannot be judged any more, each once per error, and those that can again."""

import logging

from warren.snapshot.manifest import Manifest

log = logging.getLogger(__name__)


def log_cluster_errors(before: Manifest, after: Manifest) -> None:
    """Log what has changed between two manifests."""
    for name, cluster in after.clusters.items():
        last = before.clusters[name].error if name in before.clusters else None
        if cluster.error is not None and cluster.error != last:
            log.error("%s is unknown: %s", name, cluster.error)
        elif cluster.error is None and last is not None:
            log.info("%s answers again", name)

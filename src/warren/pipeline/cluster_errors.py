"""Logs clusters and ensembles that cannot be read any more, each once per error, and those that can again."""

import logging

from warren.snapshot.manifest import Manifest

log = logging.getLogger(__name__)


def log_cluster_errors(before: Manifest, after: Manifest) -> None:
    """Log what has changed between two manifests."""
    last, now = _errors(before), _errors(after)
    for name, error in now.items():
        if error is not None and error != last.get(name):
            log.error("%s is unknown: %s", name, error)
        elif error is None and last.get(name) is not None:
            log.info("%s answers again", name)


def _errors(manifest: Manifest) -> dict[str, str | None]:
    """The errors of all clusters, and of the consumer sections whose groups commit to ZooKeeper."""
    errors = {}
    for name, cluster in manifest.clusters.items():
        errors[name] = cluster.error
        errors |= {f"{name}, consumer {section}": own.error for section, own in cluster.zookeeper.items()}
    return errors

"""Logs what has become unknown of clusters, each error once, and what is known again."""

import logging

from warren.pipeline.next_manifest import state_of
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
    for name, cluster in after.clusters.items():
        missing, former = cluster.missing_right, state_of(before, name).missing_right
        if missing is not None and missing != former:
            log.error("%s: the lag of some topics is unknown: %s", name, missing)
        elif missing is None and former is not None:
            log.info("%s: all of its topics can be seen again", name)
        absent, were_absent = cluster.absent_offsets_topics, state_of(before, name).absent_offsets_topics
        for topic in sorted({*absent} - {*were_absent}):
            log.warning("%s: its offsets topic %s does not exist: waiting for the first commit", name, topic)
        for topic in sorted({*were_absent} - {*absent} if cluster.error is None else ()):
            log.info("%s: its offsets topic %s exists now", name, topic)


def _errors(manifest: Manifest) -> dict[str, str | None]:
    """The errors of all clusters, and of the consumer sections whose groups commit to ZooKeeper."""
    errors = {}
    for name, cluster in manifest.clusters.items():
        errors[name] = cluster.error
        errors |= {f"{name}, consumer {section}": own.error for section, own in cluster.zookeeper.items()}
    return errors

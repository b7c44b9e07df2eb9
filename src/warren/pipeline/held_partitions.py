"""Names the transactions that hold back offsets partitions; brokers are asked beside the cycle."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from msgspec import structs

from warren.domain.offsets_logs import UNSEEN_MS
from warren.kafka.samples import Partition
from warren.pipeline.background import in_background
from warren.snapshot.manifest import ClusterState, Manifest

log = logging.getLogger(__name__)

ASK_EVERY_MS = 60_000
_UNNAMED = (
    "held back by an open transaction that the brokers do not name; they do if Warren's user has the right Describe on "
    "transactional ids"
)

FindTransactionalIds = Callable[[str, Mapping[Partition, int]], Mapping[Partition, str]]
"""Finds the transactional ids behind the last stable offsets of some partitions of a cluster."""


@dataclass(slots=True)
class _Question:
    """What the brokers of a cluster were asked last, and when by the steady clock."""

    asked_ms: int
    stable_ends: Mapping[Partition, int]
    answer: Future[Mapping[Partition, str]]


@dataclass(slots=True)
class HeldPartitions:
    """The offsets partitions that open transactions hold back, each with the transactional id if brokers tell it."""

    find: FindTransactionalIds = lambda _, __: {}
    _questions: dict[str, _Question] = field(default_factory=dict)
    _logged: dict[str, Mapping[Partition, int]] = field(default_factory=dict)
    """By cluster, the partitions that brokers did not tell a transaction of, with their last stable offsets."""

    def with_transactional_ids(self, manifest: Manifest) -> Manifest:
        """The manifest with the ids that were found since the last cycle; brokers are asked for those that lack."""
        clusters = dict(manifest.clusters)
        for name, state in manifest.clusters.items():
            unnamed = _unnamed(state, manifest.now_ms)
            if not unnamed:
                continue
            question = self._questions.get(name)
            if question is not None and question.answer.done():
                ids = {
                    at: transactional_id
                    for at, transactional_id in question.answer.result().items()
                    if unnamed.get(at) == question.stable_ends[at]
                }
                clusters[name] = _with_ids(name, state, ids)
                unnamed = {at: stable_end for at, stable_end in unnamed.items() if at not in ids}
                self._log_unnamed(name, {at: end for at, end in unnamed.items() if question.stable_ends.get(at) == end})
            if unnamed and _is_due(question, manifest.steady_ms):
                answer = in_background("search for open transactions", self._search, name, unnamed)
                self._questions[name] = _Question(manifest.steady_ms, unnamed, answer)
        return structs.replace(manifest, clusters=clusters)

    def _log_unnamed(self, cluster: str, unnamed: Mapping[Partition, int]) -> None:
        logged = self._logged.get(cluster, {})
        if new := [at for at, stable_end in unnamed.items() if logged.get(at) != stable_end]:
            (topic, partition), others = new[0], len(new) - 1
            more = f" and {others} more" if others else ""
            log.warning("%s/%s/%d%s: %s", cluster, topic, partition, more, _UNNAMED)
        self._logged[cluster] = unnamed

    def _search(self, cluster: str, stable_ends: Mapping[Partition, int]) -> Mapping[Partition, str]:
        try:
            return self.find(cluster, stable_ends)
        except Exception:
            log.exception("%s: a search for open transactions", cluster)
            return {}


def _unnamed(state: ClusterState, now_ms: int) -> dict[Partition, int]:
    """The last stable offsets of the partitions that an unknown transaction has held back for a minute."""
    return {
        (topic, partition): position.stable_end
        for topic, source in state.sources.items()
        for partition, position in source.positions.items()
        if position.held_by is None
        and position.stuck_since_ms is not None
        and now_ms - position.stuck_since_ms > UNSEEN_MS
    }


def _with_ids(cluster: str, state: ClusterState, ids: Mapping[Partition, str]) -> ClusterState:
    sources = dict(state.sources)
    for (topic, partition), transactional_id in ids.items():
        log.warning("%s/%s/%d is held back by transaction %r", cluster, topic, partition, transactional_id)
        positions = dict(sources[topic].positions)
        positions[partition] = structs.replace(positions[partition], held_by=transactional_id)
        sources[topic] = structs.replace(sources[topic], positions=positions)
    return structs.replace(state, sources=sources)


def _is_due(question: _Question | None, steady_ms: int) -> bool:
    return question is None or (question.answer.done() and steady_ms - question.asked_ms >= ASK_EVERY_MS)

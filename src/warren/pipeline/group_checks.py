"""Finds the groups that were deleted unseen, by what their brokers know.

Brokers remove tombstones after `delete.retention.ms`. Groups that were deleted in a long gap in reading would then stay
for `expire-group`. So after such a gap, and every `groups-reaper-refresh` seconds, the brokers of a cluster are asked,
beside the cycle: they list their groups, the buckets name groups that the list lacks, and of each of those the brokers
say whether it has anything committed. Only a group that is not listed and has nothing committed is dropped. A list that
is short, because a right is missing or a partition of the offsets topic has no leader, drops nothing.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import pyarrow as pa
from msgspec import structs

from warren.config import Config
from warren.errors import ClusterError
from warren.kafka.samples import ClusterSample
from warren.pipeline.background import in_background
from warren.pipeline.bucket_result import BucketResult
from warren.pipeline.plan import PlannedCluster
from warren.snapshot.manifest import Manifest
from warren.sources.offsets_topic import offsets_topics

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
"""The brokers' own offsets topic: they know no groups of any other."""
LONG_GAP_MS = 3_600_000
RETRY_MS = 3_600_000
THREAD = "check for deleted groups"

ListGroups = Callable[[str], Sequence[str]]
"""Lists the groups of a cluster."""
FindWithoutOffsets = Callable[[str, Sequence[str]], Sequence[str]]
"""Finds those of some groups of a cluster that have nothing committed."""


@dataclass(slots=True)
class _Check:
    """A check of one cluster: the list first, then questions about groups that it lacks, a few hundred at a time."""

    listed_at_ms: int
    answer: Future[Sequence[str]]
    known: set[str] | None = None
    """The groups that the brokers list, or that have something committed; None until they are listed."""
    asked: frozenset[str] = frozenset()
    dropped: int = 0
    stayed: int = 0


@dataclass(slots=True)
class GroupChecks:
    """The checks of the clusters whose groups their brokers know, by name with `groups-reaper-refresh`."""

    refresh_s: Mapping[str, int] = field(default_factory=dict)
    list_groups: ListGroups = lambda _: ()
    find_without_offsets: FindWithoutOffsets = lambda _, __: ()
    _running: dict[str, _Check] = field(default_factory=dict)
    _checked_ms: dict[str, int] = field(default_factory=dict)
    _failed_ms: dict[str, int] = field(default_factory=dict)

    def configure(self, refresh_s: Mapping[str, int]) -> None:
        """Check these clusters from now on; checks under way start again, as their brokers may be others."""
        self.refresh_s = refresh_s
        self._running.clear()

    def answers(self, before: Manifest, answered: Mapping[str, ClusterSample], now_ms: int) -> dict[str, pa.Table]:
        """What the brokers have said since the last cycle, as `LISTED` tables by cluster; checks that are due start."""
        tables = {}
        for cluster in (cluster for cluster in answered if cluster in self.refresh_s):
            if _is_gap(before, cluster, answered[cluster].ends_at_ms[0]):
                self._running.pop(cluster, None)
            check = self._running.get(cluster)
            if check is None and self._is_due(before, cluster, now_ms):
                self._running[cluster] = _Check(now_ms, in_background(THREAD, self.list_groups, cluster))
            elif check is not None and check.answer.done():
                try:
                    tables[cluster] = _to_table(check)
                except Exception as error:
                    is_expected = isinstance(error, ClusterError)
                    message = "%s: the check for deleted groups failed, next try in an hour: %s"
                    log.warning(message, cluster, error, exc_info=not is_expected)
                    del self._running[cluster]
                    self._failed_ms[cluster] = now_ms
        return tables

    def planned(self, clusters: Iterable[PlannedCluster], tables: Mapping[str, pa.Table]) -> tuple[PlannedCluster, ...]:
        """The clusters, those with a table with the time of their list."""
        return tuple(
            replace(cluster, listed_at_ms=self._running[cluster.name].listed_at_ms)
            if cluster.name in tables
            else cluster
            for cluster in clusters
        )

    def with_unseen_deletions(
        self, before: Manifest, after: Manifest, tables: Mapping[str, pa.Table], results: Iterable[BucketResult]
    ) -> Manifest:
        """The manifest of a cycle; clusters are marked after a long gap, until a check has found nothing more."""
        unlisted = {cluster for result in results for cluster, _ in result.unlisted_groups}
        clusters = {}
        for name, state in after.clusters.items():
            is_gap = _is_gap(before, name, state.looked_at_ms)
            is_open = state.has_unseen_deletions and not (name in tables and name not in unlisted)
            clusters[name] = structs.replace(state, has_unseen_deletions=is_gap or is_open)
        return structs.replace(after, clusters=clusters)

    def published(self, tables: Iterable[str], results: Sequence[BucketResult], now_ms: int) -> None:
        """The tables have been applied: ask about the groups that the buckets named, or end the check."""
        for cluster in tables:
            check = self._running[cluster]
            deleted = set(check.answer.result()) if check.known is not None else set()
            check.dropped += len(deleted)
            check.stayed += len(check.asked - deleted)
            check.known = _known(check)
            check.asked = frozenset(name for r in results for own, name in r.unlisted_groups if own == cluster)
            if check.asked:
                check.answer = in_background(THREAD, self.find_without_offsets, cluster, sorted(check.asked))
                continue
            del self._running[cluster]
            self._checked_ms[cluster] = now_ms
            if check.dropped or check.stayed:
                log.info("%s: %d groups were deleted unseen; %d that the brokers do not list stay, because they have "
                         "committed offsets or may not be described", cluster, check.dropped, check.stayed)  # fmt: skip

    def _is_due(self, before: Manifest, cluster: str, now_ms: int) -> bool:
        if now_ms - self._failed_ms.get(cluster, now_ms - RETRY_MS) < RETRY_MS:
            return False
        state, refresh_ms = before.clusters.get(cluster), self.refresh_s[cluster] * 1000
        is_regular = refresh_ms > 0 and now_ms - self._checked_ms.setdefault(cluster, now_ms) >= refresh_ms
        return is_regular or (state is not None and state.has_unseen_deletions)


def checked_clusters(config: Config) -> dict[str, int]:
    """The clusters whose groups all commit to the brokers' own offsets topic, with their `groups-reaper-refresh`."""
    other = {cluster for cluster, topic in offsets_topics(config) if topic != OFFSETS_TOPIC}
    return {name: own.groups_reaper_refresh for name, own in config.clusters.items() if name not in other}


def _is_gap(before: Manifest, cluster: str, looked_at_ms: int) -> bool:
    """Whether nothing of the cluster was read for so long that tombstones may be gone."""
    last_ms = before.clusters[cluster].looked_at_ms if cluster in before.clusters else 0
    return last_ms > 0 and looked_at_ms - last_ms > LONG_GAP_MS


def _known(check: _Check) -> set[str]:
    answer = set(check.answer.result())
    return answer if check.known is None else check.known | (check.asked - answer)


def _to_table(check: _Check) -> pa.Table:
    """The groups that exist, and those that were deleted, by the last answer."""
    known = sorted(_known(check))
    deleted = [] if check.known is None else sorted(check.answer.result())
    is_deleted = [False] * len(known) + [True] * len(deleted)
    return pa.table(
        {"group": pa.array([*known, *deleted], pa.string()), "is_deleted": pa.array(is_deleted, pa.bool_())}
    )

"""What is asked of one cluster: ends of its offsets topics and heads at every sample, the rest rarely."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from warren.domain.windows import UNKNOWN
from warren.errors import ClusterError
from warren.kafka.admin import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, Admin
from warren.kafka.samples import (
    COMMITTED,
    OWNERS,
    ClusterSample,
    Offsets,
    Partition,
    PartitionEnds,
    SamplingTarget,
    Topic,
    to_table,
)
from warren.kafka.tails import Tails
from warren.kafka.topics import Layout, OffsetQuery

_log = logging.getLogger(__name__)

# How much of a sample's time the ends may take: a cluster that is away is then known to be so well in time.
_ENDS_SHARE = 0.4
_REFRESH_LIMIT_S = 30.0
_LOG_STARTS_LIMIT_S = 10.0
_RETRY_S = 1.0
# Topics are looked for before their time only as often as leaves most of the time to the samples.
_REST_AFTER_REFRESH = 3.0
_LEAST_REST_S = 0.05
_MOST_REST_S = 10.0
_NO_OFFSETS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class KnownVersions:
    """Which layout and which owners the asker holds already, by version."""

    layout: int = 0
    owners: int = 0


@dataclass(frozen=True, slots=True)
class SampleReply:
    """A sample without what its asker holds already: topics and log starts, owners."""

    sample: ClusterSample
    known: KnownVersions = KnownVersions()


@dataclass(frozen=True, slots=True)
class _Owners:
    version: int = 0
    table: pa.Table | None = None
    groups: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _State:
    version: int
    checked_at: float
    checked_at_ms: int
    layout: Layout
    heads: OffsetQuery
    log_starts: Offsets
    owners: _Owners


class ClusterSampler:
    """Looks at one cluster: `sample` when asked, `refresh_forever` beside it in a thread of its own."""

    def __init__(self, target: SamplingTarget) -> None:
        self._target = target
        self._admin = Admin(target.client_config)
        self._tails = Tails(target.client_config)
        self._state: _State | None = None
        self._has_state = threading.Event()
        self._is_refresh_wanted = threading.Event()
        self._away = ""
        self._is_away = threading.Event()
        self._last_topics: tuple[Topic, ...] = ()
        self._last_heads = np.empty(0, np.int64)
        self._is_doubtful = np.empty(0, np.bool_)
        self._doubted_at = 0.0

    def sample(self, deadline: float, known: KnownVersions, unverified_tails: Sequence[Partition] = ()) -> SampleReply:
        """Fixes the ends of the offsets topics, then asks for all heads; what comes too late is UNKNOWN.

        The tails of unverified_tails partitions are looked at for the samples after this one.
        """
        cluster = self._target.cluster
        if self._away:
            # It was waited for once; the refresh finds out when it is back, and the others need not wait.
            return SampleReply(ClusterSample(cluster, error=self._away))
        try:
            left = deadline - time.monotonic()
            ids, ends = self._ends(deadline - (1 - _ENDS_SHARE) * left)
            ends_at_ms = _now_ms()
            state = self._wait_for_state(deadline)
            before_ms = _now_ms()
            heads = self._heads(state, deadline)
        except ClusterError as e:
            self._away = str(e)
            self._is_refresh_wanted.set()
            self._is_away.set()
            return SampleReply(ClusterSample(cluster, error=self._away))
        heads_at_ms = (before_ms, _now_ms())
        self._tails.look_at(unverified_tails, state.layout, heads)
        heads, verified_tails = self._tails.apply(state.layout, heads)
        is_new_layout = state.version != known.layout
        owners = state.owners if state.owners.version != known.owners else _Owners()
        sample = ClusterSample(
            cluster,
            ends_at_ms=ends_at_ms,
            ends=ends,
            offsets_topic_ids=ids,
            heads_at_ms=heads_at_ms,
            topics_at_ms=state.checked_at_ms,
            topics=state.layout.topics if is_new_layout else (),
            heads=heads,
            log_starts=state.log_starts if is_new_layout else _NO_OFFSETS,
            verified_tails=verified_tails,
            owners=owners.table,
            consumer_groups=owners.groups,
        )
        return SampleReply(sample, KnownVersions(state.version, state.owners.version))

    def committed(self, deadline: float) -> pa.Table:
        """The committed offsets of all groups as the Admin API gives them."""
        groups = self._admin.list_groups(deadline, only_consumer_protocol=False)
        columns: tuple[list[str], list[str], list[int], list[int]] = ([], [], [], [])
        for group, partitions in self._admin.committed(groups, deadline):
            committed = [tp for tp in partitions if tp.offset >= 0]
            columns[0].extend([group] * len(committed))
            columns[1].extend(tp.topic for tp in committed)
            columns[2].extend(tp.partition for tp in committed)
            columns[3].extend(tp.offset for tp in committed)
        return to_table(COMMITTED, columns)

    def refresh_forever(self) -> None:
        """Keeps topics, log starts and owners fresh, every topic-refresh or when a sample saw them change."""
        period_s = self._target.topic_refresh_s
        due_at = time.monotonic()
        while True:
            started = time.monotonic()
            is_due, was_away = started >= due_at, bool(self._away)
            self._is_refresh_wanted.clear()
            try:
                self._refresh(is_due)
                due_at = started + period_s if is_due else due_at
                took_s = 0.0 if was_away else time.monotonic() - started
                rest_s = min(took_s * _REST_AFTER_REFRESH, _MOST_REST_S, period_s)
            except ClusterError as e:
                _log.debug("cluster %s: topics: %s", self._target.cluster, e)
                time.sleep(_RETRY_S)
                continue
            self._is_away.wait(max(rest_s, _LEAST_REST_S))
            self._is_refresh_wanted.wait(max(due_at - time.monotonic(), 0.0))

    def _ends(self, deadline: float) -> tuple[dict[str, str], dict[str, dict[int, PartitionEnds]]]:
        # Asked anew each time, not taken from the state: it appears with a fresh cluster's first commit.
        described = self._admin.describe_topics(self._target.offsets_topics, deadline, with_in_sync=True)
        layout = Layout.of(described)
        latest = OffsetQuery(layout, LATEST)
        # A broker answers a connection in order, so what comes first is never ahead of what comes after.
        takes: list[Callable[[], Offsets]] = [
            OffsetQuery(layout, EARLIEST).ask(self._admin, READ_UNCOMMITTED, deadline),
            latest.ask(self._admin, READ_COMMITTED, deadline),
            latest.ask(self._admin, READ_UNCOMMITTED, deadline),
        ]
        log_start, stable_end, end = (take() for take in takes)
        is_known = (log_start != UNKNOWN) & (stable_end != UNKNOWN) & (end != UNKNOWN)
        mute = latest.mute | (self._state.heads.mute if self._state else frozenset())
        ends: dict[str, dict[int, PartitionEnds]] = {name: {} for name in self._target.offsets_topics}
        for topic, first in zip(layout.topics, layout.starts.tolist(), strict=True):
            in_sync = described[topic.name].in_sync
            ends[topic.name] = {
                p: PartitionEnds(
                    int(log_start[i]), int(stable_end[i]), int(max(end[i], stable_end[i])), bool(in_sync[p] & mute)
                )
                for p, i in enumerate(range(first, first + topic.partitions))
                if is_known[i]
            }
        return {topic.name: topic.id for topic in layout.topics}, ends

    def _wait_for_state(self, deadline: float) -> _State:
        if self._state is None:
            self._has_state.wait(deadline - time.monotonic())
        if self._state is None:
            raise ClusterError("its topics could not be listed in time")
        return self._state

    def _heads(self, state: _State, deadline: float) -> Offsets:
        heads = state.heads.ask(self._admin, READ_UNCOMMITTED, deadline)()
        is_known = heads != UNKNOWN
        if state.heads.partitions and not is_known.any():
            raise ClusterError(f"none of {state.heads.partitions} partitions answered in time")
        if state.layout.topics != self._last_topics:
            self._last_topics, self._last_heads = state.layout.topics, np.full(len(heads), UNKNOWN, np.int64)
            self._is_doubtful = np.zeros(len(heads), np.bool_)
        # A head that falls is another topic of the same name, or a log cut short. Nothing is said about that
        # topic until its id has been looked up.
        elif state.checked_at > self._doubted_at:
            self._is_doubtful = np.zeros(len(heads), np.bool_)
        has_fallen = is_known & (heads < self._last_heads)
        if has_fallen.any():
            self._is_doubtful = self._is_doubtful | state.layout.anywhere_in_topic(has_fallen)
            self._doubted_at = time.monotonic()
        self._last_heads = np.where(is_known, heads, self._last_heads)
        heads = np.where(self._is_doubtful, UNKNOWN, heads)
        if (heads == UNKNOWN).any():
            self._is_refresh_wanted.set()
        return heads

    def _refresh(self, is_due: bool) -> None:
        checked_at, checked_at_ms = time.monotonic(), _now_ms()
        deadline = checked_at + _REFRESH_LIMIT_S
        old = self._state
        layout = Layout.of(self._admin.describe_topics(self._admin.topic_names(deadline), deadline))
        self._is_away.clear()
        self._away = ""
        if old is not None and not is_due and layout.same_as(old.layout):
            self._state = replace(old, checked_at=checked_at, checked_at_ms=checked_at_ms)
            return
        log_starts = OffsetQuery(layout, EARLIEST).ask(
            self._admin, READ_UNCOMMITTED, time.monotonic() + _LOG_STARTS_LIMIT_S
        )()
        owners = old.owners if old else _Owners()
        heads = old.heads if old and layout.same_as(old.layout) else OffsetQuery(layout, LATEST)
        state = _State(time.time_ns(), checked_at, checked_at_ms, layout, heads, log_starts, owners)
        # Before the owners are asked for, as the first sample waits for it.
        self._state = state
        self._has_state.set()
        if is_due:
            try:
                self._state = replace(state, owners=self._owners(time.monotonic() + _REFRESH_LIMIT_S))
            except ClusterError as e:
                _log.debug("cluster %s: owners: %s", self._target.cluster, e)

    def _owners(self, deadline: float) -> _Owners:
        groups = self._admin.list_groups(deadline, only_consumer_protocol=True)
        columns: tuple[list[str], list[str], list[int], list[str], list[str]] = ([], [], [], [], [])
        for member in self._admin.describe_members(groups, deadline):
            columns[0].extend([member.group] * len(member.assigned))
            columns[1].extend(topic for topic, _ in member.assigned)
            columns[2].extend(partition for _, partition in member.assigned)
            columns[3].extend([member.owner] * len(member.assigned))
            columns[4].extend([member.client_id] * len(member.assigned))
        return _Owners(time.time_ns(), to_table(OWNERS, columns), tuple(groups))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

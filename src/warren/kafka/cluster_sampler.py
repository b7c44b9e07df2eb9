"""Samples one cluster: the ends of its offsets topics and all heads every time, topics and owners rarely."""

import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from warren.clock import steady_ms
from warren.domain.arrays import Ints
from warren.domain.windows import UNKNOWN
from warren.errors import ClusterError
from warren.kafka.admin import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, AdminOf, TopicDescriptions
from warren.kafka.described_topics import TopicDescriber
from warren.kafka.past_heads import PastHeads, read_past_heads
from warren.kafka.record_times import RecordTimes
from warren.kafka.samples import (
    COMMITTED,
    NO_OFFSETS,
    OWNERS,
    TOPIC_GRACE_MS,
    ClusterSample,
    PartitionEnds,
    SampleQuestions,
    SampleVersions,
    SamplingTarget,
    Topic,
    missing_topics,
    to_table,
)
from warren.kafka.tails import Tails
from warren.kafka.topic_configs import TopicConfigs
from warren.kafka.topics import OffsetQuery, PartitionLayout

_log = logging.getLogger(__name__)

# The share of a sample's time for the ends: it leaves enough time to report an unavailable cluster.
_ENDS_SHARE = 0.4
_REFRESH_TIMEOUT_S = 30.0
_LOG_STARTS_TIMEOUT_S = 10.0
_RETRY_S = 1.0
# An early refresh waits for a multiple of the time that the last one took, so that most of the time is left to samples.
_REST_AFTER_REFRESH = 3.0
_MIN_REST_S = 0.05
_MAX_REST_S = 10.0
# A list of topics that is short, or the first one, is checked by another soon: only two that agree delete a topic.
_RECHECK_S = TOPIC_GRACE_MS / 1000 + 0.5


@dataclass(frozen=True, slots=True)
class _Owners:
    version: int = 0
    table: pa.Table | None = None
    groups: tuple[str, ...] | None = None
    listed: tuple[str, ...] = ()
    """Those of `groups` that were of the "consumer" protocol."""


@dataclass(frozen=True, slots=True)
class _Topics:
    """The result of a refresh: what changes rarely."""

    version: int
    checked_at: float
    checked_at_ms: int
    layout: PartitionLayout
    heads: OffsetQuery
    log_starts: Ints
    owners: _Owners


class ClusterSampler:
    """Samples one cluster on request, while `refresh_forever` runs in a thread of its own."""

    def __init__(self, target: SamplingTarget) -> None:
        self._target = target
        self._client = AdminOf(target.connection)
        self._describer = TopicDescriber(target, self._client)
        self._tails = Tails(target.cluster, target.connection)
        self._record_times = RecordTimes(target.cluster, self._client, target.connection)
        self._topic_configs = TopicConfigs(target.cluster, self._client)
        self._topics: _Topics | None = None
        self._has_topics = threading.Event()
        self._is_refresh_wanted = threading.Event()
        self._unavailable_reason = ""
        self._is_unavailable = threading.Event()
        self._last_topics: tuple[Topic, ...] = ()
        self._last_heads = NO_OFFSETS
        self._is_suspect = np.empty(0, np.bool_)
        self._suspected_at = 0.0
        self._delivered_owners = 0
        self._is_closed = False

    def sample(self, deadline: float, known: SampleVersions, questions: SampleQuestions) -> ClusterSample:
        """Fix the ends of the offsets topics, then read all heads; what does not arrive in time is UNKNOWN.

        Leaves out what the requester knows by version. Tails, times of records and configurations of topics are read in
        the background, for later samples.
        """
        if self._unavailable_reason:
            # One sample has waited for it. The refresh notices when it is back; until then no sample waits again.
            raise ClusterError(self._unavailable_reason)
        try:
            left_s = deadline - time.monotonic()
            ends_from_ms = steady_ms()
            ends_deadline = deadline - (1 - _ENDS_SHARE) * left_s
            described = self._describer.describe(questions.missing_topics, ends_deadline)
            if not described.topics.keys().isdisjoint(questions.missing_topics):
                self._is_refresh_wanted.set()
            topic_ids, ends = self._ends(described, ends_deadline)
            ends_at_ms = (ends_from_ms, steady_ms())
            topics = self._wait_for_topics(deadline)
            self._describer.refuse_without_topics(topics.layout.topics, described)
            heads_from_ms = steady_ms()
            heads = self._heads(topics, deadline)
        except ClusterError as error:
            self._unavailable_reason = str(error)
            self._is_refresh_wanted.set()
            self._is_unavailable.set()
            raise
        heads_at_ms = (heads_from_ms, steady_ms())
        self._tails.verify(questions.unverified_tails, topics.layout, heads)
        heads, verified_tails = self._tails.apply(topics.layout, heads)
        is_new_layout = topics.version != known.layout
        self._delivered_owners = known.owners
        owners = topics.owners if topics.owners.version != known.owners else _Owners()
        return ClusterSample(
            self._target.cluster,
            ends_at_ms=ends_at_ms,
            ends=ends,
            offsets_topic_ids=topic_ids,
            heads_at_ms=heads_at_ms,
            topics_at_ms=topics.checked_at_ms,
            topics=topics.layout.topics if is_new_layout else (),
            hidden_topics=tuple(described.hidden),
            absent_topics=tuple(described.absent),
            heads=heads,
            log_starts=topics.log_starts if is_new_layout else NO_OFFSETS,
            verified_tails=verified_tails,
            record_times=self._record_times.known(questions, topics.layout, heads),
            topic_configs=self._topic_configs.known(questions.lagging_topics, topics.layout),
            owners=owners.table,
            consumer_groups=owners.groups,
            versions=SampleVersions(topics.version, topics.owners.version),
        )

    def committed(self, deadline: float) -> pa.Table:
        """The committed offsets of all groups, read through the Admin API."""
        groups = self._client.admin().list_groups(deadline, only_consumer_protocol=False)
        return to_table(COMMITTED, self._client.admin().list_committed(groups, deadline))

    def past_heads(self, times_ms: Sequence[int], deadline: float) -> PastHeads:
        """The heads at some times, newest first, by the timestamps of records."""
        topics = self._wait_for_topics(deadline)
        admin = self._client.admin()
        heads = topics.heads.send(admin, READ_UNCOMMITTED, deadline)()
        return read_past_heads(admin, topics.layout, heads, times_ms, deadline)

    def groups(self, deadline: float) -> list[str]:
        """The names of all groups that the brokers list."""
        return self._client.admin().list_groups(deadline, only_consumer_protocol=False)

    def groups_without_offsets(self, groups: Sequence[str], deadline: float) -> list[str]:
        """Those of the groups that have nothing committed."""
        return self._client.admin().groups_without_offsets(groups, deadline)

    def refresh_forever(self) -> None:
        """Refresh topics, log starts and owners every `topic_refresh_s`, and topics when a sample saw them change."""
        period_s = self._target.topic_refresh_s
        due_at = time.monotonic()
        while not self._is_closed:
            started = time.monotonic()
            is_due, was_unavailable = started >= due_at, bool(self._unavailable_reason)
            self._is_refresh_wanted.clear()
            try:
                recheck_at = started + _RECHECK_S if self._refresh(is_due) else math.inf
            except Exception as error:  # noqa: BLE001 - the next refresh may succeed
                if self._unavailable_reason and isinstance(error, ClusterError):
                    self._unavailable_reason = str(error)
                level = logging.DEBUG if isinstance(error, ClusterError) else logging.ERROR
                _log.log(level, "cluster %s: refresh of topics: %s", self._target.cluster, error, exc_info=True)
                time.sleep(_RETRY_S)
                continue
            due_at = started + period_s if is_due else due_at
            took_s = 0.0 if was_unavailable else time.monotonic() - started
            rest_s = min(took_s * _REST_AFTER_REFRESH, _MAX_REST_S, period_s)
            self._is_unavailable.wait(max(rest_s, _MIN_REST_S))
            self._is_refresh_wanted.wait(max(min(due_at, recheck_at) - time.monotonic(), 0.0))

    def close(self) -> None:
        """End the threads; the connections end with the last call under way."""
        self._is_closed = True
        self._is_unavailable.set()
        self._is_refresh_wanted.set()
        self._tails.close()
        self._record_times.close()

    def _ends(
        self, described: TopicDescriptions, deadline: float
    ) -> tuple[dict[str, str], dict[str, dict[int, PartitionEnds]]]:
        """The ids of the offsets topics and the ends of their partitions."""
        topics = {name: topic for name, topic in described.topics.items() if name in self._target.offsets_topics}
        layout = PartitionLayout.of(topics)
        earliest, latest = OffsetQuery(layout, EARLIEST), OffsetQuery(layout, LATEST)
        # A broker answers the requests of a connection in order, so an earlier offset is never ahead of a later one.
        receivers = [
            earliest.send(self._client.admin(), READ_UNCOMMITTED, deadline),
            latest.send(self._client.admin(), READ_COMMITTED, deadline),
            latest.send(self._client.admin(), READ_UNCOMMITTED, deadline),
        ]
        log_start = receivers[0]()
        latest.unresponsive = earliest.unresponsive
        stable_end, end = (receive() for receive in receivers[1:])
        is_known = (log_start != UNKNOWN) & (stable_end != UNKNOWN) & (end != UNKNOWN)
        unresponsive = latest.unresponsive | (self._topics.heads.unresponsive if self._topics else frozenset())
        ends: dict[str, dict[int, PartitionEnds]] = {name: {} for name in self._target.offsets_topics}
        for topic, start in layout.start_by_topic().items():
            for partition, in_sync in enumerate(topics[topic].in_sync):
                i = start + partition
                if is_known[i]:
                    high_watermark = max(end[i], stable_end[i])
                    ends[topic][partition] = PartitionEnds(
                        int(log_start[i]), int(stable_end[i]), int(high_watermark), bool(in_sync & unresponsive)
                    )
        return {topic.name: topic.id for topic in layout.topics}, ends

    def _wait_for_topics(self, deadline: float) -> _Topics:
        if self._topics is None:
            self._has_topics.wait(deadline - time.monotonic())
        if self._topics is None:
            raise ClusterError("its topics could not be listed in time")
        return self._topics

    def _heads(self, topics: _Topics, deadline: float) -> Ints:
        heads = topics.heads.send(self._client.admin(), READ_UNCOMMITTED, deadline)()
        is_known = heads != UNKNOWN
        if topics.heads.partitions and not is_known.any():
            raise ClusterError(f"none of {topics.heads.partitions} partitions answered in time")
        is_new = topics.layout.topics != self._last_topics
        if is_new:
            self._last_topics, self._last_heads = topics.layout.topics, np.full(len(heads), UNKNOWN, np.int64)
        if is_new or topics.checked_at > self._suspected_at:
            self._is_suspect = np.zeros(len(heads), np.bool_)
        # A head that falls means that the topic was created again, or its log truncated. The heads of that topic are
        # UNKNOWN until a refresh has read its id.
        has_fallen = is_known & (heads < self._last_heads)
        if has_fallen.any():
            self._is_suspect = self._is_suspect | topics.layout.mark_whole_topics(has_fallen)
            self._suspected_at = time.monotonic()
        self._last_heads = np.where(is_known, heads, self._last_heads)
        heads = np.where(self._is_suspect, UNKNOWN, heads)
        if (heads == UNKNOWN).any():
            self._is_refresh_wanted.set()
        return heads

    def _refresh(self, is_due: bool) -> bool:
        """Whether topics are missing that were there before, as far as that is known."""
        checked_at, checked_at_ms = time.monotonic(), steady_ms()
        deadline = checked_at + _REFRESH_TIMEOUT_S
        old = self._topics
        layout = self._describe_all(deadline)
        self._is_unavailable.clear()
        self._unavailable_reason = ""
        is_same = old is not None and layout.equals(old.layout)
        is_short = old is None or bool(missing_topics(old.layout.topics, layout.topics))
        if old is not None and is_same and not is_due:
            self._topics = replace(old, checked_at=checked_at, checked_at_ms=checked_at_ms)
            return is_short
        log_starts_deadline = time.monotonic() + _LOG_STARTS_TIMEOUT_S
        log_starts = OffsetQuery(layout, EARLIEST).send(self._client.admin(), READ_UNCOMMITTED, log_starts_deadline)()
        owners = old.owners if old else _Owners()
        heads = old.heads if old and is_same else OffsetQuery(layout, LATEST)
        topics = _Topics(time.time_ns(), checked_at, checked_at_ms, layout, heads, log_starts, owners)
        # Set before the owners are read, because the first sample waits for the topics.
        self._topics = topics
        self._has_topics.set()
        if is_due:
            try:
                self._topics = replace(topics, owners=self._owners(owners, time.monotonic() + _REFRESH_TIMEOUT_S))
            except ClusterError as error:
                _log.debug("cluster %s: owners: %s", self._target.cluster, error)
        return is_short

    def _describe_all(self, deadline: float) -> PartitionLayout:
        admin = self._client.admin()
        return PartitionLayout.of(admin.describe_topics(admin.topic_names(deadline), deadline).topics)

    def _owners(self, before: _Owners, deadline: float) -> _Owners:
        listed = self._client.admin().list_groups(deadline, only_consumer_protocol=True)
        # A group that is not listed any more is deleted, or of the classic protocol now: described once more, it loses
        # its owners or shows those that it has. That must not be lost with a result that no sample delivered.
        former = before.listed if before.version == self._delivered_owners else before.groups or ()
        groups = sorted({*listed, *former})
        table = to_table(OWNERS, self._client.admin().list_owners(groups, deadline))
        return _Owners(time.time_ns(), table, tuple(groups), tuple(listed))

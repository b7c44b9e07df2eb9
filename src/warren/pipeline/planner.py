"""What a cycle reads and judges, from the configuration, the last manifest and the samples of the clusters; no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from msgspec import structs

from warren.clock import ClockReading
from warren.config import Config, Consumer
from warren.config.kafka import ZooKeeperConsumer
from warren.domain.matching import GroupFilter
from warren.domain.offsets_logs import NO_LOG, OffsetsLog, offsets_log_id, zookeeper_log_id
from warren.domain.rules import Limits
from warren.domain.topic_ids import own_id
from warren.kafka.samples import TOPIC_CONFIGS, ClusterSample, Topic
from warren.pipeline.head_files import changed_topics
from warren.pipeline.next_manifest import skew_of, state_of
from warren.pipeline.offset_ranges import TopicRead, plan_topic_read
from warren.pipeline.plan import CyclePlan, PlannedCluster, PlannedSource, filters_text
from warren.pipeline.schemas import LISTED, OWNERS, SEEDS, TableKind
from warren.pipeline.shuffle import address_tables, call_buckets
from warren.pipeline.topic_ids import last_seen_ms
from warren.pipeline.wanted import keep_wanted_groups
from warren.pipeline.zookeeper_offsets import SectionRead, plan_section_read
from warren.snapshot.manifest import ClusterState, HeadSample, Manifest
from warren.snapshot.requests import PipelineRequest
from warren.sources.offsets_topic import offsets_topics, starts_latest
from warren.sources.zookeeper.samples import ZooKeeperSample

Samples = Mapping[str, ClusterSample]

MAX_GAP_TRIGGERS = 6
"""After how many missed samples the heads in between are no longer known."""


class Planner:
    """Plans the cycles of one configuration."""

    def __init__(self, config: Config, root: str) -> None:
        self.config = config
        self.root = root
        self.names = sorted(config.clusters)
        """The clusters in the order of their indexes in plans."""
        self.consumers = offsets_topics(config)
        self.storage_filter = GroupFilter(config.storage.group_allowlist, config.storage.group_denylist)

    @property
    def trigger_s(self) -> float:
        """How often a cycle runs."""
        return self.config.trigger_s

    def reads(self, before: Manifest, answered: Samples, now_ms: int) -> list[TopicRead]:
        """What to read of every offsets topic; if one of a cluster is another log now, all of its from their start."""
        topics = [(cluster, topic) for cluster, topic in self.consumers if cluster in answered]
        reads = [self._read(before, answered[cluster], topic, now_ms) for cluster, topic in topics]
        restarted = {read.cluster for read in reads if read.is_another_log}
        for index, (cluster, topic) in enumerate(topics):
            if cluster in restarted:
                again = self._read(before, answered[cluster], topic, now_ms, is_restart=True)
                reads[index] = _started_over(reads[index], again, now_ms)
        return reads

    def _read(
        self, before: Manifest, sample: ClusterSample, topic: str, now_ms: int, *, is_restart: bool = False
    ) -> TopicRead:
        state = state_of(before, sample.cluster)
        source = state.sources.get(topic)
        read = plan_topic_read(
            sample.cluster,
            topic,
            None if is_restart else source,
            sample.ends.get(topic, {}),
            sample.offsets_topic_ids.get(topic, ""),
            from_latest=source is None and all(starts_latest(c) for c in self.consumers[sample.cluster, topic]),
            now_ms=now_ms,
            sampled_ms=sample.ends_at_ms,
            last_sampled_ms=state.looked_at_ms,
            was_unavailable=state.error is not None,
        )
        topics = sorted(name for cluster, name in self.consumers if cluster == sample.cluster)
        return replace(read, first_log=offsets_log_id(topics.index(topic)))

    def section_reads(
        self, before: Manifest, answered: Samples, sections: Mapping[str, ZooKeeperSample], now: ClockReading
    ) -> list[SectionRead]:
        """What to take of the offsets in ZooKeeper: all that was observed before the heads were sampled."""
        return [
            plan_section_read(
                name,
                state_of(before, name).zookeeper.get(own.name),
                sections.get(own.name) or ZooKeeperSample(own.name, error="it is not read"),
                answered[name].ends_at_ms[0],
                now.offset_ms,
                now.wall_ms,
                is_from_start=self._has_new_filters(before, name),
            )
            for name in answered
            for own in self.sections_of(name)
        ]

    def _has_new_filters(self, before: Manifest, cluster: str) -> bool:
        return state_of(before, cluster).filters != filters_text(self.storage_filter, self.filters_of(cluster))

    def clusters(
        self,
        before: Manifest,
        answered: Samples,
        reads: Sequence[TopicRead],
        topics: Mapping[str, Sequence[Topic]],
        now_ms: int,
        sections: Sequence[SectionRead] = (),
    ) -> tuple[PlannedCluster, ...]:
        """Every cluster as the tasks see it; `topics` are those of the last sample."""
        planned = []
        for name in self.names:
            state, sample = state_of(before, name), answered.get(name)
            own = [read for read in reads if read.cluster == name]
            in_zookeeper = [read for read in sections if read.cluster == name]
            # The list of topics is older than the sample: later commits are to a topic of that name created since.
            deleted, recreated = changed_topics(topics[name], sample.topics) if sample else ((), ())
            deleted_topics = [(topic.name, sample.topics_at_ms if sample else 0) for topic in deleted]
            deleted_topics += [(topic.name, last_seen_ms(topic) or state.topics_at_ms) for topic in recreated]
            planned.append(
                PlannedCluster(
                    name=name,
                    is_judged=sample is not None and not any(read.is_catching_up for read in own),
                    is_restarted=any(read.is_another_log for read in own),
                    recent_ms=self.config.storage.intervals * self._every_ms(name),
                    max_gap_ms=self.max_gap_ms(name),
                    topic_refresh_ms=self.config.clusters[name].topic_refresh * 1000,
                    read_records=self.config.clusters[name].read_records,
                    deleted_topics=tuple(deleted_topics),
                    verified_tails=sample.verified_tails if sample else (),
                    record_times=sample.record_times if sample else (),
                    topic_configs=sample.topic_configs if sample else TOPIC_CONFIGS.empty_table(),
                    logs=(
                        *(log for read in own for log in to_logs(read, state, now_ms)),
                        *(read.to_log(now_ms) for read in in_zookeeper),
                    ),
                    filters=self.filters_of(name),
                    has_new_filters=self._has_new_filters(before, name),
                    zookeeper_logs=tuple(zookeeper_log_id(section.name) for section in self.sections_of(name)),
                    listed_logs=tuple(read.log for read in in_zookeeper if read.listing is not None),
                )
            )
        return tuple(planned)

    def _every_ms(self, cluster: str) -> int:
        """How often a cluster is sampled."""
        return round(max(self.config.clusters[cluster].offset_refresh, self.trigger_s) * 1000)

    def max_gap_ms(self, cluster: str) -> int:
        """How far apart two samples of a cluster may be for the head between them to be known."""
        return MAX_GAP_TRIGGERS * self._every_ms(cluster)

    def filters_of(self, cluster: str) -> tuple[GroupFilter, ...]:
        """The filters of the consumer sections of a cluster, of which a group has to pass one."""
        sections: list[Consumer | ZooKeeperConsumer] = [*self.sections_of(cluster)]
        sections += (c for (name, _), own in self.consumers.items() if name == cluster for c in own)
        return tuple(map(_filter, sections))

    def sections_of(self, cluster: str) -> list[ZooKeeperConsumer]:
        """The consumer sections of a cluster that commit to ZooKeeper."""
        return [section for section in self.config.zookeeper_consumers.values() if section.cluster == cluster]

    def plan(
        self,
        before: Manifest,
        now_ms: int,
        clusters: tuple[PlannedCluster, ...],
        reads: Sequence[TopicRead],
        heads: tuple[HeadSample, ...],
        slots: tuple[int, ...],
        deletions: tuple[PipelineRequest, ...] = (),
        clock_step_ms: int = 0,
    ) -> CyclePlan:
        """The plan that goes to every task."""
        storage, evaluator = self.config.storage, self.config.evaluator
        return CyclePlan(
            root=self.root,
            sequence=before.sequence + 1,
            now_ms=now_ms,
            intervals=storage.intervals,
            min_distance_ms=storage.min_distance * 1000,
            expire_ms=storage.expire_group * 1000,
            limits=Limits(evaluator.minimum_complete, evaluator.allowed_lag),
            clusters=clusters,
            sources=tuple(self._source(read) for read in reads),
            slots=slots,
            state=before.buckets,
            heads=heads,
            elapsed_ms=max(now_ms - before.now_ms, 0) if before.now_ms else 0,
            clock_step_ms=clock_step_ms,
            storage_filter=self.storage_filter,
            deletions=deletions,
        )

    def _source(self, read: TopicRead) -> PlannedSource:
        consumers = self.consumers[read.cluster, read.topic]
        return PlannedSource(self.names.index(read.cluster), tuple(map(_filter, consumers)), read.first_log)

    def needs_seeds(self, before: Manifest, cluster: str) -> bool:
        """Whether the offsets of silent groups are still to be listed: once, after a start at the latest commits."""
        consumers = [c for (name, _), sections in self.consumers.items() if name == cluster for c in sections]
        return not state_of(before, cluster).seeded and bool(consumers) and all(starts_latest(c) for c in consumers)


def _filter(consumer: Consumer | ZooKeeperConsumer) -> GroupFilter:
    return GroupFilter(consumer.group_allowlist, consumer.group_denylist)


def _started_over(read: TopicRead, again: TopicRead, now_ms: int) -> TopicRead:
    """A read from the start; a new log of brokers without ids gets one, by which a lake tells the two apart."""
    topic_id = again.after.topic_id or (own_id(now_ms) if read.is_another_log else read.after.topic_id)
    after = structs.replace(again.after, topic_id=topic_id)
    return replace(again, after=after, warnings=read.warnings, is_another_log=True)


def to_logs(read: TopicRead, before: ClusterState, now_ms: int) -> list[OffsetsLog]:
    """The partitions of an offsets topic as the tasks see them, given the cluster's state before."""
    was = before.sources.get(read.topic)
    known = was.positions if was and not read.is_another_log else {}
    return [
        OffsetsLog(
            id=read.first_log + partition,
            read_from_ms=known[partition].seen_until_ms if partition in known else 0,
            read_to_ms=read.sampled_ms[1],
            seen_until_ms=position.seen_until_ms,
            skew_ms=skew_of(known.get(partition)).ms,
            skew_error_ms=skew_of(known.get(partition)).error_ms,
            unknown_since_ms=position.unknown_since(now_ms),
            away_from_ms=position.away_from_ms,
            away_to_ms=position.away_to_ms,
        )
        for partition, position in read.after.positions.items()
    ]


def driver_tables(
    plan: CyclePlan,
    answered: Samples,
    seeds: Mapping[str, pa.Table],
    listed: Mapping[str, pa.Table],
    sections: Sequence[SectionRead] = (),
) -> pa.Table:
    """What the driver itself sends: a call to every bucket, what brokers have listed, and offsets in ZooKeeper."""
    batches = [call_buckets(plan)]
    for index, cluster in enumerate(plan.clusters):
        sample = answered.get(cluster.name)
        tables = {}
        if sample is not None and sample.owners is not None:
            tables[TableKind.OWNERS] = _to_cluster_table(_with_groups(sample), index, OWNERS, plan)
        if cluster.name in seeds:
            tables[TableKind.SEEDS] = _to_cluster_table(seeds[cluster.name], index, SEEDS, plan)
        if cluster.name in listed:
            tables[TableKind.LISTED] = _to_cluster_table(listed[cluster.name], index, LISTED, plan)
        batches += address_tables(tables, plan)
        for read in sections:
            if read.cluster == cluster.name:
                batches += address_tables(read.tables(index), plan)
    return pa.Table.from_batches(batches)


def _to_cluster_table(table: pa.Table, cluster: int, schema: pa.Schema, plan: CyclePlan) -> pa.Table:
    table = table.append_column("cluster", pa.array([cluster] * table.num_rows, pa.int32()))
    return keep_wanted_groups(table.select(schema.names).cast(schema), plan)


def _with_groups(sample: ClusterSample) -> pa.Table:
    """Owners, and a row for each new-protocol group, so that one without members loses the owners it had."""
    assert sample.owners is not None
    groups = pa.table({"group": pa.array(list(sample.consumer_groups or ()), pa.string())})
    owners = pa.concat_tables([groups, sample.owners], promote_options="default")
    return owners.append_column("log", pa.array([NO_LOG] * owners.num_rows, pa.int32()))

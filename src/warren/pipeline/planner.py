"""What a cycle is to do, from the configuration, the last manifest and a look at the clusters; nothing is read here."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from warren.config import Config
from warren.domain.matching import GroupFilter
from warren.domain.offsets_outages import Outage
from warren.domain.rules import Limits
from warren.kafka.samples import ClusterSample, Topic
from warren.pipeline.decode import keep_wanted
from warren.pipeline.head_files import changed_topics
from warren.pipeline.next_manifest import NEVER_SEEN, clock_skew_of
from warren.pipeline.offset_ranges import TopicRead, plan_topic_read
from warren.pipeline.plan import CyclePlan, PlannedCluster, PlannedSource
from warren.pipeline.schemas import OWNERS, SEEDS, Piece
from warren.pipeline.shuffle import pieces_of
from warren.snapshot.manifest import ClusterState, HeadSample, Manifest, Source
from warren.snapshot.requests import PipelineRequest
from warren.sources.offsets_topic import offsets_topics, starts_latest

Samples = Mapping[str, ClusterSample]

ON_ITS_WAY_MS = 10_000
"""How long after it was made a commit may still be on its way to where it can be read."""


class Planner:
    """Plans the cycles of one configuration."""

    def __init__(self, config: Config, root: str) -> None:
        self.config = config
        self.root = root
        self.names = sorted(config.clusters)
        """The clusters in the order in which tasks count them."""
        self.consumers = offsets_topics(config)

    @property
    def trigger_s(self) -> float:
        """How often a cycle runs: never rarer than any cluster's offset-refresh."""
        return min(self.config.pipeline.trigger, *(c.offset_refresh for c in self.config.clusters.values()))

    def readings(self, before: Manifest, answered: Samples, started: Collection[str], now_ms: int) -> list[TopicRead]:
        """What to read of every offsets topic; of a cluster of which one is another log now, all from its start."""
        readings = [
            self._reading(before, answered[cluster], topic, started, now_ms)
            for cluster, topic in self.consumers
            if cluster in answered
        ]
        anew = {reading.cluster for reading in readings if reading.is_another_log}
        return [
            replace(
                self._reading(before, answered[r.cluster], r.topic, started, now_ms, is_anew=True),
                notes=r.notes,
                is_another_log=True,
            )
            if r.cluster in anew
            else r
            for r in readings
        ]

    def _reading(
        self,
        before: Manifest,
        sample: ClusterSample,
        topic: str,
        started: Collection[str],
        now_ms: int,
        *,
        is_anew: bool = False,
    ) -> TopicRead:
        state = state_of(before, sample.cluster)
        source = state.sources.get(topic)
        return plan_topic_read(
            sample.cluster,
            topic,
            None if is_anew else source,
            sample.ends.get(topic, {}),
            sample.offsets_topic_ids.get(topic, ""),
            from_latest=source is None and all(starts_latest(c) for c in self.consumers[sample.cluster, topic]),
            is_start=sample.cluster not in started or state.error is not None,
            now_ms=now_ms,
            looked_at_ms=state.looked_at_ms,
            was_away=state.error is not None,
        )

    def clusters(
        self,
        before: Manifest,
        answered: Samples,
        readings: Sequence[TopicRead],
        topics: Mapping[str, Sequence[Topic]],
    ) -> tuple[PlannedCluster, ...]:
        """Every cluster as the tasks see it; `topics` are those of the last look."""
        behind = {reading.cluster for reading in readings if reading.is_catching_up}
        anew = {reading.cluster for reading in readings if reading.is_another_log}
        planned = []
        for name in self.names:
            state = state_of(before, name)
            lost: tuple[tuple[str, int], ...] = ()
            if name in answered:
                # The list is older than the look: what was committed since is to a topic of the same name made later.
                gone, remade = changed_topics(topics[name], answered[name].topics)
                lost = (
                    *((topic, answered[name].topics_at_ms) for topic in gone),
                    *((topic, state.topics_at_ms) for topic in remade),
                )
            ring_s = self.config.storage.intervals * max(self.config.clusters[name].offset_refresh, self.trigger_s)
            planned.append(
                PlannedCluster(
                    name=name,
                    is_judged=name in answered and name not in behind,
                    is_read_anew=name in anew,
                    skew_ms=clock_skew_of(state).ms,
                    ring_ms=round(ring_s * 1000),
                    lost_topics=lost,
                    tails_known=answered[name].verified_tails if name in answered else (),
                    heard_at_ms=answered[name].ends_at_ms if name in answered else None,
                    away=away_in([reading.after for reading in readings if reading.cluster == name]),
                )
            )
        return tuple(planned)

    def plan(
        self,
        before: Manifest,
        now_ms: int,
        clusters: tuple[PlannedCluster, ...],
        readings: Sequence[TopicRead],
        heads: tuple[HeadSample, ...],
        slots: tuple[int, ...],
        deletions: tuple[PipelineRequest, ...] = (),
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
            sources=tuple(
                PlannedSource(
                    self.names.index(reading.cluster),
                    tuple(
                        GroupFilter(consumer.group_allowlist, consumer.group_denylist)
                        for consumer in self.consumers[reading.cluster, reading.topic]
                    ),
                )
                for reading in readings
            ),
            slots=slots,
            state=before.buckets,
            heads=heads,
            elapsed_ms=max(now_ms - before.now_ms, 0) if before.now_ms else 0,
            storage_filter=GroupFilter(storage.group_allowlist, storage.group_denylist),
            deletions=deletions,
        )

    def deletions(self, before: Manifest, new: Sequence[PipelineRequest], now_ms: int) -> tuple[PipelineRequest, ...]:
        """The deletions in force: the newest of each group or topic, and new ones."""
        held = {
            (deletion.cluster, deletion.group, deletion.topic): deletion
            for deletion in sorted(before.requests, key=lambda deletion: deletion.asked_at_ms)
            if deletion.cluster in self.config.clusters
        }
        # Nobody has asked in the future: a clock that says so must not delete what is still to come.
        return (*held.values(), *(replace(asked, asked_at_ms=min(asked.asked_at_ms, now_ms)) for asked in new))

    def in_force(self, before: Manifest, after: Manifest, heard: Collection[str]) -> tuple[PipelineRequest, ...]:
        """The deletions of a cycle that are needed after it.

        A deletion ends when nothing committed before it can come any more and its group has committed again. Until
        then owners alone do not bring the group back, for as long as a silent group is remembered. One manifest at
        least names each, so that none is taken up twice.
        """
        taken_up = {deletion.id for deletion in before.requests}
        forgotten_ms = after.now_ms - self.config.storage.expire_group * 1000
        return tuple(
            deletion
            for deletion in after.requests
            if deletion.id not in taken_up
            or not self.is_read_past(after, deletion)
            or (deletion.id not in heard and deletion.asked_at_ms >= forgotten_ms)
        )

    def is_read_past(self, after: Manifest, deletion: PipelineRequest) -> bool:
        """Whether all that was committed before a deletion had been read, and dropped, in the cycle of a manifest."""
        state = state_of(after, deletion.cluster)
        topics = [topic for cluster, topic in self.consumers if cluster == deletion.cluster]
        is_looked_at = state.error is None and state.looked_at_ms > deletion.asked_at_ms + ON_ITS_WAY_MS
        is_read = all(topic in state.sources and is_read_up(state.sources[topic]) for topic in topics)
        return is_looked_at and is_read and not self.is_to_be_seeded(after, deletion.cluster)

    def is_to_be_seeded(self, before: Manifest, cluster: str) -> bool:
        """Whether groups that stay silent have still to be asked for: once, after a start at the latest commits."""
        consumers = [c for (name, _), held in self.consumers.items() if name == cluster for c in held]
        return not state_of(before, cluster).seeded and bool(consumers) and all(starts_latest(c) for c in consumers)


def state_of(manifest: Manifest, cluster: str) -> ClusterState:
    """What a manifest says of a cluster, known or not."""
    return manifest.clusters.get(cluster, NEVER_SEEN)


def is_read_up(source: Source) -> bool:
    """Whether an offsets topic has been read up to its end, each partition of it."""
    return all(
        not position.backlog and (position.away_from_ms is None or position.away_to_ms is not None)
        for position in source.positions.values()
    )


def away_in(sources: Sequence[Source]) -> tuple[Outage, ...]:
    """The partitions of offsets topics that cannot be heard, or could not until a moment ago."""
    return tuple(
        Outage(home, max(source.positions) + 1, position.away_from_ms, position.away_to_ms)
        for source in sources
        for home, position in source.positions.items()
        if position.away_from_ms is not None
    )


def extra_pieces(plan: CyclePlan, answered: Samples, seeds: Mapping[str, pa.Table]) -> pa.Table:
    """What the driver itself sends: a call to every bucket, owners of new-protocol groups, seeds."""
    calls = {
        "slot": pa.array(plan.slots, pa.int32()),
        "bucket": pa.array(range(plan.buckets), pa.int32()),
        "what": pa.array([int(Piece.NOTHING)] * plan.buckets, pa.int32()),
        "piece": pa.nulls(plan.buckets, pa.binary()),
    }
    batches = pa.table(calls).to_batches()
    for number, cluster in enumerate(plan.clusters):
        sample = answered.get(cluster.name)
        if sample is not None and sample.owners is not None:
            table = _with_cluster(_with_marks(sample), number).select(OWNERS.names)
            batches += pieces_of(keep_wanted(table.cast(OWNERS), plan), Piece.OWNERS, plan)
        if cluster.name in seeds:
            table = _with_cluster(seeds[cluster.name], number).select(SEEDS.names)
            batches += pieces_of(keep_wanted(table.cast(SEEDS), plan), Piece.SEEDS, plan)
    return pa.Table.from_batches(batches)


def _with_cluster(table: pa.Table, number: int) -> pa.Table:
    return table.append_column("cluster", pa.array([number] * table.num_rows, pa.int32()))


def _with_marks(sample: ClusterSample) -> pa.Table:
    """Owners, and a row for each new-protocol group, so that one without members loses the owners it had."""
    assert sample.owners is not None
    groups = list(sample.consumer_groups or ())
    marks = pa.table({"group": pa.array(groups, pa.string())}, schema=pa.schema([("group", pa.string())]))
    return pa.concat_tables([marks, sample.owners], promote_options="default")

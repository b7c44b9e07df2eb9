"""One judging cycle over all clusters, exactly once: look, read, judge, publish; only the manifest commits."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from warren.config import Config, Consumer, to_spark_options
from warren.domain.rules import Limits
from warren.errors import ClusterError, CorruptSnapshot
from warren.pipeline.compact import keep_wanted
from warren.pipeline.flow import bucket_slots, flow
from warren.pipeline.head_files import HeadFiles, changed_topics, thinned
from warren.pipeline.outcome import NEVER_SEEN, BucketOutcome, doubted, from_summary, next_manifest, skew_of
from warren.pipeline.pieces import pieces_of
from warren.pipeline.plan import CyclePlan, GroupFilter, PlannedCluster, PlannedSource
from warren.pipeline.query import NeverBegan, run_query
from warren.pipeline.reading import Reading, admit, plan_reading
from warren.pipeline.schemas import OWNERS, SEEDS, Piece
from warren.snapshot.manifest import ClusterState, HeadSample, Manifest, Source
from warren.snapshot.store import Store
from warren.sources.commits import read_commits
from warren.sources.samples import ClusterSample, Partition

log = logging.getLogger(__name__)

Look = Callable[[], Mapping[str, ClusterSample]]
"""One look at every cluster: ends first, then heads."""
Committed = Callable[[str], pa.Table]
"""The offsets that a cluster's brokers hold for all its groups."""
Doubt = Callable[[Mapping[str, Sequence[Partition]]], None]
"""Asks for a look at the tails of some partitions, by cluster."""


@dataclass(slots=True)
class _Stopwatch:
    """How long each stage of a cycle took."""

    stages: dict[str, int] = field(default_factory=dict)
    _last: float = field(default_factory=time.monotonic)

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.stages[stage] = self.stages.get(stage, 0) + round((now - self._last) * 1000)
        self._last = now


class Cycles:
    """Runs cycles on one data directory; the state between two of them is the last manifest and nothing else."""

    def __init__(
        self,
        config: Config,
        spark: SparkSession,
        store: Store,
        look: Look,
        committed: Committed,
        doubt: Doubt = lambda _: None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._config = config
        self._spark = spark
        self._store = store
        self._look = look
        self._committed = committed
        self._doubt = doubt
        self._clock_ms = clock_ms
        self._names = sorted(config.clusters)
        self._offsets_topics = offsets_topics(config)
        self._started: set[str] = set()
        self.timing: Mapping[str, int] = {}
        self._manifest = self._take_over()
        self._kept: dict[int, tuple[int, set[str]]] = {}
        self._remember_kept()
        newest = self._manifest.heads[-1] if self._manifest.heads else None
        self._head_files = HeadFiles(store, newest)
        buckets = len(self._manifest.buckets) or config.pipeline.buckets
        self._slots = bucket_slots(buckets)

    @property
    def manifest(self) -> Manifest:
        """The newest manifest this writer has published."""
        return self._manifest

    def _take_over(self) -> Manifest:
        """Publish what there is under a new epoch first: from then on no other writer can, and orphans may go."""
        self._store.create()
        before, troubles = self._store.newest_whole()
        for trouble in troubles:
            log.error("cannot use %s; going back to the one before it, with its positions", trouble)
        if before is None:
            log.warning("no snapshot in %s: each offsets topic is read from its configured start", self._store.root)
        highest = max(self._store.sequences(), default=0)
        manifest = Manifest(
            sequence=highest + 1,
            predecessor=before.sequence if before else None,
            epoch=(before.epoch if before else 0) + 1,
            now_ms=before.now_ms if before else 0,
            intervals=self._config.storage.intervals,
            minimum_complete=self._config.evaluator.minimum_complete,
            allowed_lag=self._config.evaluator.allowed_lag,
            trigger_ms=round(self.trigger_s * 1000),
            buckets=before.buckets if before else (),
            heads=before.heads if before else (),
            clusters=before.clusters if before else {},
            rejects=before.rejects if before else {},
        )
        self._store.publish(manifest)
        return manifest

    def _remember_kept(self) -> None:
        kept = []
        for sequence in self._store.sequences():
            try:
                kept.append(self._store.manifest(sequence))
            except (CorruptSnapshot, OSError) as error:
                log.error("manifest %d is unreadable and is removed: %s", sequence, error)
                self._store.remove([sequence], [])
        self._kept = {m.sequence: (m.now_ms, {file.path for file in m.files()}) for m in kept}
        removed = self._store.sweep(path for _, paths in self._kept.values() for path in paths)
        if removed:
            log.info("removed %d files that no manifest names", removed)

    @property
    def trigger_s(self) -> float:
        """How often a cycle runs: never rarer than any cluster's offset-refresh."""
        return min(self._config.pipeline.trigger, *(c.offset_refresh for c in self._config.clusters.values()))

    def run_once(self) -> Manifest:
        """One cycle; a cluster that fails while it is read is left out and the cycle runs again without it."""
        watch = _Stopwatch()
        samples = dict(self._look())
        watch.lap("look")
        try:
            manifest = self._attempt(samples, watch)
        except (PySparkException, Py4JError, NeverBegan) as error:
            # A writer that has taken over removes what we were just writing: then no cluster is at fault.
            self._store.check_newest(self._manifest.sequence)
            log.warning("a cycle failed, looking for the cluster at fault: %s", _first_line(error))
            self._store.sweep_attempt(self._manifest.sequence + 1)
            manifest = self._attempt(self._without_unreadable(samples), watch)
        self._forget_old(manifest)
        watch.lap("clean-up")
        self.timing = watch.stages
        return manifest

    def _attempt(self, samples: Mapping[str, ClusterSample], watch: _Stopwatch) -> Manifest:
        now_ms = self._clock_ms()
        sequence = self._manifest.sequence + 1
        answered = {name: s for name, s in samples.items() if s.error is None and name in self._config.clusters}
        readings = admit(self._readings(answered, now_ms), self._config.pipeline.max_records)
        for note in (note for reading in readings for note in reading.notes):
            log.warning("%s", note)
        clusters = self._planned_clusters(answered, readings, now_ms)
        heads = thinned(
            (*self._manifest.heads, self._head_files.write(sequence, self._names, answered))
            if answered
            else self._manifest.heads,
            now_ms,
        )
        plan = self._plan(sequence, now_ms, clusters, readings, heads)
        seeds = self._seeds(answered)
        extra = self._extra_pieces(plan, answered, seeds)
        watch.lap("plan")
        query = flow(self._spark, self._scans(readings), extra, plan)
        rows = run_query(self._spark, query.collect, lambda: self._all_answer(readings))
        watch.lap("judge")
        outcomes = [from_summary(bytes(row.summary)) for row in sorted(rows, key=lambda row: int(row.bucket))]
        manifest = next_manifest(self._manifest, plan, samples, readings, seeds.keys(), outcomes, watch.stages)
        self._store.publish(manifest)
        watch.lap("publish")
        self._manifest = manifest
        self._head_files.published()
        self._started |= set(answered)
        self._log_rejects(outcomes)
        self._doubt(doubted(outcomes))
        return manifest

    def _readings(self, answered: Mapping[str, ClusterSample], now_ms: int) -> list[Reading]:
        readings = []
        for cluster, topic in self._offsets_topics:
            if cluster in answered:
                readings.append(
                    self._reading(answered[cluster], topic, self._before(cluster).sources.get(topic), now_ms)
                )
        anew = {reading.cluster for reading in readings if reading.is_another_log}
        return [
            replace(self._reading(answered[r.cluster], r.topic, None, now_ms), notes=r.notes, is_another_log=True)
            if r.cluster in anew
            else r
            for r in readings
        ]

    def _reading(self, sample: ClusterSample, topic: str, before: Source | None, now_ms: int) -> Reading:
        cluster = sample.cluster
        has_read = topic in self._before(cluster).sources
        return plan_reading(
            cluster,
            topic,
            before,
            sample.ends.get(topic, {}),
            sample.offsets_topic_ids.get(topic, ""),
            from_latest=not has_read and all(_starts_latest(c) for c in self._offsets_topics[cluster, topic]),
            is_start=cluster not in self._started or self._before(cluster).error is not None,
            now_ms=now_ms,
        )

    def _before(self, cluster: str) -> ClusterState:
        return self._manifest.clusters.get(cluster, NEVER_SEEN)

    def _planned_clusters(
        self, answered: Mapping[str, ClusterSample], readings: Sequence[Reading], now_ms: int
    ) -> tuple[PlannedCluster, ...]:
        behind = {reading.cluster for reading in readings if reading.is_catching_up}
        anew = {reading.cluster for reading in readings if reading.is_another_log}
        planned = []
        for name in self._names:
            before = self._before(name)
            gone: tuple[str, ...] = ()
            remade: tuple[str, ...] = ()
            if name in answered:
                gone, remade = changed_topics(self._head_files.topics(name), answered[name].topics)
            ring_s = self._config.storage.intervals * max(self._config.clusters[name].offset_refresh, self.trigger_s)
            planned.append(
                PlannedCluster(
                    name=name,
                    is_judged=name in answered and name not in behind,
                    is_read_anew=name in anew,
                    skew_ms=skew_of(before).ms,
                    ring_ms=round(ring_s * 1000),
                    gone_topics=gone,
                    remade_topics=tuple((topic, before.looked_at_ms) for topic in remade),
                    tails_known=answered[name].tails_known if name in answered else (),
                )
            )
        return tuple(planned)

    def _plan(
        self,
        sequence: int,
        now_ms: int,
        clusters: tuple[PlannedCluster, ...],
        readings: Sequence[Reading],
        heads: tuple[HeadSample, ...],
    ) -> CyclePlan:
        storage, evaluator = self._config.storage, self._config.evaluator
        return CyclePlan(
            root=str(self._store.root),
            sequence=sequence,
            now_ms=now_ms,
            intervals=storage.intervals,
            min_distance_ms=storage.min_distance * 1000,
            expire_ms=storage.expire_group * 1000,
            limits=Limits(evaluator.minimum_complete, evaluator.allowed_lag),
            clusters=clusters,
            sources=tuple(
                PlannedSource(
                    self._names.index(reading.cluster),
                    tuple(
                        GroupFilter(consumer.group_allowlist, consumer.group_denylist)
                        for consumer in self._offsets_topics[reading.cluster, reading.topic]
                    ),
                )
                for reading in readings
            ),
            slots=self._slots,
            state=self._manifest.buckets,
            heads=heads,
            elapsed_ms=max(now_ms - self._manifest.now_ms, 0) if self._manifest.now_ms else 0,
            storage_filter=GroupFilter(storage.group_allowlist, storage.group_denylist),
        )

    def _scans(self, readings: Sequence[Reading]) -> list[DataFrame]:
        scans = []
        for number, reading in enumerate(readings):
            if reading.spans:
                consumer = self._offsets_topics[reading.cluster, reading.topic][0]
                options = to_spark_options(consumer, self._config.profile_of(consumer))
                scans.append(read_commits(self._spark, number, reading.cluster, options, reading.topic, reading.spans))
        return scans

    def _seeds(self, answered: Mapping[str, ClusterSample]) -> dict[str, pa.Table]:
        """Groups that stay silent after a start at the latest commits: what the brokers hold for them, once."""
        seeds = {}
        for cluster in answered:
            consumers = [c for (name, _), held in self._offsets_topics.items() if name == cluster for c in held]
            if not self._before(cluster).seeded and consumers and all(_starts_latest(c) for c in consumers):
                try:
                    seeds[cluster] = self._committed(cluster)
                except ClusterError as error:
                    log.warning("%s: committed offsets could not be listed, trying again: %s", cluster, error)
        return seeds

    def _extra_pieces(
        self, plan: CyclePlan, answered: Mapping[str, ClusterSample], seeds: Mapping[str, pa.Table]
    ) -> pa.Table:
        """What the driver itself sends: a call to every bucket, owners of new-protocol groups, seeds."""
        calls = {
            "slot": pa.array(plan.slots, pa.int32()),
            "bucket": pa.array(range(plan.buckets), pa.int32()),
            "what": pa.array([int(Piece.NOTHING)] * plan.buckets, pa.int32()),
            "piece": pa.nulls(plan.buckets, pa.binary()),
        }
        batches = pa.table(calls).to_batches()
        for cluster, sample in answered.items():
            if sample.owners is not None:
                table = _with_cluster(_with_marks(sample), self._names.index(cluster)).select(OWNERS.names)
                batches += pieces_of(keep_wanted(table.cast(OWNERS), plan), Piece.OWNERS, plan)
        for cluster, held in seeds.items():
            table = _with_cluster(held, self._names.index(cluster)).select(SEEDS.names)
            batches += pieces_of(keep_wanted(table.cast(SEEDS), plan), Piece.SEEDS, plan)
        return pa.Table.from_batches(batches)

    def _without_unreadable(self, samples: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
        """The samples with an error on every cluster that is away or whose offsets topic cannot be read just now."""
        lost = {name: sample for name, sample in self._look().items() if sample.error is not None}
        checked = {**samples, **lost}
        answered = {name: s for name, s in checked.items() if s.error is None}
        for reading in self._readings(answered, self._clock_ms()):
            if not reading.spans:
                continue
            try:
                for scan in self._scans([reading]):
                    probe = scan.select("offset").write.format("noop").mode("overwrite")
                    run_query(self._spark, probe.save, lambda reading=reading: self._all_answer([reading]))  # type: ignore[misc]
            except (PySparkException, Py4JError, NeverBegan) as error:
                why = f"its offsets topic could not be read: {_first_line(error)}"
                log.warning("%s: %s", reading.cluster, why)
                checked[reading.cluster] = ClusterSample(reading.cluster, error=why)
        return checked

    def _all_answer(self, readings: Sequence[Reading]) -> bool:
        """Whether every cluster that is to be read is still there."""
        samples = self._look()
        return all(samples[reading.cluster].error is None for reading in readings if reading.spans)

    def _log_rejects(self, outcomes: Sequence[BucketOutcome]) -> None:
        for reject in (reject for outcome in outcomes for reject in outcome.rejects):
            name = self._names[reject.cluster]
            log.warning("%s: %d records rejected (%s), e.g. %s", name, reject.count, reject.reason, reject.sample)

    def _forget_old(self, manifest: Manifest) -> None:
        """Keep the newest manifests and those of the last minutes; remove what only older ones name."""
        self._kept[manifest.sequence] = (manifest.now_ms, {file.path for file in manifest.files()})
        old = [s for s in sorted(self._kept)[:-KEEP_MANIFESTS] if self._kept[s][0] < manifest.now_ms - KEEP_MS]
        if old:
            dropped = set().union(*(self._kept.pop(s)[1] for s in old))
            named = set().union(*(paths for _, paths in self._kept.values()))
            self._store.remove(old, dropped - named)


KEEP_MANIFESTS = 3
KEEP_MS = 120_000


def offsets_topics(config: Config) -> dict[tuple[str, str], list[Consumer]]:
    """Every offsets topic to read, once, however many consumer sections name it."""
    found: dict[tuple[str, str], list[Consumer]] = {}
    for consumer in config.consumers.values():
        found.setdefault((consumer.cluster, consumer.offsets_topic), []).append(consumer)
    return found


def _starts_latest(consumer: Consumer) -> bool:
    # Filling up from the earliest commit is what a start at the earliest does anyway, in order and in one go.
    return consumer.start_latest and not consumer.backfill_earliest


def _with_cluster(table: pa.Table, number: int) -> pa.Table:
    return table.append_column("cluster", pa.array([number] * table.num_rows, pa.int32()))


def _with_marks(sample: ClusterSample) -> pa.Table:
    """Owners, and a row for each new-protocol group, so that one without members loses the owners it had."""
    assert sample.owners is not None
    groups = list(sample.consumer_groups or ())
    marks = pa.table({"group": pa.array(groups, pa.string())}, schema=pa.schema([("group", pa.string())]))
    return pa.concat_tables([marks, sample.owners], promote_options="default")


def _first_line(error: Exception) -> str:
    """What went wrong at the bottom of it, in one line."""
    lines = str(error).splitlines()
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", ": org.apache.kafka"))]
    return (causes[-1] if causes else " ".join(lines[:2]))[:300]

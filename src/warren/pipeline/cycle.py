"""Cycles over all clusters, each exactly once: sample, plan, read and judge, publish; only the manifest commits."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import structs

from warren.clock import ClockReading, read_clock
from warren.config import Config
from warren.kafka.samples import ClusterSample, SampleQuestions
from warren.pipeline.bucket_result import BucketResult, sample_questions
from warren.pipeline.clock_steps import clock_step, moved, with_wall_times
from warren.pipeline.cluster_errors import log_cluster_errors
from warren.pipeline.cluster_reads import ClusterReads
from warren.pipeline.deletions import deletions_after_cycle, deletions_in_cycle
from warren.pipeline.engine import Engine, FlowFailed
from warren.pipeline.failing_clusters import FailingClusters
from warren.pipeline.group_checks import GroupChecks, checked_clusters
from warren.pipeline.head_files import HeadFiles, thin_history
from warren.pipeline.held_partitions import HeldPartitions
from warren.pipeline.manifest_writer import ManifestWriter
from warren.pipeline.next_manifest import next_manifest
from warren.pipeline.offset_ranges import admit
from warren.pipeline.past_head_reads import PastHeadReads, ReadPastHeads
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.planner import Planner, driver_tables
from warren.pipeline.seed_lists import ListCommitted, SeedLists
from warren.pipeline.shuffle import bucket_slots
from warren.pipeline.stopwatch import Stopwatch
from warren.pipeline.taken_requests import TakenRequests
from warren.snapshot.manifest import Manifest
from warren.snapshot.requests import RequestQueue
from warren.snapshot.store import Store
from warren.sources.zookeeper.readers import ZooKeeperReaders
from warren.sources.zookeeper.samples import ZooKeeperSample

log = logging.getLogger(__name__)

SampleClusters = Callable[[], Mapping[str, ClusterSample]]
"""Samples every cluster: the ends of offsets topics first, then heads."""
MAX_LOST_READS = 2
"""How often Spark's JVM may die in a cycle until the clusters are read one by one, to find out which one kills it."""
MAX_FAILURES = 4

AskSamples = Callable[[Mapping[str, SampleQuestions]], None]
"""Says what the next samples are to find out, by cluster."""


class Cycles:
    """Runs cycles on one data directory; the state between two of them is the last manifest and nothing else."""

    def __init__(
        self,
        config: Config,
        engine: Engine,
        store: Store,
        sample: SampleClusters,
        list_committed: ListCommitted,
        ask: AskSamples = lambda _: None,
        clock: Callable[[], ClockReading] = read_clock,
        on_level: Callable[[str], None] = lambda _: None,
        group_checks: GroupChecks | None = None,
        held_partitions: HeldPartitions | None = None,
        zookeeper: ZooKeeperReaders | None = None,
        read_past_heads: ReadPastHeads | None = None,
    ) -> None:
        self._config = config
        self._planner = Planner(config, str(store.root))
        self._engine = engine
        self._store = store
        self._sample = sample
        self._seed_lists = SeedLists(list_committed)
        self._past_heads = PastHeadReads(read_past_heads)
        self._ask = ask
        self._clock = clock
        self._group_checks = group_checks or GroupChecks()
        self._held_partitions = held_partitions or HeldPartitions()
        self._requests = TakenRequests(RequestQueue(store.root), on_level)
        self._zookeeper = zookeeper or ZooKeeperReaders(())
        self.timing: Mapping[str, int] = {}
        self._failing = FailingClusters()
        self._reads = ClusterReads()
        self._writer = ManifestWriter(store, self._first_manifest, lambda: clock().steady_ms)
        self._head_files = self._last_head_files()
        self._slots = bucket_slots(len(self.manifest.buckets) or config.pipeline.buckets)

    @property
    def manifest(self) -> Manifest:
        """The newest manifest this writer has published."""
        return self._writer.newest

    @property
    def trigger_s(self) -> float:
        """How often a cycle runs."""
        return self._planner.trigger_s

    def configure(self, config: Config, engine: Engine) -> None:
        """Go on with another configuration, as a restart would: from the last manifest."""
        self._config, self._engine = config, engine
        self._planner = Planner(config, str(self._store.root))
        self._writer.newest = structs.replace(self.manifest, **self._settings())
        self._failing = FailingClusters()
        self._reads.drop()
        self._group_checks.configure(checked_clusters(config))

    def _settings(self) -> dict[str, Any]:
        """What a manifest has of the configuration."""
        return {
            "intervals": self._config.storage.intervals,
            "minimum_complete": self._config.evaluator.minimum_complete,
            "allowed_lag": self._config.evaluator.allowed_lag,
            "trigger_ms": round(self.trigger_s * 1000),
        }

    def _first_manifest(self) -> Manifest:
        """The manifest of a data directory in which no cycle has run yet."""
        return Manifest(0, None, epoch=1, now_ms=0, buckets=(), heads=(), clusters={}, **self._settings())

    def _last_head_files(self) -> HeadFiles:
        return HeadFiles(self._store, self.manifest.heads[-1] if self.manifest.heads else None)

    @property
    def has_late_clusters(self) -> bool:
        """Whether clusters are still being read that the last cycle did not wait for."""
        return bool(self._reads.late)

    def run_once(self) -> Manifest:
        """Run one cycle; one that fails runs again, without the clusters that made it fail."""
        watch = Stopwatch()
        samples = dict(self._sample())
        in_zookeeper = self._zookeeper.take()
        watch.lap("look")
        failures, lost_reads = 0, 0
        while True:
            try:
                self._attempt(samples, in_zookeeper, watch, one_by_one=lost_reads == MAX_LOST_READS)
                break
            except FlowFailed as error:
                self._discard_attempt()
                failures, lost_reads = failures + 1, lost_reads + error.has_lost_reads
                if failures == MAX_FAILURES:
                    self._reads.drop()
                    raise
                log.warning("a cycle failed and runs again: %s", error)
                self._recover(error)
            except Exception:
                self._reads.drop()
                self._discard_attempt()
                raise
        self._writer.remove_old()
        watch.lap("clean-up")
        self.timing = watch.stages
        return self.manifest

    def _discard_attempt(self) -> None:
        """Remove the files of a cycle that failed; Fenced if another writer has taken over."""
        self._store.check_newest(self.manifest.sequence)
        self._store.sweep_attempt(self.manifest.sequence + 1)

    def _recover(self, error: FlowFailed) -> None:
        """Leave out the clusters that failed, and all files that are damaged; the rest has been read and stays read."""
        self._leave_out(error.clusters)
        if self._writer.fall_back():
            self._head_files = self._last_head_files()
            self._reads.drop()
            self._zookeeper.forget()
        if error.has_lost_reads:
            self._reads.drop()

    def _leave_out(self, errors: Mapping[str, str]) -> None:
        """They are logged when a manifest says so."""
        self._reads.drop(errors)
        self._failing.add(errors)

    def _attempt(
        self,
        samples: Mapping[str, ClusterSample],
        in_zookeeper: Mapping[str, ZooKeeperSample],
        watch: Stopwatch,
        *,
        one_by_one: bool,
    ) -> None:
        """Plan, read, judge and publish one cycle; until the manifest is published nothing has happened."""
        requested, now = self._requests.take(self.manifest, self._config.clusters), self._clock()
        before, step_ms = self._before(now)
        if step_ms:
            self._reads.drop()  # they were planned by the clock as it was
        samples = {name: sample for name, sample in samples.items() if name in self._config.clusters}
        samples = self._reads.samples(self._failing.leave_out(samples))
        samples = self._read(before, samples, now, one_by_one=one_by_one)
        watch.lap("read")
        parts = self._reads.ended
        samples = self._with_wall_times(samples, now)
        answered = {name: samples[name] for name in parts}
        reads = [topic for part in parts.values() for topic in part.topics]
        listed = self._group_checks.answers(before, answered, now.wall_ms)
        seeds = self._seed_lists.listed({name: part.seeds for name, part in parts.items()})
        topics = {name: self._head_files.topics(name) for name in answered}
        sections = self._planner.section_reads(before, answered, in_zookeeper, now)
        clusters = self._planner.clusters(before, answered, reads, topics, now.wall_ms, sections)
        clusters = self._group_checks.planned(clusters, listed)
        heads = before.heads
        if answered:
            past = self._past_heads.write(parts, answered, self._head_files, before.sequence + 1)
            heads = (*heads, *past, self._head_files.write(before.sequence + 1, self._planner.names, answered))
        heads = thin_history(heads, now.wall_ms)
        deletions = deletions_in_cycle(before, requested, self._config.clusters, now.wall_ms)
        plan = self._planner.plan(before, now.wall_ms, clusters, reads, heads, self._slots, deletions, step_ms)
        tables = driver_tables(plan, answered, seeds, listed, sections)
        watch.lap("plan")
        results = self._engine.judge([part.read for part in parts.values() if part.read], tables, plan)
        if failures := {name: error for result in results for name, error in result.failures.items()}:
            errors = {name: f"it cannot be judged: {error}" for name, error in failures.items()}
            raise FlowFailed("some clusters cannot be judged", errors)
        watch.lap("judge")
        manifest = next_manifest(before, plan, samples, reads, seeds.keys(), results, watch.stages, sections)
        steps = before.clock_steps + bool(step_ms)
        manifest = structs.replace(manifest, steady_ms=now.steady_ms, boot_id=now.boot_id, clock_steps=steps)
        self._publish(before, manifest, results, listed)
        watch.lap("publish")
        self._reads.drop(parts)
        self._zookeeper.published({read.section: read.ack for read in sections if read.ack is not None})
        self._group_checks.published(listed, results, now.wall_ms)
        self._failing.forgive(answered)
        self._requests.remove(request.id for request in requested)
        for request in requested:
            log.info("%s: deleted group %r, topic %r on request", request.cluster, request.group, request.topic)

    def _before(self, now: ClockReading) -> tuple[Manifest, int]:
        """The last manifest by the clock as it is now, and how far the clock was set since."""
        step_ms = clock_step(self.manifest, now)
        if step_ms:
            log.warning("the clock of this machine was set by %+.1f s; the state moves with it", step_ms / 1000)
        return moved(self.manifest, now, step_ms), step_ms

    def _with_wall_times(self, samples: Mapping[str, ClusterSample], now: ClockReading) -> dict[str, ClusterSample]:
        """The samples by the wall clock, with topics that are missing for the first time."""
        return {
            name: self._head_files.complete(sample) if sample.is_answer else sample
            for name, sample in with_wall_times(samples, now.offset_ms).items()
        }

    def _read(
        self, before: Manifest, samples: Mapping[str, ClusterSample], now: ClockReading, *, one_by_one: bool
    ) -> dict[str, ClusterSample]:
        """Read all clusters that have answered; the samples of those that fail, or are late, then say so."""
        new = {name: sample for name, sample in samples.items() if sample.is_answer and name not in self._reads}
        missing: dict[str, ClusterSample] = {}
        for own in [[name] for name in sorted(new)] if one_by_one else [list(new)]:
            try:
                self._start_reads(before, {name: new[name] for name in own}, now)
                failures = self._reads.wait(self._engine, for_all=one_by_one)
            except FlowFailed as error:
                if one_by_one and error.has_lost_reads:
                    raise FlowFailed(str(error), {own[0]: str(error)}, has_lost_reads=True) from error
                raise
            errors = {name: f"its offsets topic could not be read: {error}" for name, error in failures.items()}
            self._leave_out(errors)
            missing |= {name: ClusterSample(name, error=error) for name, error in errors.items()}
        missing |= {name: ClusterSample(name, is_late=True) for name in self._reads.late}
        return {**samples, **missing}

    def _start_reads(self, before: Manifest, samples: Mapping[str, ClusterSample], now: ClockReading) -> None:
        """Plan what to read of some clusters, and start to."""
        by_wall_clock = with_wall_times(samples, now.offset_ms)
        reads = self._planner.reads(before, by_wall_clock, now.wall_ms)
        reads = admit(reads, self._config.pipeline.max_records)
        # Those that were late get the first tasks: then only clusters that are slow themselves are late again.
        reads.sort(key=lambda read: read.cluster not in self._reads.slow)
        for warning in (warning for read in reads for warning in read.warnings):
            log.warning("%s", warning)
        named = tuple(PlannedCluster(name, is_judged=False) for name in self._planner.names)
        plan = self._planner.plan(before, now.wall_ms, named, reads, (), self._slots)
        seeds = {n: s for n in samples if self._planner.needs_seeds(before, n) and (s := self._seed_lists.start(n))}
        past_heads = self._past_heads.start(before, by_wall_clock, self._planner.max_gap_ms)
        self._reads.start(self._engine, samples, reads, plan, seeds, past_heads)

    def _publish(
        self, before: Manifest, manifest: Manifest, results: Sequence[BucketResult], listed: Mapping[str, pa.Table]
    ) -> None:
        """Publish a manifest with all that outlives its cycle, and ask for what the next one needs."""
        renewed = {deletion for result in results for deletion in result.renewed_deletions}
        manifest = structs.replace(manifest, requests=deletions_after_cycle(self._planner, before, manifest, renewed))
        manifest = self._held_partitions.with_transactional_ids(manifest)
        self._writer.publish(self._group_checks.with_unseen_deletions(before, manifest, listed, results))
        log_cluster_errors(before, manifest)
        self._head_files.published()
        self._log_rejects(results)
        self._ask(sample_questions(self._planner.names, results, self._head_files.missing_topics()))

    def _log_rejects(self, results: Sequence[BucketResult]) -> None:
        for reject in (reject for result in results for reject in result.rejects):
            name = self._planner.names[reject.cluster]
            log.warning("%s: %d records rejected (%s), e.g. %s", name, reject.count, reject.reason, reject.sample)

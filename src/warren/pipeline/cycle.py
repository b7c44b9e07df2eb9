"""Cycles over all clusters, each exactly once: sample, plan, read and judge, publish; only the manifest commits."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from msgspec import structs

from warren.clock import ClockReading, read_clock
from warren.config import Config
from warren.errors import ClusterError
from warren.kafka.samples import ClusterSample, Partition
from warren.pipeline.bucket_result import BucketResult
from warren.pipeline.clock_steps import clock_step, moved, with_wall_times
from warren.pipeline.engine import Engine, FlowFailed
from warren.pipeline.failing_clusters import FailingClusters
from warren.pipeline.group_checks import GroupChecks
from warren.pipeline.head_files import HeadFiles, thin_history
from warren.pipeline.held_partitions import HeldPartitions
from warren.pipeline.manifest_writer import ManifestWriter
from warren.pipeline.next_manifest import next_manifest
from warren.pipeline.offset_ranges import TopicRead, admit
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.planner import Planner, deletions_after_cycle, deletions_in_cycle, driver_tables
from warren.pipeline.shuffle import bucket_slots
from warren.snapshot.manifest import Manifest
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

SampleClusters = Callable[[], Mapping[str, ClusterSample]]
"""Samples every cluster: the ends of offsets topics first, then heads."""
ListCommitted = Callable[[str], pa.Table]
"""Lists the offsets that a cluster's brokers hold for all its groups."""
VerifyTails = Callable[[Mapping[str, Sequence[Partition]]], None]
"""Requests the tails of some partitions to be read, by cluster."""


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
        engine: Engine,
        store: Store,
        sample: SampleClusters,
        list_committed: ListCommitted,
        verify_tails: VerifyTails = lambda _: None,
        clock: Callable[[], ClockReading] = read_clock,
        on_level: Callable[[str], None] = lambda _: None,
        group_checks: GroupChecks | None = None,
        held_partitions: HeldPartitions | None = None,
    ) -> None:
        self._config = config
        self._planner = Planner(config, str(store.root))
        self._engine = engine
        self._store = store
        self._sample = sample
        self._list_committed = list_committed
        self._verify_tails = verify_tails
        self._clock = clock
        self._on_level = on_level
        self._group_checks = group_checks or GroupChecks()
        self._held_partitions = held_partitions or HeldPartitions()
        self._requests = RequestQueue(store.root)
        self.timing: Mapping[str, int] = {}
        self._failing = FailingClusters()
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

    def _first_manifest(self) -> Manifest:
        """The manifest of a data directory in which no cycle has run yet."""
        return Manifest(
            sequence=0,
            predecessor=None,
            epoch=1,
            now_ms=0,
            intervals=self._config.storage.intervals,
            minimum_complete=self._config.evaluator.minimum_complete,
            allowed_lag=self._config.evaluator.allowed_lag,
            trigger_ms=round(self.trigger_s * 1000),
            buckets=(),
            heads=(),
            clusters={},
        )

    def _last_head_files(self) -> HeadFiles:
        return HeadFiles(self._store, self.manifest.heads[-1] if self.manifest.heads else None)

    def run_once(self) -> Manifest:
        """Run one cycle; if Spark fails, it runs again and reads the clusters one by one, without those that fail."""
        watch = _Stopwatch()
        samples = dict(self._sample())
        watch.lap("look")
        try:
            try:
                self._attempt(samples, watch, apart=self._failing)
            except FlowFailed as error:
                self._discard_attempt()
                log.warning("a cycle failed, now the clusters are read one by one: %s", error)
                self._recover(error)
                samples |= {name: sample for name, sample in self._sample().items() if sample.error is not None}
                self._attempt(samples, watch, apart=self._planner.names)
        except Exception:
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
        """Leave out the clusters that failed, and all files that are damaged."""
        self._leave_out({name: f"it cannot be judged: {message}" for name, message in error.clusters.items()})
        if self._writer.fall_back():
            self._head_files = self._last_head_files()

    def _leave_out(self, errors: Mapping[str, str]) -> None:
        for name, error in errors.items():
            log.error("%s is left out: %s", name, error)
        self._failing.add(errors)

    def _attempt(self, samples: Mapping[str, ClusterSample], watch: _Stopwatch, apart: Collection[str]) -> None:
        """Plan, run and publish one cycle; until the manifest is published nothing has happened.

        The clusters in `apart` are read one by one before the others, and those that fail are left out.
        """
        requested, now = self._take_requests(), self._clock()
        before, step_ms = self._before(now)
        samples = self._with_wall_times(self._failing.leave_out(samples), now)
        samples, reads, tables = self._read(before, samples, apart, now.wall_ms)
        answered = {name: sample for name, sample in samples.items() if sample.error is None}
        listed, seeds = self._group_checks.answers(before, answered, now.wall_ms), self._list_seeds(answered)
        topics = {name: self._head_files.topics(name) for name in answered}
        clusters = self._planner.clusters(before, answered, reads, topics, now.wall_ms)
        clusters = self._group_checks.planned(clusters, listed)
        heads = before.heads
        if answered:
            heads = (*heads, self._head_files.write(before.sequence + 1, self._planner.names, answered))
        heads = thin_history(heads, now.wall_ms)
        deletions = deletions_in_cycle(before, requested, self._config.clusters, now.wall_ms)
        plan = self._planner.plan(before, now.wall_ms, clusters, reads, heads, self._slots, deletions, step_ms)
        tables = [driver_tables(plan, answered, seeds, listed), *tables]
        watch.lap("plan")
        unread = [replace(read, ranges={}) if read.cluster in apart else read for read in reads]
        results = self._engine.run(unread, pa.concat_tables(tables), plan, lambda: self._all_answer(unread))
        if failures := {name: error for result in results for name, error in result.failures.items()}:
            raise FlowFailed("some clusters cannot be judged", failures)
        watch.lap("judge")
        manifest = next_manifest(before, plan, samples, reads, seeds.keys(), results, watch.stages)
        steps = before.clock_steps + bool(step_ms)
        manifest = structs.replace(manifest, steady_ms=now.steady_ms, boot_id=now.boot_id, clock_steps=steps)
        self._publish(before, manifest, results, listed)
        watch.lap("publish")
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
        """The samples of configured clusters by the wall clock, with topics that are missing for the first time."""
        samples = {name: sample for name, sample in samples.items() if name in self._config.clusters}
        return {
            name: sample if sample.error else self._head_files.keep_missing_topics(sample)
            for name, sample in with_wall_times(samples, now.offset_ms).items()
        }

    def _read(
        self, before: Manifest, samples: Mapping[str, ClusterSample], apart: Collection[str], now_ms: int
    ) -> tuple[dict[str, ClusterSample], list[TopicRead], list[pa.Table]]:
        """What to read of each cluster, and what has been read apart; clusters that failed then have an error."""
        answered = {name: sample for name, sample in samples.items() if sample.error is None}
        reads = admit(self._planner.reads(before, answered, now_ms), self._config.pipeline.max_records)
        for warning in (warning for read in reads for warning in read.warnings):
            log.warning("%s", warning)
        tables = self._read_apart(before, reads, apart, now_ms)
        kept = self._failing.leave_out(samples)
        return kept, [read for read in reads if kept[read.cluster].error is None], tables

    def _publish(
        self, before: Manifest, manifest: Manifest, results: Sequence[BucketResult], listed: Mapping[str, pa.Table]
    ) -> None:
        """Publish a manifest with all that outlives its cycle, and ask for what the next one needs."""
        renewed = {deletion for result in results for deletion in result.renewed_deletions}
        manifest = structs.replace(manifest, requests=deletions_after_cycle(self._planner, before, manifest, renewed))
        manifest = self._held_partitions.with_transactional_ids(manifest)
        self._writer.publish(self._group_checks.with_unseen_deletions(before, manifest, listed, results))
        self._head_files.published()
        self._log_rejects(results)
        tails: dict[str, dict[Partition, None]] = {}
        for cluster, topic, partition in (tail for result in results for tail in result.tails_to_verify):
            tails.setdefault(cluster, {})[topic, partition] = None
        self._verify_tails({cluster: list(wanted) for cluster, wanted in tails.items()})

    def _take_requests(self) -> list[PipelineRequest]:
        """The requested deletions that no manifest knows yet; all other requests are dealt with at once."""
        known = {request.id for request in self.manifest.requests}
        deletions: list[PipelineRequest] = []
        done: list[PipelineRequest] = []
        for request in self._requests.pending():
            if request.kind == RequestKind.LOGLEVEL:
                self._set_level(request.level)
            is_new = request.kind == RequestKind.DELETE and request.id not in known
            (deletions if is_new and request.cluster in self._config.clusters else done).append(request)
        self._requests.remove(request.id for request in done)
        return deletions

    def _set_level(self, level: str) -> None:
        try:
            self._on_level(level)
        except (LookupError, ValueError):
            log.warning("the requested log level %r does not exist", level)

    def _list_seeds(self, answered: Iterable[str]) -> dict[str, pa.Table]:
        """What the brokers hold for groups that stay silent after a start at the latest commits, once per cluster."""
        seeds = {}
        for cluster in answered:
            if self._planner.needs_seeds(self.manifest, cluster):
                try:
                    seeds[cluster] = self._list_committed(cluster)
                except ClusterError as error:
                    log.warning("%s: committed offsets could not be listed, trying again: %s", cluster, error)
        return seeds

    def _read_apart(
        self, before: Manifest, reads: Sequence[TopicRead], apart: Collection[str], now_ms: int
    ) -> list[pa.Table]:
        """The tables of some clusters, read one by one, so that a failure has a name; those that fail are left out."""
        named = tuple(PlannedCluster(name, is_judged=False) for name in self._planner.names)
        plan = self._planner.plan(before, now_ms, named, reads, (), self._slots)
        tables = []
        for cluster in sorted({read.cluster for read in reads if read.ranges and read.cluster in apart}):
            own = [read for read in reads if read.cluster == cluster]
            try:
                tables.append(self._engine.read(cluster, reads, plan, lambda own=own: self._all_answer(own)))  # type: ignore[misc]
            except FlowFailed as error:
                self._leave_out({cluster: f"its offsets topic could not be read: {error}"})
        return tables

    def _all_answer(self, reads: Sequence[TopicRead]) -> bool:
        """Whether every cluster that is to be read still answers."""
        samples = self._sample()
        return all(samples[read.cluster].error is None for read in reads if read.ranges)

    def _log_rejects(self, results: Sequence[BucketResult]) -> None:
        for reject in (reject for result in results for reject in result.rejects):
            name = self._planner.names[reject.cluster]
            log.warning("%s: %d records rejected (%s), e.g. %s", name, reject.count, reject.reason, reject.sample)

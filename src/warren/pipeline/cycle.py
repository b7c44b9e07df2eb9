"""Cycles over all clusters, each exactly once: sample, plan, read and judge, publish; only the manifest commits."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec import structs
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from warren.config import Config
from warren.errors import ClusterError
from warren.kafka.options import to_spark_options
from warren.kafka.samples import ClusterSample, Partition
from warren.pipeline.bucket_result import BucketResult, decode_result
from warren.pipeline.flow import flow
from warren.pipeline.group_checks import GroupChecks
from warren.pipeline.head_files import HeadFiles, thin_history
from warren.pipeline.manifest_writer import ManifestWriter
from warren.pipeline.next_manifest import next_manifest
from warren.pipeline.offset_ranges import TopicRead, admit
from warren.pipeline.planner import Planner, deletions_after_cycle, deletions_in_cycle, driver_tables
from warren.pipeline.query import QueryNotStarted, run_query
from warren.pipeline.shuffle import bucket_slots
from warren.snapshot.manifest import Manifest
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store
from warren.sources.offsets_topic import read_commits

log = logging.getLogger(__name__)

SampleClusters = Callable[[], Mapping[str, ClusterSample]]
"""Samples every cluster: the ends of offsets topics first, then heads."""
ListCommitted = Callable[[str], pa.Table]
"""Lists the offsets that a cluster's brokers hold for all its groups."""
VerifyTails = Callable[[Mapping[str, Sequence[Partition]]], None]
"""Requests the tails of some partitions to be read, by cluster."""

QUERY_ERRORS = (PySparkException, Py4JError, QueryNotStarted)


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
        sample: SampleClusters,
        list_committed: ListCommitted,
        verify_tails: VerifyTails = lambda _: None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        on_level: Callable[[str], None] = lambda _: None,
        group_checks: GroupChecks | None = None,
    ) -> None:
        self._config = config
        self._planner = Planner(config, str(store.root))
        self._spark = spark
        self._store = store
        self._sample = sample
        self._list_committed = list_committed
        self._verify_tails = verify_tails
        self._clock_ms = clock_ms
        self._on_level = on_level
        self._group_checks = group_checks or GroupChecks()
        self._requests = RequestQueue(store.root)
        self._started: set[str] = set()
        """The clusters that have answered since this process started."""
        self.timing: Mapping[str, int] = {}
        self._writer = ManifestWriter(store, self._first_manifest)
        self._head_files = HeadFiles(store, self.manifest.heads[-1] if self.manifest.heads else None)
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

    def run_once(self) -> Manifest:
        """Run one cycle; if a cluster fails while it is read, the cycle runs again without it."""
        watch = _Stopwatch()
        samples = dict(self._sample())
        watch.lap("look")
        try:
            self._attempt(samples, watch)
        except QUERY_ERRORS as error:
            # A writer that has taken over removes what we were just writing: then no cluster is at fault.
            self._store.check_newest(self.manifest.sequence)
            log.warning("a cycle failed, looking for the cluster at fault: %s", _root_cause(error))
            self._store.sweep_attempt(self.manifest.sequence + 1)
            self._attempt(self._without_unreadable(samples), watch)
        self._writer.remove_old()
        watch.lap("clean-up")
        self.timing = watch.stages
        return self.manifest

    def _attempt(self, samples: Mapping[str, ClusterSample], watch: _Stopwatch) -> None:
        """Plan, run and publish one cycle; until the manifest is published nothing has happened."""
        before, requested = self.manifest, self._take_requests()
        now_ms = self._clock_ms()
        answered = {
            name: self._head_files.keep_missing_topics(sample)
            for name, sample in samples.items()
            if sample.error is None and name in self._config.clusters
        }
        reads = admit(self._reads(answered, now_ms), self._config.pipeline.max_records)
        for warning in (warning for read in reads for warning in read.warnings):
            log.warning("%s", warning)
        topics = {name: self._head_files.topics(name) for name in answered}
        listed = self._group_checks.answers(before, answered, now_ms)
        clusters = self._group_checks.planned(self._planner.clusters(before, answered, reads, topics), listed)
        heads = before.heads
        if answered:
            heads = (*heads, self._head_files.write(before.sequence + 1, self._planner.names, answered))
        deletions = deletions_in_cycle(before, requested, self._config.clusters, now_ms)
        heads = thin_history(heads, now_ms)
        plan = self._planner.plan(before, now_ms, clusters, reads, heads, self._slots, deletions)
        seeds = self._list_seeds(answered)
        tables = driver_tables(plan, answered, seeds, listed)
        watch.lap("plan")
        query = flow(self._spark, self._scans(reads), tables, plan)
        rows = run_query(self._spark, query.collect, lambda: self._all_answer(reads))
        watch.lap("judge")
        results = [decode_result(bytes(row.result)) for row in sorted(rows, key=lambda row: int(row.bucket))]
        manifest = next_manifest(before, plan, samples, reads, seeds.keys(), results, watch.stages)
        renewed = {deletion for result in results for deletion in result.renewed_deletions}
        manifest = structs.replace(manifest, requests=deletions_after_cycle(self._planner, before, manifest, renewed))
        self._writer.publish(self._group_checks.with_unseen_deletions(before, manifest, listed, results))
        watch.lap("publish")
        self._head_files.published()
        self._group_checks.published(listed, results, now_ms)
        self._requests.remove(request.id for request in requested)
        for request in requested:
            log.info("%s: deleted group %r, topic %r on request", request.cluster, request.group, request.topic)
        self._started |= set(answered)
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

    def _reads(self, answered: Mapping[str, ClusterSample], now_ms: int) -> list[TopicRead]:
        return self._planner.reads(self.manifest, answered, self._started, now_ms)

    def _scans(self, reads: Iterable[TopicRead]) -> list[DataFrame]:
        scans = []
        for source, read in enumerate(reads):
            if read.ranges:
                consumer = self._planner.consumers[read.cluster, read.topic][0]
                options = to_spark_options(consumer, self._config.profile_of(consumer))
                scans.append(read_commits(self._spark, source, read.cluster, options, read.topic, read.ranges))
        return scans

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

    def _without_unreadable(self, samples: Mapping[str, ClusterSample]) -> dict[str, ClusterSample]:
        """The samples, with an error on every cluster that is down or whose offsets topic cannot be read now."""
        checked = {**samples, **{name: s for name, s in self._sample().items() if s.error is not None}}
        answered = {name: sample for name, sample in checked.items() if sample.error is None}
        for read in self._reads(answered, self._clock_ms()):
            for scan in self._scans([read]):
                probe = scan.select("offset").write.format("noop").mode("overwrite")
                try:
                    run_query(self._spark, probe.save, lambda read=read: self._all_answer([read]))  # type: ignore[misc]
                except QUERY_ERRORS as error:
                    reason = f"its offsets topic could not be read: {_root_cause(error)}"
                    log.warning("%s: %s", read.cluster, reason)
                    checked[read.cluster] = ClusterSample(read.cluster, error=reason)
        return checked

    def _all_answer(self, reads: Sequence[TopicRead]) -> bool:
        """Whether every cluster that is to be read still answers."""
        samples = self._sample()
        return all(samples[read.cluster].error is None for read in reads if read.ranges)

    def _log_rejects(self, results: Sequence[BucketResult]) -> None:
        for reject in (reject for result in results for reject in result.rejects):
            name = self._planner.names[reject.cluster]
            log.warning("%s: %d records rejected (%s), e.g. %s", name, reject.count, reject.reason, reject.sample)


def _root_cause(error: Exception) -> str:
    """The innermost cause of an error of Spark, in one line."""
    lines = str(error).splitlines()
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", ": org.apache.kafka"))]
    return (causes[-1] if causes else " ".join(lines[:2]))[:300]

"""One judging cycle over all clusters, exactly once: look, read, judge, publish; only the manifest commits."""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from warren.config import Config
from warren.errors import ClusterError, CorruptSnapshot, Fenced
from warren.kafka.options import to_spark_options
from warren.kafka.samples import ClusterSample, Partition
from warren.pipeline.flow import bucket_slots, flow
from warren.pipeline.head_files import HeadFiles, thinned
from warren.pipeline.next_manifest import BucketOutcome, doubted, from_summary, next_manifest
from warren.pipeline.offset_ranges import TopicRead, admit
from warren.pipeline.planner import Planner, extra_pieces
from warren.pipeline.query import NeverBegan, run_query
from warren.snapshot.manifest import Manifest
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue
from warren.snapshot.store import Store
from warren.sources.offsets_topic import read_commits

log = logging.getLogger(__name__)

Look = Callable[[], Mapping[str, ClusterSample]]
"""One look at every cluster: ends first, then heads."""
Committed = Callable[[str], pa.Table]
"""The offsets that a cluster's brokers hold for all its groups."""
Doubt = Callable[[Mapping[str, Sequence[Partition]]], None]
"""Asks for a look at the tails of some partitions, by cluster."""

CLAIMS_MOST = 20


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
        on_level: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._config = config
        self._planner = Planner(config, str(store.root))
        self._spark = spark
        self._store = store
        self._look = look
        self._committed = committed
        self._doubt = doubt
        self._clock_ms = clock_ms
        self._on_level = on_level
        self._requests = RequestQueue(store.root)
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

    @property
    def trigger_s(self) -> float:
        """How often a cycle runs."""
        return self._planner.trigger_s

    def _take_over(self) -> Manifest:
        """Publish what there is under a new epoch first: from then on no other writer can, and orphans may go."""
        self._store.create()
        for _ in range(CLAIMS_MOST - 1):
            # One that publishes often may be faster a few times; the later one takes over all the same.
            with contextlib.suppress(Fenced):
                return self._claimed()
        return self._claimed()

    def _claimed(self) -> Manifest:
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
            requests=before.requests if before else (),
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
        asked = self._asked_deletions()
        now_ms = self._clock_ms()
        deletions = self._planner.deletions(self._manifest, asked, now_ms)
        answered = {name: s for name, s in samples.items() if s.error is None and name in self._config.clusters}
        readings = admit(self._readings(answered, now_ms), self._config.pipeline.max_records)
        for note in (note for reading in readings for note in reading.notes):
            log.warning("%s", note)
        topics = {name: self._head_files.topics(name) for name in answered}
        clusters = self._planner.clusters(self._manifest, answered, readings, topics)
        heads = self._manifest.heads
        if answered:
            heads = (*heads, self._head_files.write(self._manifest.sequence + 1, self._planner.names, answered))
        heads = thinned(heads, now_ms)
        plan = self._planner.plan(self._manifest, now_ms, clusters, readings, heads, self._slots, deletions)
        seeds = self._seeds(answered)
        extra = extra_pieces(plan, answered, seeds)
        watch.lap("plan")
        query = flow(self._spark, self._scans(readings), extra, plan)
        rows = run_query(self._spark, query.collect, lambda: self._all_answer(readings))
        watch.lap("judge")
        outcomes = [from_summary(bytes(row.summary)) for row in sorted(rows, key=lambda row: int(row.bucket))]
        manifest = next_manifest(self._manifest, plan, samples, readings, seeds.keys(), outcomes, watch.stages)
        heard = {deletion for outcome in outcomes for deletion in outcome.heard}
        manifest = replace(manifest, requests=self._planner.in_force(self._manifest, manifest, heard))
        self._store.publish(manifest)
        watch.lap("publish")
        self._manifest = manifest
        self._head_files.published()
        self._requests.remove(request.id for request in asked)
        for request in asked:
            log.info("%s: group %r, topic %r: deleted as was asked for", request.cluster, request.group, request.topic)
        self._started |= set(answered)
        self._log_rejects(outcomes)
        self._doubt(doubted(outcomes))
        return manifest

    def _asked_deletions(self) -> list[PipelineRequest]:
        """The deletions asked for that no manifest knows yet; all other requests are dealt with at once."""
        known = {request.id for request in self._manifest.requests}
        asked: list[PipelineRequest] = []
        done: list[PipelineRequest] = []
        for request in self._requests.pending():
            if request.kind == RequestKind.LOGLEVEL:
                self._set_level(request.level)
            is_new = request.kind == RequestKind.DELETE and request.id not in known
            (asked if is_new and request.cluster in self._config.clusters else done).append(request)
        self._requests.remove(request.id for request in done)
        return asked

    def _set_level(self, level: str) -> None:
        try:
            self._on_level(level)
        except (LookupError, ValueError):
            log.warning("the level %r that was asked for is none of the logs'", level)

    def _readings(self, answered: Mapping[str, ClusterSample], now_ms: int) -> list[TopicRead]:
        return self._planner.readings(self._manifest, answered, self._started, now_ms)

    def _scans(self, readings: Sequence[TopicRead]) -> list[DataFrame]:
        scans = []
        for number, reading in enumerate(readings):
            if reading.spans:
                consumer = self._planner.consumers[reading.cluster, reading.topic][0]
                options = to_spark_options(consumer, self._config.profile_of(consumer))
                scans.append(read_commits(self._spark, number, reading.cluster, options, reading.topic, reading.spans))
        return scans

    def _seeds(self, answered: Mapping[str, ClusterSample]) -> dict[str, pa.Table]:
        """Groups that stay silent after a start at the latest commits: what the brokers hold for them, once."""
        seeds = {}
        for cluster in answered:
            if self._planner.is_to_be_seeded(self._manifest, cluster):
                try:
                    seeds[cluster] = self._committed(cluster)
                except ClusterError as error:
                    log.warning("%s: committed offsets could not be listed, trying again: %s", cluster, error)
        return seeds

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

    def _all_answer(self, readings: Sequence[TopicRead]) -> bool:
        """Whether every cluster that is to be read is still there."""
        samples = self._look()
        return all(samples[reading.cluster].error is None for reading in readings if reading.spans)

    def _log_rejects(self, outcomes: Sequence[BucketOutcome]) -> None:
        for reject in (reject for outcome in outcomes for reject in outcome.rejects):
            name = self._planner.names[reject.cluster]
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


def _first_line(error: Exception) -> str:
    """What went wrong at the bottom of it, in one line."""
    lines = str(error).splitlines()
    causes = [line.strip() for line in lines if line.startswith(("Caused by:", ": org.apache.kafka"))]
    return (causes[-1] if causes else " ".join(lines[:2]))[:300]

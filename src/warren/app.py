"""The composition root: config in, running parts out, stopped in reverse."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warren.config import Cluster, Config
from warren.config.findings import Findings
from warren.errors import WarrenError
from warren.history.files import rename_former_folder
from warren.history.write import HistoryWriter
from warren.java import java_home, spark_jars
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import SamplingTarget
from warren.logs import set_level
from warren.notify.leadership import Leadership
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import FlowFailed, SparkEngine
from warren.pipeline.group_checks import GroupChecks, checked_clusters
from warren.pipeline.held_partitions import HeldPartitions
from warren.pipeline.sample_prefetch import SamplePrefetch
from warren.reload import ReadConfig, Reloads
from warren.sinks.process import Sinks
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store
from warren.sources.offsets_topic import offsets_topics
from warren.sources.open_transactions import find_transactional_ids
from warren.sources.zookeeper.readers import ZooKeeperReaders, read_targets
from warren.spark.class_archive import archive_made_in_background
from warren.spark.session import start_session
from warren.spark.supervised import PATIENCE_S, SparkNotStarted, SupervisedSpark
from warren.web.server import WebServer

log = logging.getLogger(__name__)

WORKERS = {"spark.python.daemon.module": "warren.pipeline.worker_daemon"}
"""Where Spark forks its Python workers from."""
PAST_HEADS_TIMEOUT_S = 30.0
COMMITTED_TIMEOUT_S = 60.0
SAMPLE_TIMEOUT_S = 10.0
RELOAD_POLL_S = 0.25
PATIENCE_TRIGGERS = 30
"""How many triggers a cycle of Spark may take, if that is longer than its usual patience."""


@contextlib.contextmanager
def running(config: Config, read: ReadConfig | None = None) -> Iterator["Warren"]:
    """Start all parts of a Warren; they are stopped in reverse order when the block is left.

    `read` reads the configuration again for a reload; without it a reload finds the configuration unchanged.
    """
    with contextlib.ExitStack() as stack:
        parts = Parts(config, stack)
        read = read or (lambda: (config, Findings(Path())))
        reloads = Reloads(config, read, parts.configure)
        yield Warren(parts.cycles, parts.prefetch, parts.web.urls(), parts.followers, reloads)


class Parts:
    """All parts of a Warren, in the order of their start."""

    def __init__(self, config: Config, stack: contextlib.ExitStack) -> None:
        self._config = config
        self._stack = stack
        self._targets = targets(config)
        samplers = self._samplers = ClusterSamplers(self._targets, os.cpu_count() or 1)
        stack.callback(samplers.close)
        self.prefetch = SamplePrefetch(
            lambda cluster: samplers.sample(SAMPLE_TIMEOUT_S, [cluster])[cluster], lambda: samplers.clusters
        )
        stack.callback(self.prefetch.close)
        self._zookeeper = stack.enter_context(contextlib.closing(ZooKeeperReaders(read_targets(config))))
        self.web = WebServer(config)
        stack.callback(self.web.close)
        pipeline = config.pipeline
        jars, java = spark_jars(with_msk=config.uses_iam), java_home()
        self._spark = SupervisedSpark(
            lambda: start_session(
                pipeline.master, jars, java, pipeline.driver_memory, {**WORKERS, **pipeline.spark_conf}
            ),
            _patience_s(config),
        )
        stack.callback(self._spark.stop)
        stack.enter_context(archive_made_in_background())
        self._store = Store(pipeline.data_dir)
        self.cycles = Cycles(
            config,
            SparkEngine(config, self._spark),
            self._store,
            self.prefetch.take,
            lambda cluster: samplers.committed(cluster, COMMITTED_TIMEOUT_S),
            samplers.ask,
            on_level=set_level,
            group_checks=GroupChecks(
                checked_clusters(config),
                lambda cluster: samplers.groups(cluster, COMMITTED_TIMEOUT_S),
                lambda cluster, groups: samplers.groups_without_offsets(cluster, groups, COMMITTED_TIMEOUT_S),
            ),
            held_partitions=HeldPartitions(
                lambda cluster, stable_ends: find_transactional_ids(self._config, cluster, stable_ends)
            ),
            zookeeper=self._zookeeper,
            read_past_heads=lambda cluster, times_ms: samplers.past_heads(cluster, times_ms, PAST_HEADS_TIMEOUT_S),
        )
        self.followers: list[SnapshotFollower] = []
        rename_former_folder(self._store.root)
        self._history = HistoryWriter(self._store.root, pipeline.history_days, pipeline.history_step)
        self._follow("history", self._history.follow)
        self._sinks = stack.enter_context(contextlib.closing(Sinks(config)))
        leadership = Leadership(config, self._store, self.cycles.manifest.epoch)
        self._leadership = stack.enter_context(contextlib.closing(leadership))
        self._follow("incidents", leadership.process)

    def _follow(self, name: str, take: Callable[[Manifest], None]) -> None:
        # Older snapshots were taken by the Warren that published them.
        after = self.cycles.manifest.sequence
        follower = SnapshotFollower(name, self._store, lambda snapshot: take(snapshot.manifest), after=after)
        self.followers.append(follower)
        follower.start()
        self._stack.callback(follower.close)

    def configure(self, config: Config) -> None:
        """Change all parts to another configuration, between two cycles.

        A WarrenError says that a cluster or the web server cannot be configured so; then nothing has changed. After any
        other error some parts have changed; to configure them as before undoes that.
        """
        new_targets = targets(config)
        self.web.configure(config)
        try:
            self._configure_pipeline(config, new_targets)
        except WarrenError as error:
            raise RuntimeError(str(error)) from error

    def _configure_pipeline(self, config: Config, new_targets: list[SamplingTarget]) -> None:
        if config.logging.level != self._config.logging.level:
            set_level(config.logging.level)
        if new_targets != self._targets:
            self.prefetch.discard()
            self._targets = []  # whatever becomes of the change, the next one is made
            self._samplers.change(new_targets)
            self._targets = new_targets
        self._zookeeper.change(read_targets(config))
        self._config = config
        self._spark.set_patience(_patience_s(config))
        self.cycles.configure(config, SparkEngine(config, self._spark))
        self._history.configure(config.pipeline.history_days, config.pipeline.history_step)
        self._sinks.configure(config)
        self._leadership.configure(config)


def _patience_s(config: Config) -> float:
    return max(PATIENCE_S, PATIENCE_TRIGGERS * config.pipeline.trigger)


def targets(config: Config) -> list[SamplingTarget]:
    """Every cluster to sample, with its offsets topics."""
    return [_target(config, name, cluster) for name, cluster in config.clusters.items()]


def _target(config: Config, name: str, cluster: Cluster) -> SamplingTarget:
    topics = {topic: consumers[0] for (owner, topic), consumers in offsets_topics(config).items() if owner == name}
    connection = config.connection_of(cluster)
    readers = {f"[consumer.{consumer.name}]": config.connection_of(consumer) for consumer in topics.values()}
    return SamplingTarget(
        name,
        connection,
        tuple(sorted(topics)),
        cluster.topic_refresh,
        config.own_topics,
        tuple((section, reader) for section, reader in readers.items() if reader != connection),
    )


@dataclass(frozen=True)
class Warren:
    """The loop of cycles, and the URLs of the API."""

    cycles: Cycles
    prefetch: SamplePrefetch
    urls: Sequence[str]
    followers: Sequence[SnapshotFollower]
    reloads: Reloads

    def run(self, stop: threading.Event, on_cycle: Callable[[Manifest], None] | None = None) -> None:
        """Run a cycle every trigger until `stop` is set; one that fails is logged and run again at the next trigger."""
        due = time.monotonic()
        failed: Exception | None = None
        while not stop.is_set():
            began = time.monotonic()
            manifest = None
            try:
                manifest = self.cycles.run_once()
            except WarrenError:
                raise
            except Exception as error:  # noqa: BLE001 - the next cycle may succeed
                if stop.is_set():
                    return
                _log_failure(error, failed)
                failed = error
            else:
                failed = None
                _log_progress(manifest, time.monotonic() - began)
                for follower in self.followers:
                    follower.wake()
                if on_cycle:
                    on_cycle(manifest)
            self.reloads.run_if_asked()
            # What is behind goes on at once, but never from one failure to the next.
            is_behind = manifest is not None and not manifest.is_ready and not self.cycles.has_late_clusters
            due = time.monotonic() if is_behind else max(due + self.cycles.trigger_s, time.monotonic())
            self.prefetch.prepare(due)
            while not stop.wait(min(max(due - time.monotonic(), 0.0), RELOAD_POLL_S)) and time.monotonic() < due:
                if self.reloads.run_if_asked():
                    due = min(due, time.monotonic() + self.cycles.trigger_s)
                    self.prefetch.prepare(due)


def _log_failure(error: Exception, last: Exception | None) -> None:
    """Log a failed cycle in one line; unexpected errors with their trace, but not the same one again and again."""
    is_expected = isinstance(error, (FlowFailed, SparkNotStarted, OSError))
    is_known = last is not None and (type(error), str(error)) == (type(last), str(last))
    trace = None if is_expected or is_known else error
    message = "a cycle failed and published nothing; the next one starts from the last manifest: %s"
    log.error(message, error, exc_info=trace)


def _log_progress(manifest: Manifest, took_s: float) -> None:
    left = f"{manifest.backlog:,}"
    groups = f"{sum(sum(cluster.groups_by_status.values()) for cluster in manifest.clusters.values()):,}"
    if manifest.backlog:
        log.info("catching up: %s offsets left, %s groups so far, this cycle %.1f s", left, groups, took_s)
    else:
        log.info("snapshot %d: %s groups, cycle %.2f s", manifest.sequence, groups, took_s)

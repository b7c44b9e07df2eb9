"""The composition root: config in, running parts out, stopped in reverse."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from warren.config import Config
from warren.errors import WarrenError
from warren.history.files import rename_former_folder
from warren.history.write import HistoryWriter
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.kafka.options import to_librdkafka
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample, SamplingTarget
from warren.logs import set_level
from warren.notify.leadership import Leadership
from warren.pipeline.cycle import Cycles
from warren.pipeline.engine import FlowFailed, SparkEngine
from warren.pipeline.group_checks import GroupChecks, checked_clusters
from warren.pipeline.held_partitions import HeldPartitions
from warren.sinks.process import sinks
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store
from warren.sources.offsets_topic import offsets_topics
from warren.sources.open_transactions import find_transactional_ids
from warren.spark.session import start_session
from warren.spark.supervised import PATIENCE_S, SparkNotStarted, SupervisedSpark
from warren.web.server import WebServer

log = logging.getLogger(__name__)

COMMITTED_TIMEOUT_S = 60.0
SAMPLE_TIMEOUT_S = 10.0
PATIENCE_TRIGGERS = 30
"""How many triggers a cycle of Spark may take, if that is longer than its usual patience."""


@contextlib.contextmanager
def running(config: Config) -> Iterator["Warren"]:
    """Start all parts of a Warren; they are stopped in reverse order when the block is left."""
    with contextlib.ExitStack() as parts:
        samplers = ClusterSamplers(targets(config), min(len(config.clusters), os.cpu_count() or 1))
        parts.callback(samplers.close)
        prefetch = SamplePrefetch(lambda: samplers.sample(SAMPLE_TIMEOUT_S))
        parts.callback(prefetch.close)
        web = WebServer(config)
        parts.callback(web.close)
        pipeline = config.pipeline
        jars, java = fetch_jars(SPARK_CONNECTOR), java_home()
        spark = SupervisedSpark(
            lambda: start_session(pipeline.master, jars, java, pipeline.driver_memory, pipeline.spark_conf),
            max(PATIENCE_S, PATIENCE_TRIGGERS * pipeline.trigger),
        )
        parts.callback(spark.stop)
        store = Store(pipeline.data_dir)
        cycles = Cycles(
            config,
            SparkEngine(config, spark),
            store,
            prefetch.take,
            lambda cluster: samplers.committed(cluster, COMMITTED_TIMEOUT_S),
            samplers.verify_tails,
            on_level=set_level,
            group_checks=GroupChecks(
                checked_clusters(config),
                lambda cluster: samplers.groups(cluster, COMMITTED_TIMEOUT_S),
                lambda cluster, groups: samplers.groups_without_offsets(cluster, groups, COMMITTED_TIMEOUT_S),
            ),
            held_partitions=HeldPartitions(partial(find_transactional_ids, config)),
        )
        followers: list[SnapshotFollower] = []

        def follow(name: str, take: Callable[[Manifest], None]) -> None:
            # Older snapshots were taken by the Warren that published them.
            after = cycles.manifest.sequence
            followers.append(SnapshotFollower(name, store, lambda snapshot: take(snapshot.manifest), after=after))
            followers[-1].start()
            parts.callback(followers[-1].close)

        rename_former_folder(store.root)
        if pipeline.history_days:
            history = HistoryWriter(store.root, pipeline.history_days, pipeline.history_step)
            follow("history", history.follow)
        parts.enter_context(sinks(config))
        leadership = parts.enter_context(contextlib.closing(Leadership(config, store, cycles.manifest.epoch)))
        follow("incidents", leadership.process)
        yield Warren(cycles, prefetch, web.urls(), followers)


def targets(config: Config) -> list[SamplingTarget]:
    """Every cluster to sample, with its offsets topics."""
    topics = offsets_topics(config)
    return [
        SamplingTarget(
            name,
            to_librdkafka(cluster, config.profile_of(cluster)),
            tuple(sorted(topic for owner, topic in topics if owner == name)),
            cluster.topic_refresh,
        )
        for name, cluster in config.clusters.items()
    ]


class SamplePrefetch:
    """Samples the heads before the next cycle is due, so that the cycle does not wait for 100,000 of them."""

    def __init__(self, sample: Callable[[], Mapping[str, ClusterSample]]) -> None:
        self._sample = sample
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch of samples")
        self._duration_s = 0.0
        self._next: Future[Mapping[str, ClusterSample]] | None = None
        self._is_closed = threading.Event()

    def prepare(self, due: float) -> None:
        """Start sampling in time to be done when the monotonic clock shows `due`."""
        self._next = self._pool.submit(self._sample_at, due - 1.2 * self._duration_s)

    def take(self) -> Mapping[str, ClusterSample]:
        """The samples that were prepared; if there are none, new ones."""
        prepared, self._next = self._next, None
        return prepared.result() if prepared else self._sample_at(0.0)

    def _sample_at(self, start: float) -> Mapping[str, ClusterSample]:
        self._is_closed.wait(max(start - time.monotonic(), 0.0))
        started = time.monotonic()
        samples = self._sample()
        self._duration_s = time.monotonic() - started
        return samples

    def close(self) -> None:
        """Stop waiting; sampling under way ends by its own timeout."""
        self._is_closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Warren:
    """The loop of cycles, and the URLs of the API."""

    cycles: Cycles
    prefetch: SamplePrefetch
    urls: Sequence[str]
    followers: Sequence[SnapshotFollower]

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
            # What is behind goes on at once, but never from one failure to the next.
            is_behind = manifest is not None and not manifest.is_ready
            due = time.monotonic() if is_behind else max(due + self.cycles.trigger_s, time.monotonic())
            self.prefetch.prepare(due)
            stop.wait(max(due - time.monotonic(), 0.0))


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

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
from warren.pipeline.engine import SparkEngine
from warren.pipeline.group_checks import GroupChecks, checked_clusters
from warren.pipeline.held_partitions import HeldPartitions
from warren.sinks.process import sinks
from warren.snapshot.follower import SnapshotFollower
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store
from warren.sources.offsets_topic import offsets_topics
from warren.sources.open_transactions import find_transactional_ids
from warren.spark.session import start_session
from warren.web.server import WebServer

log = logging.getLogger(__name__)

COMMITTED_TIMEOUT_S = 60.0
SAMPLE_TIMEOUT_S = 10.0


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
        spark = start_session(
            pipeline.master, fetch_jars(SPARK_CONNECTOR), java_home(), pipeline.driver_memory, pipeline.spark_conf
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
        while not stop.is_set():
            began = time.monotonic()
            try:
                manifest = self.cycles.run_once()
            except WarrenError:
                raise
            except Exception:
                if stop.is_set():
                    return
                log.exception("a cycle failed and published nothing; the next one starts from the last manifest")
                manifest = self.cycles.manifest
            else:
                _log_progress(manifest, time.monotonic() - began)
                for follower in self.followers:
                    follower.wake()
                if on_cycle:
                    on_cycle(manifest)
            due = max(due + self.cycles.trigger_s, time.monotonic()) if manifest.is_ready else time.monotonic()
            self.prefetch.prepare(due)
            stop.wait(max(due - time.monotonic(), 0.0))


def _log_progress(manifest: Manifest, took_s: float) -> None:
    left = f"{manifest.backlog:,}"
    groups = f"{sum(sum(cluster.groups_by_status.values()) for cluster in manifest.clusters.values()):,}"
    if manifest.backlog:
        log.info("catching up: %s offsets left, %s groups so far, this cycle %.1f s", left, groups, took_s)
    else:
        log.info("snapshot %d: %s groups, cycle %.2f s", manifest.sequence, groups, took_s)

"""One process per sink, so that none of them can hold up the pipeline or another."""

import fcntl
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from warren.config import Config
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, LakeSink, Sink
from warren.delivery.sink_status import sink_folder
from warren.processes import Send, SupervisedProcess
from warren.sinks.delivery import POLL_S
from warren.sinks.elasticsearch import ElasticsearchWriter
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.kafka import KafkaWriter
from warren.sinks.worker import SinkWorker, request_worker


@dataclass(frozen=True)
class SinkJob:
    """All that the process of a sink needs; a sink whose job has not changed goes on undisturbed."""

    sink: Sink
    data_dir: Path
    kafka: Any = None
    """How to reach Kafka, for the classes that do."""


def _job(sink: Sink, config: Config) -> SinkJob:
    data_dir = config.pipeline.data_dir
    match sink:
        case LakeSink():
            # Imported late, so that only this sink pays for Spark.
            from warren.sinks.lake.commits import offsets_topics_of

            return SinkJob(sink, data_dir, offsets_topics_of(config))
        case KafkaSink():
            return SinkJob(sink, data_dir, config.connection_of(config.cluster_or_first(sink.cluster)))
    return SinkJob(sink, data_dir)


def _main(connection: Connection, _: Send, job: SinkJob) -> None:
    stop = threading.Event()

    def wait_for_parent() -> None:
        # The connection becomes readable when the parent says to stop, or dies.
        connection.poll(None)
        stop.set()

    threading.Thread(target=wait_for_parent, daemon=True).start()
    # The pipeline goes first.
    os.nice(10)
    folder = sink_folder(job.data_dir, job.sink.name)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Processes of a Warren that was killed need some seconds to end.
        while not stop.is_set():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stop.wait(POLL_S)
            else:
                _worker(job).run(stop)


def _worker(job: SinkJob) -> SinkWorker:
    match job.sink:
        case LakeSink() as sink:
            from warren.sinks.lake.session import lake_session
            from warren.sinks.lake.worker import lake_worker

            with_msk = any(topic.connection is not None and topic.connection.iam for topic in job.kafka)
            return lake_worker(sink, job.kafka, job.data_dir, start=partial(lake_session, with_msk=with_msk))
        case KafkaSink() as sink:
            points = KafkaWriter(sink, job.kafka) if sink.topic else None
            changes = KafkaWriter(sink, job.kafka, are_changes=True) if sink.changes_topic else None
            return request_worker(sink, points, job.data_dir, changes=changes)
        case ElasticsearchSink() as sink:
            return request_worker(sink, ElasticsearchWriter(sink), job.data_dir)
        case InfluxSink() as sink:
            return request_worker(sink, InfluxWriter(sink), job.data_dir)
    raise AssertionError(job.sink)


class Sinks:
    """The processes of all sinks of a configuration."""

    def __init__(self, config: Config) -> None:
        self._by_name: dict[str, SupervisedProcess] = {}
        self.configure(config)

    @property
    def processes(self) -> list[SupervisedProcess]:
        """The process of each sink."""
        return [*self._by_name.values()]

    def configure(self, config: Config) -> None:
        """Run the sinks of a configuration from now on; a process whose job changes is replaced, its spool stays."""
        jobs = {name: _job(sink, config) for name, sink in config.sinks.items()}
        kept = {name: process for name, process in self._by_name.items() if jobs.get(name) == process.argument}
        _close_all([process for name, process in self._by_name.items() if name not in kept])
        self._by_name = {
            name: kept[name] if name in kept else SupervisedProcess(f"sink {name}", _main, job)
            for name, job in jobs.items()
        }

    def close(self) -> None:
        """End all processes."""
        _close_all(self.processes)


def _close_all(processes: Sequence[SupervisedProcess]) -> None:
    with ThreadPoolExecutor(max(len(processes), 1)) as pool:
        list(pool.map(SupervisedProcess.close, processes))

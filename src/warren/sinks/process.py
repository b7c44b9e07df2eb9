"""Sinks as processes of their own, so that none of them can hold up the pipeline or another."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from warren.config import Config
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, LakeSink, Sink
from warren.delivery.sink_status import sink_folder
from warren.kafka.options import to_librdkafka
from warren.processes import SupervisedProcess, Tell
from warren.sinks.delivery import LOOK_S
from warren.sinks.elasticsearch import ElasticsearchWriter
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.kafka import KafkaWriter
from warren.sinks.worker import SinkWorker, Worker, Writer


@dataclass(frozen=True, slots=True)
class _Job:
    """What a sink's process has to know."""

    sink: Sink
    config: Config


def _main(connection: Connection, tell: Tell, job: _Job) -> None:
    del tell
    stop = threading.Event()

    def listen() -> None:
        # A word from the parent, or its end, is the end.
        connection.poll(None)
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    # What is sent can wait a little for those who judge.
    os.nice(10)
    with _alone(sink_folder(job.config.pipeline.data_dir, job.sink.name), stop):
        if not stop.is_set():
            _worker(job.sink, job.config).run(stop)


@contextmanager
def _alone(folder: Path, stop: threading.Event) -> Iterator[None]:
    """Be the only one at work for a sink: after a kill -9 of Warren its sinks may need some seconds to end."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        while not stop.is_set():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                stop.wait(LOOK_S)
        yield


def _worker(sink: Sink, config: Config) -> Worker:
    data_dir = config.pipeline.data_dir
    if isinstance(sink, LakeSink):
        # Late, so that the other sinks do not pay for Spark.
        from warren.sinks.lake.commits import offsets_topics_of
        from warren.sinks.lake.worker import LakeWorker

        return LakeWorker(sink, offsets_topics_of(config), data_dir)
    if isinstance(sink, KafkaSink):
        section = config.clusters[sink.cluster] if sink.cluster else next(iter(config.clusters.values()))
        settings = to_librdkafka(section, config.profile_of(section))
        points = KafkaWriter(sink, settings) if sink.topic else None
        changes = KafkaWriter(sink, settings, of_changes=True) if sink.changes_topic else None
        return SinkWorker(sink, points, data_dir, changes=changes)
    return SinkWorker(sink, _writer(sink), data_dir)


def _writer(sink: Sink) -> Writer:
    match sink:
        case ElasticsearchSink():
            return ElasticsearchWriter(sink)
        case InfluxSink():
            return InfluxWriter(sink)
    raise AssertionError(sink)


@contextmanager
def sinks(config: Config) -> Iterator[list[SupervisedProcess]]:
    """A process for each sink of a configuration, ended with the block."""
    running = [SupervisedProcess(f"sink {sink.name}", _main, _Job(sink, config)) for sink in config.sinks.values()]
    try:
        yield running
    finally:
        threads = [threading.Thread(target=one.close) for one in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

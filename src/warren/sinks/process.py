"""Sinks as processes of their own, so that none of them can hold up the pipeline or another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from warren.config import Config, to_librdkafka
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, Sink
from warren.processes import KeptProcess, Tell
from warren.sinks.elasticsearch import ElasticsearchWriter
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.kafka import KafkaWriter
from warren.sinks.worker import SinkWorker, Writer


@dataclass(frozen=True, slots=True)
class _Job:
    """What a sink's process has to know."""

    sink: Sink
    data_dir: Path
    kafka: dict[str, str]


def _main(connection: Connection, tell: Tell, job: _Job) -> None:
    del tell
    stop = threading.Event()

    def listen() -> None:
        # A word from the parent, or its end, is the end.
        connection.poll(None)
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    SinkWorker(job.sink, _writer(job), job.data_dir, changes=_writer_of_changes(job)).run(stop)


def _writer(job: _Job) -> Writer | None:
    match job.sink:
        case ElasticsearchSink():
            return ElasticsearchWriter(job.sink)
        case InfluxSink():
            return InfluxWriter(job.sink)
        case KafkaSink():
            return KafkaWriter(job.sink, job.kafka) if job.sink.topic else None
    raise AssertionError(job.sink)


def _writer_of_changes(job: _Job) -> KafkaWriter | None:
    if isinstance(job.sink, KafkaSink) and job.sink.changes_topic:
        return KafkaWriter(job.sink, job.kafka, of_changes=True)
    return None


@contextmanager
def sinks(config: Config) -> Iterator[list[KeptProcess]]:
    """A process for each sink of a configuration, ended with the block."""
    running = [KeptProcess(f"sink {sink.name}", _main, _job(config, sink)) for sink in config.sinks.values()]
    try:
        yield running
    finally:
        threads = [threading.Thread(target=one.close) for one in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _job(config: Config, sink: Sink) -> _Job:
    settings: dict[str, str] = {}
    if isinstance(sink, KafkaSink):
        section = config.clusters[sink.cluster] if sink.cluster else next(iter(config.clusters.values()))
        settings = to_librdkafka(section, config.profile_of(section))
    return _Job(sink, config.pipeline.data_dir, settings)

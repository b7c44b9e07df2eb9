"""One process per sink, so that none of them can hold up the pipeline or another."""

import fcntl
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection

from warren.config import Config
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, LakeSink, Sink
from warren.delivery.sink_status import sink_folder
from warren.kafka.options import to_librdkafka
from warren.processes import Send, SupervisedProcess
from warren.sinks.delivery import POLL_S
from warren.sinks.elasticsearch import ElasticsearchWriter
from warren.sinks.influxdb import InfluxWriter
from warren.sinks.kafka import KafkaWriter
from warren.sinks.worker import SinkWorker, request_worker


def _main(connection: Connection, _: Send, job: tuple[Sink, Config]) -> None:
    sink, config = job
    stop = threading.Event()

    def wait_for_parent() -> None:
        # The connection becomes readable when the parent says to stop, or dies.
        connection.poll(None)
        stop.set()

    threading.Thread(target=wait_for_parent, daemon=True).start()
    # The pipeline goes first.
    os.nice(10)
    folder = sink_folder(config.pipeline.data_dir, sink.name)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Processes of a Warren that was killed need some seconds to end.
        while not stop.is_set():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stop.wait(POLL_S)
            else:
                _worker(sink, config).run(stop)


def _worker(sink: Sink, config: Config) -> SinkWorker:
    data_dir = config.pipeline.data_dir
    match sink:
        case LakeSink():
            # Imported late, so that only this sink pays for Spark.
            from warren.sinks.lake.commits import offsets_topics_of
            from warren.sinks.lake.worker import lake_worker

            return lake_worker(sink, offsets_topics_of(config), data_dir)
        case KafkaSink():
            section = config.clusters[sink.cluster] if sink.cluster else next(iter(config.clusters.values()))
            settings = to_librdkafka(section, config.profile_of(section))
            points = KafkaWriter(sink, settings) if sink.topic else None
            changes = KafkaWriter(sink, settings, are_changes=True) if sink.changes_topic else None
            return request_worker(sink, points, data_dir, changes=changes)
        case ElasticsearchSink():
            return request_worker(sink, ElasticsearchWriter(sink), data_dir)
        case InfluxSink():
            return request_worker(sink, InfluxWriter(sink), data_dir)
    raise AssertionError(sink)


@contextmanager
def sinks(config: Config) -> Iterator[list[SupervisedProcess]]:
    """The processes of all sinks of a configuration; they end with the block."""
    running = [SupervisedProcess(f"sink {sink.name}", _main, (sink, config)) for sink in config.sinks.values()]
    try:
        yield running
    finally:
        with ThreadPoolExecutor(max(len(running), 1)) as pool:
            list(pool.map(SupervisedProcess.close, running))

"""The class-data archive of Spark's JVM, with which it starts in about half the time."""

import logging
import os
import shlex
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection

import pyarrow as pa

from warren.java import SPARK_CONNECTOR, fetch_jars, java_home, locked, store_class_archive
from warren.processes import Send, SupervisedProcess
from warren.spark.session import end_session, spark_archive, start_session

log = logging.getLogger(__name__)

DELAY_S = 60.0
"""How long after a start the archive is made, if there is none: first verdicts come first."""


@contextmanager
def archive_made_in_background(delay_s: float = DELAY_S) -> Iterator[None]:
    """Let a process of low priority make the archive, if there is none, while the block runs."""
    if spark_archive().exists():
        yield
        return
    with closing(SupervisedProcess("maker of Spark's class archive", _main, delay_s, may_restart=lambda: False)):
        yield


def _main(connection: Connection, _send: Send, delay_s: float) -> None:
    os.nice(19)
    if connection.poll(delay_s):
        return
    # The JVM ends with this process, and this one with its parent.
    os.setpgrp()
    signal.signal(signal.SIGTERM, _end_group)
    threading.Thread(target=lambda: _end_group(connection.poll(None)), daemon=True).start()
    try:
        make_archive()
    except Exception as error:  # noqa: BLE001 - Spark works without it
        log.warning("the classes of Spark cannot be archived for faster starts: %s", error)


def _end_group(*_: object) -> None:
    os.killpg(0, signal.SIGKILL)


def make_archive() -> None:
    """Make the archive, unless it exists, from what a session and its first query load; this takes half a minute."""
    archive = spark_archive()
    with locked(archive.name):
        if archive.exists():
            return
        log.info("archiving the classes of Spark, once, for faster starts: %s", archive)
        archive.parent.mkdir(parents=True, exist_ok=True)
        new = archive.with_suffix(".new")
        new.unlink(missing_ok=True)
        options = f"-XX:ArchiveClassesAtExit={shlex.quote(str(new))} -Xlog:disable"
        conf = {"spark.driver.defaultJavaOptions": options}
        session = start_session("local[1]", fetch_jars(SPARK_CONNECTOR), java_home(), "512m", conf)
        session.range(8).repartition(2).mapInArrow(_unchanged, "id long").toArrow()
        end_session(session)
        store_class_archive(new, archive)


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return batches

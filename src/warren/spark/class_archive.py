"""The class-data archive of Spark's JVM, with which it starts in about half the time."""

import logging
import os
import shlex
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
def archive_made_in_background() -> Iterator[None]:
    """Let a process of low priority make the archive, if there is none, while the block runs."""
    if spark_archive().exists():
        yield
        return
    with closing(SupervisedProcess("maker of Spark's class archive", _main, None, may_restart=lambda: False)):
        yield


def _main(connection: Connection, _send: Send, _argument: None) -> None:
    os.nice(19)
    if connection.poll(DELAY_S):
        return
    # It ends with the process that has started it.
    threading.Thread(target=lambda: connection.poll(None) and os._exit(0), daemon=True).start()
    try:
        make_archive()
    except Exception as error:  # noqa: BLE001 - Spark works without it
        log.warning("the classes of Spark cannot be archived for faster starts: %s", error)


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

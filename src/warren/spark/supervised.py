"""A Spark session under supervision: a new one is started when its JVM has died, or is wedged and has been killed."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from warren.spark.session import abandon_session

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_S = 300.0
MAX_PATIENCE_S = 3600.0


class SparkDied(Exception):  # noqa: N818 - says what happened
    """The JVM has died in a query; the next query starts a new one."""


class SparkNotStarted(Exception):  # noqa: N818
    """A new JVM could not be started; the message says why."""


class SupervisedSpark:
    """Runs queries on a session that `start` makes; a query that takes longer than the patience kills the JVM.

    The patience doubles with each kill and falls back when a query ends, so that a query that only takes long is
    finished in the end.
    """

    def __init__(self, start: Callable[[], SparkSession], patience_s: float = PATIENCE_S) -> None:
        self._start = start
        self._session: SparkSession | None = self._new_session()
        self._least_s = self._patience_s = patience_s

    def run(self, query: Callable[[SparkSession], T]) -> T:
        """The result of a query; raises SparkDied if the JVM dies meanwhile."""
        session = self._session or self._restart()
        with self._watched(session):
            try:
                result = query(session)
            except Exception as error:
                if _is_alive(session):
                    raise
                code = abandon_session(session)
                self._session = None
                log.error("Spark's JVM has died (exit code %d); a new one is started", code)
                raise SparkDied("the JVM of Spark has died") from error
        self._patience_s = self._least_s
        return result

    def set_patience(self, patience_s: float) -> None:
        """Change how long a query may take."""
        self._least_s = self._patience_s = patience_s

    def stop(self) -> None:
        """Stop the session and its JVM."""
        if self._session is not None:
            self._session.stop()

    def _restart(self) -> SparkSession:
        try:
            self._session = self._new_session()
        except Exception as error:
            raise SparkNotStarted(f"a new JVM for Spark cannot be started: {error}") from error
        log.warning("Spark has a new JVM; cycles go on from the last manifest")
        return self._session

    def _new_session(self) -> SparkSession:
        session = self._start()
        # It would print a traceback when the JVM dies, which is reported by us.
        session.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        return session

    @contextlib.contextmanager
    def _watched(self, session: SparkSession) -> Iterator[None]:
        """Kill the JVM of the session if the block takes too long; whatever waits for it then fails."""
        process = session.sparkContext._gateway.proc  # type: ignore[union-attr]

        def kill() -> None:
            log.error("Spark has not finished a query in %.0f s: its JVM (pid %d) is killed", patience_s, process.pid)
            self._patience_s = min(2 * patience_s, MAX_PATIENCE_S)
            process.kill()

        patience_s = self._patience_s
        timer = threading.Timer(patience_s, kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _is_alive(session: SparkSession) -> bool:
    """Whether the JVM runs and its context is not stopped."""
    context = session.sparkContext
    try:
        return context._gateway.proc.poll() is None and not context._jsc.sc().isStopped()  # type: ignore[union-attr]
    except (Py4JError, OSError, AttributeError):
        return False

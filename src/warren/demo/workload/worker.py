"""A thread that does one thing against Kafka until told to stop, and survives a broker that goes away."""

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Self

from confluent_kafka import KafkaError, KafkaException

from warren.errors import DemoError

log = logging.getLogger(__name__)
CLIENT_LOG = logging.getLogger("warren.demo.librdkafka")
"""Where the Kafka clients of the workload log: silent unless someone turns it on."""
CLIENT_LOG.addHandler(logging.NullHandler())
CLIENT_LOG.propagate = False

_RETRY_S = 0.5


class Worker:
    """Something with a thread of its own: `start()`, `stop()`, and `start()` again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        """How often Kafka refused or did not answer; each time the worker went on."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def running(self) -> bool:
        """Whether its thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Self:
        """Begin, in a thread of its own."""
        if self.running:
            raise DemoError(f"{self.name} is running already")
        self._stopping.clear()
        self._error = None
        self._reset()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        return self

    def ask_to_stop(self) -> None:
        """Let it end soon, without waiting for it."""
        self._stopping.set()

    def stop(self, timeout_s: float = 30.0) -> None:
        """End and wait for it; raises what it died of, if it did."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise DemoError(f"{self.name} did not stop within {timeout_s:g} s")
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise what it died of, if it did."""
        if self._error is not None:
            raise DemoError(f"{self.name} died: {self._error!r}") from self._error

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _reset(self) -> None:
        """Forget what belongs to the run before; called by `start()`."""

    def _session(self) -> None:
        """Do the work until `_is_done()`; a KafkaException from here begins a new session."""
        raise NotImplementedError

    def _is_done(self) -> bool:
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self._is_done():
            try:
                self._session()
            except KafkaException as error:
                self._failed(error)
                self._stopping.wait(_RETRY_S)
            except Exception as error:  # noqa: BLE001 - it reaches whoever stops the worker
                self._error = error
                return

    def _failed(self, error: KafkaException) -> None:
        self.failures += 1
        log.debug("%s: %s", self.name, error)

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Count what Kafka refuses and go on with the same client, unless the client itself is finished."""
        try:
            yield
        except KafkaException as error:
            if is_fatal(error):
                raise
            self._failed(error)


def is_fatal(error: KafkaException) -> bool:
    """Whether the client that raised this can no longer be used."""
    cause = error.args[0] if error.args else None
    return isinstance(cause, KafkaError) and cause.fatal()


def stop_all(workers: Iterable[Worker], timeout_s: float = 30.0) -> None:
    """Stop many at once: all are asked before the first is waited for; a failure is raised at the end."""
    waiting = list(workers)
    for worker in waiting:
        worker.ask_to_stop()
    failures: list[DemoError] = []
    for worker in waiting:
        try:
            worker.stop(timeout_s)
        except DemoError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


class Schedule:
    """Moments that are due one gap after the other, without drift; moments missed altogether are left out."""

    def __init__(self, gaps_s: Iterable[float]) -> None:
        self._gaps_s = itertools.cycle(gaps_s)
        self._due = time.monotonic() + next(self._gaps_s)

    def wait_s(self, at_most: float) -> float:
        """How long until the next moment, at most so long."""
        return min(at_most, max(0.0, self._due - time.monotonic()))

    def is_due(self) -> bool:
        """Whether the next moment has come; if so, the one after it is awaited from now on."""
        now = time.monotonic()
        if now < self._due:
            return False
        while self._due <= now:
            self._due += next(self._gaps_s)
        return True

"""A thread that works against Kafka until it is stopped, and continues when a broker comes back."""

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from confluent_kafka import KafkaError, KafkaException

from warren.errors import DemoError

log = logging.getLogger(__name__)
CLIENT_LOG = logging.getLogger("warren.demo.librdkafka")
"""The log of the workload's Kafka clients: silent unless a handler is added."""
CLIENT_LOG.addHandler(logging.NullHandler())
CLIENT_LOG.propagate = False

_RETRY_S = 0.5


@dataclass(eq=False, repr=False)
class WorkloadThread:
    """Work in a thread that can be started, stopped and started again."""

    _stopping: threading.Event = field(init=False, default_factory=threading.Event)
    _thread: threading.Thread | None = field(init=False, default=None)
    _error: BaseException | None = field(init=False, default=None)

    @property
    def name(self) -> str:
        """The name of the thread, used in errors."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether its thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Self:
        """Start the thread."""
        if self.running:
            raise DemoError(f"{self.name} is already running")
        self._stopping.clear()
        self._error = None
        self._reset()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stop and wait for the thread; raises the error that it died of, if it did."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise DemoError(f"{self.name} did not stop within {timeout_s:g} s")
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise the error that it died of, if it did."""
        if self._error is not None:
            raise DemoError(f"{self.name} died: {self._error!r}") from self._error

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _reset(self) -> None:
        """Forget the state of the last run; called by `start()`."""

    def _session(self) -> None:
        """Work until `_is_done()`; a KafkaException from here starts a new session."""
        raise NotImplementedError

    def _is_done(self) -> bool:
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self._is_done():
            try:
                self._session()
            except KafkaException as error:
                log.debug("%s: %s", self.name, error)
                self._stopping.wait(_RETRY_S)
            except Exception as error:  # noqa: BLE001 - stop() and check() raise it
                self._error = error
                return

    @contextlib.contextmanager
    def _tolerating_errors(self) -> Iterator[None]:
        """Continue after an error from Kafka, unless the client can no longer be used."""
        try:
            yield
        except KafkaException as error:
            if is_fatal(error):
                raise
            log.debug("%s: %s", self.name, error)


def is_fatal(error: KafkaException) -> bool:
    """Whether the client that raised this can no longer be used."""
    cause = error.args[0] if error.args else None
    return isinstance(cause, KafkaError) and cause.fatal()


def stop_all(threads: Iterable[WorkloadThread], timeout_s: float = 30.0) -> None:
    """Stop many at once: ask all, then wait for all, then raise the first error."""
    with contextlib.ExitStack() as stops:
        for thread in threads:
            thread._stopping.set()
            stops.callback(thread.stop, timeout_s)

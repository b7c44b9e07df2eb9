"""Delivers what is in a spool, in order, each until the server takes or refuses it, and reports the status of it."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from warren.delivery.backoff import Backoff
from warren.delivery.sink_status import SinkStatus, write_status
from warren.errors import BusyError, RefusedError
from warren.sinks.spool import IntervalSpool, RequestSpool

log = logging.getLogger(__name__)

BACKOFF = Backoff(first_s=1.0, longest_s=30.0)
POLL_S = 0.5
MAX_ERROR_CHARS = 300


def short_message(error: Exception) -> str:
    """An error in one line; of a Java error its cause, without the stack trace."""
    lines = str(error).splitlines() or [repr(error)]
    cause = next((line.removeprefix(": ") for line in lines[1:] if line.startswith(": ")), lines[0])
    return cause[:MAX_ERROR_CHARS]


class RequestSender(Protocol):
    """Sends spooled requests to a server."""

    def deliver(self, request: bytes, position: int) -> bytes | None:
        """Send a compressed request; returns the part of it that is to be sent again, uncompressed, if any.

        `position` rises from request to request and belongs to this request alone. RefusedError says that the request
        will never be taken; after any other error it is sent again.
        """
        ...


@dataclass(eq=False)
class StatusReporter:
    """Keeps the status of a sink over all of its spools, and writes it to a file for others to read."""

    folder: Path
    status: SinkStatus
    clock_ms: Callable[[], int]

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[IntervalSpool, str] = {}

    def add_spool(self, spool: IntervalSpool) -> None:
        """Count what waits in a spool."""
        self._errors[spool] = ""

    def report(
        self, spool: IntervalSpool, *, error: str | None = None, dropped: int = 0, refused: int = 0, **changes: int
    ) -> None:
        """Write the status after something happened to a spool; `error` is its new last error, empty for none."""
        with self._lock:
            if error is not None:
                self._errors[spool] = error
            waiting = [interval for each in self._errors for interval in each.sizes().items()]
            fields: dict[str, Any] = {
                "waiting": len(waiting),
                "waiting_bytes": sum(size for _, size in waiting),
                "oldest_ms": min((at_ms for at_ms, _ in waiting), default=None),
                "dropped": self.status.dropped + dropped,
                "refused": self.status.refused + refused,
                "trouble": next(filter(None, self._errors.values()), ""),
                **changes,
            }
            self.status = replace(self.status, noted_ms=self.clock_ms(), **fields)
            try:
                write_status(self.folder, self.status)
            except OSError as problem:
                # Deliveries go on: on a full disk they make room.
                log.warning("sink %s: its status could not be written: %s", self.status.name, problem)


@dataclass(eq=False)
class Delivery(ABC):
    """Delivers what is in a spool."""

    name: str
    spool: IntervalSpool
    status: StatusReporter

    def __post_init__(self) -> None:
        self.status.add_spool(self.spool)

    @abstractmethod
    def deliver_next(self) -> bool:
        """Deliver what is next; returns whether there was anything to deliver."""

    def run(self, stop: threading.Event) -> None:
        """Deliver until told to stop."""
        failures = 0
        while not stop.is_set():
            try:
                has_delivered = self.deliver_next()
            except Exception as error:  # noqa: BLE001 - whatever it is, the spool keeps what was not delivered
                message = short_message(error)
                if not failures:
                    log.warning("sink %s: %s; trying again", self.name, message)
                self.status.report(self.spool, error=message)
                stop.wait(BACKOFF.wait_s(failures, error.wait_s if isinstance(error, BusyError) else 0.0))
                failures += 1
                continue
            if failures:
                log.info("sink %s: delivering again", self.name)
            failures = 0
            if not has_delivered:
                stop.wait(POLL_S)


@dataclass(eq=False)
class RequestDelivery(Delivery):
    """Delivers the requests of a spool."""

    spool: RequestSpool
    sender: RequestSender

    def deliver_next(self) -> bool:
        """Send the oldest request; returns whether there was one."""
        request = self.spool.next()
        if request is None:
            return False
        try:
            remainder = self.sender.deliver(request.path.read_bytes(), request.position)
        except FileNotFoundError:
            # It was dropped to make room.
            return True
        except RefusedError as error:
            log.error("sink %s: a request was refused and is dropped: %s", self.name, error)
            self.spool.done(request)
            self.status.report(self.spool, refused=1, error=str(error)[:MAX_ERROR_CHARS])
            return True
        if remainder is not None:
            self.spool.replace(request, remainder)
            raise BusyError("the server took a part of a request, the rest is sent again")
        self.spool.done(request)
        self.status.report(self.spool, delivered_ms=request.at_ms, error="")
        return True

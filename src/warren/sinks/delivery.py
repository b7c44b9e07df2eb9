"""The way out: what waits is delivered in order, again and again until it is taken; and how that goes."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from warren.delivery.backoff import Backoff
from warren.delivery.sink_status import SinkStatus, write_status
from warren.errors import BusyError, RefusedError
from warren.sinks.intervals import Intervals
from warren.sinks.spool import Spool

log = logging.getLogger(__name__)

BACKOFF = Backoff(first_s=1.0, longest_s=30.0)
LOOK_S = 0.5


def in_short(error: Exception) -> str:
    """What went wrong, in a line: of an error of Java the cause, without where it passed through."""
    lines = str(error).splitlines() or [repr(error)]
    caused = next((line.removeprefix(": ") for line in lines[1:] if line.startswith(": ")), lines[0])
    return caused[:300]


class Receiver(Protocol):
    """Takes requests out of a spool to a server."""

    def deliver(self, request: bytes, place: int) -> bytes | None:
        """Send a packed request; gives what of it is to be sent again, if not all was taken.

        The place of a request is higher than that of all before it, and always its own. RefusedError for one that will
        never be taken, anything else for one that may be later.
        """
        ...

    def close(self) -> None:
        """No more requests come."""
        ...


class Notes:
    """How a sink fares, put down for those who ask: what waits, and what servers say."""

    def __init__(self, folder: Path, status: SinkStatus, clock_ms: Callable[[], int]) -> None:
        self._folder = folder
        self._status = status
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._troubles: dict[Intervals, str] = {}

    def watch(self, waiting: Intervals) -> None:
        """What waits there counts from now on."""
        self._troubles[waiting] = ""

    def note(
        self, of: Intervals, *, trouble: str | None = None, dropped: int = 0, refused: int = 0, **changes: int
    ) -> None:
        """Something has happened to what waits."""
        with self._lock:
            if trouble is not None:
                self._troubles[of] = trouble
            held = [waiting.backlog() for waiting in self._troubles]
            self._status = self._status.changed(
                noted_ms=self._clock_ms(),
                waiting=sum(one.intervals for one in held),
                waiting_bytes=sum(one.size for one in held),
                oldest_ms=min((one.oldest_ms for one in held if one.oldest_ms is not None), default=None),
                dropped=self._status.dropped + dropped,
                refused=self._status.refused + refused,
                trouble=next((one for one in self._troubles.values() if one), ""),
                **changes,
            )
            try:
                write_status(self._folder, self._status)
            except OSError as error:
                # On a full disk nobody can be told, and delivering makes room.
                log.warning("sink %s: how it fares could not be put down: %s", self._status.name, error)


class Delivery(ABC):
    """Delivers what waits."""

    def __init__(self, name: str, waiting: Intervals, notes: Notes) -> None:
        self._name = name
        self._waiting = waiting
        self._notes = notes
        notes.watch(waiting)

    @abstractmethod
    def deliver_next(self) -> bool:
        """Deliver what is next; says whether there was something."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more is delivered."""

    def run(self, stop: threading.Event) -> None:
        """Deliver until told to stop."""
        failures = 0
        while not stop.is_set():
            try:
                is_done = self.deliver_next()
                if failures:
                    log.info("sink %s: its server takes what it missed", self._name)
                failures = 0
                if not is_done:
                    stop.wait(LOOK_S)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing is lost
                if not failures:
                    log.warning("sink %s: %s; it is tried again", self._name, in_short(error))
                self._notes.note(self._waiting, trouble=in_short(error))
                stop.wait(BACKOFF.wait_s(failures, error.wait_s if isinstance(error, BusyError) else 0.0))
                failures += 1


class Requests(Delivery):
    """Delivers the requests that a spool holds."""

    def __init__(self, name: str, receiver: Receiver, spool: Spool, notes: Notes) -> None:
        super().__init__(name, spool, notes)
        self._receiver = receiver
        self._spool = spool

    def deliver_next(self) -> bool:
        """Send the request whose turn it is; says whether there was one."""
        batch = self._spool.next()
        if batch is None:
            return False
        try:
            left = self._receiver.deliver(batch.read(), batch.place)
        except FileNotFoundError:
            # It had to make room.
            return True
        except RefusedError as error:
            log.error("sink %s: a request was refused, and is given up: %s", self._name, error)
            self._spool.done(batch)
            self._notes.note(self._spool, refused=1, trouble=str(error)[:300])
            return True
        if left is None:
            self._spool.done(batch)
            self._notes.note(self._spool, delivered_ms=batch.at_ms, trouble="")
            return True
        self._spool.replace(batch, left)
        raise BusyError("the server has taken a part, and asks for the rest later")

    def close(self) -> None:
        """Nothing more is delivered."""
        self._receiver.close()

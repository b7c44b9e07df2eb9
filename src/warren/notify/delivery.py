"""Delivers notifications: one thread per notifier sends them in order, each until it is taken, refused or a day old."""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence

from warren.delivery.backoff import Backoff
from warren.errors import BusyError, RefusedError
from warren.incidents.model import NO_RESULT, Event, Notification
from warren.incidents.store.store import IncidentStore
from warren.snapshot.status import GroupStatus

log = logging.getLogger(__name__)

Send = Callable[[Notification], str | None]
"""Sends a notification, and returns the receiver's id of it (a receipt) if there is one.

Raises RefusedError if the receiver will never take it, BusyError or anything else if another attempt may succeed.
A notification that follows another of the same incident comes with the receipt of the first.
"""

BACKOFF = Backoff(first_s=1.0, longest_s=60.0)
MIN_WAIT_S = 0.05
MAX_AGE_MS = 86_400_000
"""A notification that nobody took for a day is given up."""
POLL_S = 5.0
STOP_S = 3.0
MAX_ERROR_CHARS = 500


class NotifierDelivery:
    """Delivers the notifications of one notifier, so that a slow receiver delays no other notifier."""

    def __init__(
        self,
        notifier: str,
        store: IncidentStore,
        send: Send,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        jitter: Callable[[], float] = random.random,
        may_send: Callable[[], bool] = lambda: True,
        close_sender: Callable[[], None] = lambda: None,
    ) -> None:
        self._notifier = notifier
        self._store = store
        self._send = send
        self._close_sender = close_sender
        self._new_senders: queue.SimpleQueue[tuple[Send, Callable[[], None]]] = queue.SimpleQueue()
        self._may_send = may_send
        self._clock_ms = clock_ms
        self._jitter = jitter
        self._wake = threading.Event()
        self._is_closed = False
        self._failures = 0
        """Failed attempts in a row, of any notification."""
        self._resume_ms = 0
        self._unrecorded: dict[str, str | None] = {}
        """Receipts of notifications that were sent but could not be stored as sent, by key."""
        self._thread = threading.Thread(target=self._run, name=f"notifier {notifier}", daemon=True)

    def start(self) -> None:
        """Start with the notifications that a previous run left."""
        self._thread.start()

    def wake(self) -> None:
        """Check for new notifications now."""
        self._wake.set()

    def replace_sender(self, send: Send, close_sender: Callable[[], None]) -> None:
        """Send through another sender after the notification that is being sent, so that none is sent twice."""
        self._new_senders.put((send, close_sender))
        self._wake.set()

    def stop(self) -> None:
        """Send no more; the next start continues."""
        self._is_closed = True
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the notification being sent; if it takes longer, the next start sends it again with the same key."""
        self._thread.join(max(timeout_s, 0.0))

    def _run(self) -> None:
        while not self._is_closed:
            self._take_new_sender()
            try:
                wait_s = self.deliver_next()
            except Exception:
                log.exception("notifier %s: the incident store cannot be used", self._notifier)
                wait_s = POLL_S
            if wait_s > 0:
                self._wake.wait(wait_s)
                self._wake.clear()
        self._take_new_sender()
        self._close_sender()

    def _take_new_sender(self) -> None:
        while not self._new_senders.empty():
            self._close_sender()
            self._send, self._close_sender = self._new_senders.get()
            # What the receiver refused before, it may take now.
            self._failures = self._resume_ms = 0

    def deliver_next(self) -> float:
        """Send the next notification, if one is due; returns the seconds until there may be something to do."""
        now_ms = self._clock_ms()
        pause_s = (self._resume_ms - now_ms) / 1000
        # A pause longer than we ever make means that the clock was set back.
        if 0 < pause_s <= BACKOFF.longest_s:
            return pause_s
        resting = now_ms + 1, now_ms + round(BACKOFF.longest_s * 1000)
        notification = self._store.next_notification(self._notifier, resting) if self._may_send() else None
        if notification is None:
            return self._until_next(now_ms)
        if notification.key in self._unrecorded:
            self._record_sent(notification, self._unrecorded[notification.key])
            return 0.0
        # After a long downtime an open is no news any more; a close still ends the alert that the receiver shows.
        if now_ms - notification.due_ms > MAX_AGE_MS and notification.event is not Event.CLOSE:
            self._give_up(notification, now_ms, notification.last_error or "it is more than a day old")
            return 0.0
        try:
            receipt = self._send(notification)
        except RefusedError as error:
            self._give_up(notification, now_ms, str(error))
        except BusyError as error:
            self._try_later(notification, now_ms, str(error), error.wait_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, the notification is kept
            self._try_later(notification, now_ms, f"{type(error).__name__}: {error}")
        else:
            if self._failures:
                log.info("notifier %s: the receiver takes notifications again", self._notifier)
            self._failures = 0
            self._record_sent(notification, receipt)
        return 0.0

    def _until_next(self, now_ms: int) -> float:
        next_ms = self._store.next_attempt_ms(self._notifier)
        wait_s = POLL_S if next_ms is None else (next_ms - now_ms) / 1000
        return min(max(wait_s, MIN_WAIT_S), POLL_S)

    def _record_sent(self, notification: Notification, receipt: str | None) -> None:
        self._unrecorded[notification.key] = receipt
        # The result is large, and not needed any more.
        self._store.update_notification(
            notification.key, sent_ms=self._clock_ms(), receipt=receipt or notification.receipt, result=NO_RESULT
        )
        del self._unrecorded[notification.key]

    def _try_later(self, notification: Notification, now_ms: int, error: str, min_wait_s: float = 0.0) -> None:
        if now_ms - notification.due_ms > MAX_AGE_MS:
            self._give_up(notification, now_ms, f"not taken for a day; the last error: {error}")
            return
        if not self._failures:
            log.warning("notifier %s: %s; trying again until it is taken", self._notifier, error)
        # Both the receiver and the notification back off, so that a notification that the receiver cannot take does
        # not delay the others.
        self._resume_ms = now_ms + self._backoff_ms(self._failures, min_wait_s)
        self._failures += 1
        next_attempt_ms = now_ms + self._backoff_ms(notification.attempts, min_wait_s)
        self._record_failure(notification, error, next_attempt_ms=next_attempt_ms)

    def _backoff_ms(self, failures: int, min_wait_s: float) -> int:
        return round(BACKOFF.wait_s(failures, min_wait_s, self._jitter) * 1000)

    def _give_up(self, notification: Notification, now_ms: int, error: str) -> None:
        event, group = notification.event, notification.group
        log.error("notifier %s: %s of %s was not sent: %s", self._notifier, event, group, error)
        self._record_failure(notification, error, given_up_ms=now_ms, result=NO_RESULT)

    def _record_failure(self, notification: Notification, error: str, **changes: int | GroupStatus) -> None:
        attempts, last_error = notification.attempts + 1, error[:MAX_ERROR_CHARS]
        self._store.update_notification(notification.key, attempts=attempts, last_error=last_error, **changes)


def stop_all(deliveries: Sequence[NotifierDelivery]) -> None:
    """Stop all deliveries together, so that they wait for slow receivers at the same time."""
    for delivery in deliveries:
        delivery.stop()
    until = time.monotonic() + STOP_S
    for delivery in deliveries:
        delivery.join(until - time.monotonic())

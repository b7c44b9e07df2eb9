"""Delivers letters: a thread for each listener, in their order, again and again until they are taken."""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from warren.delivery.backoff import Backoff
from warren.errors import BusyError, RefusedError
from warren.incidents.model import NO_RESULT, Notification
from warren.incidents.store.store import IncidentStore

log = logging.getLogger(__name__)

Send = Callable[[Notification], str | None]
"""Sends a letter and gives what its receiver calls it, if it says so.

Raises RefusedError when it will never be taken, BusyError when it may be after a while, and anything else when it may
be at any time. A letter that follows another comes with the receipt of the first about its incident.
"""

BACKOFF = Backoff(first_s=1.0, longest_s=60.0)
LEAST_WAIT_S = 0.05
PATIENCE_MS = 86_400_000
"""After a day a letter is no news any more."""
LOOK_S = 5.0
STOP_S = 3.0
TROUBLE_MOST = 500


class NotifierDelivery:
    """Sends one listener's letters; a receiver that is slow or away holds up nobody else's."""

    def __init__(
        self,
        listener: str,
        book: IncidentStore,
        send: Send,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        chance: Callable[[], float] = random.random,
        may_send: Callable[[], bool] = lambda: True,
    ) -> None:
        self._listener = listener
        self._book = book
        self._send = send
        self._may_send = may_send
        self._clock_ms = clock_ms
        self._chance = chance
        self._is_new = threading.Event()
        self._closed = False
        self._is_down = False
        self._failures = 0
        self._resume_ms = 0
        self._unnoted: dict[str, str | None] = {}
        """Letters that were sent and could not be put down as such, with their receipts."""
        self._thread = threading.Thread(target=self._run, name=f"notifier {listener}", daemon=True)

    def start(self) -> None:
        """Begin with what was left from before."""
        self._thread.start()

    def wake(self) -> None:
        """There may be a new letter."""
        self._is_new.set()

    def stop(self) -> None:
        """Send no more; what is left is sent after the next start."""
        self._closed = True
        self._is_new.set()

    def join(self, within_s: float) -> None:
        """Wait for the letter under way; one that takes longer is sent again, under its key, after the next start."""
        self._thread.join(max(within_s, 0.0))

    def _run(self) -> None:
        while not self._closed:
            try:
                wait_s = self.deliver_next()
            except Exception:
                log.exception("notifier %s: the book of incidents could not be used", self._listener)
                wait_s = LOOK_S
            if wait_s > 0:
                self._is_new.wait(wait_s)
                self._is_new.clear()

    def deliver_next(self) -> float:
        """Send the letter whose turn it is, if one is due, and say how long there is nothing to do."""
        now_ms = self._clock_ms()
        pause_s = (self._resume_ms - now_ms) / 1000
        # A clock that was set back must not hold anything for that long.
        if 0 < pause_s <= BACKOFF.longest_s:
            return pause_s
        resting = now_ms + 1, now_ms + round(BACKOFF.longest_s * 1000)
        letter = self._book.next_notification(self._listener, resting) if self._may_send() else None
        if letter is None:
            return self._until_next(now_ms)
        if letter.key in self._unnoted:
            # It was sent before, only not put down.
            self._note(letter, self._unnoted[letter.key])
            return 0.0
        try:
            receipt = self._send(letter)
        except RefusedError as error:
            self._give_up(letter, now_ms, str(error))
        except BusyError as error:
            self._try_later(letter, now_ms, str(error), error.wait_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, the letter is kept
            self._try_later(letter, now_ms, f"{type(error).__name__}: {error}")
        else:
            self._failures = 0
            self._note(letter, receipt)
            if self._is_down:
                log.info("notifier %s: its receiver takes letters again", self._listener)
            self._is_down = False
        return 0.0

    def _until_next(self, now_ms: int) -> float:
        next_ms = self._book.next_attempt_ms(self._listener)
        wait_s = LOOK_S if next_ms is None else (next_ms - now_ms) / 1000
        return min(max(wait_s, LEAST_WAIT_S), LOOK_S)

    def _note(self, letter: Notification, receipt: str | None) -> None:
        self._unnoted[letter.key] = receipt
        sent_ms = self._clock_ms()
        # What it said is large, and nobody asks for it any more.
        self._book.update_notification(
            letter.key, lambda held: replace(held, sent_ms=sent_ms, receipt=receipt or letter.receipt, result=NO_RESULT)
        )
        del self._unnoted[letter.key]

    def _try_later(self, letter: Notification, now_ms: int, trouble: str, least_s: float = 0.0) -> None:
        if now_ms - letter.due_ms > PATIENCE_MS:
            self._give_up(letter, now_ms, f"not taken for a day; at last: {trouble}")
            return
        if not self._is_down:
            log.warning("notifier %s: %s; it is tried again until it is taken", self._listener, trouble)
        self._is_down = True
        # The receiver is left alone the longer the more it fails, and each letter too: one that it will not take does
        # not keep it from the others.
        self._resume_ms = now_ms + round(BACKOFF.wait_s(self._failures, least_s, self._chance) * 1000)
        self._failures += 1
        next_ms = now_ms + round(BACKOFF.wait_s(letter.attempts, least_s, self._chance) * 1000)
        self._book.update_notification(
            letter.key,
            lambda held: replace(
                held, attempts=letter.attempts + 1, next_attempt_ms=next_ms, last_error=trouble[:TROUBLE_MOST]
            ),
        )

    def _give_up(self, letter: Notification, now_ms: int, trouble: str) -> None:
        log.error("notifier %s: %s of %s was not sent: %s", self._listener, letter.event, letter.group, trouble)
        self._book.update_notification(
            letter.key,
            lambda held: replace(
                held,
                attempts=letter.attempts + 1,
                given_up_ms=now_ms,
                last_error=trouble[:TROUBLE_MOST],
                result=NO_RESULT,
            ),
        )


def close_all(postmen: Sequence[NotifierDelivery]) -> None:
    """Stop them together, so that those who wait for a slow receiver wait at the same time."""
    for postman in postmen:
        postman.stop()
    until = time.monotonic() + STOP_S
    for postman in postmen:
        postman.join(until - time.monotonic())

"""One notifier's delivery: backoff, order, refusals, and what happens when the store fails."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.kit.incidents import START, count_deliveries
from warren.errors import RefusedError
from warren.incidents.model import Event, Notification
from warren.incidents.store.store import IncidentStore
from warren.notify.delivery import BACKOFF, MAX_AGE_MS, NotifierDelivery


def make_notification(**changes: Any) -> Notification:
    return replace(Notification("k", "hook", Event.OPEN, "i", 1, "one", "g", START, START, "why"), **changes)


def test_waits_grow_and_end_after_a_day(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    now_ms, waits = START, []

    def fail(_: Notification) -> None:
        raise ConnectionError("no route to host")

    delivery = NotifierDelivery("hook", store, fail, lambda: now_ms, lambda: 0.5)
    store.write(notifications=[make_notification()])
    for _ in range(12):
        assert delivery.deliver_next() == 0.0
        pending = store.next_notification("hook")
        assert pending is not None
        waits.append((pending.next_attempt_ms - now_ms) / 1000)
        assert delivery.deliver_next() == pytest.approx(waits[-1])
        now_ms = pending.next_attempt_ms
    assert waits[0] == pytest.approx(BACKOFF.first_s * 0.75)
    assert waits[-1] == pytest.approx(BACKOFF.longest_s * 0.75)
    assert sorted(waits) == waits
    now_ms = START + MAX_AGE_MS + 1
    delivery.deliver_next()
    assert store.next_notification("hook") is None


@pytest.mark.parametrize(
    ("event", "age_ms", "is_sent"),
    [
        (Event.OPEN, MAX_AGE_MS, True),
        (Event.OPEN, MAX_AGE_MS + 1, False),
        (Event.OPEN, 7 * MAX_AGE_MS, False),
        (Event.WORSE, 7 * MAX_AGE_MS, False),
        (Event.REMINDER, 7 * MAX_AGE_MS, False),
        (Event.REPORT, 7 * MAX_AGE_MS, False),
        (Event.CLOSE, 7 * MAX_AGE_MS, True),
    ],
)
def test_after_a_downtime_only_a_close_is_sent_that_is_more_than_a_day_old(
    tmp_path: Path, event: Event, age_ms: int, is_sent: bool
) -> None:
    store = IncidentStore(tmp_path)
    sent: list[str] = []
    store.write(notifications=[make_notification(event=event)])
    delivery = NotifierDelivery(
        "hook", store, lambda notification: sent.append(notification.key), lambda: START + age_ms
    )
    assert delivery.deliver_next() == 0.0
    assert sent == (["k"] if is_sent else [])
    assert count_deliveries(tmp_path) == {"hook": (1, 0, 0) if is_sent else (0, 0, 1)}


def test_a_clock_that_is_set_back_does_not_delay_a_notification(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    sent: list[str] = []
    delivery = NotifierDelivery("hook", store, lambda notification: sent.append(notification.key), lambda: START)
    store.write(notifications=[make_notification(next_attempt_ms=START + 86_400_000)])
    delivery.deliver_next()
    assert sent == ["k"]


def test_a_refused_notification_is_given_up_at_once(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)

    def refuse(_: Notification) -> None:
        raise RefusedError("no")

    store.write(notifications=[make_notification(), make_notification(key="l")])
    delivery = NotifierDelivery("hook", store, refuse, lambda: START)
    delivery.deliver_next()
    pending = store.next_notification("hook")
    assert pending is not None
    assert pending.key == "l"


def test_a_notification_that_was_sent_but_not_stored_as_sent_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = IncidentStore(tmp_path)
    sent: list[str] = []
    delivery = NotifierDelivery("hook", store, lambda notification: sent.append(notification.key), lambda: START)
    store.write(notifications=[make_notification()])
    with monkeypatch.context() as disk:
        disk.setattr(store, "update_notification", _disk_is_full)
        for _ in range(3):
            with pytest.raises(OSError, match="disk is full"):
                delivery.deliver_next()
    assert delivery.deliver_next() == 0.0
    assert sent == ["k"]
    assert store.next_notification("hook") is None


def _disk_is_full(*_: object, **__: object) -> None:
    raise OSError("the disk is full")


def test_a_notification_that_is_never_taken_delays_only_those_of_its_incident(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    sent: list[str] = []
    now_ms = START

    def send(notification: Notification) -> None:
        if notification.incident == "poison":
            raise ConnectionError("500")
        sent.append(notification.key)

    store.write(notifications=[
        make_notification(key="p1", incident="poison", sequence=1),
        make_notification(key="p2", incident="poison", sequence=2, due_ms=START - 5),
        make_notification(key="a1", incident="a", sequence=1, due_ms=START + 1),
        make_notification(key="a2", incident="a", sequence=2),
    ])  # fmt: skip
    delivery = NotifierDelivery("hook", store, send, lambda: now_ms, lambda: 1.0)
    for _ in range(40):
        now_ms += round(1000 * max(delivery.deliver_next(), 0.001))
    assert sent == ["a1", "a2"], "in the order of their sequence, whatever the clock says"
    pending = store.next_notification("hook")
    assert pending is not None
    assert (pending.key, pending.attempts > 1) == ("p1", True)


def test_a_receiver_that_is_down_is_tried_less_and_less_often(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    attempts_ms: list[int] = []
    now_ms = START

    def send(_: Notification) -> None:
        attempts_ms.append(now_ms)
        raise ConnectionError("refused")

    store.write(notifications=[make_notification(key=f"k{n}", incident=f"i{n}") for n in range(500)])
    delivery = NotifierDelivery("hook", store, send, lambda: now_ms, lambda: 1.0)
    while now_ms < START + 600_000:
        now_ms += round(1000 * max(delivery.deliver_next(), 0.001))
    assert len(attempts_ms) < 25, "notifications do not back off one by one"
    assert attempts_ms[-1] - attempts_ms[-2] >= 30_000
    now_ms += 60_000
    delivery = NotifierDelivery("hook", store, lambda _: None, lambda: now_ms, lambda: 1.0)
    for _ in range(600):
        now_ms += round(1000 * delivery.deliver_next())
    assert count_deliveries(tmp_path) == {"hook": (500, 0, 0)}, "nothing is lost"

"""From a verdict to a receiver: over a real HTTP server that is well, slow, away, or does not want it."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.incidents import OK, SECOND, STALL, START, WARN, IncidentScene
from tests.kit.receivers import Receiver, receiving
from tests.kit.warrens import wait_for
from warren.config import Cluster, Config, Consumer, Notifier
from warren.delivery.backoff import Backoff
from warren.errors import ConfigError, RefusedError
from warren.incidents.model import Event, Notification, NotifierPolicy
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter, NotifierFilter
from warren.incidents.store.database import open_read_only
from warren.incidents.store.reader import count_incidents
from warren.incidents.store.store import StoreUpdate
from warren.notify.delivery import BACKOFF, MAX_AGE_MS, NotifierDelivery
from warren.notify.notifiers import check_templates, delivering, refuse_bad_templates, send_sample
from warren.notify.senders.http import HttpSender
from warren.notify.templates.sample import sample_notification

OPEN = """{"id":"{{.ID}}","group":"{{.Group}}","status":"{{.Result.Status}}","team":"{{index .Extras "team"}}",
"bad":{{len .Result.Partitions}},"counts":{{jsonencoder (partitioncounts .Result.Partitions)}}}"""
CLOSE = '{"closed":"{{.ID}}","status":"{{.Result.Status}}"}'
GROUP = ("one", "g")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def config_of(tmp_path: Path, *notifiers: Notifier) -> Config:
    servers = ("127.0.0.1:1",)
    return Config(
        {"one": Cluster("one", servers)},
        {"one": Consumer("one", "one", servers)},
        notifiers={one.name: one for one in notifiers},
    )


def notifier(tmp_path: Path, url: str, name: str = "hook", **changes: Any) -> Notifier:
    when_open, when_closed = tmp_path / "open.tmpl", tmp_path / "close.tmpl"
    when_open.write_text(OPEN)
    when_closed.write_text(CLOSE)
    made = Notifier(
        name, "http", when_open, when_closed, send_close=True, url_open=f"{url}/{{{{.Cluster}}}}/{{{{.Group}}}}",
        extras={"team": "payments"},
    )  # fmt: skip
    return replace(made, **changes)


class Street:
    """Snapshots, a keeper, and postmen that deliver what it writes."""

    def __init__(self, root: Path, config: Config) -> None:
        self.scene = IncidentScene(root)
        self.config = config
        self._parts = ExitStack()
        self._began_ms = time.time_ns() // 1_000_000

    def __enter__(self) -> "Street":
        audiences, wake = self._parts.enter_context(delivering(self.config, self.scene.incident_store))
        self.scene.pipeline = IncidentPipeline(self.scene.incident_store, self.scene.store, 30, audiences, wake)
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def see(self, second: int, *partitions: Any) -> None:
        self.scene.process(self._began_ms + second * SECOND, {GROUP: partitions})


def test_a_group_stalls_gets_worse_and_recovers(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url, method_close="DELETE", headers={"X-Team": "a"}, username="u", password="p")
    with Street(tmp_path, config_of(tmp_path, hook)) as street:
        for second, status in enumerate([OK, WARN, WARN, STALL, STALL, OK, OK]):
            street.see(second, (status, 5), (OK, 0))
        wait_for(lambda: len(receiver.got) == 3, "open, worse, close", 20)
    assert receiver.events() == ["open", "worse", "close"]
    opened, worse, closed = receiver.got
    [entry] = street.scene.incidents()
    said = json.loads(opened.body)
    assert said == {
        "id": entry.id, "group": "g", "status": "WARN", "team": "payments", "bad": 1,
        "counts": said["counts"],
    }  # fmt: skip
    assert json.loads(worse.body)["status"] == "ERR"
    assert json.loads(closed.body) == {"closed": entry.id, "status": "OK"}
    assert [one.method for one in receiver.got] == ["POST", "POST", "DELETE"]
    assert count_incidents(tmp_path).notifications == {("hook", "sent"): 3}
    assert {one.path for one in receiver.got} == {"/one/g"}
    assert opened.headers["content-type"] == "application/json"
    assert (opened.headers["x-team"], opened.headers["authorization"]) == ("a", "Basic dTpw")
    assert len({one.key for one in receiver.got}) == 3


def test_a_receiver_that_is_away_or_busy_gets_everything_in_order_once_it_is_back(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.notify.delivery.BACKOFF", Backoff(0.01, 60.0))
    receiver.answers += [500, 503, 429, 408]
    with Street(tmp_path, config_of(tmp_path, notifier(tmp_path, receiver.url))) as street:
        street.see(0, (STALL, 1))
        street.see(1, (OK, 0))
        wait_for(lambda: len(receiver.got) == 6, "both are taken in the end", 20)
    assert receiver.events() == ["open"] * 5 + ["close"]
    assert len({one.key for one in receiver.got}) == 2, "what is sent again has the same key"


def test_what_a_receiver_refuses_for_good_is_given_up_and_the_next_is_sent(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers += [404]
    with Street(tmp_path, config_of(tmp_path, notifier(tmp_path, receiver.url))) as street:
        street.see(0, (STALL, 1))
        street.see(1, (OK, 0))
        wait_for(lambda: len(receiver.got) == 2, "the end is told", 20)
    assert "the server answered 404" in caplog.text
    assert street.scene.incident_store.next_notification("hook") is None
    assert count_incidents(tmp_path).notifications == {("hook", "given_up"): 1, ("hook", "sent"): 1}


def test_a_receiver_that_hangs_holds_up_nobody_else(tmp_path: Path, receiver: Receiver) -> None:
    receiver.hold.clear()
    slow = notifier(tmp_path, receiver.url, "slow", timeout=30)
    quick = replace(slow, name="quick", class_name="null")
    with Street(tmp_path, config_of(tmp_path, slow, quick)) as street:
        street.see(0, (STALL, 1))
        wait_for(lambda: street.scene.incident_store.next_notification("quick") is None, "the other one is told", 20)
        assert street.scene.incident_store.next_notification("slow") is not None
        receiver.hold.set()
        wait_for(lambda: street.scene.incident_store.next_notification("slow") is None, "and it too, later", 20)


def test_after_a_crash_what_may_have_been_sent_is_sent_again_under_its_key(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, notifier(tmp_path, receiver.url))
    deliver = NotifierDelivery.deliver_next
    with monkeypatch.context() as death, Street(tmp_path, config) as street:
        # As if it had died between sending and putting down.
        death.setattr(NotifierDelivery, "_record_sent", lambda *_: None)
        death.setattr(NotifierDelivery, "deliver_next", lambda postman: deliver(postman) or 60.0)
        street.see(0, (STALL, 1))
        wait_for(lambda: len(receiver.got) == 1, "sent", 20)
    with Street(tmp_path, config) as again:
        wait_for(lambda: len(receiver.got) == 2, "sent again", 20)
        again.see(9, (STALL, 1))
        wait_for(lambda: again.scene.incident_store.next_notification("hook") is None, "all is sent", 20)
    assert receiver.events() == ["open", "open"], "and no second incident is opened"
    assert len({one.key for one in receiver.got}) == 1


def test_only_the_last_of_the_reminders_that_nobody_took_is_sent(tmp_path: Path, receiver: Receiver) -> None:
    receiver.hold.clear()
    hook = notifier(tmp_path, receiver.url, send_interval=1, timeout=30)
    with Street(tmp_path, config_of(tmp_path, hook)) as street:
        for second in range(10):
            street.see(second, (STALL, 1 + second))
        receiver.hold.set()
        wait_for(lambda: street.scene.incident_store.next_notification("hook") is None, "all is sent", 20)
    assert receiver.events() == ["open", "reminder"]


def test_a_template_that_fails_at_night_is_replaced_by_plain_words(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook = notifier(tmp_path, receiver.url)
    (tmp_path / "open.tmpl").write_text("{{(index .Result.Partitions 99).Topic}}")
    with Street(tmp_path, config_of(tmp_path, hook)) as street:
        street.see(0, (STALL, 7))
        wait_for(lambda: len(receiver.got) == 1, "sent", 20)
    said = json.loads(receiver.got[0].body)
    assert (said["group"], said["status"], said["event"], said["totallag"]) == ("g", "ERR", "open", 7)
    assert "a plain message is sent instead" in caplog.text


def test_a_bad_template_is_found_before_the_start(tmp_path: Path) -> None:
    config = config_of(tmp_path, notifier(tmp_path, "http://x"), notifier(tmp_path, "http://x", "other"))
    assert check_templates(config) == []
    (tmp_path / "open.tmpl").write_text("line\n{{if .Cluster}")
    mistakes = check_templates(config)
    assert len(mistakes) == 2
    assert mistakes[0].startswith("notifier.hook: ")
    assert "open.tmpl" in mistakes[0]
    with pytest.raises(ConfigError):
        refuse_bad_templates(config)


def test_a_sample_for_nobody_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    silent = notifier(tmp_path, "http://x", "silent", class_name="null")
    assert send_sample(config_of(tmp_path, silent), "silent") == [Event.OPEN, Event.CLOSE]
    assert '"group":"sample-group"' in caplog.text


def letter(**changes: Any) -> Notification:
    return replace(Notification("k", "hook", Event.OPEN, "i", 1, "one", "g", START, START, "why"), **changes)


def test_waits_grow_are_never_the_same_and_come_to_an_end(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)
    now, waits = START, []

    def away(_: Notification) -> None:
        raise ConnectionError("no route to host")

    postman = NotifierDelivery("hook", scene.incident_store, away, lambda: now, lambda: 0.5)
    scene.incident_store.write(StoreUpdate(notifications=[letter()]))
    for _ in range(12):
        assert postman.deliver_next() == 0.0
        held = scene.incident_store.next_notification("hook")
        assert held is not None
        waits.append((held.next_attempt_ms - now) / 1000)
        assert postman.deliver_next() == pytest.approx(waits[-1])
        now = held.next_attempt_ms
    assert waits[0] == pytest.approx(BACKOFF.first_s * 0.75)
    assert waits[-1] == pytest.approx(BACKOFF.longest_s * 0.75)
    assert sorted(waits) == waits
    now = START + MAX_AGE_MS + 1
    postman.deliver_next()
    assert scene.incident_store.next_notification("hook") is None


def test_a_clock_that_is_set_back_does_not_hold_a_letter(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)
    sent: list[str] = []
    postman = NotifierDelivery("hook", scene.incident_store, lambda one: sent.append(one.key), lambda: START)
    scene.incident_store.write(StoreUpdate(notifications=[letter(next_attempt_ms=START + 86_400_000)]))
    postman.deliver_next()
    assert sent == ["k"]


def test_a_refusal_ends_a_letter_at_once(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)

    def refuse(_: Notification) -> None:
        raise RefusedError("no")

    scene.incident_store.write(StoreUpdate(notifications=[letter(), letter(key="l")]))
    postman = NotifierDelivery("hook", scene.incident_store, refuse, lambda: START)
    postman.deliver_next()
    held = scene.incident_store.next_notification("hook")
    assert held is not None
    assert held.key == "l"


def test_who_listens_to_whom(tmp_path: Path) -> None:
    audiences = NotificationRouter(
        [
            NotifierFilter(NotifierPolicy("all")),
            NotifierFilter(NotifierPolicy("payments"), allowlist="^pay"),
            NotifierFilter(NotifierPolicy("rest"), denylist="^pay|test$"),
            NotifierFilter(NotifierPolicy("some"), allowlist="^pay", denylist="test$"),
        ]
    )
    found = audiences.recipients_of([("c", "pay-1"), ("c", "pay-test"), ("c", "orders")])
    assert {group: [one.name for one in heard.notifiers] for (_, group), heard in found.items()} == {
        "orders": ["all", "rest"],
        "pay-1": ["all", "payments", "some"],
        "pay-test": ["all", "payments"],
    }
    assert audiences.recipients_of([("c", "orders")])["c", "orders"] == found["c", "orders"]
    assert not audiences.reports_ok_groups
    assert NotificationRouter([NotifierFilter(NotifierPolicy("good", threshold=OK))]).reports_ok_groups


def test_good_groups_are_reported_without_an_incident(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url, threshold=1, send_interval=60)
    with Street(tmp_path, config_of(tmp_path, hook)) as street:
        street.see(0, (OK, 0))
        street.see(1, (OK, 0))
        street.see(61, (OK, 0))
        wait_for(lambda: len(receiver.got) == 2, "two reports", 20)
    assert receiver.events() == ["report", "report"]
    assert [json.loads(one.body)["id"] for one in receiver.got] == ["", ""]
    assert street.scene.incidents() == []


def test_the_end_is_told_with_the_numbers_of_the_end(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url)
    (tmp_path / "close.tmpl").write_text('[{{.Result.TotalLag}}, {{.Result.TotalPartitions}}, "{{.Result.Status}}"]')
    with Street(tmp_path, config_of(tmp_path, hook)) as street:
        street.see(0, (STALL, 9), (OK, 0))
        street.see(1, (OK, 4), (OK, 3))
        street.see(2, (STALL, 9), (OK, 0))
        street.scene.process(START, {})
        wait_for(lambda: len(receiver.got) == 4, "two ends", 20)
    assert [json.loads(one.body) for one in receiver.got if one.event == "close"] == [[7, 2, "OK"], [0, 0, "NOTFOUND"]]


def test_names_of_any_kind_go_into_headers(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url, name="소식", threshold=1, url_open=f"{receiver.url}/x")
    with Street(tmp_path, config_of(tmp_path, hook)) as street:
        street.scene.process(START, {("one", "消費\r\nX: y"): [(OK, 0)], ("one", "ü b"): [(STALL, 1)]})
        wait_for(lambda: len(receiver.got) == 2, "both are sent", 20)
    assert sorted(receiver.events()) == ["open", "report"]
    assert all("x" not in one.headers for one in receiver.got)


def test_a_bad_url_is_found_before_the_start_and_holds_up_nothing_at_night(tmp_path: Path) -> None:
    hook = notifier(tmp_path, "http://x", url_open="http://x/{{.Nothing}}")
    [mistake] = check_templates(config_of(tmp_path, hook))
    assert "notifier.hook.url_open" in mistake
    with pytest.raises(RefusedError):
        HttpSender(hook).send(letter(result=sample_notification("hook", Event.OPEN).result))


def test_ten_thousand_groups_at_once_have_a_letter_each(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)
    scene.pipeline = IncidentPipeline(
        scene.incident_store, scene.store, 30, NotificationRouter([NotifierFilter(NotifierPolicy("hook"))])
    )
    scene.process(START, {("one", f"g{number}"): [(STALL, number), (OK, 0)] for number in range(10_000)})
    assert len(scene.incidents(limit=20_000)) == 10_000
    with open_read_only(tmp_path) as book:
        assert book is not None
        assert book.execute("SELECT count(*), count(DISTINCT key) FROM letters").fetchone() == (10_000, 10_000)


def test_what_was_sent_and_could_not_be_put_down_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IncidentScene(tmp_path)
    sent: list[str] = []
    postman = NotifierDelivery("hook", scene.incident_store, lambda one: sent.append(one.key), lambda: START)
    scene.incident_store.write(StoreUpdate(notifications=[letter()]))
    with monkeypatch.context() as full:
        full.setattr(scene.incident_store, "update_notification", _no_room)
        for _ in range(3):
            with pytest.raises(OSError, match="no room"):
                postman.deliver_next()
    assert postman.deliver_next() == 0.0
    assert sent == ["k"]
    assert scene.incident_store.next_notification("hook") is None


def _no_room(*_: object) -> None:
    raise OSError("no room on the disk")


def test_a_letter_that_is_never_taken_holds_up_only_those_that_follow_it(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)
    sent: list[str] = []
    now_ms = START

    def send(one: Notification) -> None:
        if one.incident == "poison":
            raise ConnectionError("500")
        sent.append(one.key)

    scene.incident_store.write(StoreUpdate(notifications=[
        letter(key="p1", incident="poison", sequence=1),
        letter(key="p2", incident="poison", sequence=2, due_ms=START - 5),
        letter(key="a1", incident="a", sequence=1, due_ms=START + 1), letter(key="a2", incident="a", sequence=2),
    ]))  # fmt: skip
    postman = NotifierDelivery("hook", scene.incident_store, send, lambda: now_ms, lambda: 1.0)
    for _ in range(40):
        now_ms += round(1000 * max(postman.deliver_next(), 0.001))
    assert sent == ["a1", "a2"], "in the order of their numbers, whatever the clock said"
    held = scene.incident_store.next_notification("hook")
    assert held is not None
    assert (held.key, held.attempts > 1) == ("p1", True)


def test_a_receiver_that_is_down_is_left_alone_for_longer_and_longer(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)
    tries: list[int] = []
    now_ms = START

    def send(_: Notification) -> None:
        tries.append(now_ms)
        raise ConnectionError("refused")

    scene.incident_store.write(StoreUpdate(notifications=[letter(key=f"k{n}", incident=f"i{n}") for n in range(500)]))
    postman = NotifierDelivery("hook", scene.incident_store, send, lambda: now_ms, lambda: 1.0)
    while now_ms < START + 600_000:
        now_ms += round(1000 * max(postman.deliver_next(), 0.001))
    assert len(tries) < 25, "not each letter for itself"
    assert tries[-1] - tries[-2] >= 30_000
    now_ms += 60_000
    postman = NotifierDelivery("hook", scene.incident_store, lambda _: None, lambda: now_ms, lambda: 1.0)
    for _ in range(600):
        now_ms += round(1000 * postman.deliver_next())
    assert count_incidents(tmp_path).notifications == {("hook", "sent"): 500}, "after ten minutes nothing is lost"

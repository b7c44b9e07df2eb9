"""From a verdict to a receiver: a real HTTP server that is healthy, slow, down, or refuses."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.incidents import OK, SECOND, STALL, START, WARN, IncidentScene, count_deliveries
from tests.kit.receivers import Receiver, receiving
from tests.kit.warrens import wait_for
from tests.notify.notifications import is_clean, template_findings
from warren.config import Cluster, Config, Consumer, Notifier
from warren.config.secrets import Secret
from warren.delivery.backoff import Backoff
from warren.errors import ConfigError, RefusedError
from warren.incidents.model import Event
from warren.incidents.pipeline import IncidentPipeline
from warren.notify.delivery import NotifierDelivery
from warren.notify.notifiers import NotifierDeliveries, refuse_bad_templates, send_sample
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
        notifiers={notifier.name: notifier for notifier in notifiers},
    )


def notifier(tmp_path: Path, url: str, name: str = "hook", **changes: Any) -> Notifier:
    when_open, when_closed = tmp_path / "open.tmpl", tmp_path / "close.tmpl"
    when_open.write_text(OPEN)
    when_closed.write_text(CLOSE)
    hook = Notifier(
        name, "http", when_open, when_closed, send_close=True, url_open=f"{url}/{{{{.Cluster}}}}/{{{{.Group}}}}",
        extras={"team": "payments"},
    )  # fmt: skip
    return replace(hook, **changes)


class RunningNotifiers:
    """An incident pipeline, and the deliveries of its notifications."""

    def __init__(self, root: Path, config: Config) -> None:
        self.scene = IncidentScene(root)
        self.config = config
        self._parts = ExitStack()
        self._began_ms = time.time_ns() // 1_000_000

    def __enter__(self) -> "RunningNotifiers":
        self.deliveries = self._parts.enter_context(closing(NotifierDeliveries(self.scene.incident_store)))
        router, wake = self.deliveries.configure(self.config), self.deliveries.wake
        self.scene.pipeline = IncidentPipeline(self.scene.incident_store, self.scene.store, 30, router, wake)
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def process(self, second: int, *partitions: Any) -> None:
        self.scene.process(self._began_ms + second * SECOND, {GROUP: partitions})


def test_a_group_stalls_gets_worse_and_recovers(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(
        tmp_path, receiver.url, method_close="DELETE", headers={"X-Team": "a"}, username="u", password=Secret("p")
    )
    with RunningNotifiers(tmp_path, config_of(tmp_path, hook)) as running:
        for second, status in enumerate([OK, WARN, WARN, STALL, STALL, OK, OK]):
            running.process(second, (status, 5), (OK, 0))
        wait_for(lambda: len(receiver.got) == 3, "open, worse, close", 20)
    assert receiver.events() == ["open", "worse", "close"]
    opened, worse, closed = receiver.got
    [entry] = running.scene.incidents()
    body = json.loads(opened.body)
    assert body == {
        "id": entry.id, "group": "g", "status": "WARN", "team": "payments", "bad": 1,
        "counts": body["counts"],
    }  # fmt: skip
    assert json.loads(worse.body)["status"] == "ERR"
    assert json.loads(closed.body) == {"closed": entry.id, "status": "OK"}
    assert [request.method for request in receiver.got] == ["POST", "POST", "DELETE"]
    assert count_deliveries(tmp_path) == {"hook": (3, 0, 0)}
    assert {request.path for request in receiver.got} == {"/one/g"}
    assert opened.headers["content-type"] == "application/json"
    assert (opened.headers["x-team"], opened.headers["authorization"]) == ("a", "Basic dTpw")
    assert len({request.key for request in receiver.got}) == 3


def test_a_receiver_that_was_down_or_busy_gets_everything_in_order(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.notify.delivery.BACKOFF", Backoff(0.01, 60.0))
    receiver.answers += [500, 503, 429, 408]
    with RunningNotifiers(tmp_path, config_of(tmp_path, notifier(tmp_path, receiver.url))) as running:
        running.process(0, (STALL, 1))
        running.process(1, (OK, 0))
        wait_for(lambda: len(receiver.got) == 6, "both are taken", 20)
    assert receiver.events() == ["open"] * 5 + ["close"]
    assert len({request.key for request in receiver.got}) == 2, "a repeated notification has the same key"


def test_a_refused_notification_is_given_up_and_the_next_is_sent(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers += [404]
    with RunningNotifiers(tmp_path, config_of(tmp_path, notifier(tmp_path, receiver.url))) as running:
        running.process(0, (STALL, 1))
        running.process(1, (OK, 0))
        wait_for(lambda: len(receiver.got) == 2, "the close is sent", 20)
    assert "the server answered 404" in caplog.text
    assert running.scene.incident_store.next_notification("hook") is None
    assert count_deliveries(tmp_path) == {"hook": (1, 0, 1)}


def test_a_receiver_that_hangs_delays_no_other_notifier(tmp_path: Path, receiver: Receiver) -> None:
    receiver.hold.clear()
    slow = notifier(tmp_path, receiver.url, "slow", timeout=30)
    quick = replace(slow, name="quick", class_name="null")
    with RunningNotifiers(tmp_path, config_of(tmp_path, slow, quick)) as running:
        running.process(0, (STALL, 1))
        wait_for(lambda: running.scene.incident_store.next_notification("quick") is None, "the other one is sent", 20)
        assert running.scene.incident_store.next_notification("slow") is not None
        receiver.hold.set()
        wait_for(lambda: running.scene.incident_store.next_notification("slow") is None, "and it too, later", 20)


def test_after_a_crash_a_notification_that_may_have_been_sent_is_sent_again_with_its_key(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, notifier(tmp_path, receiver.url))
    deliver = NotifierDelivery.deliver_next
    with monkeypatch.context() as death, RunningNotifiers(tmp_path, config) as running:
        # As if it had died after sending and before storing that.
        death.setattr(NotifierDelivery, "_record_sent", lambda *_: None)
        death.setattr(NotifierDelivery, "deliver_next", lambda delivery: deliver(delivery) or 60.0)
        running.process(0, (STALL, 1))
        wait_for(lambda: len(receiver.got) == 1, "sent", 20)
    with RunningNotifiers(tmp_path, config) as again:
        wait_for(lambda: len(receiver.got) == 2, "sent again", 20)
        again.process(9, (STALL, 1))
        wait_for(lambda: again.scene.incident_store.next_notification("hook") is None, "all is sent", 20)
    assert receiver.events() == ["open", "open"], "and no second incident is opened"
    assert len({request.key for request in receiver.got}) == 1


def test_of_several_pending_reminders_only_the_last_is_sent(tmp_path: Path, receiver: Receiver) -> None:
    receiver.hold.clear()
    hook = notifier(tmp_path, receiver.url, send_interval=1, timeout=30)
    with RunningNotifiers(tmp_path, config_of(tmp_path, hook)) as running:
        for second in range(10):
            running.process(second, (STALL, 1 + second))
        receiver.hold.set()
        wait_for(lambda: running.scene.incident_store.next_notification("hook") is None, "all is sent", 20)
    assert receiver.events() == ["open", "reminder"]


def test_a_failing_template_is_replaced_by_a_plain_message(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    hook = notifier(tmp_path, receiver.url)
    (tmp_path / "open.tmpl").write_text("{{(index .Result.Partitions 99).Topic}}")
    with RunningNotifiers(tmp_path, config_of(tmp_path, hook)) as running:
        running.process(0, (STALL, 7))
        wait_for(lambda: len(receiver.got) == 1, "sent", 20)
    body = json.loads(receiver.got[0].body)
    assert (body["group"], body["status"], body["event"], body["totallag"]) == ("g", "ERR", "open", 7)
    assert "a plain message is sent instead" in caplog.text


def test_a_bad_template_is_found_before_the_start(tmp_path: Path) -> None:
    config = config_of(tmp_path, notifier(tmp_path, "http://x"), notifier(tmp_path, "http://x", "other"))
    assert is_clean(template_findings(config))
    (tmp_path / "open.tmpl").write_text("line\n{{if .Cluster}")
    mistakes = template_findings(config).mistakes
    assert len(mistakes) == 2
    assert mistakes[0].startswith("notifier.hook: ")
    assert "open.tmpl" in mistakes[0]
    with pytest.raises(ConfigError):
        refuse_bad_templates(config)


def test_a_template_that_fails_on_the_sample_does_not_prevent_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    config = config_of(tmp_path, notifier(tmp_path, "http://x"))
    (tmp_path / "open.tmpl").write_text("{{(index .Result.Partitions 2).Topic}}")
    (tmp_path / "close.tmpl").write_text("{{.Id}}")
    refuse_bad_templates(config)
    told = [(record.levelname, record.message) for record in caplog.records]
    assert [level for level, _ in told] == ["INFO", "WARNING"]
    assert told[0][1].endswith("close.tmpl has .Id, which is read as .ID")
    assert "open.tmpl:1: " in told[1][1]


def test_a_sample_of_class_null_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    silent = notifier(tmp_path, "http://x", "silent", class_name="null")
    assert send_sample(config_of(tmp_path, silent), "silent") == [Event.OPEN, Event.CLOSE]
    assert '"group":"sample-group"' in caplog.text


def test_good_groups_are_reported_without_an_incident(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url, threshold=1, send_interval=60)
    with RunningNotifiers(tmp_path, config_of(tmp_path, hook)) as running:
        running.process(0, (OK, 0))
        running.process(1, (OK, 0))
        running.process(61, (OK, 0))
        wait_for(lambda: len(receiver.got) == 2, "two reports", 20)
    assert receiver.events() == ["report", "report"]
    assert [json.loads(request.body)["id"] for request in receiver.got] == ["", ""]
    assert running.scene.incidents() == []


def test_a_close_has_the_numbers_of_the_close(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url)
    (tmp_path / "close.tmpl").write_text('[{{.Result.TotalLag}}, {{.Result.TotalPartitions}}, "{{.Result.Status}}"]')
    with RunningNotifiers(tmp_path, config_of(tmp_path, hook)) as running:
        running.process(0, (STALL, 9), (OK, 0))
        running.process(1, (OK, 4), (OK, 3))
        running.process(2, (STALL, 9), (OK, 0))
        running.scene.process(START, {})
        wait_for(lambda: len(receiver.got) == 4, "two closes", 20)
    assert [json.loads(request.body) for request in receiver.got if request.event == "close"] == [
        [7, 2, "OK"],
        [0, 0, "NOTFOUND"],
    ]


def test_names_of_any_kind_go_into_headers(tmp_path: Path, receiver: Receiver) -> None:
    hook = notifier(tmp_path, receiver.url, name="소식", threshold=1, url_open=f"{receiver.url}/x")
    with RunningNotifiers(tmp_path, config_of(tmp_path, hook)) as running:
        running.scene.process(
            time.time_ns() // 1_000_000, {("one", "消費\r\nX: y"): [(OK, 0)], ("one", "ü b"): [(STALL, 1)]}
        )
        wait_for(lambda: len(receiver.got) == 2, "both are sent", 20)
    assert sorted(receiver.events()) == ["open", "report"]
    assert all("x" not in request.headers for request in receiver.got)


def test_a_bad_url_is_found_before_the_start_and_refused_when_sending(tmp_path: Path) -> None:
    hook = notifier(tmp_path, "http://x", url_open="http://x/{{.Nothing}}")
    [warning] = template_findings(config_of(tmp_path, hook)).warnings
    assert "notifier.hook.url_open" in warning
    with pytest.raises(RefusedError):
        HttpSender(hook).send(sample_notification("hook", Event.OPEN))

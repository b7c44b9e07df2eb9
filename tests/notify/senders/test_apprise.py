"""The apprise notifier, tried with the service that posts plain JSON."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.config.written import SMALLEST
from tests.kit.receivers import Receiver, receiving
from tests.notify.notifications import HOSTILE, hostile_notification, template_findings
from warren.cli import main
from warren.config import Config, Notifier
from warren.errors import BusyError
from warren.incidents.model import Event, Notification
from warren.notify.notifiers import send_sample
from warren.notify.senders.apprise import AppriseSender
from warren.notify.templates.sample import sample_notification, sample_storm

OPEN = sample_notification("any", Event.OPEN)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def notifier(receiver: Receiver, **changes: Any) -> Notifier:
    return Notifier("any", "apprise", url_open=f"{receiver.url.replace('http', 'json')}/s3cret", **changes)


def send(receiver: Receiver, notification: Notification, **changes: Any) -> Any:
    AppriseSender(notifier(receiver, **changes), "https://w").send(notification)
    return receiver.got[-1].json


def test_a_message_has_a_title_a_body_and_a_type(receiver: Receiver) -> None:
    message = send(receiver, replace(OPEN, team="payments"))
    assert (message["title"], message["type"]) == ("ERR: sample-group on sample-cluster", "failure")
    assert message["message"].splitlines() == [
        (
            "1 partition does not move, 1 partition falls behind; "
            "41 min behind, catches up in about 12 min, loses data in 3 h, 1,234 messages lost"
        ),
        "Lag: 46,200",
        "In trouble: 2 of 12 partitions",
        "Team: payments",
        "- payments 3: STALL, lag 45,000, read by /10.0.0.7 sample-client-1",
        "- orders 0: WARN, lag 1,200, read by /10.0.0.7 sample-client-1",
        "https://w/#/group/sample-cluster/sample-group",
    ]


def test_a_storm_lists_its_worst_groups(receiver: Receiver) -> None:
    message = send(receiver, sample_storm("any", Event.OPEN))
    assert message["title"] == "ERR: 37 groups on sample-cluster"
    assert message["message"].splitlines()[-2:] == ["and 27 more", "https://w/#/incidents?cluster=sample-cluster"]


@pytest.mark.parametrize(
    ("event", "status", "kind"),
    [
        (Event.OPEN, "WARN", "warning"),
        (Event.WORSE, "ERR", "failure"),
        (Event.REMINDER, "ERR", "failure"),
        (Event.CLOSE, "OK", "success"),
        (Event.REPORT, "OK", "info"),
    ],
)
def test_its_type_follows_the_event_and_the_status(receiver: Receiver, event: Event, status: str, kind: str) -> None:
    assert send(receiver, replace(OPEN, event=event, result=replace(OPEN.result, status=status)))["type"] == kind


def test_a_template_renders_the_body(tmp_path: Path, receiver: Receiver) -> None:
    (tmp_path / "t.j2").write_text("{{ group }} <at> {{ link }}")
    message = send(receiver, OPEN, template_open=tmp_path / "t.j2")
    assert message["message"] == "sample-group <at> https://w/#/group/sample-cluster/sample-group"
    assert send(receiver, sample_notification("any", Event.CLOSE), template_open=tmp_path / "t.j2")["type"] == "success"


@pytest.mark.parametrize("name", [*HOSTILE, "@everyone @here"])
def test_names_of_any_kind_mention_nobody(receiver: Receiver, name: str) -> None:
    message = send(receiver, hostile_notification(name, Event.OPEN))
    for text in (message["title"], message["message"]):
        assert "@e" not in text
        assert "@U" not in text
        assert "<" not in text
    assert len(message["message"]) < 4000


def test_a_failure_is_tried_again_and_no_url_is_logged(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.answers += [500]
    with pytest.raises(BusyError, match="the service did not take the message"):
        send(receiver, OPEN)
    send(receiver, OPEN)
    assert "s3cret" not in caplog.text


def checked(url: str) -> list[str]:
    return template_findings(Config({}, {}, notifiers={"any": Notifier("any", "apprise", url_open=url)})).mistakes


@pytest.mark.parametrize(
    "url",
    [
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
        "mailto://user:{{pass}}@example.com",
    ],
)
def test_urls_of_services_are_known(url: str) -> None:
    assert checked(url) == []


@pytest.mark.parametrize("url", ["nonsense://s3cret", "slack://s3cret", "s3cret", "https://s3cret"])
def test_a_url_that_apprise_does_not_know_is_a_mistake_and_is_not_shown(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert checked(url) == ["notifier.any: `url-open` is not a URL that Apprise knows"]
    assert "s3cret" not in caplog.text


def test_without_its_package_the_check_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # None makes an import fail.
    monkeypatch.setitem(sys.modules, "apprise", None)
    (tmp_path / "burrow.toml").write_text(f'{SMALLEST}[notifier.any]\nclass-name = "apprise"\nurl-open = "json://x"\n')
    assert main(["check", "--config-dir", str(tmp_path)]) == 1
    assert "notifier.any: class apprise needs a package: pip install 'warren[apprise]'" in capsys.readouterr().out
    assert main(["notify", "test", "any", "--config-dir", str(tmp_path)]) == 1
    assert "pip install 'warren[apprise]'" in capsys.readouterr().err


def test_a_sample_is_sent_with_its_close(receiver: Receiver) -> None:
    config = Config({}, {}, notifiers={"any": notifier(receiver)})
    assert send_sample(config, "any") == [Event.OPEN, Event.CLOSE]
    assert [request.json["type"] for request in receiver.got] == ["failure", "success"]

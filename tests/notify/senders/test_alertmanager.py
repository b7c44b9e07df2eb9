"""The alertmanager notifier, with a real Alertmanager."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from msgspec import structs

from tests.kit.alertmanager import running_alertmanager
from tests.kit.receivers import Receiver, receiving
from tests.notify.notifications import HOSTILE, hostile_notification
from warren.config import Config, Notifier
from warren.config.secrets import Secret
from warren.errors import RefusedError
from warren.incidents.model import Event, Notification
from warren.notify.notifiers import send_sample
from warren.notify.senders.alertmanager import AlertmanagerSender
from warren.notify.templates.sample import sample_notification, sample_storm

NOW_MS = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running Alertmanager."""
    with running_alertmanager(tmp_path_factory.mktemp("alertmanager")) as url:
        yield url


def alerts(url: str, **labels: str) -> list[dict[str, Any]]:
    """The active alerts with some labels."""
    active = httpx.get(f"{url}/api/v2/alerts", verify=False).raise_for_status().json()
    return [alert for alert in active if labels.items() <= alert["labels"].items()]


def notifier(url: str, **changes: Any) -> Notifier:
    return replace(Notifier("am", "alertmanager", url_open=url), **changes)


def at(event: Event, group: str, **changes: Any) -> Notification:
    """A notification of now, as old alerts end by themselves."""
    notification = sample_notification("am", event)
    result = structs.replace(notification.result, group=group, **changes.pop("result", {}))
    return structs.replace(
        notification, group=group, opened_ms=NOW_MS - 60_000, due_ms=NOW_MS, result=result, **changes
    )


def seconds_to(moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()


def test_an_incident_is_one_alert_from_open_to_close(alertmanager: str) -> None:
    extras = {"severity": "critical", "on-call": "a", "0day": "b", "empty": "", "cluster": "other"}
    send = AlertmanagerSender(notifier(alertmanager, extras=extras), "https://w").send
    send(at(Event.OPEN, "g", team="payments", result={"status": "WARN"}))
    [alert] = alerts(alertmanager, group="g")
    assert alert["labels"] == {
        "alertname": "ConsumerGroupLag", "cluster": "sample-cluster", "group": "g", "team": "payments",
        "severity": "critical", "on_call": "a", "_0day": "b",
    }  # fmt: skip
    assert (alert["annotations"]["status"], alert["annotations"]["severity"]) == ("WARN", "warning")
    assert alert["generatorURL"] == "https://w/#/group/sample-cluster/g"
    assert seconds_to(alert["startsAt"]) < -59
    assert 280 < seconds_to(alert["endsAt"]) <= 300

    send(at(Event.WORSE, "g", team="payments"))
    [worse] = alerts(alertmanager, group="g")
    assert worse["fingerprint"] == alert["fingerprint"]
    assert worse["annotations"] == {
        "summary": "ERR, worse than before: g on sample-cluster",
        "description": "1 partition does not move, 1 partition falls behind; "
        "41 min behind, catches up in about 12 min, loses data in 3 h, 1,234 messages lost\n"
        "payments 3: STALL, lag 45,000, read by /10.0.0.7 sample-client-1\n"
        "orders 0: WARN, lag 1,200, read by /10.0.0.7 sample-client-1",
        "status": "ERR",
        "severity": "critical",
        "totallag": "46200",
        "seconds_behind": "2460.0",
        "catch_up_seconds": "720.0",
        "retention_left_seconds": "10800.0",
        "lost_messages": "1234",
        "incident": at(Event.OPEN, "g").incident,
    }

    send(at(Event.CLOSE, "g", team="payments"))
    assert alerts(alertmanager, group="g") == []


def test_an_alert_lives_until_some_reminders_were_missed(alertmanager: str) -> None:
    for group, changes, least_s in (
        ("often", {"send_interval": 10}, 300),
        ("seldom", {"send_interval": 3600}, 4 * 3600),
        ("once", {"send_once": True}, 30 * 86_400),
    ):
        AlertmanagerSender(notifier(alertmanager, **changes), None).send(at(Event.REMINDER, group))
        [alert] = alerts(alertmanager, group=group)
        assert least_s - 20 < seconds_to(alert["endsAt"]) <= least_s


@pytest.mark.parametrize("ending", ["", "/", "/api/v2/alerts", "/api/v2/alerts/"])
def test_its_url_may_include_the_path(alertmanager: str, ending: str) -> None:
    AlertmanagerSender(notifier(alertmanager + ending), None).send(at(Event.OPEN, f"url{ending}"))
    assert len(alerts(alertmanager, group=f"url{ending}")) == 1


def test_a_storm_stays_one_alert_while_its_count_changes(alertmanager: str) -> None:
    send = AlertmanagerSender(notifier(alertmanager), "https://w").send
    storm = structs.replace(sample_storm("am", Event.OPEN), opened_ms=NOW_MS, due_ms=NOW_MS)
    send(storm)
    send(structs.replace(storm, event=Event.REMINDER, group="39 groups"))
    [alert] = alerts(alertmanager, alertname="ConsumerGroupLagStorm")
    assert alert["labels"]["incident"] == storm.incident
    assert alert["annotations"]["summary"] == "still ERR: 39 groups on sample-cluster"
    assert alert["annotations"]["description"].endswith("and 27 more")
    send(structs.replace(storm, event=Event.CLOSE))
    assert alerts(alertmanager, alertname="ConsumerGroupLagStorm") == []


@pytest.mark.parametrize("name", [name for name in HOSTILE if len(name) < 100])
def test_any_name_is_a_valid_label(alertmanager: str, name: str) -> None:
    notification = structs.replace(hostile_notification(name, Event.OPEN), opened_ms=NOW_MS)
    AlertmanagerSender(notifier(alertmanager), "https://w").send(notification)
    assert len(alerts(alertmanager, group=name, team=name)) == 1


def test_a_report_on_a_healthy_group_is_no_alert(alertmanager: str) -> None:
    AlertmanagerSender(notifier(alertmanager), None).send(at(Event.REPORT, "well"))
    assert alerts(alertmanager, group="well") == []


def test_an_alert_that_it_refuses_is_given_up(alertmanager: str) -> None:
    with pytest.raises(RefusedError, match="answered 400"):
        AlertmanagerSender(notifier(alertmanager), None).send(
            structs.replace(at(Event.OPEN, "x"), opened_ms=NOW_MS + 10**9)
        )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def test_it_sends_credentials_and_headers(receiver: Receiver) -> None:
    known = notifier(receiver.url, username="u", password=Secret("p"), headers={"X-Scope-OrgID": "a"})
    AlertmanagerSender(known, None).send(at(Event.OPEN, "g"))
    assert receiver.got[0].headers["authorization"] == "Basic dTpw"
    assert receiver.got[0].headers["x-scope-orgid"] == "a"


def test_a_sample_is_sent_with_its_close(alertmanager: str) -> None:
    assert send_sample(Config({}, {}, notifiers={"am": notifier(alertmanager)}), "am") == [Event.OPEN, Event.CLOSE]
    assert alerts(alertmanager, group="sample-group") == []

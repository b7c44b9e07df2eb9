"""The slack notifier, bot and webhook, with a server that answers as Slack does."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.config.written import SMALLEST, loaded
from tests.kit.demos import readme_blocks
from tests.kit.incidents import OK, STALL, WARN, count_deliveries
from tests.kit.receivers import Receiver, receiving
from tests.kit.servers import INTERVALS, Town
from tests.kit.warrens import wait_for
from tests.notify.notifications import is_clean, template_findings
from tests.notify.test_notifiers import RunningNotifiers
from warren.config import Config, General, Notifier
from warren.config.secrets import Secret
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Event, Notification
from warren.incidents.store.reader import read_leadership
from warren.notify.leadership import Leadership
from warren.notify.notifiers import send_sample
from warren.notify.senders.slack import SlackSender
from warren.notify.templates.sample import SAMPLE_ID, sample_notification, sample_storm

TOKEN = "xoxb-hush-hush"
BOT = Notifier("bot", "slack", token=Secret(TOKEN), channel="#lag")
LINKS = "https://w"
OPEN = sample_notification("bot", Event.OPEN)
CLOSE = sample_notification("bot", Event.CLOSE)
POST, UPDATE = "/chat.postMessage", "/chat.update"
NO_PREVIEWS = {"unfurl_links": False, "unfurl_media": False}
FIRST = json.dumps({"channel": "C1", "ts": "1.5"})
TAKEN = {"ok": True, "channel": "C1", "ts": "1.5"}


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as receiver:
        monkeypatch.setattr("warren.notify.senders.slack.API", receiver.url)
        receiver.says |= {POST: [TAKEN], UPDATE: [TAKEN], "/hook/s3cret": ["ok"]}
        yield receiver


def send(slack: Receiver, notification: Notification, notifier: Notifier = BOT) -> str | None:
    with closing(SlackSender(notifier, LINKS)) as bot:
        return bot.send(notification)


def hook(slack: Receiver, **changes: Any) -> SlackSender:
    return SlackSender(Notifier("hook", "slack", url_open=f"{slack.url}/hook/s3cret", **changes), LINKS)


def block_texts(payload: dict[str, Any]) -> str:
    """All blocks of a message as text."""
    return json.dumps(payload["blocks"], ensure_ascii=False)


def test_the_first_message_has_the_group_the_reason_and_the_worst_partitions(slack: Receiver) -> None:
    receipt = send(slack, structs.replace(OPEN, team="payments"))
    assert receipt is not None
    assert json.loads(receipt) == {"channel": "C1", "ts": "1.5"}
    [got] = slack.got
    assert (got.path, got.headers["authorization"]) == (POST, f"Bearer {TOKEN}")
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    message = got.json
    assert (message["channel"], "thread_ts" in message) == ("#lag", False)
    assert message["text"].startswith("🔴 ERR: sample-group on sample-cluster: 1 partition does not move")
    assert message["metadata"] == {
        "event_type": "warren_incident",
        "event_payload": {"key": OPEN.token, "incident": SAMPLE_ID},
    }
    header, reason, facts, worst, link, about = message["blocks"]
    assert header["text"]["text"] == "🔴 ERR: sample-group on sample-cluster"
    assert reason["text"]["text"] == (
        "1 partition does not move, 1 partition falls behind; "
        "41 min behind, catches up in about 12 min, loses data in 3 h, 1,234 messages lost."
    )
    assert [one["text"] for one in facts["fields"]] == [
        "*Group*\n`sample-group`",
        "*Cluster*\n`sample-cluster`",
        "*Lag*\n46,200",
        "*In trouble*\n2 of 12 partitions",
        "*Since*\n<!date^1767225600^{date_short_pretty} {time_secs}|2026-01-01 00:00:00 UTC>",
        "*Team*\n`payments`",
    ]
    assert worst["text"]["text"].splitlines()[0] == (
        "• `payments 3` STALL, lag 45,000, read by /10.0.0.7 sample-client-1"
    )
    assert link["text"]["text"] == "<https://w/#/group/sample-cluster/sample-group|Open in Warren>"
    assert about["elements"][0]["text"] == f"open: this is a sample · incident {SAMPLE_ID}"


def test_a_storm_lists_its_worst_groups(slack: Receiver) -> None:
    send(slack, sample_storm("bot", Event.OPEN))
    message = slack.got[0].json
    assert message["text"].startswith("🔴 ERR: 37 groups on sample-cluster: 37 groups are in trouble")
    listed = message["blocks"][3]["text"]["text"].splitlines()
    assert listed[0] == "• `sample-group-1` ERR, lag 46,199, 41 min behind, 2 bad partitions"
    assert (len(listed), listed[-1]) == (11, "and 27 more")
    assert "<https://w/#/incidents?cluster=sample-cluster|Open in Warren>" in block_texts(message)


@pytest.mark.parametrize(("event", "is_broadcast"), [(Event.WORSE, True), (Event.REMINDER, False)])
def test_later_messages_are_replies_in_the_thread(slack: Receiver, event: Event, is_broadcast: bool) -> None:
    assert send(slack, structs.replace(OPEN, event=event, receipt=FIRST, channel="#other")) is None
    [got] = slack.got
    message = got.json
    assert (got.path, message["channel"], message["thread_ts"]) == (POST, "C1", "1.5")
    assert message["reply_broadcast"] is is_broadcast


def test_the_close_updates_the_first_message_and_is_a_reply_too(slack: Receiver) -> None:
    for _ in range(2):
        assert send(slack, structs.replace(CLOSE, receipt=FIRST)) is None
    change, answer, *again = slack.got
    assert (change.path, answer.path) == (UPDATE, POST)
    assert (change.json["channel"], change.json["ts"]) == ("C1", "1.5")
    assert change.json["blocks"][0]["text"]["text"] == "✅ OK again: sample-group on sample-cluster"
    assert "*Lasted*\\n90 s" in block_texts(change.json)
    closing = "this is a sample, after 90 s; 1,234 messages lost"
    assert answer.json["text"] == f"✅ OK again: sample-group on sample-cluster: {closing}"
    assert (answer.json["thread_ts"], answer.json["reply_broadcast"]) == ("1.5", False)
    assert [request.json for request in again] == [change.json, answer.json], "again it is the same"


def test_a_close_that_is_tried_again_is_replied_once(slack: Receiver) -> None:
    slack.says[UPDATE] = [{"ok": False, "error": "internal_error"}, TAKEN]
    with pytest.raises(BusyError):
        send(slack, structs.replace(CLOSE, receipt=FIRST))
    send(slack, structs.replace(CLOSE, receipt=FIRST))
    assert [request.path for request in slack.got] == [UPDATE, UPDATE, POST]


@pytest.mark.parametrize("code", ["edit_window_closed", "message_not_found", "cant_update_message"])
def test_a_close_is_replied_though_the_first_message_cannot_be_updated(slack: Receiver, code: str) -> None:
    slack.says[UPDATE] = [{"ok": False, "error": code}]
    send(slack, structs.replace(CLOSE, receipt=FIRST))
    assert [request.path for request in slack.got] == [UPDATE, POST]


def test_if_the_thread_is_gone_a_new_message_is_posted(slack: Receiver) -> None:
    slack.says[POST] = [{"ok": False, "error": "thread_not_found"}, TAKEN]
    assert send(slack, structs.replace(OPEN, event=Event.WORSE, receipt=FIRST)) == FIRST
    assert ["thread_ts" in request.json for request in slack.got] == [True, False]


@pytest.mark.parametrize("receipt", ["", "from another class", "[]", "{}", '{"channel": null, "ts": null}'])
@pytest.mark.parametrize("event", [Event.WORSE, Event.CLOSE])
def test_without_a_first_message_the_next_one_starts_a_thread(slack: Receiver, event: Event, receipt: str) -> None:
    assert send(slack, structs.replace(sample_notification("bot", event), receipt=receipt)) == FIRST
    [got] = slack.got
    assert (got.path, got.json["channel"], "thread_ts" in got.json) == (POST, "#lag", False)


def test_a_route_overrides_the_channel(slack: Receiver) -> None:
    send(slack, structs.replace(OPEN, channel="#payments"))
    hook(slack).send(structs.replace(OPEN, channel="#payments"))
    hook(slack).send(OPEN)
    assert [request.json.get("channel") for request in slack.got] == ["#payments", "#payments", None]


@pytest.mark.parametrize(
    ("status", "answer", "expected", "words"),
    [
        (200, {"ok": False, "error": "channel_not_found"}, RefusedError, "Slack answered channel_not_found"),
        (200, {"ok": False, "error": "invalid_auth"}, RefusedError, "Slack answered invalid_auth"),
        (200, {"ok": False, "error": "ratelimited"}, BusyError, "Slack answered ratelimited"),
        (200, {"ok": False, "error": "fatal_error"}, BusyError, "Slack answered fatal_error"),
        (200, "<html>", BusyError, "does not come from Slack"),
        (200, [1], BusyError, "does not come from Slack"),
        (500, "", BusyError, "answered 500"),
        (429, "", BusyError, "answered 429"),
    ],
)
def test_which_errors_are_tried_again(
    slack: Receiver, status: int, answer: Any, expected: type[Exception], words: str
) -> None:
    slack.says[POST], slack.answers, slack.headers = [answer], [status], {"Retry-After": "30"}
    with pytest.raises(expected, match=words) as error:
        send(slack, OPEN)
    if isinstance(error.value, BusyError):
        assert error.value.wait_s == (30 if status == 429 else 0)
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ("status", "answer", "expected"),
    [
        (400, "invalid_payload", RefusedError),
        (404, "no_service", RefusedError),
        (403, "action_prohibited", RefusedError),
        (500, "rollup_error", BusyError),
        (429, "rate_limited", BusyError),
    ],
)
def test_an_error_of_a_webhook_is_quoted_without_its_url(
    slack: Receiver, status: int, answer: str, expected: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    slack.says["/hook/s3cret"], slack.answers, slack.headers = [answer], [status], {"Retry-After": "1"}
    with pytest.raises(expected, match=f"{status} {answer}") as error:
        hook(slack).send(OPEN)
    assert "s3cret" not in str(error.value) + caplog.text


def test_a_webhook_posts_the_close_as_well(slack: Receiver) -> None:
    for event in (Event.OPEN, Event.CLOSE):
        hook(slack).send(sample_notification("hook", event))
    assert [request.json["text"][:9] for request in slack.got] == ["🔴 ERR: sa", "✅ OK agai"]


@pytest.mark.parametrize("token", ["xoxb-é-hush", "xoxb-hush\n"])
def test_a_token_that_cannot_be_sent_is_not_shown(slack: Receiver, token: str) -> None:
    with pytest.raises(RefusedError) as error:
        send(slack, OPEN, replace(BOT, token=Secret(token)))
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ status }}: {{ group }}\n", {"text": "ERR: sample-group", **NO_PREVIEWS}),
        (
            '{"text": {{ group | tojson }}, "username": "W", "channel": "#mine"}',
            {"text": "sample-group", "username": "W"},
        ),
        ("[1]", {"text": "[1]", **NO_PREVIEWS}),
    ],
)
def test_a_template_renders_the_text_or_the_whole_payload(
    tmp_path: Path, slack: Receiver, template: str, expected: dict[str, Any]
) -> None:
    (tmp_path / "t.j2").write_text(template)
    notifier = replace(BOT, template_open=tmp_path / "t.j2")
    assert is_clean(template_findings(Config({}, {}, notifiers={"bot": notifier})))
    send(slack, OPEN, notifier)
    send(slack, structs.replace(OPEN, event=Event.REMINDER, receipt=FIRST), notifier)
    first, answer = (request.json for request in slack.got)
    assert first == expected | {"channel": "#lag", "metadata": first["metadata"]}
    assert answer["thread_ts"] == "1.5"
    send(slack, structs.replace(CLOSE, receipt=FIRST), notifier)
    assert slack.got[2].json["blocks"], "a close without a template has the default form"


def test_a_template_of_the_close_replaces_the_whole_first_message(tmp_path: Path, slack: Receiver) -> None:
    (tmp_path / "t.tmpl").write_text("{{.Group}} is well")
    send(slack, structs.replace(CLOSE, receipt=FIRST), replace(BOT, template_close=tmp_path / "t.tmpl"))
    change = slack.got[0].json
    assert (change["text"], change["blocks"], change["attachments"]) == ("sample-group is well", [], [])


def test_a_failing_template_is_replaced_by_the_default_form(tmp_path: Path, slack: Receiver) -> None:
    (tmp_path / "t.j2").write_text("{{ nothing }}")
    send(slack, OPEN, replace(BOT, template_open=tmp_path / "t.j2"))
    assert slack.got[0].json["blocks"]


def test_an_incident_from_verdicts_to_its_thread(
    tmp_path: Path, slack: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config({}, {}, general=General(external_url="https://w"), notifiers={"bot": BOT})
    with RunningNotifiers(tmp_path, config) as running:
        for second, status in enumerate([WARN, STALL, OK]):
            running.process(second, (status, 5), (OK, 0))
        wait_for(lambda: len(slack.got) == 4, "open, worse, changed, close", 20)
    assert [request.path for request in slack.got] == [POST, POST, UPDATE, POST]
    assert [request.json.get("thread_ts", request.json.get("ts")) for request in slack.got] == [
        None,
        "1.5",
        "1.5",
        "1.5",
    ]
    assert block_texts(slack.got[0].json).count("https://w/#/group/one/g") == 1


@pytest.mark.parametrize(("threshold", "expected"), [(2, ["⚠️ WARN: lags on one", "✅ OK again: lags on one"]), (3, [])])
def test_a_group_whose_lag_grows_is_notified_as_the_page_shows(
    tmp_path: Path, slack: Receiver, threshold: int, expected: list[str]
) -> None:
    [example] = [one for one in readme_blocks("toml", "docs/notifiers.md") if one.startswith("[notifier.lag]")]
    notifier = loaded(tmp_path, SMALLEST + example).notifiers["lag"]
    assert notifier.threshold == 2
    notifier = replace(notifier, url_open=f"{slack.url}/hook/s3cret", threshold=threshold)
    town = Town(tmp_path / "data")
    with closing(Leadership(Config({}, {}, notifiers={"lag": notifier}), town.cycles.store)) as leadership:
        wait_for(lambda: read_leadership(town.data).is_active, "it notifies", 20)
        for turn in range(INTERVALS + 1):
            head = 1000 + 100 * turn
            offset = head if turn == INTERVALS else 900 + turn
            town.turn([(0, "lags", "orders", 0, offset), (0, "reads", "orders", 1, head)], head=head)
            leadership.process(town.cycles.manifest(now_ms=town.now_ms))
        wait_for(lambda: len(slack.got) == len(expected), "all notifications", 20)
    assert [request.json["blocks"][0]["text"]["text"] for request in slack.got] == expected
    assert count_deliveries(town.data) == ({"lag": (2, 0, 0)} if expected else {})
    if expected:
        assert slack.got[0].json["blocks"][1]["text"]["text"] == "1 partition falls behind; at least 2 s behind."


def test_a_sample_is_sent_with_its_close_in_its_thread(slack: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert send_sample(Config({}, {}, notifiers={"bot": BOT}), "bot") == [Event.OPEN, Event.CLOSE]
    assert [request.path for request in slack.got] == [POST, UPDATE, POST]

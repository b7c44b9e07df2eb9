"""The slack notifier, bot and webhook, with a server that answers as Slack does."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.config.written import SMALLEST, loaded
from tests.kit.demos import readme_blocks
from tests.kit.incidents import OK, STALL, WARN
from tests.kit.receivers import Receiver, receiving
from tests.kit.servers import INTERVALS, Town
from tests.kit.warrens import wait_for
from tests.notify.test_notifiers import RunningNotifiers
from warren.config import Config, General, Notifier
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Event, Notification
from warren.incidents.store.reader import count_incidents, read_leadership
from warren.notify.leadership import notifying
from warren.notify.links import Links
from warren.notify.notifiers import check_templates, send_sample
from warren.notify.senders.slack import SlackBot, SlackWebhook
from warren.notify.templates.sample import SAMPLE_ID, sample_notification, sample_storm

TOKEN = "xoxb-hush-hush"
BOT = Notifier("bot", "slack", token=TOKEN, channel="#lag")
LINKS = Links("https://w")
OPEN = sample_notification("bot", Event.OPEN)
CLOSE = sample_notification("bot", Event.CLOSE)
POST, UPDATE = "/chat.postMessage", "/chat.update"
FIRST = json.dumps({"channel": "C1", "ts": "1.5"})
TAKEN = {"ok": True, "channel": "C1", "ts": "1.5"}


@pytest.fixture
def slack() -> Iterator[Receiver]:
    with receiving() as receiver:
        receiver.says |= {POST: [TAKEN], UPDATE: [TAKEN], "/hook/s3cret": ["ok"]}
        yield receiver


def say(slack: Receiver, notification: Notification, notifier: Notifier = BOT) -> str | None:
    with closing(SlackBot(notifier, LINKS, slack.url)) as bot:
        return bot.send(notification)


def hook(slack: Receiver, **changes: Any) -> SlackWebhook:
    return SlackWebhook(Notifier("hook", "slack", url_open=f"{slack.url}/hook/s3cret", **changes), LINKS)


def texts(payload: dict[str, Any]) -> str:
    """All that people see of a message, in its order."""
    return json.dumps(payload["blocks"], ensure_ascii=False)


def test_the_first_message_says_what_where_and_why(slack: Receiver) -> None:
    receipt = say(slack, replace(OPEN, team="payments"))
    assert receipt is not None
    assert json.loads(receipt) == {"channel": "C1", "ts": "1.5"}
    [got] = slack.got
    assert (got.path, got.headers["authorization"]) == (POST, f"Bearer {TOKEN}")
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    said = got.json
    assert (said["channel"], "thread_ts" in said) == ("#lag", False)
    assert said["text"].startswith("🔴 ERR: sample-group on sample-cluster: 1 partition does not move")
    assert said["metadata"] == {
        "event_type": "warren_incident",
        "event_payload": {"key": OPEN.token, "incident": SAMPLE_ID},
    }
    header, reason, facts, worst, link, about = said["blocks"]
    assert header["text"]["text"] == "🔴 ERR: sample-group on sample-cluster"
    assert reason["text"]["text"] == "1 partition does not move, 1 partition falls behind."
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


def test_a_storm_is_told_with_its_worst_groups(slack: Receiver) -> None:
    say(slack, sample_storm("bot", Event.OPEN))
    said = slack.got[0].json
    assert said["text"].startswith("🔴 ERR: 37 groups on sample-cluster: 37 groups are in trouble")
    listed = said["blocks"][3]["text"]["text"].splitlines()
    assert listed[0] == "• `sample-group-1` ERR, lag 46,199, 2 bad partitions"
    assert (len(listed), listed[-1]) == (11, "and 27 more")
    assert "<https://w/#/incidents?cluster=sample-cluster|Open in Warren>" in texts(said)


@pytest.mark.parametrize(("event", "is_loud"), [(Event.WORSE, True), (Event.REMINDER, False)])
def test_what_follows_is_an_answer_in_the_thread(slack: Receiver, event: Event, is_loud: bool) -> None:
    assert say(slack, replace(OPEN, event=event, receipt=FIRST, channel="#other")) is None
    [got] = slack.got
    said = got.json
    assert (got.path, said["channel"], said["thread_ts"]) == (POST, "C1", "1.5")
    assert said["reply_broadcast"] is is_loud


def test_the_end_changes_the_first_message_and_is_an_answer_too(slack: Receiver) -> None:
    for _ in range(2):
        assert say(slack, replace(CLOSE, receipt=FIRST)) is None
    change, answer, *again = slack.got
    assert (change.path, answer.path) == (UPDATE, POST)
    assert (change.json["channel"], change.json["ts"]) == ("C1", "1.5")
    assert change.json["blocks"][0]["text"]["text"] == "✅ OK again: sample-group on sample-cluster"
    assert "*Lasted*\\n90 s" in texts(change.json)
    assert answer.json["text"] == "✅ OK again: sample-group on sample-cluster: this is a sample, after 90 s"
    assert (answer.json["thread_ts"], answer.json["reply_broadcast"]) == ("1.5", False)
    assert [one.json for one in again] == [change.json, answer.json], "again it is the same"


def test_an_end_that_is_tried_again_is_answered_once(slack: Receiver) -> None:
    slack.says[UPDATE] = [{"ok": False, "error": "internal_error"}, TAKEN]
    with pytest.raises(BusyError):
        say(slack, replace(CLOSE, receipt=FIRST))
    say(slack, replace(CLOSE, receipt=FIRST))
    assert [one.path for one in slack.got] == [UPDATE, UPDATE, POST]


@pytest.mark.parametrize("word", ["edit_window_closed", "message_not_found", "cant_update_message"])
def test_an_end_is_told_though_the_first_message_cannot_be_changed(slack: Receiver, word: str) -> None:
    slack.says[UPDATE] = [{"ok": False, "error": word}]
    say(slack, replace(CLOSE, receipt=FIRST))
    assert [one.path for one in slack.got] == [UPDATE, POST]


def test_where_the_thread_is_gone_a_new_message_is_posted(slack: Receiver) -> None:
    slack.says[POST] = [{"ok": False, "error": "thread_not_found"}, TAKEN]
    assert say(slack, replace(OPEN, event=Event.WORSE, receipt=FIRST)) == FIRST
    assert ["thread_ts" in one.json for one in slack.got] == [True, False]


@pytest.mark.parametrize("receipt", ["", "from another class", "[]", "{}", '{"channel": null, "ts": null}'])
@pytest.mark.parametrize("event", [Event.WORSE, Event.CLOSE])
def test_without_a_first_message_the_next_one_is_posted_anew(slack: Receiver, event: Event, receipt: str) -> None:
    assert say(slack, replace(sample_notification("bot", event), receipt=receipt)) == FIRST
    [got] = slack.got
    assert (got.path, got.json["channel"], "thread_ts" in got.json) == (POST, "#lag", False)


def test_a_route_names_another_channel(slack: Receiver) -> None:
    say(slack, replace(OPEN, channel="#payments"))
    hook(slack).send(replace(OPEN, channel="#payments"))
    hook(slack).send(OPEN)
    assert [one.json.get("channel") for one in slack.got] == ["#payments", "#payments", None]


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
def test_what_is_tried_again_and_what_is_not(
    slack: Receiver, status: int, answer: Any, expected: type[Exception], words: str
) -> None:
    slack.says[POST], slack.answers, slack.headers = [answer], [status], {"Retry-After": "30"}
    with pytest.raises(expected, match=words) as error:
        say(slack, OPEN)
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
def test_a_webhook_says_what_is_wrong_in_a_word(
    slack: Receiver, status: int, answer: str, expected: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    slack.says["/hook/s3cret"], slack.answers, slack.headers = [answer], [status], {"Retry-After": "1"}
    with pytest.raises(expected, match=f"{status} {answer}") as error:
        hook(slack).send(OPEN)
    assert "s3cret" not in str(error.value) + caplog.text


def test_a_webhook_says_the_end_as_well(slack: Receiver) -> None:
    for event in (Event.OPEN, Event.CLOSE):
        hook(slack).send(sample_notification("hook", event))
    assert [one.json["text"][:9] for one in slack.got] == ["🔴 ERR: sa", "✅ OK agai"]


@pytest.mark.parametrize("token", ["xoxb-é-hush", "xoxb-hush\n"])
def test_a_token_that_cannot_be_sent_is_not_shown(slack: Receiver, token: str) -> None:
    with pytest.raises(RefusedError) as error:
        say(slack, OPEN, replace(BOT, token=token))
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ status }}: {{ group }}\n", {"text": "ERR: sample-group"}),
        (
            '{"text": {{ group | tojson }}, "username": "W", "channel": "#mine"}',
            {"text": "sample-group", "username": "W"},
        ),
        ("[1]", {"text": "[1]"}),
    ],
)
def test_a_template_makes_the_text_or_the_whole_message(
    tmp_path: Path, slack: Receiver, template: str, expected: dict[str, Any]
) -> None:
    (tmp_path / "t.j2").write_text(template)
    said = replace(BOT, template_open=tmp_path / "t.j2")
    assert check_templates(Config({}, {}, notifiers={"bot": said})) == []
    say(slack, OPEN, said)
    say(slack, replace(OPEN, event=Event.REMINDER, receipt=FIRST), said)
    first, answer = (one.json for one in slack.got)
    assert first == expected | {"channel": "#lag", "metadata": first["metadata"]}
    assert answer["thread_ts"] == "1.5"
    say(slack, replace(CLOSE, receipt=FIRST), said)
    assert slack.got[2].json["blocks"], "an end without a template of its own is told in our form"


def test_a_template_of_the_end_leaves_nothing_of_the_first_message(tmp_path: Path, slack: Receiver) -> None:
    (tmp_path / "t.tmpl").write_text("{{.Group}} is well")
    say(slack, replace(CLOSE, receipt=FIRST), replace(BOT, template_close=tmp_path / "t.tmpl"))
    change = slack.got[0].json
    assert (change["text"], change["blocks"], change["attachments"]) == ("sample-group is well", [], [])


def test_a_template_that_fails_at_night_is_replaced_by_our_own_form(tmp_path: Path, slack: Receiver) -> None:
    (tmp_path / "t.j2").write_text("{{ nothing }}")
    say(slack, OPEN, replace(BOT, template_open=tmp_path / "t.j2"))
    assert slack.got[0].json["blocks"]


def test_an_incident_from_verdicts_to_its_thread(
    tmp_path: Path, slack: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.notify.senders.slack.API", slack.url)
    config = Config({}, {}, general=General(external_url="https://w"), notifiers={"bot": BOT})
    with RunningNotifiers(tmp_path, config) as running:
        for second, status in enumerate([WARN, STALL, OK]):
            running.process(second, (status, 5), (OK, 0))
        wait_for(lambda: len(slack.got) == 4, "open, worse, changed, close", 20)
    assert [one.path for one in slack.got] == [POST, POST, UPDATE, POST]
    assert [one.json.get("thread_ts", one.json.get("ts")) for one in slack.got] == [None, "1.5", "1.5", "1.5"]
    assert texts(slack.got[0].json).count("https://w/#/group/one/g") == 1


@pytest.mark.parametrize(("threshold", "expected"), [(2, ["⚠️ WARN: lags on one", "✅ OK again: lags on one"]), (3, [])])
def test_a_group_whose_lag_grows_is_told_of_as_the_page_shows(
    tmp_path: Path, slack: Receiver, threshold: int, expected: list[str]
) -> None:
    [example] = [one for one in readme_blocks("toml", "docs/notifiers.md") if one.startswith("[notifier.lag]")]
    told = loaded(tmp_path, SMALLEST + example).notifiers["lag"]
    assert told.threshold == 2
    told = replace(told, url_open=f"{slack.url}/hook/s3cret", threshold=threshold)
    town = Town(tmp_path / "data")
    with notifying(Config({}, {}, notifiers={"lag": told}), town.cycles.store) as leadership:
        wait_for(lambda: read_leadership(town.data).is_active, "it notifies", 20)
        for turn in range(INTERVALS + 1):
            head = 1000 + 100 * turn
            offset = head if turn == INTERVALS else 900 + turn
            town.turn([(0, "lags", "orders", 0, offset), (0, "reads", "orders", 1, head)], head=head)
            leadership.take(town.cycles.manifest(now_ms=town.now_ms))
        wait_for(lambda: len(slack.got) == len(expected), "all that is told", 20)
    assert [one.json["blocks"][0]["text"]["text"] for one in slack.got] == expected
    assert count_incidents(town.data).notifications == ({("lag", "sent"): 2} if expected else {})
    if expected:
        assert slack.got[0].json["blocks"][1]["text"]["text"] == "1 partition falls behind."


def test_a_sample_is_sent_with_its_end_in_its_thread(slack: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.notify.senders.slack.API", slack.url)
    assert send_sample(Config({}, {}, notifiers={"bot": BOT}), "bot") == [Event.OPEN, Event.CLOSE]
    assert [one.path for one in slack.got] == [POST, UPDATE, POST]

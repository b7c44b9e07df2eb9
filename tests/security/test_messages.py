"""Names in mails, in Slack, in services of Apprise, and in alerts: shown as text, without a meaning of their own."""

import json
import re
from collections.abc import Iterable, Iterator
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import trustme
from msgspec.structs import replace

from tests.kit.receivers import Receiver, receiving
from tests.notify.senders.test_email import Mailbox, serving
from tests.security.names import NAMES, about, storm_of
from warren.config import Notifier
from warren.config.secrets import Secret
from warren.domain.printable import printable
from warren.incidents.model import Event, Notification
from warren.notify.senders.alertmanager import AlertmanagerSender
from warren.notify.senders.apprise import AppriseSender
from warren.notify.senders.email import EmailSender
from warren.notify.senders.http import HttpSender
from warren.notify.senders.slack import SlackSender
from warren.notify.templates.render import read_templates

SHIPPED = Path(__file__).parents[2] / "src/warren/templates/config"
HEADERS = {"From", "To", "Subject", "Date", "Message-ID", "X-Warren-Event", "Content-Type", "Content-Transfer-Encoding"}
HTML_MAIL = """Subject: {{.Result.Status}} of {{.Group}}
Content-Type: text/html; charset=utf-8

<p title="{{.Group}}">{{.Group}}</p>{{range .Result.Partitions}}<p title='{{.Owner}}'>{{.Topic}}</p>{{end}}
"""
JINJA_MAIL = """{{ group }}
{{ group }}: {{ result.partitions[0].topic }} {{ result.maxlag.client_id }}
"""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with serving(trustme.CA(), tls=False) as mailbox:
        yield mailbox


def mails_about(
    mailbox: Mailbox, template: Path, names: Iterable[str] = NAMES.values()
) -> Iterator[tuple[str, EmailMessage]]:
    """The mail about each name that a real server took."""
    keys: dict[str, Any] = {
        "server": "127.0.0.1",
        "port": mailbox.port,
        "from_": "warren@example.com",
        "to": "oncall@example.com",
    }
    sender = EmailSender(Notifier("mail", "email", template, template, **keys))
    for name in names:
        sender.send(about(name))
        mail = mailbox.mails[-1]
        assert set(mail.keys()) - {"MIME-Version", "X-Peer"} == HEADERS, name
        assert str(mail["Subject"]).isprintable()
        assert mailbox.to[-1] == ["oncall@example.com"]
        yield name, mail


def subject_of(mail: EmailMessage) -> str:
    """The subject of a mail, without the spaces at which a long one is folded."""
    return " ".join(str(mail["Subject"]).split())


def test_the_mail_that_comes_with_warren_has_its_own_headers_and_lines(mailbox: Mailbox) -> None:
    for name, mail in mails_about(mailbox, SHIPPED / "default-email.tmpl"):
        shown = printable(name)
        assert mail.get_content_type() == "text/plain"
        assert subject_of(mail).startswith(f"ERR: {' '.join(shown[:100].split())}"), name
        lines = mail.get_content().splitlines()
        assert lines[0] == f"ERR: {shown} on sample-cluster"
        assert len(lines) == 12, lines
        assert all(line.isprintable() for line in lines)
    assert len(mailbox.mails) == len(NAMES)


def test_a_mail_of_html_shows_names_as_text(tmp_path: Path, mailbox: Mailbox) -> None:
    (tmp_path / "html.tmpl").write_text(HTML_MAIL)
    for name, mail in mails_about(mailbox, tmp_path / "html.tmpl"):
        shown = printable(name)
        assert mail.get_content_type() == "text/html"
        found = read_html(mail.get_content())
        assert found == [("p", {"title": shown}, shown), *[("p", {"title": shown}, shown)] * 2], name
    [(_, mail)] = mails_about(mailbox, tmp_path / "html.tmpl", ["<b>"])
    assert mail["Subject"] == "ERR of <b>", "a subject is no HTML"


def test_a_name_in_the_first_line_is_no_header(tmp_path: Path, mailbox: Mailbox) -> None:
    (tmp_path / "mail.j2").write_text(JINJA_MAIL)
    for name, mail in mails_about(mailbox, tmp_path / "mail.j2"):
        shown = printable(name)
        assert mail.get_content_type() == "text/plain"
        assert mail.get_content().splitlines()[:2] == [shown, f"{shown}: {shown} {shown}"]
    [(_, mail)] = mails_about(mailbox, tmp_path / "mail.j2", ["Subject"])
    assert mail["Subject"] == "ERR: Subject on sample-cluster"


def read_html(text: str) -> list[tuple[str, dict[str, str | None], str]]:
    """The elements of a page, in order, with their attributes and texts."""
    found: list[tuple[str, dict[str, str | None], str]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs), ""))

        def handle_data(self, data: str) -> None:
            if data.strip("\r\n"):
                found[-1] = (*found[-1][:2], found[-1][2] + data)

    reader = Reader()
    reader.feed(text)
    reader.close()
    return found


def texts_of(payload: Any) -> list[str]:
    """All texts of a message, at any depth."""
    if isinstance(payload, str):
        return [payload]
    children = payload.values() if isinstance(payload, dict) else payload if isinstance(payload, list) else ()
    return [text for child in children for text in texts_of(child)]


def has_markup(text: str) -> bool:
    """Whether Slack would take a part of a text for a mention, a link or an entity other than its three."""
    own = re.sub(r"<!date\^\d+\^[^|<>]*\|[^|<>]*>|<https://w/#/[^|<>]*\|Open in Warren>", "", text)
    return bool(re.search(r"[<>]|&(?!(lt|gt|amp);)", own))


SLACK_TEMPLATES = {
    "none": None,
    "go.tmpl": "{{.Group}} {{range .Result.Partitions}}{{.Topic}} {{.Owner}} {{.ClientID}}{{end}}",
    "json.tmpl": '{"text": {{jsonencoder .Group}}, "attachments": [{"text": {{jsonencoder .Result.Maxlag.Topic}}}]}',
    "text.j2": "{{ group }} {{ result.partitions[0].topic }} {{ groups | map(attribute='group') | join(' ') }}",
    "json.j2": '{"text": {{ group | tojson }}, "blocks": {{ [{"text": result.maxlag.owner}] | tojson }}}',
    "escaped.j2": '{"text": {{ group | slackescape | tojson }}}',
    "shipped": SHIPPED / "default-slack-post.tmpl",
}


@pytest.mark.parametrize("template", SLACK_TEMPLATES)
@pytest.mark.parametrize("make", [about, storm_of])
def test_slack_gets_no_mention_and_no_link_from_a_name(
    tmp_path: Path, receiver: Receiver, template: str, make: Any
) -> None:
    file = SLACK_TEMPLATES[template]
    if isinstance(file, str):
        (tmp_path / template).write_text(file)
        file = tmp_path / template
    sender = SlackSender(Notifier("hook", "slack", file, url_open=f"{receiver.url}/hook"), "https://w")
    for name in NAMES.values():
        sender.send(make(name))
        texts = texts_of(receiver.got[-1].json)
        assert not [text for text in texts if has_markup(text)], name
        assert all(text.replace("\n", "").isprintable() for text in texts), name
        if template not in ("none", "shipped") and make is about:
            assert any(slack_shows(text).startswith(printable(name).replace("`", "'")[:100]) for text in texts), name


def slack_shows(text: str) -> str:
    """A text as people read it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@pytest.mark.parametrize("template", ["default-slack-post", "default-slack-delete"])
@pytest.mark.parametrize("make", [about, storm_of])
def test_the_slack_templates_are_as_safe_in_a_notifier_of_class_http(
    receiver: Receiver, template: str, make: Any
) -> None:
    sender = HttpSender(Notifier("hook", "http", SHIPPED / f"{template}.tmpl", url_open=receiver.url))
    for name in NAMES.values():
        sender.send(make(name))
        message = receiver.got[-1].json
        assert not [text for text in texts_of(message) if has_markup(text)], name
        assert message["text"].isprintable()
        assert message["parse"] == "none", "an address in a name is no link"


@pytest.mark.parametrize("template", ["default-http-post.tmpl", "default-http-delete.tmpl", "pagerduty-open.j2"])
def test_a_body_of_json_has_the_keys_of_its_template(template: str) -> None:
    notifier = Notifier(
        "hook", "http", SHIPPED / template, SHIPPED / template, extras={"routing_key": "R"}, url_open="http://x"
    )
    templates = read_templates(notifier)
    keys = set(json.loads(templates.body(about("plain"))))
    for name in NAMES.values():
        for notification in (about(name), about(name, Event.CLOSE), storm_of(name)):
            body = json.loads(templates.body(notification))
            assert set(body) == keys, name
            if not notification.is_storm:
                group = body["group"] if "group" in body else body["payload"]["component"]
                assert group == name[: len(group)]


@pytest.mark.parametrize("template", [None, "{{ group }} {{ result.partitions[0].topic }}: {{ link }}"])
def test_services_of_apprise_get_no_mention_and_no_line(
    tmp_path: Path, receiver: Receiver, template: str | None
) -> None:
    (tmp_path / "t.j2").write_text(template or "")
    url = f"{receiver.url.replace('http', 'json')}/x"
    sender = AppriseSender(
        Notifier("any", "apprise", tmp_path / "t.j2" if template else None, url_open=url), "https://w"
    )
    lines = None
    for name in NAMES.values():
        sender.send(about(name))
        message = receiver.got[-1].json
        for text in (message["title"], message["message"]):
            assert not re.search(r"[<>]|@(?!\u200b)", text), name
            assert re.sub("[\n\u200b]", "", text).isprintable(), name
        count = len(message["message"].splitlines())
        lines = lines or count
        assert count == lines, name


def test_an_alert_has_the_labels_of_its_incident(receiver: Receiver) -> None:
    sender = AlertmanagerSender(Notifier("alerts", "alertmanager", url_open=receiver.url))
    for name in NAMES.values():
        sender.send(about(name))
        [alert] = receiver.got[-1].json
        assert alert["labels"] == {"alertname": "ConsumerGroupLag", "cluster": "sample-cluster", "group": name}
        assert alert["annotations"]["summary"].isprintable()
        assert len(alert["annotations"]["description"].splitlines()) == 3


def test_the_key_of_a_request_is_short_and_has_no_lines(receiver: Receiver) -> None:
    template = SHIPPED / "default-http-post.tmpl"
    sender = HttpSender(Notifier("hook", "http", template, url_open=receiver.url, password=Secret("p"), username="u"))
    keys = set()
    for name in NAMES.values():
        sender.send(report_about(name))
        key = receiver.got[-1].key
        assert re.fullmatch(r"[A-Za-z0-9%/._~-]{1,500}", key), name
        keys.add(key)
    assert len(keys) == len(NAMES)


def report_about(name: str) -> Notification:
    """A report on a group that is OK, whose key has the name of the group in it."""
    return replace(about(name, Event.REPORT), key=f"report/sample-cluster/{name}/hook/1", incident="")

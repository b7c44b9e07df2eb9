"""The templates that come with Warren, rendered with the samples."""

import json
from collections.abc import Callable
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest

from tests.notify.notifications import is_clean, template_findings
from warren.config import load
from warren.incidents.model import Event, Notification
from warren.notify.templates import go
from warren.notify.templates.render import read_templates
from warren.notify.templates.sample import SAMPLE_ID, sample_notification, sample_storm

CLUSTER = """[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
[consumer.local]
class-name = "kafka"
cluster = "local"
servers = ["localhost:9092"]
"""


def rendered(
    tmp_path: Path,
    when_open: str,
    when_closed: str,
    event: Event,
    sample: Callable[[str, Event], Notification] = sample_notification,
) -> str:
    """Render with templates named as in Burrow's own configuration."""
    (tmp_path / "burrow.toml").write_text(
        f"""{CLUSTER}
[notifier.default]
class-name = "http"
url-open = "http://localhost:1467/v1/event"
template-open = "config/{when_open}.tmpl"
template-close = "config/{when_closed}.tmpl"
send-close = true
extras = {{ api_key = "REDACTED", app = "burrow" }}
"""
    )
    config = load(tmp_path)
    assert is_clean(template_findings(config))
    rendered_text = read_templates(config.notifiers["default"]).render(sample("default", event))
    assert rendered_text is not None
    return rendered_text


@pytest.mark.parametrize("kind", ["http", "slack"])
@pytest.mark.parametrize("event", [Event.OPEN, Event.CLOSE])
def test_the_templates_for_http_render_json(tmp_path: Path, kind: str, event: Event) -> None:
    rendered_text: dict[str, Any] = json.loads(
        rendered(tmp_path, f"default-{kind}-post", f"default-{kind}-delete", event)
    )
    if kind == "http":
        assert rendered_text["event"] == event
        assert (rendered_text["group"], rendered_text["status"]) == (
            "sample-group",
            "ERR" if event is Event.OPEN else "OK",
        )
        assert rendered_text["extras"]["app"] == "burrow"
        assert len(rendered_text.get("details", [1, 2])) == 2
    else:
        assert "sample-group on sample-cluster" in rendered_text["text"]
        assert rendered_text["attachments"][0]["color"] == ("danger" if event is Event.OPEN else "good")
        values = {field["title"]: field["value"] for field in rendered_text["attachments"][0]["fields"]}
        assert values["Lag in time"].endswith("1,234 messages lost")


def test_the_template_for_mail_renders_a_mail(tmp_path: Path) -> None:
    mail = message_from_string(rendered(tmp_path, "default-email", "default-email", Event.OPEN))
    assert mail["Subject"] == "ERR: sample-group on sample-cluster (Kafka consumer lag)"
    text = mail.get_payload()
    assert "STALL  payments 3: lag 45000, last commit 1000 at" in text
    assert "Most behind: payments 3, 45000 messages, owned by /10.0.0.7" in text
    closed = rendered(tmp_path, "default-email", "default-email", Event.CLOSE)
    assert "Partitions in trouble" not in closed
    in_time = [text.partition("In time:     ")[2].partition("\n")[0] for text in (str(mail.get_payload()), closed)]
    assert in_time == [
        "41 min behind, catches up in about 12 min, loses data in 3 h, 1,234 messages lost", "1,234 messages lost",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("when_open", "when_closed", "begins"),
    [
        ("default-email", "default-email", "Subject: {status}: 37 groups on sample-cluster"),
        ("default-slack-post", "default-slack-delete", '{{\n  "text": "{status}{again}: 37 groups on sample-cluster"'),
    ],
)
@pytest.mark.parametrize("event", [Event.OPEN, Event.CLOSE])
def test_the_go_templates_render_storms(
    tmp_path: Path, when_open: str, when_closed: str, begins: str, event: Event
) -> None:
    rendered_text = rendered(tmp_path, when_open, when_closed, event, sample_storm)
    is_open = event is Event.OPEN
    assert rendered_text.startswith(begins.format(status="ERR" if is_open else "OK", again="" if is_open else " again"))


def test_a_file_of_the_user_replaces_that_of_warren(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "default-http-post.tmpl").write_text("mine: {{.Group}}")
    assert rendered(tmp_path, "default-http-post", "default-http-delete", Event.OPEN) == "mine: sample-group"


def test_a_template_that_fails_on_the_sample_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "open.tmpl").write_text("{{.Result.Nothing}}")
    (tmp_path / "burrow.toml").write_text(
        f'{CLUSTER}[notifier.x]\nclass-name = "null"\ntemplate-open = "{tmp_path}/open.tmpl"\n'
    )
    [warning] = template_findings(load(tmp_path)).warnings
    assert warning.startswith("notifier.x: ")
    assert "Nothing" in warning
    assert warning.endswith("; if that happens on an incident, a plain message is sent instead")


def test_the_close_template_that_burrow_comes_with_works(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "default-http-delete.tmpl").write_text(
        '{"api_key":"{{index .Extras "api_key"}}","app":"{{index .Extras "app"}}","block":false,"ids":["{{.Id}}"]}\n'
    )
    (tmp_path / "burrow.toml").write_text(
        f"""{CLUSTER}[notifier.x]
class-name = "http"
url-open = "http://localhost:1467/v1/event"
url-close = "http://localhost:1467/v1/event?id={{{{$.Id}}}}"
template-open = "config/default-http-post.tmpl"
template-close = "config/default-http-delete.tmpl"
send-close = true
extras = {{ api_key = "K", app = "A" }}
"""
    )
    config = load(tmp_path)
    findings = template_findings(config)
    assert findings.mistakes + findings.warnings == []
    assert findings.notes == [
        f"notifier.x: template {tmp_path}/config/default-http-delete.tmpl has .Id, which is read as .ID",
        "notifier.x: template notifier.x.url_close has .Id, which is read as .ID",
    ]
    closed = read_templates(config.notifiers["x"]).render(sample_notification("x", Event.CLOSE))
    assert closed == f'{{"api_key":"K","app":"A","block":false,"ids":["{SAMPLE_ID}"]}}\n'


@pytest.mark.parametrize(
    ("text", "has_note"),
    [
        ("{{if false}}{{.Id}}{{end}}", True),
        ("{{with .Result}}{{$.Id}}{{end}}", True),
        ('{{define "x"}}{{.Id}}{{end}}', True),
        ("{{len (print .Id)}}", True),
        ("{{.ID}} .Id {{/* .Id */}}", False),
        ("{{.Extras.Id}}", False),
    ],
)
def test_a_template_that_asks_for_id_is_noted(text: str, has_note: bool) -> None:
    assert go.parse(text, "t", {}).has_old_id is has_note

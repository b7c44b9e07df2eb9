"""Jinja2 templates: what they can use, and that none of them can do harm."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gotemplate import Limits, TemplateError
from tests.kit.receivers import receiving
from tests.notify.notifications import HOSTILE, hostile_notification, hostile_storm, is_clean, template_findings
from warren.config import Config, General, Notifier
from warren.incidents.model import Event, Notification
from warren.notify.senders.http import HttpSender
from warren.notify.templates.jinja import parse
from warren.notify.templates.render import read_templates
from warren.notify.templates.sample import SAMPLE_ID, sample_notification, sample_storm

LINKS = "https://warren.example.com/"
NOTIFICATION = replace(sample_notification("hook", Event.OPEN), team="payments", channel="#pay")
ROOT = Path(__file__).parents[3]


def render(text: str, notification: Notification = NOTIFICATION, **limits: int) -> str:
    return parse(text, "t.j2", {"key": "value"}, LINKS, Limits(**limits)).render(notification)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ cluster }}/{{ group }}", "sample-cluster/sample-group"),
        ("{{ id }}", SAMPLE_ID),
        ("{{ start.isoformat() }}", "2026-01-01T00:00:00+00:00"),
        ("{{ event }} {{ status }} {{ why }}", "open ERR this is a sample"),
        ("{{ team }} {{ channel }} {{ extras.key }}", "payments #pay value"),
        ("{{ key }}", f"{SAMPLE_ID}/hook/1"),
        ("{{ link }}", "https://warren.example.com/#/group/sample-cluster/sample-group"),
        ("{{ result.totallag }} {{ result.partitions[0].topic }}", "46200 payments"),
        ("{{ result.seconds_behind }} {{ groups[0].seconds_behind }}", "2460.0 2460.0"),
        ("{{ time_lag }}", "41 min behind, catches up in about 12 min, loses data in 3 h, 1,234 messages lost"),
        ("{{ group_count }} {{ groups[0].group }} {{ groups[0].partitions }}", "1 sample-group 2"),
        ("{% for one in result.partitions %}{{ one.status }} {% endfor %}", "STALL WARN "),
        ("<{{ '<b>' }}>\n", "<<b>>\n"),
    ],
)
def test_the_names_that_a_template_can_use(text: str, expected: str) -> None:
    assert render(text) == expected


def test_the_result_is_that_of_the_api() -> None:
    assert json.loads(render("{{ result | tojson }}")) == msgspec.to_builtins(NOTIFICATION.result)
    storm = sample_storm("hook", Event.OPEN)
    assert json.loads(render("{{ result | tojson }}", storm)).keys() == msgspec.to_builtins(NOTIFICATION.result).keys()


def test_a_storm_has_its_groups() -> None:
    storm = sample_storm("hook", Event.OPEN)
    text = "{{ group }}, {{ group_count }}: {{ groups | map(attribute='group') | join(' ') }} {{ link }}"
    expected = " ".join(f"sample-group-{number}" for number in range(1, 21))
    assert render(text, storm) == (
        f"37 groups, 37: {expected} https://warren.example.com/#/incidents?cluster=sample-cluster"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\n{{ nothing }}", "t.j2:2: 'nothing' is undefined"),
        ("{{ result.nothing }}", "t.j2:1: 'dict object' has no attribute 'nothing'"),
        ("one\n\n{% if %}", "t.j2:3: Expected an expression"),
        ("\n{{ 1 | nothing }}", "t.j2:2: No filter named 'nothing'"),
        ("\n\n{{ result.totallag / 0 }}", "t.j2:3: division by zero"),
        ("{{ ''.__class__.__mro__ }}", "t.j2:1: access to attribute '__class__'"),
        ("{{ result.update(status='OK') }}", "t.j2:1: access to attribute 'update'"),
        ("{% include 'other.j2' %}", "t.j2:1: no loader"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "t.j2:1: macros call each other too deeply"),
        ("{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", "t.j2:1: nested too deeply"),
    ],
)
def test_an_error_names_its_line(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as refused:
        render(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "more than 10000 steps"),
        ("{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}", "more than 10000 steps"),
        ("{% for a in range(9000) %}{{ '%100d' % a }}{% endfor %}", "more than 1000 characters of output"),
        ("{% for a in range(1000000) %}{% endfor %}", "Range too big"),
    ],
)
def test_a_template_that_would_run_away_is_stopped(text: str, message: str) -> None:
    began = time.monotonic()
    with pytest.raises(TemplateError, match=message):
        render(text, steps=10_000, size=1_000)
    assert time.monotonic() - began < 5


def notifier(tmp_path: Path, name: str, text: str, url: str = "http://x") -> Notifier:
    (tmp_path / name).write_text(text)
    return Notifier("hook", "http", tmp_path / name, tmp_path / name, send_close=True, url_open=url)


@pytest.mark.parametrize("name", ["t.j2", "t.jinja", "t.jinja2"])
def test_the_suffix_distinguishes_jinja2_from_go_templates(tmp_path: Path, name: str) -> None:
    text = "{{ group }}"
    assert read_templates(notifier(tmp_path, name, text)).render(NOTIFICATION) == "sample-group"
    with pytest.raises(TemplateError, match='function "group" not defined'):
        read_templates(notifier(tmp_path, "t.tmpl", text))


@pytest.mark.parametrize(
    "text",
    [
        "{{ nothing }}",
        "{% if event == 'close' %}{{ nothing }}{% endif %}",
        "{% if group_count > 1 %}{{ 1 / 0 }}{% endif %}",
    ],
)
def test_a_bad_template_is_found_before_the_start(tmp_path: Path, text: str) -> None:
    [warning] = template_findings(Config({}, {}, notifiers={"hook": notifier(tmp_path, "t.j2", text)})).warnings
    assert warning.startswith(f"notifier.hook: template: {tmp_path}/t.j2:1: ")


def test_a_failing_template_is_replaced_by_a_plain_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as receiver:
        HttpSender(notifier(tmp_path, "t.j2", "{{ nothing }}", receiver.url)).send(NOTIFICATION)
    assert receiver.got[0].json["group"] == "sample-group"
    assert "'nothing' is undefined; a plain message is sent instead" in caplog.text


def pagerduty(notification: Notification, **general: Any) -> dict[str, Any]:
    templates = ROOT / "src/warren/templates/config"
    hook = Notifier(
        "hook", "http", templates / "pagerduty-open.j2", templates / "pagerduty-close.j2", send_close=True,
        url_open="http://x", extras={"routing_key": "R0"},
    )  # fmt: skip
    config = Config({}, {}, general=General(**general), notifiers={"hook": hook})
    assert is_clean(template_findings(config))
    rendered = read_templates(hook, config.general.external_url).render(notification)
    assert rendered is not None
    event: dict[str, Any] = json.loads(rendered)
    return event


def test_pagerduty_triggers_and_resolves_the_same_alert() -> None:
    opened = pagerduty(NOTIFICATION, external_url="https://w")
    assert (opened["routing_key"], opened["event_action"], opened["dedup_key"]) == ("R0", "trigger", SAMPLE_ID)
    assert opened["client_url"] == "https://w/#/group/sample-cluster/sample-group"
    payload = opened["payload"]
    assert payload["summary"] == "ERR: sample-group on sample-cluster"
    assert (payload["severity"], payload["source"], payload["component"]) == (
        "critical", "sample-cluster", "sample-group",
    )  # fmt: skip
    assert (payload["timestamp"], payload["group"]) == ("2026-01-01T00:00:00+00:00", "payments")
    assert payload["custom_details"]["lag_in_time"].startswith("41 min behind, ")
    assert payload["custom_details"]["partitions"] == ["STALL payments 3: lag 45000", "WARN orders 0: lag 1200"]
    closed = pagerduty(sample_notification("hook", Event.CLOSE))
    assert closed == {"routing_key": "R0", "event_action": "resolve", "dedup_key": SAMPLE_ID}


def test_pagerduty_lists_the_groups_of_a_storm() -> None:
    payload = pagerduty(sample_storm("hook", Event.OPEN))["payload"]
    assert payload["summary"] == "ERR: 37 groups on sample-cluster"
    details = payload["custom_details"]
    assert (details["groups_in_trouble"], len(details["groups"])) == (37, 20)
    assert details["groups"][0] == "ERR sample-group-1: lag 46199"


@pytest.mark.parametrize("name", HOSTILE)
def test_pagerduty_gets_valid_json_whatever_the_names_are(name: str) -> None:
    assert pagerduty(hostile_notification(name, Event.CLOSE))["event_action"] == "resolve"
    payload = pagerduty(hostile_notification(name, Event.OPEN))["payload"]
    assert payload["component"] == name[:400]
    assert len(payload["summary"]) <= 1024, "PagerDuty's limit"
    storm = pagerduty(hostile_storm(name, Event.OPEN))["payload"]
    assert storm["custom_details"]["groups"][0].startswith(f"ERR {name[:200]}: lag ")

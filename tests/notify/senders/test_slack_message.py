"""Slack messages stay within Slack's limits, whatever names they contain."""

import json
from typing import Any

import pytest

from tests.notify.notifications import HOSTILE, hostile_notification, hostile_storm
from warren.incidents.model import Event
from warren.notify.senders.slack_message import escape, to_message
from warren.notify.templates.sample import sample_notification


def test_without_a_dashboard_there_is_no_link() -> None:
    assert "Open in Warren" not in json.dumps(to_message(sample_notification("x", Event.OPEN), ""))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("event", [Event.OPEN, Event.CLOSE])
@pytest.mark.parametrize("make", [hostile_notification, hostile_storm])
def test_names_have_no_meaning_to_slack(name: str, event: Event, make: Any) -> None:
    payload = to_message(make(name, event), "https://w/?a|b>c")
    blocks = payload["blocks"]
    assert len(blocks) <= 50
    assert len(blocks[0]["text"]["text"]) <= 150
    for block in blocks:
        for text in [block.get("text"), *block.get("fields", ()), *block.get("elements", ())]:
            if text is None:
                continue
            assert 0 < len(text["text"]) <= (2000 if text is not block.get("text") else 3000)
            assert text["text"].count("`") % 2 == 0
    assert len(blocks[2]["fields"]) <= 10
    everything = json.dumps(payload)
    assert "<!channel>" not in everything
    assert "<@" not in everything
    assert everything.count("<") == 2, "the date and the link"


def test_a_text_is_cut_between_characters() -> None:
    assert escape("a&b", 20) == "a&amp;b"
    assert escape("a&b", 6) == "a…"
    assert escape("&&", 6) == "&amp;…"

"""Slack messages: Block Kit blocks, with a text for clients that do not show blocks."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from warren.incidents.model import Event, Notification
from warren.notify.slack_markup import ENTITIES
from warren.notify.summary import Summary, duration, one_line, summarize

# Slack's limits.
MAX_HEADER_CHARS = 150
MAX_TEXT_CHARS = 3000
MAX_FIELD_CHARS = 2000
MAX_MESSAGE_CHARS = 40_000
MAX_LINE_CHARS = 280
"""So that ten lines, the most there are, fit into one text."""

Payload = dict[str, Any]

_EMOJI = {"OK": "✅", "WARN": "⚠️", "ERR": "🔴", "NOTFOUND": "⚪"}
_NO_PREVIEWS = {"unfurl_links": False, "unfurl_media": False}
"""A name may look like the address of a page."""


def to_message(notification: Notification, link: str) -> Payload:
    """The message of a notifier without a template."""
    summary = summarize(notification)
    blocks = [
        _header(_with_emoji(notification, summary.headline)),
        _section(escape(f"{summary.reason[:1].upper()}{summary.reason[1:]}.", MAX_TEXT_CHARS)),
        {
            "type": "section",
            "fields": [_mrkdwn(f"*{name}*\n{value}") for name, value in _fields(notification, summary)],
        },
    ]
    if summary.lines:
        blocks.append(_section(_list(summary)))
    if link:
        url = link.replace("|", "%7C").replace(">", "%3E").replace("<", "%3C")
        blocks.append(_section(f"<{escape(url, MAX_TEXT_CHARS - 100)}|Open in Warren>"))
    incident = f" · incident {notification.incident}" if notification.incident else ""
    context = f"{notification.event}: {one_line(notification.reason, 300)}{incident}"
    blocks.append({"type": "context", "elements": [_mrkdwn(escape(context, MAX_FIELD_CHARS))]})
    return to_short_message(notification) | {"blocks": blocks, **_NO_PREVIEWS}


def to_short_message(notification: Notification) -> Payload:
    """The message in one line: for a thread, for push notifications and for screen readers."""
    summary = summarize(notification)
    text = _with_emoji(notification, f"{summary.headline}: {summary.reason}")
    return {"text": escape(text, MAX_TEXT_CHARS)}


def from_template(text: str) -> Payload:
    """The message that a template rendered: a whole payload if it is a JSON object, otherwise the text of one."""
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload = None
    return payload if isinstance(payload, dict) else {"text": text.strip()[:MAX_MESSAGE_CHARS], **_NO_PREVIEWS}


def escape(text: str, max_chars: int) -> str:
    """A text without any meaning to Slack's markup, of at most so many characters."""
    parts: list[str] = []
    left = max_chars - 1
    for char in text:
        part = ENTITIES.get(char, char)
        left -= len(part)
        if left < 0:
            return "".join([*parts, "…"])
        parts.append(part)
    return "".join(parts)


def _with_emoji(notification: Notification, text: str) -> str:
    return f"{_EMOJI.get(notification.result.status, '🔴')} {text}"


def _fields(notification: Notification, summary: Summary) -> Iterable[tuple[str, str]]:
    is_close = notification.event is Event.CLOSE
    yield "Groups" if notification.is_storm else "Group", _code(summary.group)
    yield "Cluster", _code(summary.cluster)
    yield "Lag now" if is_close else "Lag", summary.lag
    if not is_close:
        yield "In trouble", summary.affected
    yield "Was bad since" if is_close else "Since", _date(notification.opened_ms)
    if is_close:
        yield "Lasted", duration(notification)
    if notification.team:
        yield "Team", _code(one_line(notification.team))


def _list(summary: Summary) -> str:
    max_chars = MAX_LINE_CHARS // 2
    lines = [f"• {_code(line.name, max_chars)} {escape(line.text, max_chars)}" for line in summary.lines]
    return "\n".join([*lines, *([summary.more] if summary.more else [])])


def _code(name: str, max_chars: int = MAX_FIELD_CHARS // 4) -> str:
    return f"`{escape(name, max_chars) or ' '}`"


def _date(at_ms: int) -> str:
    """A time, which Slack shows in the time zone of the reader."""
    utc = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"<!date^{at_ms // 1000}^{{date_short_pretty}} {{time_secs}}|{utc}>"


def _header(text: str) -> Payload:
    # Without emoji, so that a name like :tada: stays a name.
    return {"type": "header", "text": {"type": "plain_text", "text": escape(text, MAX_HEADER_CHARS), "emoji": False}}


def _section(text: str) -> Payload:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Payload:
    # Verbatim, so that a name that looks like a link or a channel stays a name.
    return {"type": "mrkdwn", "text": text, "verbatim": True}

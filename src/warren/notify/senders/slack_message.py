"""A letter as a message of Slack's: blocks with a text for where blocks are not shown."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from warren.incidents.model import Event, Notification
from warren.notify.summary import Line, Summary, lasted, one_line, summarize

HEADER_CHARS = 150
TEXT_CHARS = 3000
FIELD_CHARS = 2000
LINE_CHARS = 280
"""Ten lines, the most there are, make less than a text."""
MESSAGE_CHARS = 40_000

Payload = dict[str, Any]

_SIGNS = {"OK": "✅", "WARN": "⚠️", "ERR": "🔴", "NOTFOUND": "⚪"}
# Names come from Kafka: none of them may mention anybody, be a link, or end the code it stands in.
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"}


def message(letter: Notification, link: str) -> Payload:
    """What is said of a letter without a template."""
    story = summarize(letter)
    sign = _SIGNS.get(letter.result.status, "🔴")
    blocks: list[Payload] = [
        # Without emoji a name like :tada: stays a name.
        {"type": "header", "text": _plain(f"{sign} {story.headline}")},
        _section(escaped(_sentence(story.reason), TEXT_CHARS)),
        {"type": "section", "fields": [_mrkdwn(one) for one in _fields(letter, story)]},
    ]
    if story.lines:
        blocks.append(_section(_list(story.lines, story.more)))
    if link:
        blocks.append(_section(f"<{_address(link)}|Open in Warren>"))
    about = (
        f"{letter.event}: {one_line(letter.reason, 300)}{' · incident ' if letter.incident else ''}{letter.incident}"
    )
    blocks.append({"type": "context", "elements": [_mrkdwn(escaped(about, FIELD_CHARS))]})
    return {"text": fallback(letter, story), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def farewell(letter: Notification) -> Payload:
    """The end of an incident in a line, to stand in its thread."""
    return {"text": fallback(letter, summarize(letter))}


def fallback(letter: Notification, story: Summary) -> str:
    """The message in one line, for notifications and screen readers."""
    sign = _SIGNS.get(letter.result.status, "🔴")
    return escaped(f"{sign} {story.headline}: {story.reason}", TEXT_CHARS)


def from_template(text: str) -> Payload:
    """What a template has made: a whole message where it is a JSON object, else the text of one."""
    try:
        made = json.loads(text)
    except (ValueError, RecursionError):
        made = None
    return made if isinstance(made, dict) else {"text": text.strip()[:MESSAGE_CHARS]}


def escaped(text: str, most: int) -> str:
    """A text that means nothing but itself to Slack, of at most so many characters."""
    parts: list[str] = []
    left = most - 1
    for one in text:
        part = _ENTITIES.get(one, one)
        left -= len(part)
        if left < 0:
            return "".join([*parts, "…"])
        parts.append(part)
    return "".join(parts)


def _fields(letter: Notification, story: Summary) -> Iterable[str]:
    is_close = letter.event is Event.CLOSE
    yield _field("Groups" if letter.is_storm else "Group", _code(story.group))
    yield _field("Cluster", _code(story.cluster))
    yield _field("Lag now" if is_close else "Lag", story.lag)
    if not is_close:
        yield _field("In trouble", story.trouble)
    yield _field("Was bad since" if is_close else "Since", _date(letter.opened_ms))
    if is_close:
        yield _field("Lasted", lasted(letter))
    if letter.team:
        yield _field("Team", _code(one_line(letter.team)))


def _field(name: str, value: str) -> str:
    return f"*{name}*\n{value}"


def _list(lines: Iterable[Line], more: str) -> str:
    shown = [f"• {_code(line.name, LINE_CHARS // 2)} {escaped(line.words, LINE_CHARS // 2)}" for line in lines]
    return "\n".join([*shown, *([more] if more else [])])


def _code(name: str, most: int = FIELD_CHARS // 4) -> str:
    return f"`{escaped(name, most) or ' '}`"


def _date(at_ms: int) -> str:
    """A moment, in the zone of whoever reads it."""
    plain = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"<!date^{at_ms // 1000}^{{date_short_pretty}} {{time_secs}}|{plain}>"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _address(link: str) -> str:
    return escaped(link.replace("|", "%7C").replace(">", "%3E").replace("<", "%3C"), TEXT_CHARS - 100)


def _section(text: str) -> Payload:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Payload:
    # Verbatim: what looks like a link or a channel in a name stays a name.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _plain(text: str) -> Payload:
    return {"type": "plain_text", "text": escaped(text, HEADER_CHARS), "emoji": False}

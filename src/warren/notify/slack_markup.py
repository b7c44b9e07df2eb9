"""Slack's markup: names from Kafka must not become mentions or links, or end the code span around them."""

from warren.domain.printable import printable

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"}
_ESCAPES = str.maketrans(ENTITIES)


def escape_markup(text: str) -> str:
    """A text on one line without any meaning to Slack's markup."""
    return printable(text).translate(_ESCAPES)


def escape_markup_once(text: str) -> str:
    """The same for templates of any class: in those of class slack, names are escaped already and stay as they are."""
    return escape_markup(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))

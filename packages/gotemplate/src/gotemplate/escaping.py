"""Text made safe for HTML, JavaScript and URLs, as Go's template functions do."""

from urllib.parse import quote_plus

from gotemplate.foreign import Foreign, Part, Source, joined, parts_of
from gotemplate.printf import sprint
from gotemplate.types import STRING, Kind
from gotemplate.values import Value, indirect, to_bytes, to_text

_NO_VALUE = Value(STRING, "<no value>")
_HTML = str.maketrans({"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SCRIPT = {
    "\\": r"\\",
    "'": r"\'",
    '"': r"\"",
    "<": r"\u003C",
    ">": r"\u003E",
    "&": r"\u0026",
    "=": r"\u003D",
}


def _text_of(arguments: tuple[Value, ...]) -> str:
    is_missing = (Kind.INVALID, Kind.INTERFACE)
    shown = (_NO_VALUE if argument.kind in is_missing else indirect(argument) for argument in arguments)
    return sprint(*shown)


def html(*arguments: Value) -> str:
    return _text_of(arguments).translate(_HTML)


def script(*arguments: Value) -> str:
    return "".join(_script_character(character) for character in to_text(to_bytes(_text_of(arguments))))


def _script_character(character: str) -> str:
    if character in _SCRIPT:
        return _SCRIPT[character]
    if "\udc80" <= character <= "\udcff":
        return "\ufffd"  # Go prints what a bad byte decodes to
    is_plain = " " <= character <= "\x7f" or character.isprintable()
    return character if is_plain else f"\\u{ord(character):04X}"


def url_query(*arguments: Value) -> str:
    """Text for the query of a URL; the parts that are foreign stay so, but need no other encoding."""
    parts = parts_of(_text_of(arguments))
    return joined(
        quoted if source is Source.OWN else Foreign(quoted, (Part(quoted, Source.ENCODED),))
        for quoted, source in ((quote_plus(to_bytes(text)), source) for text, source in parts)
    )

"""What people send, as JSON: each field checked, and described to whoever reads about the API."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from msgspec import UNSET, Meta, Struct, UnsetType

from warren.domain.matching import ANY, MAX_PATTERN_CHARS
from warren.errors import RequestError
from warren.web.http import JSON, Request

BY_MOST, WHY_MOST = 100, 500
HOURS_MOST = 24 * 365
YEAR_MS = HOURS_MOST * 3_600_000

_NEVER = ("Cc", "Cs", "Zl", "Zp")
"""Characters that control, halves of characters, and ends of lines: what is said is shown on one line."""
_LINE = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
_ANY = f"^[^{_LINE}]*$"
_SOME = rf"^[^{_LINE}]*[^\s{_LINE}][^{_LINE}]*$"


NamePattern = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_PATTERN_CHARS,
        pattern=_ANY,
        description="Name in which * stands for any characters and ? for any single one",
    ),
]


def fields_in(request: Request, allowed: Sequence[str]) -> Mapping[str, Any]:
    """The fields of a body, all of them known ones."""
    # Another site's form can send any body through the browser of somebody who may do this, but never with this type.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RequestError(f"the body must be sent as Content-Type: {JSON}", 415)
    try:
        sent = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        raise RequestError("the body cannot be read: it must be JSON") from None
    if not isinstance(sent, dict):
        raise RequestError(f"the body must be an object with {', '.join(allowed)}")
    for name in sent:
        if name not in allowed:
            raise RequestError(f"unknown field {name[:50]!r}: there are {', '.join(allowed)}")
    return sent


def said_in(sent: Mapping[str, Any], name: str, most: int, *, least: int = 1, otherwise: str = "") -> str:
    """Words of somebody."""
    said = sent.get(name, otherwise)
    if not isinstance(said, str) or not least <= len(said.strip()) <= most or not _is_one_line(said):
        raise RequestError(f"{name} must be a text of {least} to {most} characters on one line")
    return said.strip()


def pattern_in(sent: Mapping[str, Any], name: str, otherwise: str) -> str:
    """A pattern of names."""
    pattern = sent.get(name, otherwise)
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN_CHARS or not _is_one_line(pattern):
        raise RequestError(
            f"{name} must be a name of 1 to {MAX_PATTERN_CHARS} characters on one line, in which * stands for any "
            "characters and ? for any one"
        )
    return pattern


def until_in(sent: Mapping[str, Any], now_ms: int) -> int:
    """When it is over: after some `hours`, or at the moment `until`."""
    if ("hours" in sent) == ("until" in sent):
        raise RequestError("say either hours, from now on, or until, a moment in milliseconds")
    if "hours" in sent:
        return now_ms + _whole(sent["hours"], "hours", 1, HOURS_MOST) * 3_600_000
    return _whole(sent["until"], "until", now_ms + 1, now_ms + YEAR_MS)


def _whole(value: object, name: str, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RequestError(f"{name} must be a whole number from {least} to {most}")
    return value


def _is_one_line(text: str) -> bool:
    return not any(unicodedata.category(char) in _NEVER for char in text)


By = Annotated[
    str,
    Meta(
        max_length=BY_MOST,
        pattern=_SOME,
        description="Who does this; optional for users who authenticate with a name and password",
    ),
]


class AcknowledgementBody(Struct, forbid_unknown_fields=True):
    """An acknowledgement to be made."""

    by: By
    why: Annotated[str, Meta(max_length=WHY_MOST, pattern=_ANY, description="What is done about the incident")] = ""


class SilenceBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """A silence to be made; it has either `hours` or `until`."""

    cluster: NamePattern = ANY
    group: NamePattern = ANY
    hours: Annotated[int, Meta(ge=1, le=HOURS_MOST, description="Duration from now on")] | UnsetType = UNSET
    until: Annotated[int, Meta(ge=1, description="Milliseconds since 1970, a year ahead at most")] | UnsetType = UNSET
    by: By
    why: Annotated[str, Meta(max_length=WHY_MOST, pattern=_SOME, description="The reason of the silence")]

"""Acknowledgements of incidents, and silences: no notifications for matching groups until a given time."""

import logging
import uuid
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from warren.domain.matching import ANY, MAX_PATTERN_CHARS, MAX_STARS
from warren.errors import RequestError
from warren.incidents.model import Incident
from warren.incidents.silences import (
    MAX_BY_CHARS,
    MAX_HOURS,
    MAX_SILENCE_MS,
    MAX_SILENCES,
    MAX_WHY_CHARS,
    Acknowledgement,
    OperatorAction,
    Silence,
    is_line,
)
from warren.incidents.store.database import StoreError
from warren.incidents.store.operator_actions import read_silences, write_action
from warren.snapshot.status import TimeMs
from warren.web.api import Api
from warren.web.auth import user_of
from warren.web.http import JSON, Request, Response, success, to_answer
from warren.web.incidents import incident_response, read_incident

log = logging.getLogger(__name__)

_CONTROLS = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
_LINE = {"pattern": f"^[^{_CONTROLS}]*$"}
_FILLED_LINE = {"pattern": rf"^[^{_CONTROLS}]*[^\s{_CONTROLS}][^{_CONTROLS}]*$"}

NamePattern = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_PATTERN_CHARS,
        extra_json_schema={"pattern": rf"^([^*{_CONTROLS}]*\*){{0,{MAX_STARS}}}[^*{_CONTROLS}]*$"},
        description="Name in which * stands for any characters and ? for any single one",
    ),
]
By = Annotated[
    str,
    Meta(
        max_length=MAX_BY_CHARS,
        extra_json_schema=_FILLED_LINE,
        description="Who does this; optional for users who authenticate with a name and password",
    ),
]


class _Body(Struct, forbid_unknown_fields=True, kw_only=True):
    """A body whose texts are single lines; those in `filled` must not be blank."""

    filled: ClassVar[tuple[str, ...]] = ("by",)

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            text = getattr(self, name)
            if not isinstance(text, str):
                continue
            if not is_line(text):
                raise ValueError(f"{name} must be a single line of text")
            if name in self.filled and not text.strip():
                raise ValueError(f"{name} must not be blank")


class AcknowledgementBody(_Body, kw_only=True):
    """An acknowledgement to be made."""

    by: By
    why: Annotated[
        str, Meta(max_length=MAX_WHY_CHARS, extra_json_schema=_LINE, description="What is done about the incident")
    ] = ""


class SilenceBody(_Body, kw_only=True):
    """A silence to be made; it has either `hours` or `until`."""

    filled: ClassVar[tuple[str, ...]] = ("by", "why")

    cluster: NamePattern = ANY
    group: NamePattern = ANY
    hours: Annotated[int, Meta(ge=1, le=MAX_HOURS, description="Duration from now on")] | UnsetType = UNSET
    until: Annotated[int, Meta(ge=1, description="Milliseconds since 1970, a year ahead at most")] | UnsetType = UNSET
    by: By
    why: Annotated[
        str, Meta(max_length=MAX_WHY_CHARS, extra_json_schema=_FILLED_LINE, description="The reason of the silence")
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cluster", "group"):
            if getattr(self, name).count("*") > MAX_STARS:
                raise ValueError(f"{name} may have at most {MAX_STARS} *")

    def until_ms(self, now_ms: int) -> int:
        """When the silence ends."""
        if (self.hours is UNSET) == (self.until is UNSET):
            raise RequestError("give either hours, counted from now, or until, in milliseconds since 1970")
        if self.hours is not UNSET:
            return now_ms + self.hours * 3_600_000
        assert self.until is not UNSET
        if not now_ms < self.until <= now_ms + MAX_SILENCE_MS:
            raise RequestError(
                f"until must be in the future and at most a year ahead: {now_ms + 1} to {now_ms + MAX_SILENCE_MS}"
            )
        return self.until


class SilenceSummary(Struct, rename={"from_ms": "from", "until_ms": "until"}):
    """No notifications for matching groups until a given time."""

    id: str
    cluster: Annotated[str, Meta(description="Pattern of cluster names")]
    group: Annotated[str, Meta(description="Pattern of group names")]
    from_ms: TimeMs
    until_ms: TimeMs
    by: str
    why: str


Body = TypeVar("Body", AcknowledgementBody, SilenceBody)


def acknowledge(api: Api, request: Request) -> Response:
    """Acknowledge an incident: no more reminders of it."""
    body = decode_body(request, AcknowledgementBody)
    incident = _open_incident(api, request)
    _store(api, Acknowledgement(incident.id, api.clock_ms(), body.by.strip(), body.why.strip()))
    log.info("incident %s of group %s acknowledged by %s: %s", incident.id, incident.group, body.by, body.why)
    return incident_response(api, request, "incident acknowledged")


def withdraw(api: Api, request: Request) -> Response:
    """Withdraw the acknowledgement of an incident."""
    incident = _open_incident(api, request)
    if (at_ms := incident.acknowledged_ms) is not None:
        by, why = incident.acknowledged_by, incident.acknowledged_why
        _store(api, Acknowledgement(incident.id, at_ms, by, why, withdrawn_ms=api.clock_ms()))
        log.info("acknowledgement of incident %s of group %s withdrawn", incident.id, incident.group)
    return incident_response(api, request, "acknowledgement withdrawn")


def silences(api: Api, request: Request) -> Response:
    """List the silences that are not over, in the order in which they end."""
    answers = [to_answer(SilenceSummary, silence) for silence in read_silences(api.data_dir, api.clock_ms())]
    return success(request, "silences returned", silences=answers)


def create_silence(api: Api, request: Request) -> Response:
    """Silence groups: no notifications for them until a given time."""
    body = decode_body(request, SilenceBody)
    now_ms = api.clock_ms()
    until_ms, by, why = body.until_ms(now_ms), body.by.strip(), body.why.strip()
    silence = Silence(str(uuid.uuid4()), body.cluster, body.group, now_ms, until_ms, by, why)
    if len(read_silences(api.data_dir, now_ms)) >= MAX_SILENCES:
        raise RequestError(f"there are {MAX_SILENCES} silences already; end some of them first", 409)
    _store(api, silence)
    log.info("groups %s of clusters %s silenced by %s: %s", silence.group, silence.cluster, silence.by, silence.why)
    return success(request, "silence created", silence=to_answer(SilenceSummary, silence))


def end_silence(api: Api, request: Request) -> Response:
    """End a silence before its time."""
    now_ms = api.clock_ms()
    for silence in read_silences(api.data_dir, now_ms):
        if silence.id == request.params["silence"]:
            ended = replace(silence, until_ms=now_ms)
            _store(api, ended)
            log.info("silence of groups %s of clusters %s ended", silence.group, silence.cluster)
            return success(request, "silence ended", silence=to_answer(SilenceSummary, ended))
    raise RequestError("silence not found, or already over", 404)


def _open_incident(api: Api, request: Request) -> Incident:
    incident = read_incident(api, request)
    if incident.closed_ms is not None:
        raise RequestError("the incident is closed", 409)
    return incident


def _store(api: Api, action: OperatorAction) -> None:
    try:
        write_action(api.data_dir, action)
    except StoreError as error:
        log.warning("cannot store a silence or acknowledgement: %s", error)
        raise RequestError(f"cannot be stored, try again: {error}", 503) from None


def decode_body(request: Request, body_type: type[Body]) -> Body:
    """The body of a request; `by` is by default the user who authenticated."""
    # A form on another site can send any body from an admin's browser, but not with this content type.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RequestError(f"the body must be sent as Content-Type: {JSON}", 415)
    try:
        fields: dict[str, Any] = msgspec.json.decode(request.body, type=dict[str, Any])
        if user := user_of(request.headers.get("authorization", "").encode("latin-1")):
            fields.setdefault("by", user)
        # JSON does not distinguish 4.0 from 4.
        fields = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in fields.items()
        }
        for field in msgspec.structs.fields(body_type):
            if field.required and field.name not in fields:
                raise RequestError(f"`{field.name}` is missing")
        return msgspec.convert(fields, body_type)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"invalid body: {error}"[:300]) from None

"""Acknowledgements of incidents, and silences: no notifications for matching groups until a given time."""

import logging
import uuid

from msgspec.structs import replace

from warren.errors import RequestError
from warren.incidents.model import Incident
from warren.incidents.silences import Acknowledgement, OperatorAction, Silence
from warren.incidents.store.database import StoreError
from warren.incidents.store.operator_actions import read_silences, write_action
from warren.web.answers.incidents import SilenceSummary
from warren.web.api import Api
from warren.web.http import Request, Response, success, to_answer
from warren.web.incidents import incident_response, read_incident
from warren.web.request_bodies import AcknowledgementBody, SilenceBody, decode_body

log = logging.getLogger(__name__)

MAX_SILENCES = 1_000
"""Every silence is matched against every incident."""


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

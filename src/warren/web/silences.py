"""What people want about incidents: to have one in hand, or not to hear of some groups for a while."""

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from warren.config import Config
from warren.domain.matching import ANY
from warren.errors import RequestError
from warren.incidents.model import Incident
from warren.incidents.silences import Acknowledgement, OperatorAction, Silence
from warren.incidents.store.database import StoreError
from warren.incidents.store.operator_actions import read_silences, write_action
from warren.web.auth import user_of
from warren.web.http import Request, Response
from warren.web.incidents import IncidentEndpoints
from warren.web.request_bodies import (
    BY_MOST,
    WHY_MOST,
    AcknowledgementBody,
    SilenceBody,
    fields_in,
    pattern_in,
    said_in,
    until_in,
)
from warren.web.responses import Responder

log = logging.getLogger(__name__)

SILENCES_MOST = 1_000
"""Each of them is held against each incident."""


class SilenceEndpoints:
    """Takes what people want, and puts it down beside the book of incidents."""

    def __init__(
        self, config: Config, speaker: Responder, incidents: IncidentEndpoints, clock_ms: Callable[[], int]
    ) -> None:
        self._data_dir = config.pipeline.data_dir
        self._speaker = speaker
        self._incidents = incidents
        self._clock_ms = clock_ms

    def acknowledge(self, request: Request) -> Response:
        """Say that somebody has an incident in hand."""
        sent = fields_in(request, AcknowledgementBody.__struct_fields__)
        by, why = _by(request, sent), said_in(sent, "why", WHY_MOST, least=0)
        incident = self._open_entry(request)
        self._put_down(Acknowledgement(incident.id, self._clock_ms(), by, why))
        log.info("%s has incident %s of %s in hand: %s", by, incident.id, incident.group, why)
        return self._incidents.answer(request, "incident acknowledged")

    def take_back(self, request: Request) -> Response:
        """Say that nobody has an incident in hand any more."""
        entry = self._open_entry(request)
        incident, at_ms = entry, entry.acknowledged_ms
        if at_ms is not None:
            held = Acknowledgement(incident.id, at_ms, entry.acknowledged_by, entry.acknowledged_why)
            self._put_down(replace(held, withdrawn_ms=self._clock_ms()))
            log.info("nobody has incident %s of %s in hand any more", incident.id, incident.group)
        return self._incidents.answer(request, "acknowledgement taken back")

    def silences(self, request: Request) -> Response:
        """Which groups nobody wants to hear of, until when, and why; those that end first first."""
        found = [_silence_answer(one) for one in read_silences(self._data_dir, self._clock_ms())]
        return self._speaker.good(request, "silences returned", silences=found)

    def silence(self, request: Request) -> Response:
        """Tell nobody about some groups for a while."""
        sent = fields_in(request, SilenceBody.__struct_fields__)
        now_ms = self._clock_ms()
        silence = Silence(
            str(uuid.uuid4()),
            pattern_in(sent, "cluster", ANY),
            pattern_in(sent, "group", ANY),
            now_ms,
            until_in(sent, now_ms),
            _by(request, sent),
            said_in(sent, "why", WHY_MOST),
        )
        if len(read_silences(self._data_dir, now_ms)) >= SILENCES_MOST:
            raise RequestError(f"there are {SILENCES_MOST} silences already; end some", 409)
        self._put_down(silence)
        log.info("%s silences %s of %s: %s", silence.by, silence.group, silence.cluster, silence.why)
        return self._speaker.good(request, "silence begun", silence=_silence_answer(silence))

    def end_silence(self, request: Request) -> Response:
        """End a silence before its time."""
        now_ms = self._clock_ms()
        for one in read_silences(self._data_dir, now_ms):
            if one.id == request.names["silence"]:
                ended = replace(one, until_ms=now_ms)
                self._put_down(ended)
                log.info("the silence of %s of %s is ended", one.group, one.cluster)
                return self._speaker.good(request, "silence ended", silence=_silence_answer(ended))
        raise RequestError("there is no such silence, or it is over", 404)

    def _open_entry(self, request: Request) -> Incident:
        entry = self._incidents.entry(request.names["incident"])
        if entry.closed_ms is not None:
            raise RequestError("this incident is closed", 409)
        return entry

    def _put_down(self, wish: OperatorAction) -> None:
        try:
            write_action(self._data_dir, wish)
        except StoreError as error:
            log.warning("a wish about incidents could not be put down: %s", error)
            raise RequestError(f"it could not be put down: {error}; try again", 503) from None


def _by(request: Request, sent: Mapping[str, Any]) -> str:
    user = user_of(request.headers.get("authorization", "").encode("latin-1"))
    return said_in(sent, "by", BY_MOST, otherwise=user or "")


def _silence_answer(silence: Silence) -> dict[str, Any]:
    return {
        "id": silence.id,
        "cluster": silence.cluster,
        "group": silence.group,
        "from": silence.from_ms,
        "until": silence.until_ms,
        "by": silence.by,
        "why": silence.why,
    }

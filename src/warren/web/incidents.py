"""Incidents as they are answered: their course, whose they are, who was told, and who is to tell."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from warren.config import Config
from warren.errors import RequestError
from warren.incidents.model import Incident, Notification
from warren.incidents.routing import match_routes
from warren.incidents.silences import is_silenced
from warren.incidents.store.operator_actions import read_silences
from warren.incidents.store.reader import (
    DeliveryCounts,
    IncidentQuery,
    read_delivery_counts,
    read_incidents,
    read_leadership,
    read_notifications,
)
from warren.web.http import Request, Response, number_in
from warren.web.responses import Responder

Value = dict[str, Any]

INCIDENTS, INCIDENTS_MOST = 100, 10_000
BEFORE_MOST = 2**53
MESSAGES_MOST = 200


class IncidentEndpoints:
    """Answers from the book of incidents."""

    def __init__(self, config: Config, speaker: Responder, clock_ms: Callable[[], int]) -> None:
        self._config = config
        self._speaker = speaker
        self._clock_ms = clock_ms
        self._data_dir = config.pipeline.data_dir

    def incidents(self, request: Request) -> Response:
        """Groups in trouble, now and before: since when, how bad, until when; the newest first."""
        query = request.query
        state = query.get("state", ("",))[-1]
        if state not in ("", "open", "closed"):
            raise RequestError(f"unknown state {state[:20]!r}: an incident is open or closed")
        wanted = IncidentQuery(
            cluster=query.get("cluster", (None,))[-1],
            group=query.get("group", (None,))[-1],
            is_open=None if not state else state == "open",
            limit=number_in(query, "limit", INCIDENTS_MOST) or INCIDENTS,
            before_ms=number_in(query, "before", BEFORE_MOST),
        )
        found = self._answers(read_incidents(self._data_dir, wanted))
        return self._speaker.good(request, "incidents returned", incidents=found)

    def incident(self, request: Request) -> Response:
        """One incident, with what was said of it: to whom, when, and if not yet, why."""
        return self.answer(request, "incident returned")

    def answer(self, request: Request, message: str) -> Response:
        """The incident of a request, as it is now."""
        entry = self.entry(request.names["incident"])
        letters, count = read_notifications(self._data_dir, entry.notification_ids, MESSAGES_MOST)
        [found] = self._answers([entry])
        messages = {"message_count": count, "messages": [_message_answer(letter) for letter in letters]}
        return self._speaker.good(request, message, incident={**found, **messages})

    def entry(self, incident: str) -> Incident:
        """The incident of an id."""
        found = read_incidents(self._data_dir, IncidentQuery(id=incident))
        if not found:
            raise RequestError("there is no such incident", 404)
        return found[0]

    def notifiers(self, request: Request) -> Response:
        """Whether this Warren notifies, and how each notifier's messages fare."""
        duty, trays = read_leadership(self._data_dir, self._clock_ms()), read_delivery_counts(self._data_dir)
        notifiers = [
            {"name": name, "class": one.class_name, **_tray_answer(trays.get(name, DeliveryCounts()))}
            for name, one in sorted(self._config.notifiers.items())
        ]
        return self._speaker.good(
            request,
            "notifiers returned",
            duty={"state": duty.state, "since": duty.since_ms, "why": duty.why},
            notifiers=notifiers,
        )

    def _answers(self, entries: Sequence[Incident]) -> list[Value]:
        clusters = pa.array([one.cluster for one in entries], pa.string())
        groups = pa.array([one.group for one in entries], pa.string())
        now_ms = self._clock_ms()
        silences = [one for one in read_silences(self._data_dir, now_ms) if one.is_active(now_ms)]
        teams = match_routes(self._config.routes, clusters, groups).team.tolist()
        matches = is_silenced(silences, clusters, groups).tolist()
        return [
            incident_answer(entry, team, is_silenced=silenced)
            for entry, team, silenced in zip(entries, teams, matches, strict=True)
        ]


def incident_answer(incident: Incident, team: str, *, is_silenced: bool) -> Value:
    """One incident, with its course and the worst of its partitions."""
    return {
        "id": incident.id,
        "cluster": incident.cluster,
        "group": incident.group,
        "team": team,
        "opened": incident.opened_ms,
        "closed": incident.closed_ms,
        "status": incident.status.name,
        "worst": incident.worst.name,
        "acknowledged": _acknowledged(incident),
        "silenced": is_silenced,
        "changes": [{"time": change.at_ms, "status": change.status.name} for change in incident.changes],
        "told": [
            {"notifier": name, "messages": told.count, "last": told.last_ms}
            for name, told in sorted(incident.notified.items())
        ],
        "partition_count": incident.partition_count,
        "partitions": [
            {"topic": one.topic, "partition": one.partition, "status": one.status.name, "lag": one.lag}
            for one in incident.partitions
        ],
    }


def _acknowledged(entry: Incident) -> Value | None:
    if entry.acknowledged_ms is None:
        return None
    return {
        "time": entry.acknowledged_ms,
        "by": entry.acknowledged_by,
        "why": entry.acknowledged_why,
    }


def _message_answer(letter: Notification) -> Value:
    return {
        "notifier": letter.notifier,
        "event": str(letter.event),
        "due": letter.due_ms,
        "sent": letter.sent_ms,
        "given_up": letter.given_up_ms,
        "attempts": letter.attempts,
        "trouble": letter.last_error,
        "why": letter.reason,
        "channel": letter.channel,
    }


def _tray_answer(tray: DeliveryCounts) -> Value:
    return {
        "waiting": tray.waiting,
        "sent": tray.sent,
        "given_up": tray.given_up,
        "last_sent": tray.last_sent_ms,
        "trouble": tray.last_error,
    }

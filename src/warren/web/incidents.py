"""Incidents with their course and notifications, and the status of the notifiers."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

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
from warren.web.api import Api
from warren.web.http import Request, Response
from warren.web.responses import success

DEFAULT_LIMIT, MAX_LIMIT = 100, 10_000
MAX_TIME_MS = 2**53
MAX_NOTIFICATIONS = 200


def incidents(api: Api, request: Request) -> Response:
    """List incidents, open and closed, the newest first."""
    state = request.last("state")
    if state not in ("", "open", "closed"):
        raise RequestError(f"unknown state {state[:20]!r}: an incident is open or closed")
    query = IncidentQuery(
        cluster=request.query.get("cluster", (None,))[-1],
        group=request.query.get("group", (None,))[-1],
        is_open=state == "open" if state else None,
        limit=request.integer("limit", MAX_LIMIT) or DEFAULT_LIMIT,
        before_ms=request.integer("before", MAX_TIME_MS),
    )
    return success(request, "incidents returned", incidents=_answers(api, read_incidents(api.data_dir, query)))


def incident(api: Api, request: Request) -> Response:
    """Get an incident and its notifications."""
    return incident_response(api, request, "incident returned")


def incident_response(api: Api, request: Request, message: str) -> Response:
    """The incident of a request's path, as it is now."""
    found = read_incident(api, request)
    notifications, count = read_notifications(api.data_dir, found.notification_ids, MAX_NOTIFICATIONS)
    [answer] = _answers(api, [found])
    answer |= {"message_count": count, "messages": [_notification_answer(item) for item in notifications]}
    return success(request, message, incident=answer)


def read_incident(api: Api, request: Request) -> Incident:
    """The incident of a request's path."""
    matches = read_incidents(api.data_dir, IncidentQuery(id=request.params["incident"]))
    if not matches:
        raise RequestError("incident not found", 404)
    return matches[0]


def notifiers(api: Api, request: Request) -> Response:
    """Get whether this Warren notifies, and the deliveries of each notifier."""
    leadership, counts = read_leadership(api.data_dir, api.clock_ms()), read_delivery_counts(api.data_dir)
    answers = [
        {"name": name, "class": notifier.class_name, **_counts_answer(counts.get(name, DeliveryCounts()))}
        for name, notifier in sorted(api.config.notifiers.items())
    ]
    duty = {"state": leadership.state, "since": leadership.since_ms, "why": leadership.why}
    return success(request, "notifiers returned", duty=duty, notifiers=answers)


def _answers(api: Api, incidents: Sequence[Incident]) -> list[dict[str, Any]]:
    clusters = pa.array([incident.cluster for incident in incidents], pa.string())
    groups = pa.array([incident.group for incident in incidents], pa.string())
    now_ms = api.clock_ms()
    silences = [silence for silence in read_silences(api.data_dir, now_ms) if silence.is_active(now_ms)]
    teams = match_routes(api.config.routes, clusters, groups).team.tolist()
    silenced = is_silenced(silences, clusters, groups).tolist()
    return [
        {**_incident_answer(incident), "team": team, "silenced": has_silence}
        for incident, team, has_silence in zip(incidents, teams, silenced, strict=True)
    ]


def _incident_answer(incident: Incident) -> dict[str, Any]:
    acknowledgement = {
        "time": incident.acknowledged_ms,
        "by": incident.acknowledged_by,
        "why": incident.acknowledged_why,
    }
    return {
        "id": incident.id,
        "cluster": incident.cluster,
        "group": incident.group,
        "team": "",
        "opened": incident.opened_ms,
        "closed": incident.closed_ms,
        "status": incident.status.name,
        "worst": incident.worst.name,
        "acknowledged": None if incident.acknowledged_ms is None else acknowledgement,
        "silenced": False,
        "changes": [{"time": change.at_ms, "status": change.status.name} for change in incident.changes],
        "told": [
            {"notifier": name, "messages": notified.count, "last": notified.last_ms}
            for name, notified in sorted(incident.notified.items())
        ],
        "partition_count": incident.partition_count,
        "partitions": [
            {"topic": item.topic, "partition": item.partition, "status": item.status.name, "lag": item.lag}
            for item in incident.partitions
        ],
    }


def _notification_answer(notification: Notification) -> dict[str, Any]:
    return {
        "notifier": notification.notifier,
        "event": str(notification.event),
        "due": notification.due_ms,
        "sent": notification.sent_ms,
        "given_up": notification.given_up_ms,
        "attempts": notification.attempts,
        "trouble": notification.last_error,
        "why": notification.reason,
        "channel": notification.channel,
    }


def _counts_answer(counts: DeliveryCounts) -> dict[str, Any]:
    return {
        "waiting": counts.waiting,
        "sent": counts.sent,
        "given_up": counts.given_up,
        "last_sent": counts.last_sent_ms,
        "trouble": counts.last_error,
    }

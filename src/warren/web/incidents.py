"""Incidents with their course and notifications, and the status of the notifiers."""

from collections.abc import Sequence

from msgspec.structs import asdict

from warren.config import Notifier
from warren.errors import RequestError
from warren.incidents.model import Incident, Notification, to_columns
from warren.incidents.routing import match_routes
from warren.incidents.silences import find_silenced
from warren.incidents.store.operator_actions import read_silences
from warren.incidents.store.reader import (
    DeliveryCounts,
    IncidentQuery,
    read_delivery_counts,
    read_incidents,
    read_last_errors,
    read_leadership,
    read_notifications,
)
from warren.web.answers.clusters import LeadershipSummary
from warren.web.answers.incidents import (
    IncidentAcknowledgement,
    IncidentChange,
    IncidentDetail,
    IncidentMessage,
    IncidentNotifier,
    IncidentPartition,
    IncidentSummary,
    NotifierSummary,
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
    messages = [_notification_answer(item) for item in notifications]
    return success(request, message, incident=IncidentDetail(**asdict(answer), message_count=count, messages=messages))


def read_incident(api: Api, request: Request) -> Incident:
    """The incident of a request's path."""
    matches = read_incidents(api.data_dir, IncidentQuery(id=request.params["incident"]))
    if not matches:
        raise RequestError("incident not found", 404)
    return matches[0]


def notifiers(api: Api, request: Request) -> Response:
    """Get whether this Warren notifies, and the deliveries of each notifier."""
    leadership = read_leadership(api.data_dir, api.clock_ms())
    counts, errors = read_delivery_counts(api.data_dir), read_last_errors(api.data_dir)
    answers = [
        _notifier_answer(notifier, counts.get(name, DeliveryCounts()), errors.get(name, ""))
        for name, notifier in sorted(api.config.notifiers.items())
    ]
    duty = LeadershipSummary(state=leadership.state, since=leadership.since_ms, why=leadership.why)
    return success(request, "notifiers returned", duty=duty, notifiers=answers)


def _answers(api: Api, incidents: Sequence[Incident]) -> list[IncidentSummary]:
    now_ms, names = api.clock_ms(), [incident.name for incident in incidents]
    teams = match_routes(api.config.routes, *to_columns(names)).team.tolist()
    silenced = find_silenced(read_silences(api.data_dir, now_ms), now_ms, names)
    return [
        _incident_answer(incident, team, has_silence=incident.name in silenced)
        for incident, team in zip(incidents, teams, strict=True)
    ]


def _incident_answer(incident: Incident, team: str, *, has_silence: bool) -> IncidentSummary:
    acknowledged = None
    if incident.acknowledged_ms is not None:
        acknowledged = IncidentAcknowledgement(
            incident.acknowledged_ms, incident.acknowledged_by, incident.acknowledged_why
        )
    return IncidentSummary(
        id=incident.id,
        cluster=incident.cluster,
        group=incident.group,
        team=team,
        opened=incident.opened_ms,
        closed=incident.closed_ms,
        status=incident.status.name,
        worst=incident.worst.name,
        acknowledged=acknowledged,
        silenced=has_silence,
        changes=[IncidentChange(change.at_ms, change.status.name) for change in incident.changes],
        told=[
            IncidentNotifier(name, notified.count, notified.last_ms)
            for name, notified in sorted(incident.notified.items())
        ],
        partition_count=incident.partition_count,
        partitions=[
            IncidentPartition(item.topic, item.partition, item.status.name, item.lag) for item in incident.partitions
        ],
    )


def _notification_answer(notification: Notification) -> IncidentMessage:
    return IncidentMessage(
        notifier=notification.notifier,
        event=notification.event,
        due=notification.due_ms,
        sent=notification.sent_ms,
        given_up=notification.given_up_ms,
        attempts=notification.attempts,
        trouble=notification.last_error,
        why=notification.reason,
        channel=notification.channel,
    )


def _notifier_answer(notifier: Notifier, counts: DeliveryCounts, last_error: str) -> NotifierSummary:
    return NotifierSummary(
        name=notifier.name,
        class_name=notifier.class_name,
        waiting=counts.waiting,
        sent=counts.sent,
        given_up=counts.given_up,
        last_sent=counts.last_sent_ms,
        trouble=last_error,
    )

"""Incidents with their course and notifications, and the status of the notifiers."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from warren.errors import RequestError
from warren.incidents.model import Event, Incident, to_columns
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
from warren.snapshot.status import StatusName, TimeMs
from warren.web.api import Api
from warren.web.http import Request, Response, success, to_answer

DEFAULT_LIMIT, MAX_LIMIT = 100, 10_000
MAX_TIME_MS = 2**53
MAX_NOTIFICATIONS = 200


LEADERSHIP_STATES = ["alone", "active", "standby", "away", "stopped", "unknown"]


class IncidentAcknowledgement(Struct, rename={"at_ms": "time"}):
    """Who works on an incident."""

    at_ms: TimeMs
    by: str
    why: str


class IncidentChange(Struct, rename={"at_ms": "time"}):
    """The status of an incident's group from a time on."""

    at_ms: TimeMs
    status: StatusName


class IncidentNotifier(Struct):
    """A notifier that was used for an incident."""

    notifier: str
    messages: Annotated[int, Meta(description="Number of notifications")]
    last: TimeMs


class IncidentPartition(Struct):
    """A partition that is not OK."""

    topic: str
    partition: int
    status: StatusName
    lag: Annotated[int | None, Meta(description="null if unknown")]


class IncidentSummary(Struct, rename={"opened_ms": "opened", "closed_ms": "closed"}):
    """A group in trouble, from its first bad verdict to its first good one."""

    id: str
    cluster: str
    group: str
    team: Annotated[str, Meta(description="The team that a route names; empty if none does")]
    opened_ms: TimeMs
    closed_ms: Annotated[int | None, Meta(description="Milliseconds since 1970; null while it is open")]
    status: StatusName
    worst: Annotated[StatusName, Meta(description="The most severe status so far")]
    acknowledged: IncidentAcknowledgement | None
    silenced: Annotated[bool, Meta(description="Whether a silence in force matches the group")]
    changes: list[IncidentChange]
    told: Annotated[list[IncidentNotifier], Meta(description="Notifications so far, by notifier")]
    partition_count: Annotated[int, Meta(description="Number of partitions that are not OK")]
    partitions: Annotated[list[IncidentPartition], Meta(description="The most severe of them")]
    lost_messages: Annotated[int, Meta(description="Most messages that were seen to be deleted before they were read")]


class IncidentMessage(
    Struct,
    rename={"due_ms": "due", "sent_ms": "sent", "given_up_ms": "given_up", "last_error": "trouble", "reason": "why"},
):
    """A notification about an incident."""

    notifier: str
    event: Event
    due_ms: TimeMs
    sent_ms: int | None
    given_up_ms: int | None
    attempts: int
    last_error: Annotated[str, Meta(description="The last error; empty if there is none")]
    reason: str
    channel: Annotated[str, Meta(description="The channel that a route names; empty if none does")]


class IncidentDetail(IncidentSummary):
    """An incident with its notifications."""

    message_count: int
    messages: Annotated[list[IncidentMessage], Meta(description="The last notifications, oldest first")]


class NotifierSummary(Struct, rename={"class_name": "class", "last_sent_ms": "last_sent", "last_error": "trouble"}):
    """A notifier and its notifications of the last days."""

    name: str
    class_name: str
    waiting: int
    sent: int
    given_up: Annotated[int, Meta(description="Notifications that were refused or became too old")]
    last_sent_ms: int | None
    last_error: Annotated[str, Meta(description="Why the oldest waiting notification is not sent yet")]


class LeadershipSummary(Struct, kw_only=True, rename={"since_ms": "since"}):
    """Whether this Warren sends notifications: it does if it is `alone` or `active`."""

    state: Annotated[str, Meta(extra_json_schema={"enum": LEADERSHIP_STATES})]
    since_ms: int | UnsetType | None = UNSET
    why: str


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
    incident = read_incident(api, request)
    notifications, count = read_notifications(api.data_dir, incident.notification_ids, MAX_NOTIFICATIONS)
    [summary] = _answers(api, [incident])
    messages = [to_answer(IncidentMessage, notification) for notification in notifications]
    detail = to_answer(IncidentDetail, summary, message_count=count, messages=messages)
    return success(request, message, incident=detail)


def read_incident(api: Api, request: Request) -> Incident:
    """The incident of a request's path."""
    matches = read_incidents(api.data_dir, IncidentQuery(id=request.params["incident"]))
    if not matches:
        raise RequestError("incident not found", 404)
    return matches[0]


def notifiers(api: Api, request: Request) -> Response:
    """Get whether this Warren notifies, and the deliveries of each notifier."""
    counts, errors = read_delivery_counts(api.data_dir), read_last_errors(api.data_dir)
    answers = []
    for name, notifier in sorted(api.config.notifiers.items()):
        given = {"name": name, "class_name": notifier.class_name, "last_error": errors.get(name, "")}
        answers.append(to_answer(NotifierSummary, counts.get(name, DeliveryCounts()), **given))
    duty = to_answer(LeadershipSummary, read_leadership(api.data_dir, api.clock_ms()))
    return success(request, "notifiers returned", duty=duty, notifiers=answers)


def _answers(api: Api, incidents: Sequence[Incident]) -> list[IncidentSummary]:
    now_ms, names = api.clock_ms(), [incident.name for incident in incidents]
    teams = match_routes(api.config.routes, *to_columns(names)).team.tolist()
    silenced = find_silenced(read_silences(api.data_dir, now_ms), now_ms, names)
    return [
        to_answer(
            IncidentSummary,
            incident,
            team=team,
            status=incident.status.name,
            worst=incident.worst.name,
            acknowledged=_acknowledgement_answer(incident),
            silenced=incident.name in silenced,
            changes=[IncidentChange(change.at_ms, change.status.name) for change in incident.changes],
            told=[
                IncidentNotifier(name, notified.count, notified.last_ms)
                for name, notified in sorted(incident.notified.items())
            ],
            partitions=[
                IncidentPartition(item.topic, item.partition, item.status.name, item.lag)
                for item in incident.partitions
            ],
        )
        for incident, team in zip(incidents, teams, strict=True)
    ]


def _acknowledgement_answer(incident: Incident) -> IncidentAcknowledgement | None:
    if incident.acknowledged_ms is None:
        return None
    return IncidentAcknowledgement(incident.acknowledged_ms, incident.acknowledged_by, incident.acknowledged_why)

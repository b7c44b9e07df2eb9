"""Builds notifications: of incidents, of storms with all their groups, and reports of groups that are OK."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from warren.domain.status import Status
from warren.incidents.evaluation import DueNotification, Evaluation
from warren.incidents.model import Event, Incident, Notification, Storm, StormGroup, StormStatus
from warren.incidents.storms import find_members
from warren.snapshot.schemas import Row
from warren.snapshot.status import GroupName, GroupStatus, missing_group, without_rates
from warren.snapshot.time_lag import to_time_lag

MAX_STORM_GROUPS = 200
"""How many groups of a storm are listed, the most severe first."""
MAX_STORM_PARTITIONS = 20


def with_notifications(evaluation: Evaluation) -> Evaluation:
    """The notifications of incidents and storms, and the reports."""
    reports = [(each.name, None, due) for each in evaluation.decisions for due in each.due if due.event is Event.REPORT]
    single = [(each.incident.name, each.incident, each.due) for each in evaluation.single]
    notifications = [_group_notification(evaluation, *subject) for subject in [*reports, *single]]
    open_incidents = {incident.id: incident for incident in evaluation.open_incidents.values()}
    members = find_members(open_incidents.values())
    for update in evaluation.storm_updates:
        if update.due is not None:
            ids = members.get(update.storm.id, set()) - evaluation.silenced_incidents
            incidents = [open_incidents[incident_id] for incident_id in sorted(ids)]
            notifications.append(_storm_notification(evaluation, update.storm, incidents, update.due))
    return replace(evaluation, notifications=notifications)


def _group_notification(
    evaluation: Evaluation, name: GroupName, incident: Incident | None, due: DueNotification
) -> Notification:
    """A notification of an incident, or without one the report of a group."""
    status = evaluation.results[name].status if name in evaluation.results else missing_group(name)
    if incident:
        status = replace(status, lost_messages=incident.lost_messages)
    if incident and due.event is Event.CLOSE:
        status = replace(status, status=incident.status.name)
    recipients = evaluation.recipients[name]
    channel = recipients.channels.get(due.notifier, "")
    return _notification(evaluation, due, incident, name, status, recipients.team, channel)


def _storm_notification(
    evaluation: Evaluation, storm: Storm, incidents: Sequence[Incident], due: DueNotification
) -> Notification:
    """A notification of a storm with the open incidents of its groups."""
    status = _storm_status(evaluation, storm, incidents)
    recipients = evaluation.recipients
    teams = {recipients[incident.name].team for incident in incidents if incident.name in recipients}
    team = teams.pop() if len(teams) == 1 else ""
    return _notification(evaluation, due, storm, (storm.cluster, status.group), status, team, storm.channel)


def _notification(
    evaluation: Evaluation,
    due: DueNotification,
    subject: Incident | Storm | None,
    name: GroupName,
    result: GroupStatus,
    team: str,
    channel: str,
) -> Notification:
    cluster, group = name
    now_ms = evaluation.now_ms
    report_key = f"report/{cluster}/{group}/{due.notifier}/{now_ms}"
    return Notification(
        key=f"{subject.id}/{due.notifier}/{due.sequence}" if subject else report_key,
        notifier=due.notifier,
        event=due.event,
        incident=subject.id if subject else "",
        sequence=due.sequence,
        cluster=cluster,
        group=group,
        opened_ms=subject.opened_ms if subject else now_ms,
        due_ms=now_ms,
        reason=due.reason,
        result=result,
        team=team,
        channel=channel,
    )


def _storm_status(evaluation: Evaluation, storm: Storm, incidents: Sequence[Incident]) -> StormStatus:
    """The status of all groups of a storm, in the shape of a single group's."""
    rows, results = evaluation.rows, evaluation.results
    groups = [_storm_group(each, rows.get(each.name)) for each in incidents]
    groups.sort(key=lambda each: (-Status[each.status], -(each.seconds_behind or 0.0), -each.totallag, each.group))
    statuses = [results[each.name].status for each in incidents if each.name in results]
    partitions = sorted(
        (partition for status in statuses for partition in status.partitions),
        key=lambda each: (-Status[each.status], -(each.seconds_behind or 0.0), -each.current_lag),
    )
    maxlags = [status.maxlag for status in statuses if status.maxlag is not None]
    count = len(groups) or storm.total
    return StormStatus(
        cluster=storm.cluster,
        group=f"{count} groups",
        status=max((incident.status for incident in incidents), default=Status.OK).name,
        complete=min((status.complete for status in statuses), default=1.0),
        partitions=partitions[:MAX_STORM_PARTITIONS],
        partition_count=sum(rows[each.name]["partitions"] for each in incidents if each.name in rows),
        maxlag=max(maxlags, key=lambda partition: partition.current_lag, default=None),
        totallag=sum(group.totallag for group in groups),
        groups=groups[:MAX_STORM_GROUPS],
        group_count=count,
        **_storm_time_lag(evaluation, incidents),
    )


def _storm_time_lag(evaluation: Evaluation, incidents: Sequence[Incident]) -> dict[str, Any]:
    """The time lag of the group that is furthest behind, with the lost messages of all groups."""
    lags = [to_time_lag(evaluation.rows[each.name]) for each in incidents if each.name in evaluation.rows]
    furthest = max(lags, key=lambda lag: lag.seconds_behind or 0.0, default=None)
    lost = sum(incident.lost_messages for incident in incidents)
    return (without_rates(furthest) if furthest else {}) | {"lost_messages": lost}


def _storm_group(incident: Incident, row: Row | None) -> StormGroup:
    totallag, seconds_behind = (row["totallag"], to_time_lag(row).seconds_behind) if row else (0, None)
    return StormGroup(incident.group, incident.status.name, totallag, incident.partition_count, seconds_behind)

"""Builds notifications: of an incident, of a storm with all its groups, and reports of groups that are OK."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from warren.domain.status import Status
from warren.incidents.model import DueNotification, Event, Incident, Notification, StormGroup, StormStatus
from warren.incidents.routing import Recipients
from warren.incidents.storms import Storm
from warren.snapshot.status import GroupResult, GroupStatus, Name, Row

MAX_STORM_GROUPS = 200
"""How many groups of a storm are listed, the most severe first."""
MAX_STORM_PARTITIONS = 20


def incident_notification(
    incident: Incident, due: DueNotification, recipients: Recipients, status: GroupStatus, now_ms: int
) -> Notification:
    """A notification of one incident."""
    return Notification(
        key=f"{incident.id}/{due.notifier}/{due.sequence}",
        notifier=due.notifier,
        event=due.event,
        incident=incident.id,
        sequence=due.sequence,
        cluster=incident.cluster,
        group=incident.group,
        opened_ms=incident.opened_ms,
        due_ms=now_ms,
        reason=due.reason,
        result=replace(status, status=incident.status.name) if due.event is Event.CLOSE else status,
        team=recipients.team,
        channel=recipients.channels.get(due.notifier, ""),
    )


def report_notification(
    name: Name, due: DueNotification, recipients: Recipients, status: GroupStatus, now_ms: int
) -> Notification:
    """A report of a group that is OK; it belongs to no incident."""
    cluster, group = name
    return Notification(
        key=f"report/{cluster}/{group}/{due.notifier}/{now_ms}",
        notifier=due.notifier,
        event=due.event,
        incident="",
        sequence=due.sequence,
        cluster=cluster,
        group=group,
        opened_ms=now_ms,
        due_ms=now_ms,
        reason=due.reason,
        result=status,
        team=recipients.team,
        channel=recipients.channels.get(due.notifier, ""),
    )


def storm_notification(
    storm: Storm,
    due: DueNotification,
    incidents: Sequence[Incident],
    rows: Mapping[Name, Row],
    results: Mapping[Name, GroupResult],
    recipients: Mapping[Name, Recipients],
    now_ms: int,
) -> Notification:
    """A notification of a storm, with the open incidents of its groups."""
    status = _storm_status(storm, incidents, rows, results)
    teams = {recipients[incident.name].team for incident in incidents if incident.name in recipients}
    return Notification(
        key=f"{storm.id}/{due.notifier}/{due.sequence}",
        notifier=due.notifier,
        event=due.event,
        incident=storm.id,
        sequence=due.sequence,
        cluster=storm.cluster,
        group=status.group,
        opened_ms=storm.opened_ms,
        due_ms=now_ms,
        reason=due.reason,
        result=status,
        team=teams.pop() if len(teams) == 1 else "",
        channel=storm.channel,
    )


def _storm_status(
    storm: Storm, incidents: Sequence[Incident], rows: Mapping[Name, Row], results: Mapping[Name, GroupResult]
) -> StormStatus:
    """The status of all groups of a storm, in the shape of a single group's."""
    groups = sorted(
        (
            StormGroup(
                incident.group,
                incident.status.name,
                rows.get(incident.name, {}).get("totallag", 0),
                incident.partition_count,
            )
            for incident in incidents
        ),
        key=lambda group: (-Status[group.status], -group.totallag, group.group),
    )
    statuses = [results[incident.name].status for incident in incidents if incident.name in results]
    partitions = sorted(
        (partition for status in statuses for partition in status.partitions),
        key=lambda partition: (-Status[partition.status], -partition.current_lag),
    )
    farthest = [status.maxlag for status in statuses if status.maxlag is not None]
    count = len(groups) or storm.total
    return StormStatus(
        cluster=storm.cluster,
        group=f"{count} groups",
        status=max((incident.status for incident in incidents), default=Status.OK).name,
        complete=min((status.complete for status in statuses), default=1.0),
        partitions=partitions[:MAX_STORM_PARTITIONS],
        partition_count=sum(rows[incident.name]["partitions"] for incident in incidents if incident.name in rows),
        maxlag=max(farthest, key=lambda partition: partition.current_lag, default=None),
        totallag=sum(group.totallag for group in groups),
        groups=groups[:MAX_STORM_GROUPS],
        group_count=count,
    )

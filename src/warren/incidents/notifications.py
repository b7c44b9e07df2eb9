"""Makes letters of decisions: about one group, or about all groups of a storm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from warren.domain.status import Status
from warren.incidents.grouping import Storm
from warren.incidents.model import Decision, DueNotification, Event, Incident
from warren.incidents.recipients import Recipients
from warren.incidents.store.incidents import IncidentRecord
from warren.incidents.store.notifications import Notification, StormGroup, StormStatus
from warren.snapshot.status import GroupResult, GroupStatus, Name, Row

GROUPS_MOST = 200
"""How many groups of a storm are named, the worst."""
PARTITIONS_MOST = 20


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A group of which there is something to put down or to say."""

    name: Name
    decision: Decision

    @property
    def incident(self) -> Incident | None:
        """Its incident, be it over or not."""
        return self.decision.closed or self.decision.known.incident


def notification_about(
    one: GroupChange, due: DueNotification, hearing: Recipients, result: GroupStatus, now_ms: int
) -> Notification:
    """A letter about one group."""
    cluster, group = one.name
    incident = one.incident
    if incident is None or due.event is Event.REPORT:
        key, about, opened_ms = f"report/{cluster}/{group}/{due.listener}/{now_ms}", "", now_ms
    else:
        key, about, opened_ms = f"{incident.id}/{due.listener}/{due.number}", incident.id, incident.opened_ms
        if due.event is Event.CLOSE:
            result = replace(result, status=incident.status.name)
    return Notification(
        key,
        due.listener,
        due.event,
        about,
        due.number,
        cluster,
        group,
        opened_ms,
        now_ms,
        due.why,
        result,
        hearing.team,
        hearing.channels.get(due.listener, ""),
    )


@dataclass(frozen=True, slots=True)
class Members:
    """The groups of a storm that are bad now, as a snapshot shows them."""

    entries: Sequence[IncidentRecord]
    rows: Mapping[Name, Row]
    results: Mapping[Name, GroupResult]
    hearings: Mapping[Name, Recipients]


def notification_about_storm(storm: Storm, due: DueNotification, members: Members, now_ms: int) -> Notification:
    """A letter about all groups of a storm."""
    names = [(one.incident.cluster, one.incident.group) for one in members.entries]
    heard = [members.hearings[name] for name in names if name in members.hearings]
    return Notification(
        f"{storm.id}/{due.listener}/{due.number}",
        due.listener,
        due.event,
        storm.id,
        due.number,
        storm.cluster,
        f"{len(names) or storm.total} groups",
        storm.opened_ms,
        now_ms,
        due.why,
        _storm_result(storm, names, members),
        heard[0].team if len({one.team for one in heard}) == 1 else "",
        storm.channel,
    )


def _storm_result(storm: Storm, names: Sequence[Name], members: Members) -> StormStatus:
    """Many groups as if they were one."""
    groups = sorted(map(_summary, members.entries, [members.rows.get(name, {}) for name in names]), key=_worst_first)
    found = [members.results[name].status for name in names if name in members.results]
    partitions = sorted(
        (one for result in found for one in result.partitions),
        key=lambda one: (-Status[one.status], -one.current_lag),
    )
    farthest = [one for result in found if (one := result.maxlag) is not None]
    worst = max((one.incident.status for one in members.entries), default=Status.OK)
    count = len(groups) or storm.total
    return StormStatus(
        cluster=storm.cluster,
        group=f"{count} groups",
        status=worst.name,
        complete=min((result.complete for result in found), default=1.0),
        partitions=partitions[:PARTITIONS_MOST],
        partition_count=sum(members.rows[name]["partitions"] for name in names if name in members.rows),
        maxlag=max(farthest, key=lambda one: one.current_lag, default=None),
        totallag=sum(group.totallag for group in groups),
        groups=groups[:GROUPS_MOST],
        group_count=count,
    )


def _summary(entry: IncidentRecord, row: Row) -> StormGroup:
    return StormGroup(entry.incident.group, entry.incident.status.name, row.get("totallag", 0), entry.partition_count)


def _worst_first(group: StormGroup) -> tuple[int, int, str]:
    return -Status[group.status], -group.totallag, group.group

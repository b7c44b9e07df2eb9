"""A notification in plain words, which each sender puts in its own form."""

from collections import Counter
from urllib.parse import quote, urlencode

from msgspec import Struct
from msgspec.structs import replace

from warren.domain.reasons import format_duration
from warren.domain.status import Status
from warren.incidents.model import NO_RESULT, Event, Notification, StormGroup, StormStatus
from warren.snapshot.status import GroupStatus, PartitionStatus
from warren.snapshot.time_lag import MessageRates, TimeLag, describe_time_lag

MAX_PARTITIONS = 5
MAX_GROUPS = 10
MAX_NAME_CHARS = 120
MAX_LINK_CHARS = 2000
"""Every service accepts links of this length."""

_OPENINGS = {
    Event.OPEN: "{status}: ",
    Event.WORSE: "{status}, worse than before: ",
    Event.REMINDER: "still {status}: ",
    Event.REPORT: "{status}: ",
}
# Of one partition, and of several.
_VERBS = {
    Status.REWIND: ("went back", "went back"),
    Status.STALL: ("does not move", "do not move"),
    Status.STOP: ("has stopped", "have stopped"),
    Status.WARN: ("falls behind", "fall behind"),
}


class Line(Struct, frozen=True):
    """One partition, or one group of a storm."""

    name: str
    text: str


class Summary(Struct, frozen=True):
    """A notification in words. Names in it are short and have no line breaks, but are not escaped."""

    headline: str
    reason: str
    """Why it is sent, and the lag in time if that is known."""
    group: str
    cluster: str
    lag: str
    affected: str
    """How much is bad, such as "2 of 12 partitions"."""
    lines: tuple[Line, ...]
    """The worst partitions or groups, the worst first."""
    more: str
    """How many lines were left out, such as "and 3 more"; empty if none."""

    def list_lines(self, bullet: str = "") -> list[str]:
        """The lines as plain text, with the count of those left out."""
        return [*(f"{bullet}{line.name}: {line.text}" for line in self.lines), *([self.more] if self.more else [])]


def summarize(notification: Notification) -> Summary:
    """A notification in words."""
    result = notification.result
    if isinstance(result, StormStatus):
        lines = [_group_line(group) for group in result.groups[:MAX_GROUPS]]
        count = max(result.group_count, len(result.groups))
        affected = f"{result.group_count:,} groups"
    else:
        lines = [_partition_line(partition) for partition in result.partitions[:MAX_PARTITIONS]]
        count = len(result.partitions)
        affected = f"{count:,} of {_partitions(result.partition_count)}"
    group, cluster = one_line(notification.group), one_line(notification.cluster)
    return Summary(
        headline=f"{_opening(notification)}{group} on {cluster}",
        reason="; ".join(filter(None, [_reason(notification), time_lag_words(notification)])),
        group=group,
        cluster=cluster,
        lag=f"{result.totallag:,}",
        affected=affected,
        lines=tuple(lines),
        more=f"and {count - len(lines):,} more" if count > len(lines) else "",
    )


def one_line(text: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """A text without line breaks and invisible characters, shortened if it is too long. Names come from Kafka."""
    visible = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return visible if len(visible) <= max_chars else f"{visible[: max_chars - 1]}…"


def link_to(notification: Notification, external_url: str | None) -> str:
    """The dashboard's page of the group, or its list of incidents for a storm; empty without `external-url`."""
    if not external_url:
        return ""
    site = external_url.rstrip("/")
    group = f"{site}/#/group/{quote(notification.cluster, safe='')}/{quote(notification.group, safe='')}"
    if notification.is_storm or len(group) > MAX_LINK_CHARS:
        return f"{site}/#/incidents?{urlencode({'cluster': notification.cluster})}"
    return group


def duration(notification: Notification) -> str:
    """How long the incident has lasted."""
    return format_duration(notification.due_ms - notification.opened_ms)


def time_lag_words(notification: Notification) -> str:
    """The lag in time in words, of a closed incident only what was lost; empty if nothing is known."""
    result = notification.result
    only_lost = replace(NO_RESULT, lost_messages=result.lost_messages)
    if notification.event is Event.CLOSE:
        return _describe(only_lost)
    if not notification.is_storm:
        return _describe(result)
    furthest = _describe(replace(result, lost_messages=0))
    return "; ".join(filter(None, [furthest and f"the furthest is {furthest}", _describe(only_lost)]))


def _describe(status: GroupStatus) -> str:
    return describe_time_lag(
        TimeLag(
            status.seconds_behind,
            status.seconds_behind_method,
            status.oldest_unread_age_seconds,
            status.catch_up_seconds,
            status.catch_up_seconds_at_most,
            status.is_falling_behind,
            status.retention_left_seconds,
            status.lost_messages,
            MessageRates(None, None, None, None),
        )
    )


def time_lag_fields(notification: Notification) -> dict[str, float]:
    """The numbers of the lag in time that are known, by name."""
    result = notification.result
    fields = {
        "seconds_behind": result.seconds_behind,
        "catch_up_seconds": result.catch_up_seconds,
        "retention_left_seconds": result.retention_left_seconds,
        "lost_messages": result.lost_messages,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _opening(notification: Notification) -> str:
    status = notification.result.status
    if notification.event is Event.CLOSE:
        return "gone: " if status == Status.NOTFOUND.name else "OK again: "
    return _OPENINGS[notification.event].format(status=status)


def _reason(notification: Notification) -> str:
    if notification.event is Event.CLOSE:
        return f"{one_line(notification.reason)}, after {duration(notification)}"
    if isinstance(notification.result, StormStatus):
        return f"{notification.result.group_count:,} groups are in trouble at the same time"
    counts = Counter(Status[partition.status] for partition in notification.result.partitions)
    parts = [f"{_partitions(count)} {_verb(status, count)}" for status, count in sorted(counts.items(), reverse=True)]
    return ", ".join(parts) or "all partitions keep up"


def _verb(status: Status, count: int) -> str:
    return _VERBS.get(status, (f"is {status.name}", f"are {status.name}"))[count > 1]


def _partitions(count: int, adjective: str = "") -> str:
    return f"{count:,} {adjective}{'partition' if count == 1 else 'partitions'}"


def _partition_line(partition: PartitionStatus) -> Line:
    reader = " ".join(one_line(name) for name in (partition.owner, partition.client_id) if name)
    text = f"{partition.status}, lag {partition.current_lag:,}{', read by ' if reader else ''}{reader}"
    return Line(f"{one_line(partition.topic)} {partition.partition}", text)


def _group_line(group: StormGroup) -> Line:
    behind = f", {format_duration(round(group.seconds_behind * 1000))} behind" if group.seconds_behind else ""
    bad = _partitions(group.partitions, "bad ")
    return Line(one_line(group.group), f"{group.status}, lag {group.totallag:,}{behind}, {bad}")

"""What a letter tells people, in plain words that each way of telling can dress in its own form."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from warren.domain.reasons import format_duration
from warren.domain.status import Status
from warren.incidents.model import Event, Notification, StormStatus
from warren.snapshot.status import PartitionStatus

PARTITIONS_SHOWN = 5
GROUPS_SHOWN = 10
NAME_CHARS = 120

_OPENINGS = {
    Event.OPEN: "{status}: ",
    Event.WORSE: "{status}, worse than before: ",
    Event.REMINDER: "still {status}: ",
    Event.REPORT: "{status}: ",
}
# What one partition does, and what several do.
_DOES = {
    Status.REWIND: ("went back", "went back"),
    Status.STALL: ("does not move", "do not move"),
    Status.STOP: ("has stopped", "have stopped"),
    Status.WARN: ("falls behind", "fall behind"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One partition, or one group of a storm."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Summary:
    """A letter in words; names in it are of one line and not too long, and are not escaped for anything yet."""

    headline: str
    reason: str
    group: str
    cluster: str
    lag: str
    trouble: str
    """How much of it is bad, such as 2 of 12 partitions."""
    lines: tuple[Line, ...]
    """The worst, first."""
    more: str
    """How many lines there could have been beside these; empty when these are all."""


def summarize(letter: Notification) -> Summary:
    """A letter as people want to hear it."""
    result = letter.result
    status = Status[result.status]
    group, cluster = one_line(letter.group), one_line(letter.cluster)
    bad = result.partitions
    lines, count = _storm_lines(result) if isinstance(result, StormStatus) else _partition_lines(bad)
    return Summary(
        headline=f"{_opening(letter, status)}{group} on {cluster}",
        reason=_reason(letter, bad),
        group=group,
        cluster=cluster,
        lag=f"{result.totallag:,}",
        trouble=_trouble(letter, len(bad)),
        lines=lines,
        more=f"and {count - len(lines):,} more" if count > len(lines) else "",
    )


def one_line(text: str, most: int = NAME_CHARS) -> str:
    """A name without line breaks and what else cannot be seen, cut where it is too long; names come from Kafka."""
    seen = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def lasted(letter: Notification) -> str:
    """How long it has been so."""
    return format_duration(letter.due_ms - letter.opened_ms)


def _opening(letter: Notification, status: Status) -> str:
    if letter.event is Event.CLOSE:
        return "gone: " if status is Status.NOTFOUND else "OK again: "
    return _OPENINGS[letter.event].format(status=status.name)


def _reason(letter: Notification, bad: Sequence[PartitionStatus]) -> str:
    if letter.event is Event.CLOSE:
        return f"{one_line(letter.reason)}, after {lasted(letter)}"
    if isinstance(letter.result, StormStatus):
        return f"{letter.result.group_count:,} groups are in trouble at the same time"
    counts = sorted(Counter(Status[one.status] for one in bad).items(), reverse=True)
    said = [f"{count:,} {_partitions(count)} {_does(status)[count > 1]}" for status, count in counts]
    return ", ".join(said) or "all partitions keep up"


def _does(status: Status) -> tuple[str, str]:
    return _DOES.get(status, (f"is {status.name}", f"are {status.name}"))


def _partitions(count: int) -> str:
    return "partition" if count == 1 else "partitions"


def _trouble(letter: Notification, bad: int) -> str:
    if isinstance(letter.result, StormStatus):
        return f"{letter.result.group_count:,} groups"
    count = letter.result.partition_count
    return f"{bad:,} of {count:,} {_partitions(count)}"


def _partition_lines(bad: Sequence[PartitionStatus]) -> tuple[tuple[Line, ...], int]:
    return tuple(map(_partition_line, bad[:PARTITIONS_SHOWN])), len(bad)


def _partition_line(one: PartitionStatus) -> Line:
    reader = " ".join(one_line(name) for name in (one.owner, one.client_id) if name)
    words = f"{one.status}, lag {one.current_lag:,}{', read by ' if reader else ''}{reader}"
    return Line(f"{one_line(one.topic)} {one.partition}", words)


def _storm_lines(result: StormStatus) -> tuple[tuple[Line, ...], int]:
    lines = tuple(
        Line(
            one_line(one.group),
            f"{one.status}, lag {one.totallag:,}, {one.partitions:,} bad {_partitions(one.partitions)}",
        )
        for one in result.groups[:GROUPS_SHOWN]
    )
    return lines, max(result.group_count, len(result.groups))

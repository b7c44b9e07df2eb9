"""The book of incidents as others read it: written by one, read by any."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from warren.domain.status import Status
from warren.incidents.model import Incident, Notified, StatusChange
from warren.incidents.store.database import reading

COLUMNS = (
    "id", "cluster", "name", "opened_ms", "closed_ms", "worst", "changes", "told", "partitions", "partition_count",
)  # fmt: skip
_SELECT = (
    f"SELECT {', '.join(f'i.{name}' for name in COLUMNS)}, a.at_ms, a.by, a.why "  # noqa: S608 - our own words
    "FROM incidents i LEFT JOIN acknowledgements a ON a.incident = i.id AND a.withdrawn_ms IS NULL"
)


@dataclass(frozen=True, slots=True)
class BadPartition:
    """A partition that was not OK when its group was last judged to have changed."""

    topic: str
    partition: int
    status: Status
    lag: int | None


@dataclass(frozen=True, slots=True)
class IncidentRecord:
    """An incident, with the worst of the partitions it was about and how many they were."""

    incident: Incident
    partitions: tuple[BadPartition, ...] = ()
    partition_count: int = 0
    acknowledged_by: str = ""
    acknowledged_why: str = ""


@dataclass(frozen=True, slots=True)
class IncidentQuery:
    """Which incidents somebody wants to see; the newest first."""

    cluster: str | None = None
    group: str | None = None
    is_open: bool | None = None
    limit: int = 100
    before_ms: int | None = None
    """Only those that were opened before this."""
    id: str | None = None


def read_incidents(data_dir: Path, wanted: IncidentQuery) -> list[IncidentRecord]:
    """The incidents that are wanted; none where no book has been opened yet."""
    asked = {
        "i.id = ?": wanted.id,
        "i.cluster = ?": wanted.cluster,
        "i.name = ?": wanted.group,
        "i.opened_ms < ?": wanted.before_ms,
    }
    terms = {words: value for words, value in asked.items() if value is not None}
    words = list(terms)
    if wanted.is_open is not None:
        words.append("i.closed_ms IS NULL" if wanted.is_open else "i.closed_ms IS NOT NULL")
    where = f" WHERE {' AND '.join(words)}" if words else ""
    order = " ORDER BY i.opened_ms DESC, i.id LIMIT ?"
    with reading(data_dir) as book:
        if book is None:
            return []
        return [to_entry(row) for row in book.execute(f"{_SELECT}{where}{order}", [*terms.values(), wanted.limit])]


def still_open(book: sqlite3.Connection) -> list[IncidentRecord]:
    """The incidents that have not ended."""
    return [to_entry(row) for row in book.execute(f"{_SELECT} WHERE i.closed_ms IS NULL")]


@dataclass(frozen=True, slots=True)
class IncidentCounts:
    """How many incidents are open in each cluster, and how many letters each notifier has in each state."""

    is_open: Mapping[str, int] = field(default_factory=dict)
    letters: Mapping[tuple[str, str], int] = field(default_factory=dict)


_STATE = "CASE WHEN sent_ms IS NOT NULL THEN 'sent' WHEN given_up_ms IS NOT NULL THEN 'given_up' ELSE 'waiting' END"


def count_incidents(data_dir: Path) -> IncidentCounts:
    """What the book comes to; nothing where it cannot be read just now."""
    counted = "SELECT cluster, count(*) FROM incidents WHERE closed_ms IS NULL GROUP BY cluster"
    letters = f"SELECT listener, {_STATE} AS state, count(*) FROM letters GROUP BY listener, state"  # noqa: S608
    try:
        with reading(data_dir) as book:
            if book is None:
                return IncidentCounts()
            return IncidentCounts(
                dict(book.execute(counted).fetchall()),
                {(listener, state): count for listener, state, count in book.execute(letters)},
            )
    except sqlite3.Error:
        return IncidentCounts()


def to_row(entry: IncidentRecord) -> tuple[Any, ...]:
    """An entry as it is stored, in the order of `COLUMNS`."""
    incident = entry.incident
    told = {name: notified_values(told) for name, told in incident.told.items()}
    return (
        incident.id,
        incident.cluster,
        incident.group,
        incident.opened_ms,
        incident.closed_ms,
        int(incident.worst),
        _text([[change.at_ms, int(change.status)] for change in incident.changes]),
        _text(told),
        _text([[one.topic, one.partition, int(one.status), one.lag] for one in entry.partitions]),
        entry.partition_count,
    )


def to_entry(row: Sequence[Any]) -> IncidentRecord:
    """An entry back from how it is stored, and who has it in hand."""
    *row, acknowledged_ms, by, why = row
    held = dict(zip(COLUMNS, row, strict=True))
    incident = Incident(
        id=held["id"],
        cluster=held["cluster"],
        group=held["name"],
        opened_ms=held["opened_ms"],
        changes=tuple(StatusChange(at_ms, Status(status)) for at_ms, status in orjson.loads(held["changes"])),
        worst=Status(held["worst"]),
        told={name: to_notified(values) for name, values in orjson.loads(held["told"]).items()},
        acknowledged_ms=acknowledged_ms,
        closed_ms=held["closed_ms"],
    )
    partitions = tuple(
        BadPartition(topic, partition, Status(status), lag)
        for topic, partition, status, lag in orjson.loads(held["partitions"])
    )
    return IncidentRecord(incident, partitions, held["partition_count"], by or "", why or "")


def notified_values(told: Notified) -> list[int | str]:
    """What a listener has heard, as it is stored."""
    return [told.count, told.last_ms, int(told.worst), told.storm]


def to_notified(values: Sequence[Any]) -> Notified:
    """What a listener has heard, back from how it is stored."""
    count, last_ms, worst, storm = values
    return Notified(count, last_ms, Status(worst), storm)


def _text(value: object) -> str:
    return orjson.dumps(value).decode()

"""The book of incidents as others read it: one SQLite file in the data directory, written by one, read by any."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from warren.domain.incidents import Change, Incident, Told
from warren.domain.rules import Status

FILE = "incidents.db"
WAIT_S = 5.0
"""How long one waits for another who writes."""

COLUMNS = (
    "id", "cluster", "name", "opened_ms", "closed_ms", "worst", "changes", "told", "acknowledged_ms",
    "partitions", "partition_count",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BadPartition:
    """A partition that was not OK when its group was last judged to have changed."""

    topic: str
    partition: int
    status: Status
    lag: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """An incident, with the worst of the partitions it was about and how many they were."""

    incident: Incident
    partitions: tuple[BadPartition, ...] = ()
    partition_count: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which incidents somebody wants to see; the newest first."""

    cluster: str | None = None
    group: str | None = None
    is_open: bool | None = None
    limit: int = 100
    before_ms: int | None = None
    """Only those that were opened before this."""


def read_incidents(data_dir: Path, wanted: Wanted) -> list[Entry]:
    """The incidents that are wanted; none where no book has been opened yet."""
    path = data_dir / FILE
    if not path.exists():
        return []
    terms: list[tuple[str, object]] = []
    if wanted.cluster is not None:
        terms.append(("cluster = ?", wanted.cluster))
    if wanted.group is not None:
        terms.append(("name = ?", wanted.group))
    if wanted.before_ms is not None:
        terms.append(("opened_ms < ?", wanted.before_ms))
    words = [words for words, _ in terms]
    if wanted.is_open is not None:
        words.append("closed_ms IS NULL" if wanted.is_open else "closed_ms IS NOT NULL")
    where = f" WHERE {' AND '.join(words)}" if words else ""
    order = " ORDER BY opened_ms DESC, id LIMIT ?"
    query = f"SELECT {', '.join(COLUMNS)} FROM incidents{where}{order}"  # noqa: S608 - only our own words
    with _opened(path) as book:
        try:
            return [to_entry(row) for row in book.execute(query, [*(value for _, value in terms), wanted.limit])]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise


@dataclass(frozen=True, slots=True)
class Tally:
    """How many incidents are open in each cluster, and how many letters each notifier has in each state."""

    is_open: Mapping[str, int] = field(default_factory=dict)
    letters: Mapping[tuple[str, str], int] = field(default_factory=dict)


_STATE = "CASE WHEN sent_ms IS NOT NULL THEN 'sent' WHEN given_up_ms IS NOT NULL THEN 'given_up' ELSE 'waiting' END"


def tally(data_dir: Path) -> Tally:
    """What the book comes to; nothing where it cannot be read just now."""
    path = data_dir / FILE
    if not path.exists():
        return Tally()
    counted = "SELECT cluster, count(*) FROM incidents WHERE closed_ms IS NULL GROUP BY cluster"
    letters = f"SELECT listener, {_STATE} AS state, count(*) FROM letters GROUP BY listener, state"  # noqa: S608
    try:
        with _opened(path) as book:
            return Tally(
                dict(book.execute(counted).fetchall()),
                {(listener, state): count for listener, state, count in book.execute(letters)},
            )
    except sqlite3.Error:
        return Tally()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)) as book:
        yield book


def to_row(entry: Entry) -> tuple[Any, ...]:
    """An entry as it is stored, in the order of `COLUMNS`."""
    incident = entry.incident
    told = {name: [told.count, told.last_ms, int(told.worst)] for name, told in incident.told.items()}
    return (
        incident.id,
        incident.cluster,
        incident.group,
        incident.opened_ms,
        incident.closed_ms,
        int(incident.worst),
        _text([[change.at_ms, int(change.status)] for change in incident.changes]),
        _text(told),
        incident.acknowledged_ms,
        _text([[one.topic, one.partition, int(one.status), one.lag] for one in entry.partitions]),
        entry.partition_count,
    )


def to_entry(row: tuple[Any, ...]) -> Entry:
    """An entry back from how it is stored."""
    held = dict(zip(COLUMNS, row, strict=True))
    incident = Incident(
        id=held["id"],
        cluster=held["cluster"],
        group=held["name"],
        opened_ms=held["opened_ms"],
        changes=tuple(Change(at_ms, Status(status)) for at_ms, status in orjson.loads(held["changes"])),
        worst=Status(held["worst"]),
        told={
            name: Told(count, last_ms, Status(worst))
            for name, (count, last_ms, worst) in orjson.loads(held["told"]).items()
        },
        acknowledged_ms=held["acknowledged_ms"],
        closed_ms=held["closed_ms"],
    )
    partitions = tuple(
        BadPartition(topic, partition, Status(status), lag)
        for topic, partition, status, lag in orjson.loads(held["partitions"])
    )
    return Entry(incident, partitions, held["partition_count"])


def _text(value: object) -> str:
    return orjson.dumps(value).decode()

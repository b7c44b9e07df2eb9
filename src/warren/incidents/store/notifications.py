"""Letters: messages that are due, as the book of incidents holds them until they are sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from warren.incidents.model import Event
from warren.incidents.store.database import reading
from warren.snapshot.status import GroupStatus, StatusName, missing_group

COLUMNS = (
    "key", "listener", "event", "incident", "number", "cluster", "name", "opened_ms", "due_ms", "why", "team",
    "channel", "result", "attempts", "next_ms", "sent_ms", "given_up_ms", "trouble", "receipt",
)  # fmt: skip


class StormGroup(msgspec.Struct, frozen=True):
    """A group of a storm."""

    group: str
    status: StatusName
    totallag: int
    partitions: int
    """How many of its partitions are not OK."""


class StormStatus(GroupStatus, frozen=True):
    """All groups of a storm as if they were one, and the most severe of them."""

    groups: list[StormGroup]
    group_count: int


NO_RESULT = missing_group(("", ""))
"""The result of a notification that is delivered or was read without it, stored as {}."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One message to one listener. Its key is the same however often it has to be sent."""

    key: str
    listener: str
    event: Event
    incident: str
    """The incident's id; empty for a report on a group that is well."""
    number: int
    """Which one it is of those to its listener about its incident; none is sent before those of lower numbers."""
    cluster: str
    group: str
    opened_ms: int
    due_ms: int
    why: str
    result: GroupStatus = NO_RESULT
    """The group as the API's `status` shows it; of a storm a StormStatus."""
    team: str = ""
    """Whose group it is, by the routes."""
    channel: str = ""
    """Where a notifier that has channels is to say it, by the routes; empty for its own."""
    attempts: int = 0
    next_ms: int = 0
    sent_ms: int | None = None
    given_up_ms: int | None = None
    trouble: str = ""
    receipt: str = ""
    """What its receiver calls it, for messages that follow it."""

    @property
    def token(self) -> str:
        """The key in characters that any header can carry; names come from Kafka."""
        return quote(self.key, safe="/")

    @property
    def is_storm(self) -> bool:
        """Whether it tells of many groups at once."""
        return isinstance(self.result, StormStatus)


def read_notifications(data_dir: Path, ids: Sequence[str], most: int) -> tuple[list[Notification], int]:
    """The last letters filed under some ids, in order, without what they say of the group, and how many there are."""
    # What they say can be large, and an incident that nobody mends has a reminder a minute.
    columns = ", ".join("'{}'" if name == "result" else name for name in COLUMNS)
    among = f"FROM letters WHERE incident IN ({', '.join('?' * len(ids))})"
    with reading(data_dir) as book:
        if book is None:
            return [], 0
        last = f"SELECT {columns} {among} ORDER BY due_ms DESC, key DESC LIMIT ?"
        found = book.execute(last, (*ids, most)).fetchall()
        count = book.execute(f"SELECT count(*) {among}", ids).fetchone()[0]
    return [to_notification(row) for row in reversed(found)], count


def to_row(letter: Notification) -> tuple[Any, ...]:
    """A letter as it is stored, in the order of `COLUMNS`."""
    return (
        letter.key,
        letter.listener,
        str(letter.event),
        letter.incident,
        letter.number,
        letter.cluster,
        letter.group,
        letter.opened_ms,
        letter.due_ms,
        letter.why,
        letter.team,
        letter.channel,
        "{}" if letter.result == NO_RESULT else msgspec.json.encode(letter.result).decode(),
        letter.attempts,
        letter.next_ms,
        letter.sent_ms,
        letter.given_up_ms,
        letter.trouble,
        letter.receipt,
    )


def to_notification(row: tuple[Any, ...]) -> Notification:
    """A letter back from how it is stored."""
    key, listener, event, *rest = row
    held = dict(zip(COLUMNS[3:], rest, strict=True))
    return Notification(
        key,
        listener,
        Event(event),
        incident=held["incident"],
        number=held["number"],
        cluster=held["cluster"],
        group=held["name"],
        opened_ms=held["opened_ms"],
        due_ms=held["due_ms"],
        why=held["why"],
        team=held["team"],
        channel=held["channel"],
        result=_to_result(held["result"]),
        attempts=held["attempts"],
        next_ms=held["next_ms"],
        sent_ms=held["sent_ms"],
        given_up_ms=held["given_up_ms"],
        trouble=held["trouble"],
        receipt=held["receipt"],
    )


def _to_result(text: str) -> GroupStatus:
    if text == "{}":
        return NO_RESULT
    fields = msgspec.json.decode(text)
    return msgspec.convert(fields, StormStatus if "groups" in fields else GroupStatus)

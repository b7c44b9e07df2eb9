"""Incidents and letters as a keeper would have put them down."""

from typing import Any

from msgspec.structs import replace

from warren.domain.status import Status
from warren.incidents.model import Event, Incident, Notification, StatusChange
from warren.snapshot.status import missing_group


def incident(name: str, group: str, cluster: str = "one", closed_ms: int | None = None) -> Incident:
    """One that began at 1000."""
    return Incident(name, cluster, group, 1000, (StatusChange(1000, Status.ERR),), Status.ERR, closed_ms=closed_ms)


def letter(number: int, of: str, listener: str = "hook", event: Event = Event.REMINDER, **changes: Any) -> Notification:
    """A message that was due at its number."""
    key = f"{of}/{listener}/{number}"
    return Notification(
        key,
        listener,
        event,
        of,
        number,
        "one",
        "g",
        1000,
        number,
        "it is due",
        replace(missing_group(("one", "g")), status="ERR"),
        **changes,
    )

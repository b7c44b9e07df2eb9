"""Incidents and letters as a keeper would have put them down."""

from typing import Any

from warren.domain.incidents import Change, Event, Incident
from warren.domain.rules import Status
from warren.snapshot.incidents import Entry
from warren.snapshot.letters import Letter


def incident(name: str, group: str, cluster: str = "one", closed_ms: int | None = None) -> Entry:
    """One that began at 1000."""
    return Entry(Incident(name, cluster, group, 1000, (Change(1000, Status.ERR),), Status.ERR, closed_ms=closed_ms))


def letter(number: int, of: str, listener: str = "hook", event: Event = Event.REMINDER, **changes: Any) -> Letter:
    """A message that was due at its number."""
    key = f"{of}/{listener}/{number}"
    return Letter(key, listener, event, of, number, "one", "g", 1000, number, "it is due", {"status": "ERR"}, **changes)

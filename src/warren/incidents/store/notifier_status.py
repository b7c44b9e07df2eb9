"""Whether this Warren notifies, and how each notifier's letters fare: as others read it in the book of incidents."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from warren.incidents.store.database import reading

SILENT_MS = 60_000
"""Who has not said for so long that it notifies does not."""


@dataclass(frozen=True, slots=True)
class LeadershipState:
    """Whether this Warren notifies: alone, active, standby, away or stopped; unknown until it has said so."""

    state: str = "unknown"
    since_ms: int | None = None
    why: str = ""

    @property
    def is_active(self) -> bool:
        """Whether it does."""
        return self.state in ("alone", "active")


@dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """What has become of the letters to one notifier."""

    sent: int = 0
    given_up: int = 0
    waiting: int = 0
    last_sent_ms: int | None = None
    trouble: str = ""
    """Why the oldest letter that waits is not sent yet."""


def read_leadership(data_dir: Path, now_ms: int | None = None) -> LeadershipState:
    """Whether this Warren notifies; unknown where that cannot be read just now, stopped when it was not said lately."""
    try:
        with reading(data_dir) as book:
            found = None if book is None else book.execute("SELECT state, since_ms, why, noted_ms FROM duty").fetchone()
    except sqlite3.Error:
        return LeadershipState()
    if found is None:
        return LeadershipState()
    *said, noted_ms = found
    if now_ms is not None and now_ms - noted_ms > SILENT_MS:
        return LeadershipState("stopped", noted_ms, "it has not been heard of since")
    return LeadershipState(*said)


def read_delivery_counts(data_dir: Path) -> dict[str, DeliveryCounts]:
    """How the letters of each notifier that ever had one fare."""
    # All of it stands in an index: the letters themselves are large.
    counts = (
        "SELECT listener, count(sent_ms), count(*) FILTER (WHERE sent_ms IS NULL AND given_up_ms IS NOT NULL), "
        "count(*) FILTER (WHERE sent_ms IS NULL AND given_up_ms IS NULL), max(sent_ms) FROM letters GROUP BY listener"
    )
    # Beside a minimum SQLite gives the other columns of the row that has it.
    oldest = (
        "SELECT listener, trouble, min(due_ms) FROM letters "
        "WHERE sent_ms IS NULL AND given_up_ms IS NULL GROUP BY listener"
    )
    with reading(data_dir) as book:
        if book is None:
            return {}
        trouble = {listener: words for listener, words, _ in book.execute(oldest)}
        return {
            listener: DeliveryCounts(sent, given_up, waiting, last_ms, trouble.get(listener, ""))
            for listener, sent, given_up, waiting, last_ms in book.execute(counts)
        }

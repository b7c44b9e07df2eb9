"""Keeps the book of incidents: what a snapshot changes, and what is to be said of it, is decided and written down."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.incidents import Decision, Due, Event, Known, Listener, Told, decide
from warren.domain.rules import Status
from warren.notify.book import Book
from warren.notify.listeners import Audiences
from warren.notify.results import Found, Name, Result, Row, gone, results_of
from warren.snapshot.incidents import BadPartition, Entry
from warren.snapshot.letters import Letter
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot, group_keys
from warren.snapshot.store import Store

NAMED_MOST = 20
"""How many of an incident's partitions are put down by name."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class _Changed:
    """A group of which there is something to put down or to say."""

    name: Name
    decision: Decision


class IncidentKeeper:
    """Holds the open incidents in memory and all of them, with the letters to send, in the book."""

    def __init__(
        self,
        book: Book,
        store: Store,
        keep_days: int,
        audiences: Audiences | None = None,
        on_letters: Callable[[], None] = lambda: None,
    ) -> None:
        self._book = book
        self._store = store
        self._keep_ms = max(keep_days, 1) * DAY_MS
        self._audiences = audiences or Audiences()
        self._on_letters = on_letters
        self._open = {(one.incident.cluster, one.incident.group): one for one in book.still_open()}
        self._reported: dict[Name, Mapping[str, Told]] = {}

    def take(self, manifest: Manifest) -> None:
        """What a snapshot opens, changes and closes, and who is to hear of it."""
        groups = Snapshot(self._store, manifest).groups()
        shown = groups if self._audiences.wants_good else groups.filter(pc.greater(groups["status"], int(Status.OK)))
        rows: dict[Name, Row] = {(row["cluster"], row["group"]): row for row in shown.to_pylist()}
        others = [name for name in self._open if name not in rows]
        rows |= _rows_of(groups, others)
        verdicts = {
            name: Status(rows[name]["status"]) if name in rows else Status.NOTFOUND for name in (*rows, *others)
        }
        listeners = self._audiences.of(group for _, group in verdicts)
        changed = [
            one
            for name, status in verdicts.items()
            if not _is_away(manifest, name[0])
            and (one := self._after(name, status, listeners[name[1]], manifest.now_ms)) is not None
        ]
        if not changed:
            return
        results = results_of(self._store, manifest, [rows[one.name] for one in changed if one.name in rows])
        entries = [entry for one in changed if (entry := self._entry(one, results)) is not None]
        letters = [
            _letter(one, due, results.get(one.name, gone(one.name)).result, manifest.now_ms)
            for one in changed
            for due in one.decision.due
        ]
        self._book.write(entries, letters, manifest.now_ms - self._keep_ms)
        self._remember(changed, entries)
        if letters:
            self._on_letters()

    def _after(self, name: Name, status: Status, listeners: Sequence[Listener], now_ms: int) -> _Changed | None:
        """What a verdict changes about a group, if anything."""
        held = self._open.get(name)
        known = Known(held.incident if held else None, self._reported.get(name, {}))
        made = decide(known, *name, status, listeners, now_ms, lambda: str(uuid.uuid4()))
        is_same = made.closed is None and made.known.incident == known.incident
        return None if is_same and not made.due else _Changed(name, made)

    def _entry(self, one: _Changed, results: Mapping[Name, Found]) -> Entry | None:
        incident = one.decision.closed or one.decision.known.incident
        if incident is None:
            return None
        found = results.get(one.name, gone(one.name))
        held = self._open.get(one.name)
        if found.bad == 0 and held is not None:
            # What it was about stays known after its end.
            return Entry(incident, held.partitions, held.partition_count)
        named = tuple(
            BadPartition(bad["topic"], bad["partition"], Status[bad["status"]], lag)
            for bad, lag in zip(found.result["partitions"][:NAMED_MOST], found.lags, strict=False)
        )
        return Entry(incident, named, found.bad)

    def _remember(self, changed: Sequence[_Changed], entries: Sequence[Entry]) -> None:
        for entry in entries:
            name = entry.incident.cluster, entry.incident.group
            if entry.incident.closed_ms is None:
                self._open[name] = entry
            else:
                self._open.pop(name, None)
        for one in changed:
            if one.decision.known.reported:
                self._reported[one.name] = one.decision.known.reported
            else:
                self._reported.pop(one.name, None)


def _is_away(manifest: Manifest, cluster: str) -> bool:
    """Whether a cluster cannot be judged; one that is not configured any more is not away but gone."""
    state = manifest.clusters.get(cluster)
    return state is not None and state.unknown_since_ms is not None


def _rows_of(groups: pa.Table, names: Sequence[Name]) -> dict[Name, Row]:
    """The rows of some groups, of those that are there."""
    if not names:
        return {}
    wanted = group_keys(pa.array([cluster for cluster, _ in names]), pa.array([group for _, group in names]))
    found = groups.filter(pc.is_in(group_keys(groups["cluster"], groups["group"]), value_set=wanted))
    return {(row["cluster"], row["group"]): row for row in found.to_pylist()}


def _letter(one: _Changed, due: Due, result: Result, now_ms: int) -> Letter:
    cluster, group = one.name
    incident = one.decision.closed or one.decision.known.incident
    if incident is None or due.event is Event.REPORT:
        key = f"report/{cluster}/{group}/{due.listener}/{now_ms}"
        return Letter(key, due.listener, due.event, "", cluster, group, now_ms, now_ms, due.why, result)
    if due.event is Event.CLOSE:
        result = {**result, "status": incident.status.name}
    key = f"{incident.id}/{due.listener}/{due.number}"
    return Letter(
        key, due.listener, due.event, incident.id, cluster, group, incident.opened_ms, now_ms, due.why, result
    )

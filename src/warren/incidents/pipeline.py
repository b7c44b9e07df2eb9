"""Keeps the book of incidents: what a snapshot changes, and what is to be said of it, is decided and written down."""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.matching import matches_wildcards
from warren.domain.status import Status
from warren.incidents.decide import decide
from warren.incidents.model import GroupState, Notified
from warren.incidents.notifications import GroupChange, Members, notification_about, notification_about_storm
from warren.incidents.recipients import NotificationRouter, Recipients
from warren.incidents.store.incidents import BadPartition, IncidentRecord
from warren.incidents.store.writer import IncidentStore, OperatorActions, StoreUpdate
from warren.incidents.storms import OpenStorms, StormOutcome
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot, group_keys
from warren.snapshot.status import GroupResult, Name, Row, missing_group, read_group_results
from warren.snapshot.store import Store

NAMED_MOST = 20
"""How many of an incident's partitions are put down by name."""
DAY_MS = 86_400_000
TIDY_MS = 3_600_000
"""How often what ended long ago is looked for."""


class IncidentPipeline:
    """Holds the open incidents in memory and all of them, with the letters to send, in the book."""

    def __init__(
        self,
        book: IncidentStore,
        store: Store,
        keep_days: int,
        audiences: NotificationRouter | None = None,
        on_notifications: Callable[[], None] = lambda: None,
        partially_known: Collection[str] = (),
    ) -> None:
        self._book = book
        self._store = store
        self._keep_ms = max(keep_days, 1) * DAY_MS
        self._audiences = audiences or NotificationRouter()
        self._on_letters = on_notifications
        self._open = {(one.incident.cluster, one.incident.group): one for one in book.still_open()}
        self._storms = OpenStorms.of(book.storms(), (one.incident for one in self._open.values()))
        self._reported: dict[Name, Mapping[str, Notified]] = {}
        self._tidied_ms = 0
        self._deaf = frozenset(partially_known)
        """Clusters of which this Warren may not know all groups, as it has not heard their past."""
        self._seen: set[Name] = set()

    def take(self, manifest: Manifest) -> None:
        """What a snapshot opens, changes and closes, and who is to hear of it."""
        now_ms = manifest.now_ms
        wishes = self._book.wishes(now_ms)
        self._heed(wishes)
        groups = Snapshot(self._store, manifest).groups()
        shown = groups if self._audiences.wants_good else groups.filter(pc.greater(groups["status"], int(Status.OK)))
        rows: dict[Name, Row] = {(row["cluster"], row["group"]): row for row in shown.to_pylist()}
        others = [name for name in self._open if name not in rows]
        rows |= _rows_of(groups, others)
        away = set(manifest.unknown_clusters())
        names = [name for name in {**rows, **dict.fromkeys(others)} if self._may_tell(name, name in rows, away)]
        hearings = self._audiences.of(names)
        silenced = _silenced(names, wishes)
        verdicts = {name: _verdict(rows.get(name), is_away=name[0] in away) for name in names}
        changed = [
            one
            for name, verdict in verdicts.items()
            if (one := self._after(name, verdict, hearings[name], now_ms, is_silenced=name in silenced)) is not None
        ]
        quiet = {self._open[name].incident.id for name in silenced if name in self._open}
        weather = self._storms.after(changed, self._audiences, quiet, now_ms, _new_id)
        if weather.changed or weather.storms:
            self._put_down(weather, manifest, rows, hearings, quiet)
        if not 0 <= now_ms - self._tidied_ms < TIDY_MS:
            self._book.forget(now_ms - self._keep_ms, now_ms - DAY_MS)
            self._tidied_ms = now_ms

    def _put_down(
        self,
        weather: StormOutcome,
        manifest: Manifest,
        rows: Mapping[Name, Row],
        hearings: Mapping[Name, Recipients],
        quiet: Collection[str],
    ) -> None:
        """Write down what has changed, with the letters that tell of it."""
        changed, now_ms = weather.changed, manifest.now_ms
        results = read_group_results(self._store, manifest, [rows[one.name] for one in changed if one.name in rows])
        entries = [entry for one in changed if (entry := self._entry(one, results)) is not None]
        still_open = self._open_after(entries)
        letters = [
            notification_about(
                one,
                due,
                hearings[one.name],
                results[one.name].status if one.name in results else missing_group(one.name),
                now_ms,
            )
            for one, due in weather.singles
        ]
        by_id = {entry.incident.id: entry for entry in still_open.values()} if weather.storms else {}
        for storm in weather.storms:
            if storm.due is not None:
                ids = weather.after.left.get(storm.storm.id, frozenset()).difference(quiet)
                members = Members([by_id[one] for one in sorted(ids) if one in by_id], rows, results, hearings)
                letters.append(notification_about_storm(storm.storm, storm.due, members, now_ms))
        self._book.write(StoreUpdate(entries, letters, [(storm.storm, storm.is_over) for storm in weather.storms]))
        self._open, self._storms = still_open, weather.after
        for one in changed:
            if one.decision.known.reported:
                self._reported[one.name] = one.decision.known.reported
            else:
                self._reported.pop(one.name, None)
        if letters:
            self._on_letters()

    def _heed(self, wishes: OperatorActions) -> None:
        """Note who has which incident in hand by now, and who no longer."""
        for name, entry in self._open.items():
            said = wishes.acknowledged.get(entry.incident.id)
            at_ms = None if said is None else said.at_ms
            if at_ms != entry.incident.acknowledged_ms:
                self._open[name] = replace(entry, incident=replace(entry.incident, acknowledged_ms=at_ms))

    def _may_tell(self, name: Name, is_there: bool, away: Collection[str]) -> bool:
        """Whether something can be said of a group: of a cluster that is away only of an incident that is open."""
        if name[0] in away:
            return name in self._open
        if is_there and name[0] in self._deaf:
            self._seen.add(name)
        # Of a group that others told of, and this one has never heard, it cannot be said that it is gone.
        return is_there or name in self._seen or name[0] not in self._deaf

    def _after(
        self, name: Name, status: Status | None, hearing: Recipients, now_ms: int, *, is_silenced: bool
    ) -> GroupChange | None:
        """What a verdict changes about a group, if anything."""
        held = self._open.get(name)
        known = GroupState(held.incident if held else None, self._reported.get(name, {}))
        listeners = hearing.listeners
        if held is not None and status is not None and status <= Status.OK:
            # Who heard of the beginning hears of the end, also when it would not hear of the group any more.
            told = [one for name, one in self._audiences.listeners.items() if name in held.incident.told]
            listeners = (*told, *(one for one in listeners if one not in told))
        made = decide(known, *name, status, listeners, now_ms, _new_id, is_silenced=is_silenced)
        is_same = made.closed is None and made.known.incident == known.incident
        return None if is_same and not made.due else GroupChange(name, made)

    def _entry(self, one: GroupChange, results: Mapping[Name, GroupResult]) -> IncidentRecord | None:
        incident = one.incident
        if incident is None:
            return None
        found = results.get(one.name, GroupResult(missing_group(one.name)))
        held = self._open.get(one.name)
        if found.bad_partitions == 0 and held is not None:
            # What it was about stays known after its end.
            return IncidentRecord(incident, held.partitions, held.partition_count)
        named = tuple(
            BadPartition(bad.topic, bad.partition, Status[bad.status], lag)
            for bad, lag in zip(found.status.partitions[:NAMED_MOST], found.lags, strict=False)
        )
        return IncidentRecord(incident, named, found.bad_partitions)

    def _open_after(self, entries: Sequence[IncidentRecord]) -> dict[Name, IncidentRecord]:
        after = dict(self._open)
        for entry in entries:
            name = entry.incident.cluster, entry.incident.group
            if entry.incident.closed_ms is None:
                after[name] = entry
            else:
                after.pop(name, None)
        return after


def _new_id() -> str:
    return str(uuid.uuid4())


def _verdict(row: Row | None, *, is_away: bool) -> Status | None:
    if is_away:
        return None
    return Status.NOTFOUND if row is None else Status(row["status"])


def _silenced(names: Sequence[Name], wishes: OperatorActions) -> set[Name]:
    """Those of the groups that a silence in force is about."""
    if not wishes.silences:
        return set()
    clusters = pa.array([cluster for cluster, _ in names], pa.string())
    groups = pa.array([group for _, group in names], pa.string())
    is_silenced = np.zeros(len(names), dtype=np.bool_)
    for one in wishes.silences:
        is_silenced |= matches_wildcards(clusters, one.cluster) & matches_wildcards(groups, one.group)
    return {names[place] for place in np.flatnonzero(is_silenced).tolist()}


def _rows_of(groups: pa.Table, names: Sequence[Name]) -> dict[Name, Row]:
    """The rows of some groups, of those that are there."""
    if not names:
        return {}
    wanted = group_keys(pa.array([cluster for cluster, _ in names]), pa.array([group for _, group in names]))
    found = groups.filter(pc.is_in(group_keys(groups["cluster"], groups["group"]), value_set=wanted))
    return {(row["cluster"], row["group"]): row for row in found.to_pylist()}

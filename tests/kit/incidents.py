"""Incidents and notifications as the pipeline stores them, and a pipeline that processes made-up snapshots."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from msgspec import structs
from msgspec.structs import replace

from tests.kit.plans import cluster_state, manifest, plan
from tests.kit.verdicts import UNKNOWN_TIME_LAG
from warren.config import Notifier
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.incidents.model import Event, Incident, Notification, StatusChange
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.store.reader import IncidentQuery, read_delivery_counts, read_incidents
from warren.incidents.store.store import IncidentStore
from warren.snapshot.manifest import Bucket, Manifest
from warren.snapshot.schemas import GROUPS, PARTITIONS
from warren.snapshot.status import GroupName, missing_group
from warren.snapshot.store import Store

OK, WARN, ERR, STOP, STALL = Status.OK, Status.WARN, Status.ERR, Status.STOP, Status.STALL
SECOND, START = 1_000, 1_700_000_000_000
Groups = Mapping[GroupName, Sequence[tuple[Status, int]]]
"""The status and lag of every partition of each group."""
TimeLags = Mapping[GroupName, Mapping[str, float]]
NO_TIME_LAGS: TimeLags = MappingProxyType({})
Unknown = Collection[str | GroupName]
"""The clusters and groups that are unknown."""


class IncidentScene:
    """Made-up snapshots, and a pipeline that processes them."""

    def __init__(self, root: Path, keep_days: int = 30) -> None:
        self.root = root
        self.store = Store(root)
        self.store.create()
        self.keep_days = keep_days
        self._sequence = 0
        self.start()

    def start(self) -> None:
        """Start the pipeline, or start it again with what the store has."""
        self.incident_store = IncidentStore(self.root)
        self.pipeline = IncidentPipeline(self.incident_store, self.store, self.keep_days)

    def process(
        self,
        now_ms: int,
        groups: Groups,
        unknown: Unknown = (),
        clusters: Sequence[str] = ("one", "two"),
        time_lags: TimeLags = NO_TIME_LAGS,
    ) -> None:
        """Process a snapshot of these groups."""
        self.pipeline.process(self.manifest(now_ms, groups, unknown, clusters, time_lags))

    def manifest(
        self,
        now_ms: int,
        groups: Groups,
        unknown: Unknown = (),
        clusters: Sequence[str] = ("one", "two"),
        time_lags: TimeLags = NO_TIME_LAGS,
    ) -> Manifest:
        """A snapshot of these groups, in two buckets; `time_lags` has columns of lag in time, by group."""
        self._sequence += 1
        self._time_lags = time_lags
        in_second = {name: name[0] == "two" for name in groups}
        buckets = tuple(
            self._bucket(index, {name: groups[name] for name in groups if in_second[name] == bool(index)}, unknown)
            for index in range(2)
        )
        states = {name: cluster_state(unknown_since_ms=now_ms if name in unknown else None) for name in clusters}
        snapshot = manifest(plan(self.root), now_ms=now_ms, clusters=states, sequence=self._sequence)
        return replace(snapshot, buckets=buckets)

    def _bucket(self, index: int, groups: Groups, unknown: Unknown) -> Bucket:
        partitions: list[dict[str, object]] = []
        rows: list[dict[str, object]] = []
        for (cluster, group), states in sorted(groups.items()):
            status = min(max(status for status, _ in states), ERR)
            rows.append({
                "cluster": cluster, "group": group, "status": int(status), "first_row": len(partitions),
                "partitions": len(states), "complete": 1.0, "totallag": sum(max(lag, 0) for _, lag in states),
                "maxlag_row": len(partitions) + max(range(len(states)), key=lambda n: states[n][1]),
                "unknown_since_ms": START if (cluster, group) in unknown else UNKNOWN,
                **UNKNOWN_TIME_LAG, **self._time_lags.get((cluster, group), {}),
            })  # fmt: skip
            partitions += [
                {
                    "cluster": cluster,
                    "group": group,
                    "topic": "t",
                    "partition": partition,
                    "status": int(status),
                    "current_lag": lag,
                    "complete": 1.0,
                    "owner": "/a",
                    "start_offset": 1,
                    "start_ms": 1_001,
                    "start_lag": UNKNOWN,
                    "end_offset": 9,
                    "end_ms": 2_002,
                    "end_lag": lag,
                    **UNKNOWN_TIME_LAG,
                }
                for partition, (status, lag) in enumerate(states)
            ]
        stem = f"{self._sequence}-{index}"
        return Bucket(
            self.store.write_table("partitions", stem, pa.Table.from_pylist(partitions, schema=PARTITIONS)),
            self.store.write_table("groups", stem, pa.Table.from_pylist(rows, schema=GROUPS)),
            len(partitions),
            len(rows),
        )

    def incidents(self, **query: object) -> list[Incident]:
        """The stored incidents that match a query."""
        return read_incidents(self.root, IncidentQuery(**query))  # type: ignore[arg-type]

    def courses(self) -> list[str]:
        """Every incident: its group, when it opened and closed, in seconds, and its statuses."""
        return [
            f"{incident.cluster}/{incident.group} {(incident.opened_ms - START) // SECOND}"
            f"-{'' if incident.closed_ms is None else (incident.closed_ms - START) // SECOND}"
            f" {' '.join(change.status.name for change in incident.changes)}"
            for incident in reversed(self.incidents())
        ]


def incident(incident_id: str, group: str, cluster: str = "one", closed_ms: int | None = None) -> Incident:
    """An incident that was opened at 1000."""
    changes = (StatusChange(1000, Status.ERR),)
    return Incident(incident_id, cluster, group, 1000, changes, Status.ERR, closed_ms=closed_ms)


def notifier(name: str, class_name: str = "null", storm_groups: int = 0, **keys: Any) -> Notifier:
    """A notifier, by default without storms."""
    return Notifier(name, class_name, storm_groups=storm_groups, **keys)


def notification(
    sequence: int, incident_id: str, notifier: str = "hook", event: Event = Event.REMINDER, **changes: Any
) -> Notification:
    """A notification that was due at the time of its sequence."""
    return Notification(
        key=f"{incident_id}/{notifier}/{sequence}",
        notifier=notifier,
        event=event,
        incident=incident_id,
        sequence=sequence,
        cluster="one",
        group="g",
        opened_ms=1000,
        due_ms=sequence,
        reason="it is due",
        result=structs.replace(missing_group(("one", "g")), status="ERR"),
        **changes,
    )


def count_deliveries(data_dir: Path) -> dict[str, tuple[int, int, int]]:
    """How many notifications of each notifier were sent, wait, and were given up."""
    counts = read_delivery_counts(data_dir)
    return {notifier: (each.sent, each.waiting, each.given_up) for notifier, each in counts.items()}

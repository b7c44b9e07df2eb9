"""Publishes snapshots with given verdicts, one after the other."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from msgspec import structs

from tests.kit.plans import cluster_state, manifest, plan
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.snapshot.manifest import Bucket
from warren.snapshot.reader import Snapshot
from warren.snapshot.schemas import GROUPS, PARTITIONS, RATES
from warren.snapshot.store import Store

Partitions = Sequence[tuple[Status, int]]
"""The status and lag of each partition of a group."""
REASONS = {
    Status.OK: Reason.LAG_FELL,
    Status.WARN: Reason.FALLING_BEHIND,
    Status.STOP: Reason.STOPPED,
    Status.STALL: Reason.STALLED,
    Status.REWIND: Reason.REWOUND,
}
UNKNOWN_TIME_LAG: Mapping[str, float] = {
    **dict.fromkeys(("seconds_behind", "behind_method", "oldest_unread_age_s", *RATES), UNKNOWN),
    **dict.fromkeys(("catch_up_low_s", "catch_up_high_s", "retention_left_s"), UNKNOWN),
    "lost": 0,
}
"""The columns of lag in time of a row of which none is known."""
SECOND, START = 1_000, 1_700_000_000_000


@dataclass
class Verdicts:
    """Groups of clusters with given verdicts; each cluster has a bucket of its own."""

    root: Path
    now_ms: int = START
    sequence: int = 0
    _since: dict[tuple[str, str], tuple[Status, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store(self.root)
        self.store.create()

    def publish(
        self,
        clusters: Mapping[str, Mapping[str, Partitions]],
        away: Mapping[str, str] = {},
        unknown: Collection[str] = (),
        time_lags: Mapping[str, Mapping[str, float]] = {},
    ) -> Snapshot:
        """Publish a snapshot one second later; `away` has the errors of unknown clusters, `unknown` single groups.

        `time_lags` has columns of lag in time, by group.
        """
        self.sequence += 1
        self.now_ms += SECOND
        buckets = tuple(self._bucket(cluster, groups, unknown, time_lags) for cluster, groups in clusters.items())
        states = {
            cluster: cluster_state(unknown_since_ms=self.now_ms - 5, error=away[cluster] or None)
            if cluster in away
            else cluster_state()
            for cluster in clusters
        }
        made = manifest(plan(self.root), now_ms=self.now_ms, clusters=states, sequence=self.sequence)
        made = structs.replace(made, buckets=buckets)
        self.store.publish(made)
        return Snapshot(self.store, made)

    def forget(self, *sequences: int) -> None:
        """Remove snapshots, as if they were too old."""
        files = [file for sequence in sequences for file in self.store.manifest(sequence).files()]
        self.store.remove(sequences)
        for file in files:
            self.store.path(file).unlink(missing_ok=True)

    def _bucket(
        self,
        cluster: str,
        groups: Mapping[str, Partitions],
        unknown: Collection[str],
        time_lags: Mapping[str, Mapping[str, float]],
    ) -> Bucket:
        rows: list[dict[str, object]] = []
        partitions: list[dict[str, object]] = []
        for group, verdicts in groups.items():
            lags = [max(lag, 0) for _, lag in verdicts]
            worst = max(range(len(verdicts)), key=lambda index: verdicts[index])
            status = min(verdicts[worst][0], Status.ERR)
            before = self._since.get((cluster, group))
            since_ms = before[1] if before and before[0] == status else self.now_ms
            self._since[cluster, group] = status, since_ms
            rows.append({
                "cluster": cluster, "group": group, "status": int(status), "since_ms": since_ms,
                "totallag": sum(lags), "maxlag": max(lags), "worst_row": len(partitions) + worst,
                "first_row": len(partitions), "partitions": len(verdicts),
                "unknown_since_ms": self.now_ms - 5 if group in unknown else UNKNOWN,
                **UNKNOWN_TIME_LAG, **time_lags.get(group, {}),
            })  # fmt: skip
            partitions += [
                {
                    "cluster": cluster, "group": group, "topic": "t", "partition": index, "status": int(status),
                    "reason": int(REASONS[status]), "current_lag": lag, "end_offset": 9, "end_ms": self.now_ms,
                    **UNKNOWN_TIME_LAG,
                }
                for index, (status, lag) in enumerate(verdicts)
            ]  # fmt: skip
        stem = f"{self.sequence}-{cluster}"
        return Bucket(
            self.store.write_table("partitions", stem, pa.Table.from_pylist(partitions, schema=PARTITIONS)),
            self.store.write_table("groups", stem, pa.Table.from_pylist(rows, schema=GROUPS)),
            len(partitions),
            len(rows),
        )

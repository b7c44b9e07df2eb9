"""A history for dashboards: several intervals, as points for sinks and as snapshots that a Warren serves."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.kit.plans import cluster_state
from tests.kit.servers import INTERVALS, Town, server_config
from tests.kit.time_lags import set_time_lags
from warren.config import Cluster, Config, Notifier
from warren.config.sinks import InfluxSink, Sink
from warren.domain.status import Status
from warren.sinks.points import Points, points_of
from warren.snapshot.manifest import ClusterState, Position, Source
from warren.snapshot.reader import Snapshot

EVERY_MS = 10_000
MOMENTS = 14
SLOW = {
    "seconds_behind": 90.5, "behind_method": 1, "catch_up_low_s": 600.0, "catch_up_high_s": 600.0,
    "retention_left_s": 7200.0, "lost": 5, "oldest_unread_age_s": 172_800.5,
}  # fmt: skip
"""The lag in time of a group that loses data, with messages that were made long before they came."""
GONE = "gone"
"""A cluster that does not answer."""


@dataclass
class History:
    """Several intervals one after the other; the last one is the newest snapshot."""

    root: Path
    town: Town = field(init=False)
    moments: dict[int, list[Points]] = field(default_factory=dict)
    """Points by their timestamp, which is a multiple of the interval."""
    began_ms: int = 0
    ended_ms: int = 0

    def __post_init__(self) -> None:
        self.town = Town(self.root).grow()
        names = [
            ("slow", "orders", 0),
            ("slow", "orders", 1),
            *(("stalled", "orders", partition) for partition in range(3)),
        ]
        owners = [{"cluster": 0, "group": group} for group in ("slow", "stalled")]
        owners += [
            {
                "cluster": 0,
                "group": group,
                "topic": topic,
                "partition": partition,
                "owner": f"/10.0.0.{partition}",
                "client_id": f"{group}-{partition}",
            }
            for group, topic, partition in names
        ]
        self.town.cycles.cycle(self.town.now_ms, owners=owners)

    def go_on(self, pause: Callable[[], None] = lambda: None) -> None:
        """Judge and publish MOMENTS times, with a pause after each."""
        self.began_ms = time.time_ns() // 1_000_000
        first_ms = self.began_ms // EVERY_MS * EVERY_MS - MOMENTS * EVERY_MS
        for moment in range(1, MOMENTS + 1):
            self.town.now_ms = time.time_ns() // 1_000_000 - 1000
            turn = INTERVALS + moment
            self.town.turn(self.town._commits(turn), head=1000 + 10 * turn)
            self.publish()
            at_ms = first_ms + moment * EVERY_MS
            self.moments[at_ms] = points_of(self.snapshot, Sink("s"), at_ms)
            pause()
        self.ended_ms = time.time_ns() // 1_000_000

    def publish(self) -> None:
        """Publish the last verdicts, with the totals of each cluster."""
        set_time_lags(self.town.cycles, {"slow": SLOW})
        clusters = {name: self._state(name) for name in ("one", "two")}
        clusters[GONE] = cluster_state(unknown_since_ms=1, error="timed out")
        self.town.publish(
            clusters=clusters,
            cycle_ms={"read": 120, "judge": 340},
            rejects={"one": {"truncated": 3}},
        )

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        store = self.town.cycles.store
        return Snapshot(store, store.newest())

    def _state(self, cluster: str) -> ClusterState:
        groups = [row for (name, _), row in self.town.cycles.groups().items() if name == cluster]
        partitions = [row for key, row in self.town.cycles.partitions().items() if key[0] == cluster]
        positions = {0: Position(90, 100, 107, 0), 1: Position(5, 5, 5, 0)}
        return cluster_state(
            sources={"__consumer_offsets": Source("id", positions)},
            groups_by_status=dict(Counter(Status(row["status"]).name for row in groups)),
            partitions_by_status=dict(Counter(Status(row["status"]).name for row in partitions)),
            totallag=sum(row["totallag"] for row in groups),
        )

    def config(self) -> Config:
        """The configuration of a Warren that serves it."""
        config = server_config(self.root)
        return replace(
            config,
            clusters={**config.clusters, GONE: Cluster(GONE, ("127.0.0.1:1",))},
            sinks={"flux": InfluxSink("flux")},
            notifiers={"null": Notifier("null", "null", Path("unused"))},
        )

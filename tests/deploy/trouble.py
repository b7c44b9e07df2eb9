"""A data directory of a Warren in every kind of trouble, and the shipped settings made quick enough for a test."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from tests.kit.demos import ROOT
from tests.kit.plans import cluster_state
from tests.kit.servers import Town, server_config
from tests.kit.time_lags import set_time_lags
from warren.config import Cluster, Config, Notifier
from warren.config.sinks import InfluxSink
from warren.delivery.sink_status import SinkStatus, sink_folder, write_status
from warren.errors import RefusedError
from warren.incidents.model import Event, Notification
from warren.incidents.store.store import IncidentStore
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject
from warren.notify.delivery import NotifierDelivery
from warren.notify.templates.sample import sample_notification
from warren.snapshot.manifest import Position, Source

SHIPPED = ROOT / "deploy" / "prometheus"
RULES = sorted((SHIPPED / "rules").glob("*.yml"))
STALLED = "billing/eu <b>"
"""A name that means something to a URL and to Slack."""
BEFORE, AFTER = 12, 12
"""Turns that fill each window, and turns in which one group is silent."""
BACK_AT = 20
"""When another goes back: lately enough to be in its window."""
TRIGGER_MS = 60_000
"""Long enough that a snapshot is not old while a busy machine looks at it."""

Commits = list[tuple[int, str, str, int, int]]


class TroubledTown(Town):
    """Groups that have stopped, do not move, went back, fall behind, or lag more and more; and a storm on `two`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.now_ms -= (BEFORE + AFTER) * 1000
        self.turns = 0

    def live(self, turns: int, *, is_well: bool = False) -> None:
        """Some turns, after which the stalled group has read everything or not."""
        for _ in range(turns):
            head = 100_000 + 1000 * self.turns
            commits = self._of_turn(head)
            commits += [(0, STALLED, "orders", p, head if is_well else 500) for p in (0, 2)]
            self.turn(commits, head=head)
            self.turns += 1

    def _of_turn(self, head: int) -> Commits:
        made: Commits = [(0, "healthy", "orders", p, head) for p in range(3)]
        made += [(0, "slow", "orders", 0, 90_000 + self.turns)]
        # Two steps up, one step down: never from commit to commit, and yet.
        made += [(0, "wavy", "orders", 1, head - 2000 - 200 * self.turns + 700 * (self.turns % 2))]
        made += [(0, "rewound", "orders", 1, (50_000 if self.turns < BACK_AT else 100) + self.turns)]
        made += [(0, "stopped", "orders", 1, 40_000 + self.turns)] if self.turns < BEFORE else []
        return made + [(1, f"bulk-{number:02d}", "orders", number % 3, 1000) for number in range(23)]

    def tell(self, lost: int = 0, **changes: Any) -> None:
        """Publish what was judged last; the stopped group is far behind, and has lost so many messages."""
        behind = {"seconds_behind": 900.0, "behind_method": 1, "catch_up_low_s": math.inf, "catch_up_high_s": math.inf}
        set_time_lags(self.cycles, {"stopped": {**behind, "retention_left_s": 600.0, "lost": lost}})
        self.publish(trigger_ms=TRIGGER_MS, **changes)


def troubled_config(data: Path) -> Config:
    """Two clusters that are judged and one that is not, a sink and a notifier."""
    made = server_config(data)
    return replace(
        made,
        clusters={**made.clusters, "away": Cluster("away", ("127.0.0.1:1",))},
        sinks={"influx": InfluxSink("influx", urls=("http://127.0.0.1:1",))},
        notifiers={"hook": Notifier("hook", "http", url_open="http://127.0.0.1:1")},
    )


def troubles(rejected: int) -> dict[str, Any]:
    """What is wrong with Warren's own work, as a manifest says it."""
    source = Source("x", {0: Position(100, 150, 170), 1: Position(7, 7, 7)})
    clusters = {
        "one": cluster_state(sources={"__consumer_offsets": source}),
        "two": cluster_state(hidden_topics=2),
        "away": cluster_state(unknown_since_ms=1, error="gone"),
    }
    rejects = {"one": {REJECT_DESCRIPTIONS[Reject.NO_KEY]: rejected}}
    return {"clusters": clusters, "rejects": rejects, "cycle_ms": {"read": 50_000, "judge": 20_000}}


def sink_in_trouble(data: Path, lost: int) -> None:
    """A sink whose server has been away for an hour, and which has lost some intervals."""
    folder = sink_folder(data, "influx")
    folder.mkdir(parents=True, exist_ok=True)
    now_ms = time.time_ns() // 1_000_000
    write_status(
        folder,
        SinkStatus(
            "influx", "influxdb", now_ms, delivered_ms=now_ms - 3_600_000, waiting=9, dropped=lost, refused=lost
        ),
    )


def pending_notifications(data: Path, *, is_first_refused: bool = False) -> None:
    """Notifications that the receiver does not take; the first of them may be refused for good."""
    store = IncidentStore(data)
    try:
        opened = sample_notification("hook", Event.OPEN)
        if not is_first_refused:
            store.write(notifications=[structs.replace(opened, key=f"k{n}", incident=f"i{n}") for n in range(3)])
            return

        def refuse(_: Notification) -> None:
            raise RefusedError("no")

        NotifierDelivery("hook", store, refuse).deliver_next()
    finally:
        store.close()


def quick_settings(folder: Path, target: str, alertmanager: str = "") -> Path:
    """The shipped prometheus.yml and its rules, as they are but for addresses and how long everything takes."""
    (folder / "rules").mkdir(parents=True)
    for file in RULES:
        rules = yaml.safe_load(file.read_text())
        for group in rules["groups"]:
            group["interval"] = "500ms"
            for rule in group["rules"]:
                if "for" in rule:
                    rule["for"] = "1s"
        (folder / "rules" / file.name).write_text(yaml.safe_dump(rules))
    settings = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    settings["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    settings["scrape_configs"][0]["static_configs"][0]["targets"] = [target.removeprefix("http://")]
    settings["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = (
        [alertmanager.removeprefix("http://")] if alertmanager else []
    )
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    return folder / "prometheus.yml"


def quick_alertmanager(webhook: Path) -> str:
    """The shipped alertmanager.yml, as it is but for the file with the webhook and how long it waits."""
    settings = yaml.safe_load((SHIPPED / "alertmanager.yml").read_text())
    # Long enough for all alerts of a moment, whose rules do not run at the same time.
    settings["route"] |= {"group_wait": "2s", "group_interval": "1s"}
    settings["receivers"][0]["slack_configs"][0]["api_url_file"] = str(webhook)
    return yaml.safe_dump(settings)

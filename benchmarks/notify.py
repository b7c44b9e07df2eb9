"""How long 10,000 groups that turn bad at once take, with a local and a replicated store; and the rate of delivery.

`python -m benchmarks.notify`
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.conditions import show
from tests.kit.incidents import OK, STALL, START, IncidentScene
from tests.kit.receivers import receiving
from warren.config import Cluster, Config, Consumer, Notifier
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.domain.status import Status
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.replicated import ReplicatedStore
from warren.notify.notifiers import NotifierDeliveries

GROUPS, PARTITIONS = 10_000, 20
NOTIFICATIONS = 1_000
TRIGGER_S = 10.0
TEMPLATE = Path(__file__).parents[1] / "src/warren/templates/config/default-http-post.tmpl"


def main() -> None:
    """Print both tables."""
    with Kafka() as kafka:
        rows = [
            _process_all(kafka, is_replicated=is_replicated, storm=storm)
            for is_replicated in (False, True)
            for storm in (0, 20)
        ]
    show("10,000 groups at once", rows)
    show("delivery", [_deliver_all()])


def _process_all(kafka: Kafka, *, is_replicated: bool, storm: int) -> dict[str, object]:
    hook = replace(_notifier("http://127.0.0.1:1"), storm_groups=storm)
    with _scene() as scene:
        if is_replicated:
            scene.incident_store.close()
            changelog = Changelog(Connection((kafka.bootstrap,)), f"incidents-{storm}")
            scene.incident_store = ReplicatedStore(scene.root, changelog)
            scene.incident_store.take_over()
        scene.pipeline = IncidentPipeline(scene.incident_store, scene.store, 30, NotificationRouter([hook]))
        opened_s = _process_s(scene, STALL, 0)
        unchanged_s = _process_s(scene, STALL, 10)
        closed_s = _process_s(scene, OK, 20)
        scene.incident_store.close()
    return {
        "groups": GROUPS,
        "partitions": GROUPS * PARTITIONS,
        "store": "replicated" if is_replicated else "local",
        "notifications": "one per storm" if storm else "one per group",
        "opened_s": round(opened_s, 2),
        "unchanged_s": round(unchanged_s, 2),
        "closed_s": round(closed_s, 2),
        "of_a_trigger": f"{opened_s / TRIGGER_S:.0%}",
    }


def _process_s(scene: IncidentScene, status: Status, at_s: int) -> float:
    groups = {("one", f"group-{n}"): [(status, n)] + [(OK, 0)] * (PARTITIONS - 1) for n in range(GROUPS)}
    manifest = scene.manifest(START + at_s * 1000, groups)
    return _measure_s(lambda: scene.pipeline.process(manifest))


def _deliver_all() -> dict[str, object]:
    with _scene() as scene, receiving() as receiver:
        hook = replace(_notifier(receiver.url), storm_groups=0)
        servers = ("127.0.0.1:1",)
        config = Config(
            {"one": Cluster("one", servers)}, {"one": Consumer("one", "one", servers)}, notifiers={"hook": hook}
        )
        with closing(NotifierDeliveries(scene.incident_store)) as deliveries:
            router = deliveries.configure(config)
            scene.pipeline = IncidentPipeline(scene.incident_store, scene.store, 30, router, deliveries.wake)
            groups = {("one", f"group-{n}"): [(STALL, n)] for n in range(NOTIFICATIONS)}
            scene.pipeline.process(scene.manifest(START, groups))

            def wait_until_all_sent() -> None:
                while len(receiver.got) < NOTIFICATIONS:
                    time.sleep(0.01)

            seconds = _measure_s(wait_until_all_sent)
        scene.incident_store.close()
    return {"notifications": NOTIFICATIONS, "to": "one HTTP receiver", "per_second": round(NOTIFICATIONS / seconds)}


def _notifier(url: str) -> Notifier:
    return Notifier("hook", "http", TEMPLATE, TEMPLATE, send_close=True, url_open=url)


@contextmanager
def _scene() -> Iterator[IncidentScene]:
    with tempfile.TemporaryDirectory() as root:
        yield IncidentScene(Path(root))


def _measure_s(work: Callable[[], None]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


if __name__ == "__main__":
    main()

"""10,000 groups that turn bad at once: decided and queued, by one Warren and by one of several; and how fast is sent.

`python -m benchmarks.notify`
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.conditions import show
from tests.kit.incidents import OK, STALL, START, IncidentScene
from tests.kit.receivers import receiving
from warren.config import Cluster, Config, Consumer, Notifier
from warren.demo.broker import Kafka
from warren.domain.status import Status
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.routing import NotificationRouter, NotifierFilter
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.replicated import ReplicatedStore
from warren.notify.notifiers import delivering

GROUPS, PARTITIONS = 10_000, 20
LETTERS = 1_000
TRIGGER_S = 10.0
TEMPLATE = Path(__file__).parents[1] / "src/warren/templates/config/default-http-post.tmpl"


def main() -> None:
    """Print both tables."""
    with Kafka() as kafka:
        rows = [_decided(kafka, is_shared=is_shared, storm=storm) for is_shared in (False, True) for storm in (0, 20)]
    show("10,000 groups at once", rows)
    show("delivery", [_sent()])


def _decided(kafka: Kafka, *, is_shared: bool, storm: int) -> dict[str, object]:
    hook = replace(_notifier("http://127.0.0.1:1"), storm_groups=storm)
    with _scene() as scene:
        if is_shared:
            scene.incident_store.close()
            journal = Changelog({"bootstrap.servers": kafka.bootstrap}, f"incidents-{storm}")
            scene.incident_store = ReplicatedStore(scene.root, journal)
            scene.incident_store.take_over()
        scene.pipeline = IncidentPipeline(
            scene.incident_store, scene.store, 30, NotificationRouter([NotifierFilter.of(hook)])
        )
        bad = _seconds(scene, STALL, 0)
        same = _seconds(scene, STALL, 10)
        good = _seconds(scene, OK, 20)
        scene.incident_store.close()
    return {
        "groups": GROUPS,
        "partitions": GROUPS * PARTITIONS,
        "incidents": "in a topic" if is_shared else "in a file",
        "messages": "one for all" if storm else "one each",
        "opened_s": round(bad, 2),
        "unchanged_s": round(same, 2),
        "closed_s": round(good, 2),
        "of_a_trigger": f"{bad / TRIGGER_S:.0%}",
    }


def _seconds(scene: IncidentScene, status: Status, at_s: int) -> float:
    groups = {("one", f"group-{n}"): [(status, n)] + [(OK, 0)] * (PARTITIONS - 1) for n in range(GROUPS)}
    manifest = scene.manifest(START + at_s * 1000, groups)
    return _took(lambda: scene.pipeline.process(manifest))


def _sent() -> dict[str, object]:
    with _scene() as scene, receiving() as receiver:
        hook = replace(_notifier(receiver.url), storm_groups=0)
        servers = ("127.0.0.1:1",)
        config = Config(
            {"one": Cluster("one", servers)}, {"one": Consumer("one", "one", servers)}, notifiers={"hook": hook}
        )
        with delivering(config, scene.incident_store) as (audiences, wake):
            scene.pipeline = IncidentPipeline(scene.incident_store, scene.store, 30, audiences, wake)
            groups = {("one", f"group-{n}"): [(STALL, n)] for n in range(LETTERS)}
            scene.pipeline.process(scene.manifest(START, groups))

            def all_sent() -> None:
                while len(receiver.got) < LETTERS:
                    time.sleep(0.01)

            took = _took(all_sent)
        scene.incident_store.close()
    return {"messages": LETTERS, "to": "one HTTP receiver", "a_second": round(LETTERS / took)}


def _notifier(url: str) -> Notifier:
    return Notifier("hook", "http", TEMPLATE, TEMPLATE, send_close=True, url_open=url)


@contextmanager
def _scene() -> Iterator[IncidentScene]:
    with tempfile.TemporaryDirectory() as root:
        yield IncidentScene(Path(root))


def _took(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


if __name__ == "__main__":
    main()

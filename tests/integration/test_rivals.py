"""Two Warrens on one Kafka, the one that notifies killed again and again: each event is told, and known as one."""

import contextlib
import itertools
import random
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.kit.receivers import Receiver, receiving
from tests.kit.warrens import Sections, WarrenRun, sections_for, wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.demo.broker import Kafka
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics
from warren.incidents.store.database import open_read_only
from warren.incidents.store.reader import IncidentQuery, read_incidents, read_leadership

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TOPIC, GROUP = "rivals", "rivals-group"
KILLS = 20
AWAY_S = 600.0
COMMIT_S = 0.5


class Committing:
    """A group that commits all the time: what it has read, or for as long as it is stuck always the same."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
        self.is_stuck = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        place = TopicPartition(TOPIC, 0)
        offset = 0
        while not self._stopping.wait(COMMIT_S):
            if not self.is_stuck:
                offset = self._consumer.get_watermark_offsets(place, 10)[1]
            with contextlib.suppress(Exception):
                self._consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)

    def __enter__(self) -> "Committing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(20)
        self._consumer.close()


def sections(kafka: Kafka, zookeeper: ZooKeeperServer, hook: Receiver, late_port: int) -> Sections:
    made = sections_for({"one": kafka.bootstrap})
    made["storage.memory"]["intervals"] = 5
    made["pipeline"] |= {"master": "local[1]"}
    made["zookeeper"] = {"servers": [zookeeper.address], "timeout": 4, "root-path": f"/{uuid.uuid4().hex}"}
    made["incidents"] = {"topic": f"incidents-{uuid.uuid4().hex[:8]}"}
    for name, url in (("hook", hook.url), ("late", f"http://127.0.0.1:{late_port}")):
        made[f"notifier.{name}"] = {
            "class-name": "http",
            "url-open": f"{url}/{name}",
            "template-open": "config/default-http-post.tmpl",
            "template-close": "config/default-http-delete.tmpl",
            "send-close": True,
            "send-interval": 3600,
        }
    return made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def zookeeper() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as server:
        yield server


def test_the_active_one_is_killed_twenty_times_and_every_event_is_told_once(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer
) -> None:
    create_topics(kafka.bootstrap, {TOPIC: 1})
    producing = [Producer(kafka.bootstrap, TOPIC, 20.0)]
    late_port = free_port()
    late_from = time.monotonic() + AWAY_S
    chance = random.Random(7)
    with contextlib.ExitStack() as parts:
        for one in producing:
            one.start()
        parts.callback(stop_all, producing)
        hook = parts.enter_context(receiving())
        group = parts.enter_context(Committing(kafka.bootstrap))
        toml = sections(kafka, zookeeper, hook, late_port)
        runs = [parts.enter_context(WarrenRun(tmp_path / name, toml)) for name in ("a", "b")]

        def active() -> WarrenRun | None:
            found = [run for run in runs if run.is_running and read_leadership(run.data).state == "active"]
            return found[0] if len(found) == 1 else None

        for number in range(KILLS):
            run = wait_for(active, f"one notifies, before kill {number}")
            group.is_stuck = not group.is_stuck
            time.sleep(chance.uniform(0.0, 12.0))
            run.kill()
            run.start()
        group.is_stuck = False
        time.sleep(max(late_from - time.monotonic(), 0.0))
        late = parts.enter_context(receiving(late_port))
        run = wait_for(active, "one notifies at last")

        def is_over() -> bool:
            entries = read_incidents(run.data, IncidentQuery(limit=1000))
            with open_read_only(run.data) as database:
                left = database.execute("SELECT count(*) FROM letters WHERE sent_ms IS NULL").fetchone()[0]
            return bool(entries) and all(one.closed_ms for one in entries) and not left

        wait_for(is_over, "all incidents are over, and all is told")
        entries = read_incidents(run.data, IncidentQuery(limit=1000, group=GROUP))
        for receiver in (hook, late):
            told = {one.key: one.event for one in receiver.got}
            by_incident = {
                entry.id: Counter(event for key, event in told.items() if key.startswith(entry.id)) for entry in entries
            }
            assert all(counts["open"] == counts["close"] == 1 for counts in by_incident.values()), by_incident
        spans = sorted((one.opened_ms, one.closed_ms or 0) for one in entries)
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans)), "one at a time"
        assert len(entries) >= KILLS // 4, "there was something to tell"

"""The HTTP API of a Warren on a real Kafka, asked as those ask who ask Burrow: telegraf, dashboards, exporters."""

import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as ConfluentProducer

from tests.kit.kafka import commit
from tests.kit.receivers import Receiver, receiving
from tests.kit.servers import Client, group_path
from tests.kit.warrens import WarrenRun, sections_for, wait_for
from tests.security.names import NAMES
from warren.demo.broker import Kafka
from warren.demo.workload.committing_groups import Stalled
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.domain.printable import printable

pytestmark = pytest.mark.timeout(600)

TOPIC = "orders"
FILLED = 2_000
DAY_S = 86_400
BACKFILLED = "backfilled"
ODD = "team/a b+ü"
IDLE = [f"idle-{number:02d}" for number in range(20)]
HOSTILE = [
    NAMES[kind] for kind in ("path traversal", "clear the screen", "a log line", "right to left", "another server")
]
"""Groups that a broker takes, and that have stalled."""
AT_ONCE = 20
"""How many connections telegraf opens at once if it is not told otherwise."""


@dataclass
class Live:
    """A broker, a Warren on it, and who asks it."""

    kafka: Kafka
    run: WarrenRun
    receiver: Receiver
    starts: int = 1

    @property
    def client(self) -> Client:
        """A client of the run that is on now, which has chosen its own port."""

        def told() -> list[str]:
            return re.findall(r"answering at (\S+)", self.run.log)

        wait_for(lambda: len(told()) >= self.starts, "the API is there")
        return Client(told()[-1])

    def ready(self) -> Client:
        """The same once it has caught up."""
        client = self.client
        wait_for(lambda: client.ask("/burrow/admin/ready").status == 200, "the verdicts are those of now")
        return client

    def commit(self, group: str, offset: int) -> None:
        """A commit to both partitions."""
        commit(self.kafka.bootstrap, group, TOPIC, {0: offset, 1: offset})

    def consumers(self) -> list[str]:
        """The groups of the cluster."""
        found: list[str] = self.client.json("/v3/kafka/main/consumer")["consumers"]
        return found


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Groups of several kinds, judged every second."""
    with Kafka() as kafka, receiving() as receiver:
        create_topics(kafka.bootstrap, {TOPIC: 2, BACKFILLED: 1})
        fill_topic(kafka.bootstrap, TOPIC, FILLED)
        home = tmp_path_factory.mktemp("api")
        (home / "open.tmpl").write_text('{"group": {{jsonencoder .Group}}, "status": "{{.Result.Status}}"}')
        sections = sections_for({"main": kafka.bootstrap})
        sections["cluster.main"]["read-records"] = [f"{BACKFILLED}*"]
        sections["notifier.hook"] = {
            "class-name": "http", "url-open": f"{receiver.url}/{{{{.Group}}}}", "send-once": True, "send-close": True,
            "template-open": str(home / "open.tmpl"), "template-close": str(home / "open.tmpl"),
        }  # fmt: skip
        found = Live(kafka, WarrenRun(home, sections), receiver)
        for group in (*IDLE, ODD, "to-delete"):
            found.commit(group, FILLED)
        workers = [
            Producer(kafka.bootstrap, TOPIC, 50.0),
            Healthy(kafka.bootstrap, TOPIC, "billing"),
            *(Stalled(kafka.bootstrap, TOPIC, group, behind=500) for group in ("export", *HOSTILE)),
        ]
        for worker in workers:
            worker.start()
        try:
            with found.run:
                found.ready()
                yield found
        finally:
            stop_all(workers, 60.0)


def test_the_server_is_a_process_of_its_own(live: Live) -> None:
    own = [command for command in live.run.left_behind() if "spawn_main" in command]
    assert own
    assert live.client.ask("/burrow/admin").text == "GOOD"


def test_verdicts_are_those_of_the_snapshot(live: Live) -> None:
    def verdict(group: str) -> tuple[str, set[str]]:
        status = live.client.json(group_path(group, "lag", "main"))["status"]
        return status["status"], {partition["status"] for partition in status["partitions"]}

    wait_for(lambda: verdict("export") == ("ERR", {"STALL"}), "a stalled group is ERR")
    assert verdict("billing") == ("OK", {"OK"})
    assert live.client.json(group_path(ODD, "status", "main"))["status"]["group"] == ODD
    reasons = live.client.json(group_path("export", "explain", "main"))["explanation"]["partitions"]
    assert all("all at offset" in partition["reason"] for partition in reasons), reasons
    assert live.client.json(group_path("export", "history", "main"))["history"], (
        "a point was written with the first cycle"
    )
    only = live.client.json("/v3/kafka/main/lag?status=ERR")
    # Idle groups turn STOP once the recent past is known, which a busy machine may reach before this line.
    listed = {group["group"]: group["status"] for group in only["groups"]}
    assert set(listed.values()) == {"ERR"}
    assert set(listed) - {*IDLE, *HOSTILE, ODD, "to-delete"} == {"export"}


def test_hostile_names_are_text_wherever_they_go(live: Live) -> None:
    def paths() -> set[str]:
        return {request.path for request in live.receiver.got}

    wait_for(lambda: {f"/{quote(group, safe='')}" for group in HOSTILE} <= paths(), "all of them are notified", 90)
    for request in live.receiver.got:
        assert request.path == f"/{quote(json.loads(request.body)['group'], safe='')}", "a name steers no request"
    assert set(HOSTILE) <= set(live.consumers())
    for group in HOSTILE:
        assert live.client.json(group_path(group, "lag", "main"))["status"]["group"] == group
        assert live.client.ask(group_path(group, "", "main"), "DELETE").status == 200
    lines = [f"deletion requested: group {printable(group)} of cluster main" for group in HOSTILE]
    wait_for(lambda: all(line in live.run.log for line in lines), "the deletions are logged")
    assert not re.search("[\x1b\u202e]", live.run.log)
    assert "\n2026-01-01 00:00:00,000 ERROR" not in live.run.log


def test_telegraf_gathers_everything_at_once(live: Live) -> None:
    """What its burrow input reads, field by field, over as many connections as it opens."""
    client = live.client
    [cluster] = client.json("/v3/kafka")["clusters"]
    topics = client.json(f"/v3/kafka/{cluster}/topic")["topics"]
    groups = client.json(f"/v3/kafka/{cluster}/consumer")["consumers"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        offsets = dict(
            zip(topics, pool.map(lambda t: client.json(f"/v3/kafka/{cluster}/topic/{t}"), topics), strict=True)
        )
        lags = list(pool.map(lambda g: client.json(group_path(g, "lag", cluster))["status"], groups))
    assert all(isinstance(offset, int) for answer in offsets.values() for offset in answer["offsets"])
    assert {*IDLE, ODD, "billing", "export"} <= {status["group"] for status in lags}
    for status in lags:
        assert status["cluster"] == cluster
        assert status["status"] in ("OK", "WARN", "ERR")
        assert isinstance(status["totallag"], int)
        assert status["partition_count"] == len(status["partitions"])
        assert isinstance(status["maxlag"]["current_lag"], int)
        for partition in status["partitions"]:
            assert {"topic", "partition", "status", "current_lag", "end"} <= partition.keys()
            assert partition["end"] is None or {"offset", "timestamp", "lag"} <= partition["end"].keys()


def test_an_exporter_reads_starts_and_ends(live: Live) -> None:
    client = live.client
    for cluster in client.json("/v3/kafka")["clusters"]:
        for group in client.json(f"/v3/kafka/{cluster}/consumer")["consumers"]:
            status = client.json(f"/v3/kafka/{cluster}/consumer/{quote(group, safe='')}/lag")["status"]
            summed = sum(partition["current_lag"] for partition in status["partitions"])
            assert status["totallag"] == summed
            assert status["maxlag"]["current_lag"] == max(p["current_lag"] for p in status["partitions"])
            for partition in status["partitions"]:
                if partition["start"] is not None:
                    assert partition["start"]["timestamp"] <= partition["end"]["timestamp"]


def test_a_dashboard_asks_again_and_again(live: Live) -> None:
    """Its pages poll lists, states and windows of every group while snapshots come and go."""
    client = live.client

    def page(group: str) -> tuple[int, int, int]:
        paths = (group_path(group, what, "main") for what in ("status", "lag", ""))
        first, second, third = (client.ask(path).status for path in paths)
        return first, second, third

    until = time.monotonic() + 4.0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while time.monotonic() < until:
            assert set(pool.map(page, live.consumers())) == {(200, 200, 200)}


def test_a_backfill_is_days_old_and_waits_for_seconds(live: Live) -> None:
    def time_lag() -> dict[str, Any]:
        answer = live.client.ask(group_path("importer", "explain", "main"))
        lag: dict[str, Any] = answer.json["explanation"]["time_lag"] if answer.status == 200 else {}
        return lag

    commit(live.kafka.bootstrap, "importer", BACKFILLED, {0: 0})
    wait_for(lambda: time_lag().get("seconds_behind_method") == "caught_up", "the group has read everything")
    assert time_lag()["oldest_unread_age_seconds"] is None
    begun_at = time.time()
    producer = ConfluentProducer({"bootstrap.servers": live.kafka.bootstrap})
    for number in range(100):
        producer.produce(BACKFILLED, b"x", partition=0, timestamp=round((begun_at - 5 * DAY_S + number) * 1_000))
    assert producer.flush(30) == 0
    wait_for(lambda: time_lag()["oldest_unread_age_seconds"] is not None, "its first unread record has been read")
    lag, passed_s = time_lag(), time.time() - begun_at
    assert lag["seconds_behind_method"] == "head_history"
    assert 0 < lag["seconds_behind"] <= passed_s + 2
    assert 0 <= lag["oldest_unread_age_seconds"] - 5 * DAY_S <= passed_s + 2
    metrics = live.client.ask("/metrics").text
    assert 'warren_group_oldest_unread_age_seconds{cluster="main",consumer_group="importer"} 432' in metrics


def window(client: Client, group: str) -> list[dict[str, Any]]:
    topics = client.json(group_path(group, "", "main"))["topics"]
    return [slot for slot in topics[TOPIC][0]["offsets"] if slot]


@contextmanager
def member(live: Live, group: str) -> Iterator[None]:
    """A consumer that has its partitions and commits nothing."""
    consumer = Consumer({"bootstrap.servers": live.kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    assigned = threading.Event()
    consumer.subscribe([TOPIC], on_assign=lambda *_: assigned.set())

    def is_assigned() -> bool:
        consumer.poll(0.1)
        return assigned.is_set()

    try:
        wait_for(is_assigned, f"a member of {group}")
        yield
    finally:
        consumer.close()


def test_a_deleted_group_is_gone_for_good_until_it_commits_again(live: Live) -> None:
    client = live.client
    assert "to-delete" in live.consumers()
    before = live.run.store.newest().sequence
    answer = client.ask(group_path("to-delete", "", "main"), "DELETE")
    assert (answer.status, answer.json["message"]) == (200, "consumer group removed")
    assert "to-delete" not in live.consumers(), "at once, though the pipeline is another process"
    assert client.ask(group_path("to-delete", "lag", "main")).status == 404
    live.run.wait_for(lambda s: s.manifest.sequence > before + 1 and s.group("main", "to-delete") is None, "it is gone")

    live.run.kill()
    live.run.start()
    live.starts += 1
    client = live.ready()
    assert "to-delete" not in live.consumers(), "a restart does not bring it back"
    assert set(IDLE) <= set(live.consumers())

    with member(live, "to-delete"), member(live, "never-committed"):
        wait_for(lambda: "never-committed" in live.consumers(), "a group of members alone")
        live.run.wait_for_cycles(2)
        assert "to-delete" not in live.consumers(), "nor do members that do not commit"
    live.commit("to-delete", FILLED - 7)
    wait_for(lambda: "to-delete" in live.consumers(), "a commit brings it back")
    assert [slot["offset"] for slot in window(client, "to-delete")] == [FILLED - 7], "with nothing from before"
    assert json.loads(client.ask("/v3/kafka/main/topic/orders/consumers").body)["consumers"].count("to-delete") == 1


def test_who_was_told_of_an_incident_is_told_once_whatever_happens_to_warren(live: Live) -> None:
    """After all that was done to it above, a kill -9 among it."""
    [incident] = live.client.json("/v3/incidents?group=export")["incidents"]
    assert (incident["worst"], incident["closed"]) == ("ERR", None)
    assert [one["notifier"] for one in incident["told"]] == ["hook"]
    told = [one for one in live.receiver.got if json.loads(one.body)["group"] == "export"]
    assert {one.event for one in told} <= {"open"}
    assert {one.key for one in told} == {f"{incident['id']}/hook/1"}
    assert json.loads(told[0].body)["status"] in ("WARN", "ERR")

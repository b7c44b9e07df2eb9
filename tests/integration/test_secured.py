"""One Warren on three closed brokers: TLS with SCRAM, PLAIN, mutual TLS and OAUTHBEARER, and only the documented ACLs.

Each way to authenticate is a cluster of its own to Warren, so all four must show the same.
"""

import contextlib
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer

from tests.kit.receivers import Receiver, receiving
from tests.kit.rights import documented_rights
from tests.kit.secret_search import FolderWatch, SecretSearch, pieces_of_key, pieces_of_text
from tests.kit.secured import LISTENERS, MTLS, OAUTH, PLAIN, SCRAM, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.servers import Client, group_path
from tests.kit.unpack import unpacked
from tests.kit.warrens import Sections, WarrenRun, wait_for
from warren.demo.broker import free_ports
from warren.demo.workload.committing_groups import Slow, Stalled
from warren.demo.workload.consuming_groups import Healthy, Kip848
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import create_topics, fill_topic

pytestmark = pytest.mark.timeout(900)

TOPIC, POINTS = "orders", "lag-points"
RATE = 60.0
CLUSTERS = {listener.lower(): listener for listener in LISTENERS}
VERDICTS = {"billing": "OK", "export": "ERR", "search": "WARN", "audit": "OK"}
VARIABLE = "PASSWORD_OF_PLAIN"


@dataclass
class Live:
    """The brokers, the Warren on them, and what looks for secrets while it runs."""

    kafka: SecuredKafka
    run: WarrenRun
    receiver: Receiver
    search: SecretSearch
    ui_ports: tuple[int, int]
    """Where the UIs of Spark are, of the cycles and of the lake."""

    @property
    def client(self) -> Client:
        """Asks the API of the Warren."""
        return Client(wait_for(lambda: re.findall(r"answering at (\S+)", self.run.log), "the API is there")[-1])

    def status(self, cluster: str, group: str) -> dict[str, Any] | None:
        """The status of a group with its partitions, None if the group is not known yet."""
        got = self.client.ask(group_path(group, "lag", cluster))
        return got.json["status"] if got.status == 200 else None

    def sinks(self) -> dict[str, dict[str, Any]]:
        """The state of each sink."""
        return {sink["name"]: sink for sink in self.client.json("/v3/sinks")["sinks"]}


def spark_conf(home: Path, ui_port: int, *, is_compressed: bool) -> dict[str, Any]:
    """A UI, and an event log."""
    return {
        "spark.eventLog.enabled": True,
        "spark.eventLog.dir": f"file://{home}/events",
        "spark.eventLog.compress": is_compressed,
        "spark.ui.enabled": True,
        "spark.ui.port": ui_port,
    }


def sections(kafka: SecuredKafka, home: Path, receiver: Receiver, ui_ports: tuple[int, int]) -> Sections:
    """Burrow's own profiles and, on the cluster of SCRAM, all else that talks to brokers."""
    password = home / "scram-password"
    password.write_text(kafka.passwords[USERS[SCRAM]] + "\n")
    written = {SCRAM: f"file:{password}", PLAIN: f"${{{VARIABLE}}}"}
    made = secured_sections(kafka, CLUSTERS, passwords=written)
    (home / "open.tmpl").write_text('{"group": {{jsonencoder .Group}}}')
    made["pipeline.spark-conf"] = spark_conf(home, ui_ports[0], is_compressed=False)
    made["sink.lake"] = {
        "class-name": "lake", "path": str(home / "lake"), "interval": 2, "write-interval": 10, "commits": True,
    }  # fmt: skip
    made["sink.lake.spark-conf"] = spark_conf(home, ui_ports[1], is_compressed=True)
    made["sink.points"] = {"class-name": "kafka", "cluster": "scram", "topic": POINTS, "interval": 2}
    made["incidents"] = {"class-name": "kafka", "cluster": "scram"}
    made["notifier-lock"] = {"class-name": "kafka", "cluster": "scram"}
    made["notifier.hook"] = {
        "class-name": "http", "url-open": f"{receiver.url}/hook", "template-open": str(home / "open.tmpl"),
        "send-once": True, "threshold": 3,
    }  # fmt: skip
    return made


def grant_documented_rights(kafka: SecuredKafka) -> None:
    for listener in LISTENERS:
        kafka.grant(USERS[listener], documented_rights("To watch a cluster"))
    kafka.grant(USERS[SCRAM], documented_rights("For a Kafka sink", NAME="points", TOPIC=POINTS))
    kafka.grant(USERS[SCRAM], documented_rights("For incidents that several Warrens share"))


@contextlib.contextmanager
def workload(kafka: SecuredKafka) -> Iterator[None]:
    bootstrap = kafka.bootstrap
    create_topics(bootstrap, {TOPIC: 2, POINTS: 1})
    fill_topic(bootstrap, TOPIC, 2_000)
    workers: list[WorkloadThread] = [
        Producer(bootstrap, TOPIC, RATE),
        Healthy(bootstrap, TOPIC, "billing"),
        Kip848(bootstrap, TOPIC, "audit"),
        Stalled(bootstrap, TOPIC, "export", behind=500),
        Slow(bootstrap, TOPIC, "search", produced_rate=RATE, fraction=0.5, behind=500),
    ]
    with contextlib.ExitStack() as parts:
        parts.callback(stop_all, workers, 60.0)
        for worker in workers:
            worker.start()
        yield


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Groups of several kinds, judged every second."""
    home, folder = tmp_path_factory.mktemp("secured"), tmp_path_factory.mktemp("kafka")
    with SecuredKafka(folder, 3) as kafka, receiving() as receiver:
        grant_documented_rights(kafka)
        for name in ("events", "lake", "spark", "tmp"):
            (home / name).mkdir()
        environment = {VARIABLE: kafka.passwords[USERS[PLAIN]]}
        environment |= {"SPARK_LOCAL_DIRS": str(home / "spark"), "TMPDIR": str(home / "tmp")}
        first, second = free_ports(2)
        run = WarrenRun(home, sections(kafka, home, receiver, (first, second)), environment)
        secrets = {listener: pieces_of_text(kafka.passwords[USERS[listener]]) for listener in (SCRAM, PLAIN, OAUTH)}
        search = SecretSearch({**secrets, MTLS: pieces_of_key(kafka.client)}, kafka.tokens.issued)
        watched = (run.data, *(home / name for name in ("events", "lake", "spark", "tmp")))
        with workload(kafka), FolderWatch(search, watched), run:
            yield Live(kafka, run, receiver, search, (first, second))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_verdicts_are_right_by_every_way_to_authenticate(live: Live, cluster: str) -> None:
    def verdicts() -> dict[str, str]:
        found = {group: live.status(cluster, group) for group in VERDICTS}
        return {group: status["status"] for group, status in found.items() if status}

    try:
        wait_for(lambda: verdicts() == VERDICTS, "the verdicts")
    except AssertionError:
        raise AssertionError(f"{verdicts()}\n{live.client.json('/v3/overview')['overview']}\n{live.run.log}") from None
    stalled = live.status(cluster, "export")
    assert stalled is not None
    assert stalled["complete"] == 1.0
    assert {partition["status"] for partition in stalled["partitions"]} == {"STALL"}
    assert all(partition["current_lag"] >= 500 for partition in stalled["partitions"])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_topics_heads_and_owners_are_right(live: Live, cluster: str) -> None:
    topics = live.client.json(f"/v3/kafka/{cluster}/topic")["topics"]
    assert {TOPIC, POINTS, "__consumer_offsets"} <= set(topics)
    offsets = live.client.json(f"/v3/kafka/{cluster}/topic/{TOPIC}")["offsets"]
    assert len(offsets) == 2
    assert min(offsets) >= 2_000

    def owners() -> set[str]:
        # The owners of this group come from the Admin API, those of the classic protocol from the offsets topic.
        status = live.status(cluster, "audit")
        return {partition["owner"] for partition in status["partitions"]} if status else set()

    wait_for(lambda: owners() and "" not in owners(), "the owners of a group of the consumer protocol")


def test_no_cluster_is_unknown(live: Live) -> None:
    overview = live.client.json("/v3/overview")["overview"]
    assert [(c["name"], c["error_message"]) for c in overview["clusters"]] == [
        (name, None) for name in sorted(CLUSTERS)
    ]


def test_the_kafka_sink_delivers(live: Live) -> None:
    settings = {"bootstrap.servers": live.kafka.bootstrap, "group.id": "test", "auto.offset.reset": "earliest"}
    with contextlib.closing(Consumer({**settings, "isolation.level": "read_committed"})) as consumer:
        consumer.subscribe([POINTS])
        message = wait_for(lambda: consumer.poll(1.0), "a record of the sink")
        assert message.error() is None
        assert json.loads(message.value() or b"")["name"].startswith("burrow_")
    wait_for(lambda: live.sinks()["points"]["delivered"], "the delivery is known")
    assert live.sinks()["points"]["trouble"] == ""


def test_the_lock_is_held_and_incidents_are_shared(live: Live) -> None:
    wait_for(lambda: live.client.json("/v3/notifiers")["duty"]["state"] == "active", "the lock is held")
    wait_for(lambda: any("export" in request.body for request in live.receiver.got), "a notification")
    settings = {"bootstrap.servers": live.kafka.bootstrap, "group.id": "test", "auto.offset.reset": "earliest"}
    with contextlib.closing(Consumer(settings)) as consumer:
        consumer.subscribe(["warren-incidents"])
        wait_for(lambda: (m := consumer.poll(1.0)) and not m.error() and b"export" in (m.value() or b""), "an incident")


def every_path(client: Client) -> Iterator[str]:
    """Every path that the API answers to GET, with what there is in place of its parameters."""
    incidents = [str(each["id"]) for each in client.json("/v3/incidents")["incidents"]]
    known = {"cluster": [*CLUSTERS], "consumer": [*VERDICTS], "topic": [TOPIC], "incident": incidents, "asset": []}
    for path, methods in client.json("/openapi.json")["paths"].items():
        kind = path.removeprefix("/v3/config/").partition("/")[0]
        names = client.json(f"/v3/config/{kind}")["modules"] if path.endswith("/{name}") else []
        parameters = re.findall(r"\{(\w+)\}", path)
        if "get" in methods:
            for chosen in itertools.product(*({**known, "name": names}[each] for each in parameters)):
                values = {name: quote(value, safe="") for name, value in zip(parameters, chosen, strict=True)}
                yield path.format(**values)


def spark_pages(client: Client, plan: str) -> Iterator[str]:
    """The pages of a UI of Spark, and what its REST API tells; some query has a plan with these words."""
    [application] = client.json("/api/v1/applications")
    api = f"/api/v1/applications/{application['id']}"
    yield from ("/environment/", "/jobs/", "/stages/", "/storage/", "/SQL/", "/executors/")
    yield from (f"{api}/{each}" for each in ("environment", "jobs", "stages", "storage/rdd", "allexecutors"))
    sql = f"{api}/sql?details=true&planDescription=true&length=1000"

    def has_plan() -> bool:
        return any(plan.lower() in query["planDescription"].lower() for query in client.json(sql))

    wait_for(has_plan, f"the plan of a query has {plan}")
    queries = client.json(sql)
    yield sql
    yield from (f"/SQL/execution/?id={query['id']}" for query in queries)
    jobs = client.json(f"{api}/jobs")[:50]
    yield from (f"/jobs/job/?id={job['jobId']}" for job in jobs)
    yield from (f"/stages/stage/?id={stage}&attempt=0" for job in jobs[:5] for stage in job["stageIds"])


def test_no_secret_is_anywhere(live: Live) -> None:
    search, client = live.search, live.client
    wait_for(lambda: all(live.status(cluster, "export") for cluster in CLUSTERS), "all clusters are judged")
    live.run.wait_for_cycles(2)
    asked = 0
    for path in every_path(client):
        search.search(path, client.ask(path).body)
        asked += 1
    assert asked > 60
    wait_for(lambda: live.sinks()["lake"]["delivered"], "the lake has been written")
    # The lake reads commits from brokers itself.
    for port, plan in zip(live.ui_ports, ("MapInArrow", "kafka"), strict=True):
        spark = Client(f"http://127.0.0.1:{port}")
        for page in spark_pages(spark, plan):
            search.search(f"{page} of Spark at {port}", spark.ask(page).body)
    search.search_processes(live.run.processes(), {VARIABLE: PLAIN})
    search.search("the log", live.run.log.encode())
    logged = [file.read_bytes() for file in (live.run.home / "events").rglob("*") if file.is_file()]
    # That of the lake is compressed, and is written in blocks of some size.
    logged += [part for content in logged for _, part in unpacked(content)]
    assert any(b"SparkListenerSQLExecutionStart" in content for content in logged)
    assert live.kafka.tokens.issued
    assert search.looked_at > 500
    assert search.unpacked["parquet"] > 100
    assert search.unpacked["arrow"] > 100
    assert not search.found

"""A burrow.toml that was written for Burrow, run as it is on the servers of its time: verdicts, requests and points."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.kit.kafka import commit
from tests.kit.old_kafka import OldKafka
from tests.kit.servers import Client, group_path
from tests.kit.stores import InfluxDb
from tests.kit.warrens import WarrenRun, wait_for
from tests.kit.znodes import StalledInZooKeeper, old_consumers
from warren.cli import main
from warren.demo.broker import Kafka, free_ports
from warren.demo.workload.committing_groups import Stalled
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.snapshot.schemas import RATES

pytestmark = pytest.mark.timeout(600)

FILES = Path(__file__).parents[1] / "config" / "data"
CLUSTER, CHROOT = "logis-dev", "/kafka10"
METRICS, STILL = "infra.logis.metrics", "infra.logis.still"
PARTITIONS, FILLED, BEHIND = 3, 1_000, 100
NEW, OLD = "logstash-infra-logis-metrics", "logstash-test04"
NEW_STALLED, OLD_STALLED = "export", "export-to-hdfs"
DENIED_NEW, DENIED_OLD = ("console-consumer-77", "quick-look"), ("python-kafka-consumer-1", "console-consumer-78")
SINK = """
[sink.telegraf]
class-name = "influxdb"
urls = ["{url}"]
database = "telegraf"
clusters_include = ["logis-dev"]
topics_exclude = ["__consumer_offsets", "__confluent.support.metrics"]
tags = {{ usage = "logstash", project_id = "logis", host = "logis-ctl-01" }}
"""
"""What telegraf.conf had beside Burrow's file."""


def file_for(name: str, hosts: dict[str, str]) -> str:
    """A burrow.toml of the data of tests, with nothing changed in it but hosts and ports."""
    text = (FILES / name / "burrow.toml").read_text(encoding="utf-8")
    for pattern, address in hosts.items():
        text, count = re.subn(pattern, address, text)
        assert count, pattern
    return text


@dataclass
class Live:
    """The file's Warren, and the servers that it names."""

    run: WarrenRun
    kafka: OldKafka
    influxdb: InfluxDb
    client: Client

    @property
    def log(self) -> str:
        return (self.run.home / "logs" / "burrow.log").read_text()

    def status(self, group: str, what: str = "lag") -> dict[str, Any]:
        got = self.client.ask(group_path(group, what, CLUSTER))
        return dict(got.json["status"]) if got.status == 200 else {}

    def rows(self, statement: str) -> list[dict[str, Any]]:
        return self.influxdb.rows(statement, "telegraf")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with contextlib.ExitStack() as parts:
        influxdb = parts.enter_context(InfluxDb())
        kafka = parts.enter_context(OldKafka(version="0.10.2", chroot=CHROOT))
        znodes = parts.enter_context(old_consumers(kafka.zookeeper, CHROOT))
        create_topics(kafka.bootstrap, {METRICS: PARTITIONS, STILL: PARTITIONS}, replicas=1)
        for topic in (METRICS, STILL):
            fill_topic(kafka.bootstrap, topic, FILLED)
        for group in DENIED_NEW:
            commit(kafka.bootstrap, group, STILL, {0: FILLED})
        for group in DENIED_OLD:
            znodes.commit(group, STILL, 0, FILLED)
        workers = [
            Producer(kafka.bootstrap, METRICS, 60.0, is_idempotent=False),
            Healthy(kafka.bootstrap, METRICS, NEW),
            Stalled(kafka.bootstrap, STILL, NEW_STALLED, behind=BEHIND),
            StalledInZooKeeper(znodes, OLD_STALLED, STILL, dict.fromkeys(range(PARTITIONS), FILLED - BEHIND)),
        ]
        parts.callback(lambda: stop_all(workers, 60.0))
        for worker in workers:
            worker.start()
        parts.callback(kafka.old_consumer(OLD, METRICS).kill)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        text = file_for(
            "three_brokers",
            {r"logis-dp-\d+:9092": kafka.bootstrap, r"logis-dp-\d+:2181": kafka.zookeeper, ":8002": address},
        )
        run = parts.enter_context(WarrenRun(tmp_path_factory.mktemp("burrow"), text))
        live = Live(run, kafka, influxdb, Client(f"http://{address}"))
        run.wait_for(lambda s: s.manifest.is_ready and s.manifest.cycle_ms, "the first verdicts")
        # The file is complete without a sink; one is added while it runs.
        run.configure(text + SINK.format(url=influxdb.url))
        run.hang_up()
        yield live


def test_check_accepts_the_file_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--strict", "--config-dir", str(FILES / "three_brokers")]) == 0
    text = capsys.readouterr().out
    assert "from /kafka10 of ZooKeeper at logis-dp-01:2181, logis-dp-02:2181, logis-dp-03:2181" in text
    assert "logis-dev-zk" not in text, "there is nothing to note about the section"


@pytest.mark.usefixtures("live")  # which needs time for its verdicts
def test_the_file_of_a_first_try_runs_on_one_broker(kafka: Kafka, tmp_path: Path) -> None:
    topic, denied = "first-try", "python-kafka-consumer-first-try"
    create_topics(kafka.bootstrap, {topic: 1})
    fill_topic(kafka.bootstrap, topic, FILLED)
    for group in ("first-try", denied):
        commit(kafka.bootstrap, group, topic, {0: FILLED - BEHIND})
    address = f"127.0.0.1:{free_ports(1)[0]}"
    hosts = {"localhost:9092": kafka.bootstrap, ":8000": address}
    with WarrenRun(tmp_path, file_for("one_broker", hosts)) as run:
        run.wait_for(lambda s: s.manifest.is_ready and s.manifest.cycle_ms, "the first verdicts")
        client = Client(f"http://{address}")
        wait_for(lambda: client.ask(group_path("first-try", cluster="local")).status == 200, "the group is known")
        status = client.json(group_path("first-try", "lag", "local"))["status"]
        assert (status["status"], status["totallag"]) == ("OK", BEHIND)
        assert denied not in client.json("/v3/kafka/local/consumer")["consumers"]
        assert client.ask("/burrow/admin").text == "GOOD"


def test_groups_of_both_sections_have_their_verdicts(live: Live) -> None:
    expected = {NEW: "OK", OLD: "OK", NEW_STALLED: "ERR", OLD_STALLED: "ERR"}
    seen: dict[str, str] = {}

    def are_right() -> bool:
        statuses = {group: live.status(group) for group in expected}
        seen.update({group: status.get("status", "NOTFOUND") for group, status in statuses.items()})
        return seen == expected and all(0 <= status["totallag"] < FILLED for status in statuses.values())

    with contextlib.suppress(AssertionError):
        wait_for(are_right, "all verdicts are right", 180)
    assert seen == expected, live.log[-3000:]


def test_lag_is_that_of_the_topics(live: Live) -> None:
    for group in (NEW_STALLED, OLD_STALLED):
        status = live.status(group)
        assert status["totallag"] == PARTITIONS * BEHIND
        assert [(p["topic"], p["partition"], p["status"], p["current_lag"]) for p in status["partitions"]] == [
            (STILL, partition, "STALL", BEHIND) for partition in range(PARTITIONS)
        ]
    for group in (NEW, OLD):
        partitions = live.status(group)["partitions"]
        assert [(p["topic"], p["partition"], p["status"]) for p in partitions] == [
            (METRICS, partition, "OK") for partition in range(PARTITIONS)
        ]
        assert all(p["end"]["offset"] > FILLED for p in partitions), group
    owners = {p["owner"] for p in live.status(OLD)["partitions"]}
    assert len(owners) == 1
    assert owners.pop().startswith(f"{OLD}_"), "the owner that the consumer wrote to ZooKeeper"


def test_groups_of_the_denylists_are_absent(live: Live) -> None:
    groups = live.client.json(f"/v3/kafka/{CLUSTER}/consumer")["consumers"]
    assert set(groups) == {NEW, OLD, NEW_STALLED, OLD_STALLED}
    for group in (*DENIED_NEW, *DENIED_OLD):
        assert live.client.ask(group_path(group, "status", CLUSTER)).status == 404


def test_every_request_of_burrow_is_answered(live: Live) -> None:
    assert live.client.ask("/burrow/admin").text == "GOOD"
    assert live.client.json("/v3/kafka")["clusters"] == [CLUSTER]
    assert live.status(NEW, "status")["status"] == "OK"
    assert sorted(live.client.json(f"/v3/kafka/{CLUSTER}/topic")["topics"]) == ["__consumer_offsets", METRICS, STILL]
    assert live.client.json(f"/v3/kafka/{CLUSTER}/topic/{STILL}")["offsets"] == [FILLED] * PARTITIONS
    for group in (NEW, OLD):
        assert list(live.client.json(group_path(group, cluster=CLUSTER))["topics"]) == [METRICS]
    config = {"cluster": [CLUSTER], "consumer": [CLUSTER, "logis-dev-zk"], "notifier": [], "storage": ["default"]}
    for kind, names in config.items():
        assert sorted(live.client.json(f"/v3/config/{kind}")["modules"]) == names, kind
        for name in names:
            assert live.client.json(f"/v3/config/{kind}/{name}")["module"], name
    for path in (f"/v3/kafka/{CLUSTER}", "/v3/config", "/v3/config/evaluator", "/v3/admin/loglevel"):
        assert live.client.json(path)["error"] is False, path


def test_the_log_and_the_pid_are_in_the_files_that_it_names(live: Live) -> None:
    assert "snapshot" in live.log
    assert (live.run.home / "logs" / "burrow.out").exists()
    assert int((live.run.home / "burrow.pid").read_text()) in live.run.processes()


OWN_TAGS = {"cluster", "host", "project_id", "usage"}
TAGS = {
    "burrow_topic": OWN_TAGS | {"topic", "partition"},
    "burrow_partition": OWN_TAGS | {"group", "topic", "partition"},
    "burrow_group": OWN_TAGS | {"group"},
}
NUMBERS = {
    "burrow_topic": {"offset"},
    "burrow_partition": {"timestamp", "status_code", "offset", "lag"},
    "burrow_group": {"timestamp", "status_code", "offset", "lag", "total_lag", "partition_count"},
}
"""Telegraf's fields; status is a text."""
TIME_LAG = {"seconds_behind", "oldest_unread_age_seconds", "catch_up_seconds", "falling_behind"} | {
    "retention_left_seconds",
    "lost_messages",
}
BEYOND_TELEGRAF = {
    "burrow_topic": set[str](),
    "burrow_partition": {"burrow_code", "reason", "owner", "client_id", *TIME_LAG},
    "burrow_group": {"burrow_code", "total_offset", *TIME_LAG, *RATES},
}


@pytest.fixture(scope="module")
def two_minutes(live: Live) -> None:
    """Wait until there are points of all groups, in two minutes of the clock."""
    statement = 'SELECT count("offset") FROM "burrow_topic" WHERE time >= now() - 30m GROUP BY time(1m) fill(none)'
    wait_for(lambda: len(live.rows(statement)) > 1, "points of two minutes", 180)
    wait_for(lambda: len(live.rows('SHOW TAG VALUES FROM "burrow_group" WITH KEY = "group"')) == 4, "points of groups")


@pytest.mark.usefixtures("two_minutes")
@pytest.mark.parametrize("measurement", TAGS)
def test_points_have_telegrafs_tags_and_fields(live: Live, measurement: str) -> None:
    assert {row["tagKey"] for row in live.rows(f"SHOW TAG KEYS FROM {measurement}")} == TAGS[measurement]
    types = {row["fieldKey"]: row["fieldType"] for row in live.rows(f"SHOW FIELD KEYS FROM {measurement}")}
    expected = dict.fromkeys(NUMBERS[measurement], "integer")
    if measurement != "burrow_topic":
        expected["status"] = "string"
    assert {name: kind for name, kind in types.items() if name not in BEYOND_TELEGRAF[measurement]} == expected
    topics = "" if measurement == "burrow_group" else "where topic = 'infra.logis.metrics'"
    newest = live.rows(f"select * from {measurement} {topics} order by time desc limit 5")
    assert len(newest) == 5
    for row in newest:
        assert set(row) - BEYOND_TELEGRAF[measurement] == {"time", *TAGS[measurement], *expected}
        assert (row["cluster"], row["host"], row["usage"], row["project_id"]) == (
            CLUSTER, "logis-ctl-01", "logstash", "logis",
        )  # fmt: skip


@pytest.mark.usefixtures("two_minutes")
def test_points_of_groups_are_telegrafs(live: Live) -> None:
    expected = {NEW: ("OK", 1), OLD: ("OK", 1), NEW_STALLED: ("ERR", 4), OLD_STALLED: ("ERR", 4)}

    def with_verdicts() -> dict[str, dict[str, Any]] | None:
        newest = {row["group"]: row for row in live.rows("select * from burrow_group order by time desc limit 4")}
        codes = {group: (row["status"], row["status_code"]) for group, row in newest.items()}
        return newest if codes == expected else None

    newest = wait_for(with_verdicts, f"points with the verdicts {expected}")
    for group in (NEW_STALLED, OLD_STALLED):
        row = newest[group]
        assert (row["lag"], row["total_lag"], row["partition_count"]) == (BEHIND, PARTITIONS * BEHIND, PARTITIONS)
    for group, row in newest.items():
        partitions = live.rows(f"select * from burrow_partition where \"group\" = '{group}' and time = {row['time']}ms")
        assert len(partitions) == PARTITIONS
        assert row["offset"] == max(partition["offset"] for partition in partitions)
        assert row["timestamp"] == max(partition["timestamp"] for partition in partitions)


@pytest.mark.usefixtures("two_minutes")
def test_the_rate_of_a_topic_is_asked_for_in_grafana(live: Live) -> None:
    heads = f"SELECT \"offset\" FROM burrow_topic WHERE topic = '{METRICS}'"
    rate = (
        'SELECT difference(mean("offset")) FROM "burrow_topic" WHERE time >= now() - 30m '
        'GROUP BY time(1m), "topic" fill(previous)'
    )

    def between_points() -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
        before, answer = live.rows(heads), live.rows(rate)
        return (before, answer) if live.rows(heads) == before else None

    rows, found = wait_for(between_points, "an answer between two intervals")
    by_minute: dict[int, list[int]] = {}
    for row in rows:
        by_minute.setdefault(row["time"] // 60_000 * 60_000, []).append(row["offset"])
    means = [(minute_ms, sum(offsets) / len(offsets)) for minute_ms, offsets in sorted(by_minute.items())]
    differences = {(METRICS, minute_ms): mean - last for (_, last), (minute_ms, mean) in pairwise(means)}
    differences |= dict.fromkeys(((STILL, minute_ms) for minute_ms, _ in means[1:]), 0.0)
    assert {(row["topic"], row["time"]): row["difference"] for row in found} == pytest.approx(differences)
    assert all(differences[METRICS, minute_ms] > 0 for minute_ms, _ in means[1:])


@pytest.mark.usefixtures("two_minutes")
def test_lag_is_asked_for_in_grafana(live: Live) -> None:
    found = live.rows(
        'SELECT sum("lag") FROM "burrow_partition" WHERE time >= now() - 30m '
        'GROUP BY time(2s), "group", "topic" fill(none)'
    )
    for group in (NEW_STALLED, OLD_STALLED):
        assert {row["sum"] for row in found if (row["group"], row["topic"]) == (group, STILL)} == {PARTITIONS * BEHIND}
    assert {row["group"] for row in found if row["topic"] == METRICS} == {NEW, OLD}

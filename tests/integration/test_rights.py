"""Every right that the docs list, taken from a running Warren and given back: what stops, and what Warren says."""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.kit.kafka import commit, open_transaction
from tests.kit.rights import DOCS, Right, documented_rights
from tests.kit.secured import SCRAM, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.servers import Client, group_path
from tests.kit.warrens import WarrenRun, wait_for
from warren.demo.workload import producer
from warren.demo.workload.consuming_groups import Healthy, Kip848
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TOPIC, POINTS = "orders", "lag-points"
USER = USERS[SCRAM]
WATCH = documented_rights("To watch a cluster")
SINK = documented_rights("For a Kafka sink", NAME="points", TOPIC=POINTS)
INCIDENTS = documented_rights("For incidents that several Warrens share")
READ_TOPICS = Right("Read", "topic")
DESCRIBE_CONFIGS = Right("DescribeConfigs", "topic")
DESCRIBE_TRANSACTIONS = Right("Describe", "transactional-id")
ALL = [*WATCH, *SINK, *INCIDENTS]
DESCRIBE_GROUPS = Right("Describe", "group")
WRITE_INCIDENTS = Right("Write", "topic", "warren-incidents")


@dataclass
class Live:
    """The broker and the Warren on it."""

    kafka: SecuredKafka
    run: WarrenRun

    @property
    def client(self) -> Client:
        """Asks the API of the run that is on now."""
        return Client(re.findall(r"answering at (\S+)", self.run.log)[-1])

    def cluster(self) -> dict[str, Any]:
        """The cluster as the overview has it."""
        found: dict[str, Any] = self.client.json("/v3/overview")["overview"]["clusters"][0]
        return found

    def sink(self) -> dict[str, Any]:
        """The sink as the API has it."""
        found: dict[str, Any] = self.client.json("/v3/sinks")["sinks"][0]
        return found

    def duty(self) -> dict[str, Any]:
        """Whether this Warren notifies, and why not."""
        found: dict[str, Any] = self.client.json("/v3/notifiers")["duty"]
        return found

    def incidents(self) -> list[str]:
        """The groups that have incidents."""
        return [incident["group"] for incident in self.client.json("/v3/incidents")["incidents"]]

    def is_away(self, why: str) -> bool:
        """Whether this Warren does not notify, for such a reason."""
        duty = self.duty()
        return duty["state"] == "away" and re.search(why, duty["why"]) is not None

    def owners(self, group: str) -> set[str]:
        """The owners of a group's partitions."""
        got = self.client.ask(group_path(group, "lag", "main"))
        return {each["owner"] for each in got.json["status"]["partitions"]} if got.status == 200 else set()

    def is_well(self) -> bool:
        """Whether everything works that these rights are for."""
        return (
            self.cluster().get("unknown_since", "") is None
            and self.sink()["delivered"] is not None
            and not self.sink()["trouble"]
            and self.duty()["state"] == "active"
            and "" not in self.owners("audit")
        )

    def shown(self) -> str:
        """What it says about itself, for the words of a failed assertion."""
        return f"{self.cluster()}\n{self.sink()}\n{self.duty()}\n{self.owners('audit')}\n{self.run.log[-3000:]}"

    def wait(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds."""
        try:
            wait_for(holds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.shown()}") from None

    def partition(self, group: str) -> tuple[str, int] | None:
        """The status and the lag of the only partition of a group, None if the group is not known."""
        got = self.client.ask(group_path(group, "lag", "main"))
        if got.status != 200:
            return None
        [partition] = got.json["status"]["partitions"]
        return partition["status"], partition["current_lag"]

    @contextlib.contextmanager
    def granted(self, right: Right) -> Iterator[None]:
        """A right that Warren does not need is given to it during the block."""
        self.kafka.grant(USER, [right])
        try:
            yield
        finally:
            self.kafka.revoke(USER, [right])

    @contextlib.contextmanager
    def restarted_without(self, right: Right) -> Iterator[None]:
        """A right is missing at the start of a Warren, which asks for it only then."""
        self.kafka.revoke(USER, [right])
        self.run.stop()
        before = self.run.log.count("answering at")
        self.run.start()
        wait_for(lambda: self.run.log.count("answering at") > before, "the API is there")
        try:
            yield
        finally:
            self.kafka.grant(USER, [right])


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A Warren with only the documented rights that uses all of them."""
    home = tmp_path_factory.mktemp("rights")
    with SecuredKafka(tmp_path_factory.mktemp("kafka"), reauthenticate_s=4) as kafka:
        kafka.grant(USER, ALL)
        create_topics(kafka.bootstrap, {TOPIC: 2, POINTS: 1})
        workers = [
            producer.Producer(kafka.bootstrap, TOPIC, 20.0),
            Healthy(kafka.bootstrap, TOPIC, "billing"),
            Kip848(kafka.bootstrap, TOPIC, "audit"),
        ]
        run = WarrenRun(home, sections(kafka, home))
        with contextlib.ExitStack() as parts:
            parts.callback(stop_all, workers, 60.0)
            for worker in workers:
                worker.start()
            parts.enter_context(run)
            wait_for(lambda: "answering at" in run.log, "the API is there")
            yield Live(kafka, run)


def sections(kafka: SecuredKafka, home: Path) -> dict[str, dict[str, Any]]:
    made = secured_sections(kafka, {"main": SCRAM})
    (home / "open.tmpl").write_text("{{.Group}}")
    made["sink.points"] = {"class-name": "kafka", "topic": POINTS, "interval": 2}
    made["incidents"] = {"class-name": "kafka"}
    made["notifier-lock"] = {"class-name": "kafka"}
    made["notifier.none"] = {"class-name": "null", "template-open": str(home / "open.tmpl")}
    return made


def commit_often(live: Live, group: str, topic: str, offsets: Iterable[int]) -> None:
    """Commits of a group to the first partition, one per second."""
    for offset in offsets:
        commit(live.kafka.bootstrap, group, topic, {0: offset})
        time.sleep(1)


@pytest.fixture(autouse=True)
def _well_before_and_after(live: Live) -> Iterator[None]:
    live.wait(live.is_well, "all is well")
    yield
    live.wait(live.is_well, "all is well again")


@pytest.mark.parametrize("right", [right for right in WATCH if right != DESCRIBE_GROUPS], ids=str)
def test_without_a_right_to_watch_the_cluster_is_unknown_and_says_which(live: Live, right: Right) -> None:
    live.kafka.revoke(USER, [right])
    try:
        live.wait(lambda: live.cluster()["unknown_since"] is not None, "the cluster is unknown")
        said = live.cluster()["error_message"]
    finally:
        live.kafka.grant(USER, [right])
    assert f"grant {right.operation} on" in said
    assert right.resource in said
    assert right.name.strip("*") in said


def test_without_a_right_on_groups_verdicts_go_on_without_the_owners_of_new_protocol_groups(live: Live) -> None:
    live.kafka.revoke(USER, [DESCRIBE_GROUPS])
    try:
        live.wait(lambda: live.owners("audit") == {""}, "its owners are unknown")
        live.run.wait_for_cycles(3)
        unknown_since = live.cluster()["unknown_since"]
        verdict = live.client.json(group_path("billing", "status", "main"))["status"]["status"]
    finally:
        live.kafka.grant(USER, [DESCRIBE_GROUPS])
    assert (unknown_since, verdict) == (None, "OK")


@pytest.mark.parametrize("right", SINK, ids=str)
def test_without_a_right_of_a_sink_it_is_in_trouble_and_keeps_its_records(live: Live, right: Right) -> None:
    with live.restarted_without(right):
        live.wait(lambda: live.sink()["trouble"], "the sink is in trouble")
        assert re.search(r"(?i)authoriz|not allowed", live.sink()["trouble"]), live.sink()
        live.wait(lambda: live.sink()["waiting"] > 1, "it keeps what is not delivered")


NEEDED = [right for right in INCIDENTS if right.operation != "Create" and right != WRITE_INCIDENTS]


@pytest.mark.parametrize("right", NEEDED, ids=str)
def test_without_a_right_on_shared_incidents_this_warren_does_not_notify(live: Live, right: Right) -> None:
    with live.restarted_without(right):
        live.wait(lambda: live.is_away(r"(?i)authoriz|not allowed"), "it cannot notify, and says why")


def test_without_a_right_to_write_incidents_this_warren_does_not_notify_as_soon_as_there_is_one(live: Live) -> None:
    with live.restarted_without(WRITE_INCIDENTS):
        # Ten commits that end, with messages left: the group is stopped.
        commit_often(live, "stopped", TOPIC, range(1, 11))
        live.wait(lambda: live.is_away(r"(?i)changelog.*authoriz"), "it cannot notify, and says why")
        assert "this Warren cannot notify: cannot write to the changelog of incidents" in live.run.log
    live.wait(lambda: "stopped" in live.incidents(), "the incident is written when the right is back")


@pytest.mark.parametrize("right", [right for right in INCIDENTS if right.operation == "Create"], ids=str)
def test_a_topic_that_exists_need_not_be_created(live: Live, right: Right) -> None:
    with live.restarted_without(right):
        live.wait(live.is_well, "all is well")


def test_a_topic_that_cannot_be_created_is_named(live: Live) -> None:
    right = Right("Create", "topic", "warren-incidents")
    admin = live.kafka.admin()
    admin.delete_topics([right.name])[right.name].result(30)
    with live.restarted_without(right):
        live.wait(lambda: live.is_away(right.name), "it cannot notify, and names the topic")
        config = {"cleanup.policy": "compact"}
        admin.create_topics([NewTopic(right.name, 1, 1, config=config)])[right.name].result(30)
        live.wait(live.is_well, "all is well with a topic that somebody else created")


def test_without_the_right_to_read_all_topics_markers_of_transactions_count_as_lag(live: Live) -> None:
    topic, group = "ledger", "accounts"
    create_topics(live.kafka.bootstrap, {topic: 1})
    producer = Producer({"bootstrap.servers": live.kafka.bootstrap, "transactional.id": "bank", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(10):
        producer.produce(topic, b"x")
    producer.commit_transaction(30)
    # The last commit is at the end of the data, one before that of the log.
    commit_often(live, group, topic, range(1, 11))
    live.wait(lambda: live.partition(group) == ("STOP", 1), "the marker counts as lag")
    said = (
        f"main: Warren is not allowed to read the topic {topic}: grant Read on it to Warren's user; until then markers"
    )
    assert live.run.log.count(said) == 1
    with live.granted(READ_TOPICS):
        live.wait(lambda: live.partition(group) == ("OK", 0), "it has been read that there is no data left")


def test_without_the_right_on_configurations_nobody_knows_how_long_messages_are_kept(live: Live) -> None:
    topic, group = "drafts", "editors"
    admin = live.kafka.admin()
    admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "3600000"})])[topic].result(30)
    fill_topic(live.kafka.bootstrap, topic, 10)
    commit(live.kafka.bootstrap, group, topic, {0: 1})

    def status() -> dict[str, Any]:
        got = live.client.ask(group_path(group, "status", "main"))
        found: dict[str, Any] = got.json["status"] if got.status == 200 else {}
        return found

    live.wait(lambda: status().get("is_falling_behind"), "its rates are known")
    live.run.wait_for_cycles(3)
    assert status()["retention_left_seconds"] is None
    with live.granted(DESCRIBE_CONFIGS):
        live.wait(lambda: status()["retention_left_seconds"], "the retention is known")
        found = status()
        assert found["retention_left_seconds"] == pytest.approx(3600 - found["seconds_behind"], abs=60)


def test_without_the_right_on_transactional_ids_a_transaction_that_holds_back_commits_has_no_name(live: Live) -> None:
    def held_by() -> list[str | None]:
        unread = live.cluster()["unread"]
        return [each["transactional_id"] for each in unread if each["held_by_transaction"]]

    with open_transaction(live.kafka.bootstrap, "payroll", "wages", TOPIC):
        said = "held back by an open transaction that the brokers do not name"
        live.wait(lambda: said in live.run.log, "the log says why the name is missing")
        assert held_by() == [None]
        with live.granted(DESCRIBE_TRANSACTIONS):
            live.wait(lambda: held_by() == ["payroll"], "the transaction is named")
    live.wait(lambda: not held_by(), "the transaction has ended")


def test_no_right_of_the_documentation_is_left_untested() -> None:
    assert documented_rights("Optional rights") == [READ_TOPICS, DESCRIBE_CONFIGS, DESCRIBE_TRANSACTIONS]
    assert "not tested" not in DOCS.read_text(encoding="utf-8")

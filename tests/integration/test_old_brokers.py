"""One Warren on brokers of every age: the same consumer groups, the same verdicts."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.kit.kafka import commit, delete_topic
from tests.kit.old_kafka import OldKafka
from tests.kit.servers import Client, group_path
from tests.kit.warrens import WarrenRun, sections_for, wait_for
from warren.demo.workload.committing_groups import CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.errors import DemoError

pytestmark = pytest.mark.timeout(900)

TOPIC, QUIET = "orders", "quiet"
RATE = 60.0
FILLED = 4_000
VERDICTS = {"billing": "OK", "replay": "OK", "search": "WARN", "export": "STALL", "restore": "REWIND"}


def workload(version: str, bootstrap: str) -> list[WorkloadThread]:
    return [
        Producer(bootstrap, TOPIC, RATE, is_idempotent=version != "0.10.2"),
        Healthy(bootstrap, TOPIC, "billing"),
        CatchingUp(bootstrap, TOPIC, "replay", produced_rate=RATE, behind=1_500),
        Slow(bootstrap, TOPIC, "search", produced_rate=RATE, fraction=0.5, behind=500),
        Stalled(bootstrap, TOPIC, "export", behind=500),
        Rewinding(bootstrap, TOPIC, "restore"),
    ]


@dataclass
class Live:
    """A Warren and the brokers that it watches, by version."""

    run: WarrenRun
    brokers: dict[str, OldKafka]

    @property
    def client(self) -> Client:
        return Client(self.run.url())

    def status(self, version: str, group: str) -> dict[str, Any] | None:
        """The status of a group with its partitions, None if the group is not known yet."""
        got = self.client.ask(group_path(group, "lag", cluster_of(version)))
        return got.json["status"] if got.status == 200 else None

    def partitions(self, version: str, group: str) -> list[dict[str, Any]]:
        status = self.status(version, group)
        return list(status["partitions"]) if status else []

    def verdicts(self) -> dict[tuple[str, str], str]:
        """The worst status of the partitions of each group."""
        statuses = {
            (version, group): [partition["status"] for partition in self.partitions(version, group)]
            for version in self.brokers
            for group in VERDICTS
        }
        return {key: next((status for status in own if status != "OK"), "OK") for key, own in statuses.items() if own}


def cluster_of(version: str) -> str:
    return f"kafka-{version.replace('.', '-')}"


@pytest.fixture(
    scope="module", params=[("0.10.2", "2.8", "3.9"), pytest.param(("0.11.0", "1.1"), marks=pytest.mark.long)]
)
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with contextlib.ExitStack() as parts:
        brokers = {version: parts.enter_context(OldKafka(version=version)) for version in request.param}
        workers: list[WorkloadThread] = []
        parts.callback(lambda: stop_all(workers, 60.0))
        for version, kafka in brokers.items():
            create_topics(kafka.bootstrap, {TOPIC: 2, QUIET: 1}, replicas=1)
            fill_topic(kafka.bootstrap, TOPIC, FILLED)
            fill_topic(kafka.bootstrap, QUIET, FILLED)
            commit(kafka.bootstrap, "archive", QUIET, {0: FILLED - 100})
            workers += workload(version, kafka.bootstrap)
        for worker in workers:
            worker.start()
        sections = sections_for({cluster_of(version): kafka.bootstrap for version, kafka in brokers.items()})
        run = parts.enter_context(WarrenRun(tmp_path_factory.mktemp("old"), sections))
        yield Live(run, brokers)


def test_every_group_has_its_verdict_on_every_broker(live: Live) -> None:
    expected = {(version, group): verdict for version in live.brokers for group, verdict in VERDICTS.items()}
    seen: dict[tuple[str, str], str] = {}

    def are_right() -> bool:
        seen.update(live.verdicts())
        return seen == expected

    with contextlib.suppress(AssertionError):
        wait_for(are_right, "all verdicts are right", 300)
    assert seen == expected, live.run.log[-3000:]


def test_owners_are_known_on_every_broker(live: Live) -> None:
    for version in live.brokers:
        owners = {partition["owner"] for partition in live.partitions(version, "billing")}
        assert owners == {"/127.0.0.1"}, version


def test_a_silent_group_is_known_by_its_last_commit(live: Live) -> None:
    for version in live.brokers:
        assert [partition["current_lag"] for partition in live.partitions(version, "archive")] == [100], version


def test_a_topic_that_is_created_again_is_no_rewind(live: Live) -> None:
    """Brokers before 2.8 have no ids by which to tell the two topics apart."""
    for version, kafka in live.brokers.items():
        delete_topic(kafka.bootstrap, QUIET)
        wait_for(partial(is_created, kafka.bootstrap, QUIET), f"{version}: the topic is there again")
        fill_topic(kafka.bootstrap, QUIET, 50)
        for offset in (10, 20, 50):
            commit(kafka.bootstrap, "archive", QUIET, {0: offset})
    for version in live.brokers:

        def is_new(version: str = version) -> bool:
            return [partition["current_lag"] for partition in live.partitions(version, "archive")] == [0]

        wait_for(is_new, f"{version}: the commits to the new topic are read")
        status = live.status(version, "archive")
        assert status is not None
        assert status["status"] == "OK", version


def is_created(bootstrap: str, topic: str) -> bool:
    """Whether a topic could be created; a broker of that time deletes topics beside its answer."""
    with contextlib.suppress(DemoError):
        create_topics(bootstrap, {topic: 1}, replicas=1, timeout_s=10)
        return True
    return False

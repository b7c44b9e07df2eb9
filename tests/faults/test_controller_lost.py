"""Three brokers lose the active controller: groups are unknown until two triggers after the election, never wrong."""

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.kit.brokers import KafkaTrio
from tests.kit.warrens import wait_for
from tests.kit.watched import TRIGGER_S, Watched, report, watched

pytestmark = pytest.mark.timeout(300)

NAME = "faults-controller"
SLACK_S = 3.0
"""What a cycle takes, and how exactly the election is measured, on a busy machine."""


class Election:
    """When every broker that is left says that the partitions of the dead one have other leaders."""

    def __init__(self, trio: KafkaTrio, dead: int) -> None:
        self.ended_s: float | None = None
        self._dead = dead
        self._addresses = [trio.address(i) for i in range(trio.brokers) if i != dead]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not all(map(self._is_over, self._addresses)):
            time.sleep(0.1)
        self.ended_s = time.time()

    def _is_over(self, address: str) -> bool:
        # A new client has no other broker to ask.
        client = AdminClient({"bootstrap.servers": address, "log_level": 0})
        with contextlib.suppress(KafkaException):
            topics = client.list_topics(timeout=2).topics.values()
            leaders = {partition.leader for topic in topics for partition in topic.partitions.values()}
            return bool(topics) and not leaders & {self._dead, -1}
        return False


@pytest.fixture(scope="module")
def trio() -> Iterator[KafkaTrio]:
    with KafkaTrio() as running:
        yield running


@pytest.fixture(scope="module")
def stage(trio: KafkaTrio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched(trio.bootstrap, NAME, tmp_path_factory.mktemp("controller")) as running:
        yield running
    running.assert_nothing_lost()


def test_groups_are_unknown_for_the_election_and_at_most_two_triggers(trio: KafkaTrio, stage: Watched) -> None:
    dead = trio.controller
    killed_s = time.time()
    trio.kill(dead)
    election = Election(trio, dead)
    ended_s = wait_for(lambda: election.ended_s, "the brokers have elected", 60)
    right_s = stage.wait_right(ended_s)
    report(f"election {ended_s - killed_s:.1f} s, right {right_s:.1f} s later, {stage.shown(killed_s)}")
    assert trio.controller != dead
    assert right_s <= 2 * TRIGGER_S + SLACK_S
    stage.assert_never_wrong(killed_s)

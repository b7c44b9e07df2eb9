"""What a Warren says and does when a secured cluster turns it away, and that it comes back by itself.

Two clusters to Warren, on one broker: `scram` is the one that things happen to, `plain` must not notice.
"""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.kit.certificates import Certificate
from tests.kit.rights import Right, documented_rights
from tests.kit.secured import PLAIN, SCRAM, USERS, SecuredKafka, new_password
from tests.kit.secured_sections import secured_sections
from tests.kit.servers import Client
from tests.kit.warrens import Recorder, Seen, WarrenRun, wait_for
from warren.app import SAMPLE_TIMEOUT_S
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics

pytestmark = pytest.mark.timeout(900)

TOPIC, GROUP = "orders", "billing"
OTHER_TOPIC, OTHER_GROUP = "payments", "audit"
TRIGGER_S = 1.0
REAUTHENTICATE_S = 4
CYCLES = 8
VALID_S = 20.0


@dataclass
class Live:
    """The broker, the Warren on it and what it publishes."""

    kafka: SecuredKafka
    run: WarrenRun
    record: Recorder
    password: Path

    @property
    def client(self) -> Client:
        """Asks the API of the Warren."""
        return Client(wait_for(lambda: re.findall(r"answering at (\S+)", self.run.log), "the API is there")[-1])

    def cluster(self, name: str) -> dict[str, Any]:
        """A cluster as the overview has it."""
        overview = self.client.json("/v3/overview")["overview"]
        return next(each for each in overview["clusters"] if each["name"] == name)

    def wait_unknown(self, sentence: str) -> dict[str, Any]:
        """Wait until the cluster of SCRAM is unknown for a reason that matches."""
        try:
            wait_for(lambda: re.search(sentence, self.cluster("scram").get("error_message") or ""), sentence)
        except AssertionError:
            raise AssertionError(f"{self.cluster('scram')}\n{self.run.log[-6000:]}") from None
        return self.cluster("scram")

    def wait_well(self) -> None:
        """Wait until both clusters are judged, and of now."""
        began_ms = time.time() * 1000

        def is_well() -> bool:
            found = [self.cluster(name) for name in ("scram", "plain")]
            return all(each.get("unknown_since") is None and (each.get("judged_at") or 0) > began_ms for each in found)

        try:
            wait_for(is_well, "both clusters are judged")
        except AssertionError:
            raise AssertionError(f"{self.cluster('scram')}\n{self.run.log[-6000:]}") from None


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A group that keeps up, judged every second."""
    home = tmp_path_factory.mktemp("faults")
    with SecuredKafka(tmp_path_factory.mktemp("kafka"), reauthenticate_s=REAUTHENTICATE_S) as kafka:
        for listener in (SCRAM, PLAIN):
            kafka.grant(USERS[listener], documented_rights("To watch a cluster"))
        create_topics(kafka.bootstrap, {TOPIC: 2, OTHER_TOPIC: 1})
        workers = [
            worker
            for topic, group in ((TOPIC, GROUP), (OTHER_TOPIC, OTHER_GROUP))
            for worker in (Producer(kafka.bootstrap, topic, 20.0), Healthy(kafka.bootstrap, topic, group))
        ]
        password = home / "password"
        password.write_text(kafka.passwords[USERS[SCRAM]])
        clusters = {"scram": SCRAM, "plain": PLAIN}
        sections = secured_sections(kafka, clusters, trigger=TRIGGER_S, passwords={SCRAM: f"file:{password}"})
        run = WarrenRun(home, sections)
        with contextlib.ExitStack() as parts:
            parts.callback(stop_all, workers, 60.0)
            for worker in workers:
                worker.start()
            record = parts.enter_context(Recorder(run.data))
            parts.enter_context(run)
            found = Live(kafka, run, record, password)
            found.wait_well()
            yield found


@pytest.fixture(autouse=True)
def _well_before_and_after(live: Live) -> Iterator[None]:
    live.wait_well()
    yield
    live.wait_well()


def assert_said(live: Live, unknown: dict[str, Any], logged_from: int) -> None:
    """The same sentence is in the log, and metrics and API show since when."""
    assert unknown["unknown_since"] is not None
    assert "\n" not in unknown["error_message"]
    assert len(unknown["error_message"]) < 300
    log = live.run.log[logged_from:]
    assert log.count(f"scram is unknown: {unknown['error_message']}") == 1, log

    def is_up(cluster: str) -> str:
        metric = re.search(
            rf'^warren_cluster_up\{{cluster="{cluster}"\}} (\d)$', live.client.ask("/metrics").text, re.MULTILINE
        )
        return metric[1] if metric else ""

    assert is_up("scram") == "0"
    wait_for(lambda: is_up("plain") == "1", "the other cluster is judged")


@contextlib.contextmanager
def others_untouched(live: Live) -> Iterator[None]:
    """While the cluster of SCRAM is unknown, each snapshot has the other cluster as of its own cycle.

    How long a cycle takes depends on the machine. What it waits for does not: a cycle that waited for a cluster that
    does not answer would begin a whole timeout after the sample of the other.
    """
    first = live.record.seen[-1].manifest.sequence
    yield
    live.run.wait_for_cycles(CYCLES)
    snapshots = [seen for seen in live.record.seen if seen.manifest.sequence >= first]
    for seen in snapshots:
        assert seen.manifest.clusters["plain"].is_judged, seen.manifest.clusters["plain"]
        assert seen.verdicts("plain", GROUP) == {"OK"}, seen.why("plain", GROUP)
    cycles = [(before, seen) for before, seen in pairwise(snapshots) if not seen.manifest.clusters["scram"].is_judged]
    assert len(cycles) >= CYCLES
    for before, seen in cycles:
        manifest = seen.manifest
        assert manifest.clusters["plain"].looked_at_ms > before.manifest.now_ms, "a sample of this cycle"
        sampled_ms = manifest.heads[-1].taken_ms["plain"][1]
        assert manifest.now_ms - sampled_ms < SAMPLE_TIMEOUT_S * 1000, "it has waited"


@contextlib.contextmanager
def given_back(live: Live, right: Right) -> Iterator[None]:
    """A right that was taken away is given back after the block, whatever happens in it."""
    try:
        yield
    finally:
        live.kafka.grant(USERS[SCRAM], [right])


@contextlib.contextmanager
def presented(live: Live, certificate: Certificate) -> Iterator[None]:
    """During the block the cluster of SCRAM shows this certificate at every new connection."""
    live.kafka.present(SCRAM, certificate)
    try:
        yield
    finally:
        live.kafka.present(SCRAM, live.kafka.authority.server)


def test_a_password_that_is_changed_at_the_broker_and_then_in_its_file(live: Live) -> None:
    logged = len(live.run.log)
    password = new_password()
    with others_untouched(live):
        live.kafka.set_password(USERS[SCRAM], password)
        unknown = live.wait_unknown(r"the broker rejects the user name or the password")
        assert_said(live, unknown, logged)
    live.password.write_text(password + "\n")
    live.wait_well()


def test_a_password_that_is_changed_in_its_file_right_after_the_broker_is_not_noticed_for_long(live: Live) -> None:
    password = new_password()
    live.kafka.set_password(USERS[SCRAM], password)
    live.password.write_text(password)
    live.run.wait_for_cycles(2 * REAUTHENTICATE_S)
    live.wait_well()


@pytest.mark.parametrize(
    ("right", "sentence"),
    [
        (
            Right("Read", "topic", "__consumer_offsets"),
            r"not allowed to read the topic __consumer_offsets: grant Read on it",
        ),
        (Right("Describe", "topic"), r"grant Describe on"),
    ],
    ids=str,
)
def test_a_right_that_is_taken_away_and_given_back(live: Live, right: Right, sentence: str) -> None:
    logged = len(live.run.log)
    with given_back(live, right), others_untouched(live):
        live.kafka.revoke(USERS[SCRAM], [right])
        assert_said(live, live.wait_unknown(sentence), logged)
    live.wait_well()


def test_a_topic_that_is_denied_is_unknown_and_the_rest_of_its_cluster_goes_on(live: Live) -> None:
    logged = len(live.run.log)
    denied = Right("Describe", "topic", OTHER_TOPIC, is_denied=True)
    sentence = f"Warren is not allowed to see the topic {OTHER_TOPIC}: grant Describe on it to Warren's user"

    def newest() -> Seen:
        return live.record.seen[-1]

    def head(seen: Seen) -> tuple[int, int]:
        row = seen.partitions["scram", OTHER_GROUP, OTHER_TOPIC, 0]
        return row["head"], row["head_ms"]

    live.kafka.grant(USERS[SCRAM], [denied])
    try:
        wait_for(lambda: live.cluster("scram")["missing_right"] == sentence, sentence)
        hidden = newest()
        starts = live.run.log.count("answering at")
        live.run.stop()
        live.run.start()
        wait_for(lambda: live.run.log.count("answering at") > starts, "the API is there")
        wait_for(lambda: newest().manifest.epoch > hidden.manifest.epoch, "another Warren goes on")
        wait_for(lambda: live.cluster("scram")["missing_right"] == sentence, sentence)
        # Longer than a topic is missing until it counts as deleted.
        live.run.wait_for_cycles(2 * CYCLES)
        during = [seen for seen in live.record.seen if seen.manifest.sequence >= hidden.manifest.sequence]
        metrics = live.client.ask("/metrics").text
    finally:
        live.kafka.revoke(USERS[SCRAM], [denied])
    assert {head(seen) for seen in during} == {head(hidden)}, "its last known head counts, with its time"
    assert all(seen.manifest.clusters["scram"].is_judged for seen in during)
    assert all(seen.verdicts("scram", GROUP) == seen.verdicts("scram", OTHER_GROUP) == {"OK"} for seen in during)
    assert during[-1].partitions["scram", OTHER_GROUP, OTHER_TOPIC, 0]["times_ms"][-1] > hidden.manifest.now_ms
    assert re.search(r'^warren_hidden_topics\{cluster="scram"\} 1$', metrics, re.MULTILINE)
    assert re.search(r'^warren_hidden_topics\{cluster="plain"\} 0$', metrics, re.MULTILINE)
    assert f"scram: the lag of some topics is unknown: {sentence}" in live.run.log[logged:]
    wait_for(lambda: live.cluster("scram")["missing_right"] is None, "the topic is seen again")
    wait_for(lambda: head(newest())[1] > hidden.manifest.now_ms, "its head is known again")


@pytest.mark.long
def test_a_certificate_that_expires_and_is_replaced(live: Live) -> None:
    with presented(live, live.kafka.authority.issue("127.0.0.1", valid_s=VALID_S)):
        time.sleep(VALID_S)
        logged = len(live.run.log)
        # Connections from before go on; every new one shows the certificate.
        live.kafka.restart()
        unknown = live.wait_unknown(r"the broker's certificate has expired")
        assert_said(live, unknown, logged)
    live.wait_well()


@pytest.mark.long
def test_a_certificate_of_another_host(live: Live) -> None:
    with presented(live, live.kafka.authority.issue("elsewhere.test")):
        logged = len(live.run.log)
        live.kafka.restart()
        unknown = live.wait_unknown(r"the broker's certificate is not for the host")
        assert_said(live, unknown, logged)
    live.wait_well()

"""Brokers of every age: too old for Warren, without a commit yet, and with offsets topics of every kind."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.cimpl import NewTopic

from tests.kit.kafka import commit, delete_topic, produce
from tests.kit.old_kafka import OldKafka
from tests.kit.records import commit_key, commit_value
from tests.kit.servers import Client
from tests.kit.warrens import WarrenRun, sections_for, wait_for
from warren.demo.workload.topics import admin, create_topics, fill_topic
from warren.domain.status import Status
from warren.kafka.admin import Admin
from warren.snapshot.manifest import ClusterState
from warren.snapshot.reader import Snapshot

pytestmark = pytest.mark.timeout(600)

KAFKAS_OWN, OWN_OFFSETS, TOPIC = "__consumer_offsets", "own-offsets", "orders"
FILLED = 1_000
TOO_OLD = {"0.9.0": "older than 0.10", "0.10.1": "0.10.1"}
SUPPORTED = ("0.10.2", "2.8")
COMMITS = {"0.10.2": 20_000, "2.8": 200_000}
"""How many commits the offsets topic of another name gets."""
GROUPS = 20
COMMIT_BYTES = 50
"""A commit has more bytes than that."""
QUIET, BUSY = 100, 800
"""The offset that the quiet group has committed, and that after the last ones of the busy groups.

Their lags are long: to read a short tail takes a consumer, for which the broker would create its own offsets topic.
"""
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "100000", "min.cleanable.dirty.ratio": "0.01"}


@dataclass
class Started:
    """A Warren that knows each broker by two names: one per offsets topic."""

    run: WarrenRun
    brokers: dict[str, OldKafka]

    def state(self, snapshot: Snapshot, name: str) -> ClusterState:
        return snapshot.manifest.clusters[name]

    def lag(self, name: str, group: str, snapshot: Snapshot) -> int | None:
        found = snapshot.group(name, group)
        rows = found[1].to_pylist() if found else []
        return rows[0]["current_lag"] if rows else None

    def groups(self, name: str, snapshot: Snapshot) -> dict[str, str]:
        """The status of every group of a cluster."""
        rows = snapshot.groups().to_pylist()
        return {row["group"]: Status(row["status"]).name for row in rows if row["cluster"] == name}

    def overview(self, name: str) -> dict[str, Any]:
        clusters = Client(self.run.url()).json("/v3/overview")["overview"]["clusters"]
        return next(cluster for cluster in clusters if cluster["name"] == name)


def fresh(version: str) -> str:
    return f"fresh-{version.replace('.', '-')}"


def custom(version: str) -> str:
    return f"custom-{version.replace('.', '-')}"


def create_compacted(bootstrap: str) -> bool:
    """Whether the offsets topic of another name could be created; one that is being deleted cannot yet."""
    client = admin(bootstrap)
    created = client.create_topics([NewTopic(OWN_OFFSETS, 2, 1, config=COMPACTED)], operation_timeout=30)
    with contextlib.suppress(KafkaException):
        created[OWN_OFFSETS].result(30)
        return True
    return False


def fill_offsets(kafka: OldKafka, commits: int) -> None:
    """Commits of busy groups to both partitions, and one of a quiet group in their midst; waits for compaction."""
    refused: list[object] = []
    settings = {"bootstrap.servers": kafka.bootstrap, "queue.buffering.max.messages": commits + 2, "batch.size": 50_000}
    producer = Producer({**settings, "on_delivery": lambda error, _: refused.append(error) if error else None})
    now_ms = time.time_ns() // 1_000_000
    for number in range(commits):
        group = number % GROUPS
        value = commit_value(number * BUSY // commits, now_ms, version=1)
        producer.produce(OWN_OFFSETS, value, commit_key(f"busy-{group}", TOPIC, 0), group % 2)
        if number == commits // 4:
            value = commit_value(QUIET, now_ms, version=1)
            producer.produce(OWN_OFFSETS, value, commit_key("quiet", TOPIC, 0), 0)
    assert (producer.flush(60), refused) == (0, [])
    # A consumer would have the broker create the offsets topic of its own.
    wait_for(lambda: kafka.log_bytes(OWN_OFFSETS) < commits * COMMIT_BYTES // 2, "the log is compacted", 60)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with contextlib.ExitStack() as parts:
        config = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "100"}
        versions = (*TOO_OLD, *SUPPORTED)
        brokers = {v: parts.enter_context(OldKafka(version=v, config=config, memory="256m")) for v in versions}
        for version in SUPPORTED:
            bootstrap = brokers[version].bootstrap
            create_topics(bootstrap, {TOPIC: 1}, replicas=1)
            fill_topic(bootstrap, TOPIC, FILLED)
            assert create_compacted(bootstrap)
            fill_offsets(brokers[version], COMMITS[version])
        names = {fresh(version): kafka.bootstrap for version, kafka in brokers.items()}
        names |= {custom(version): brokers[version].bootstrap for version in SUPPORTED}
        sections = sections_for(names)
        for version in SUPPORTED:
            sections[f"consumer.{custom(version)}"]["offsets-topic"] = OWN_OFFSETS
        run = parts.enter_context(WarrenRun(tmp_path_factory.mktemp("old"), sections))
        run.wait_for(lambda s: s.manifest.cycle_ms, "the first verdicts")
        yield Started(run, brokers)


@pytest.mark.parametrize("version", TOO_OLD)
def test_a_broker_that_is_too_old_is_named_in_one_sentence(started: Started, version: str) -> None:
    found = f"the broker's version of Kafka is {TOO_OLD[version]}, and Warren needs 0.10.2 or later: upgrade it"
    sentence = f"{started.brokers[version].bootstrap}: {found}"
    name = fresh(version)
    state = started.run.wait_for(lambda s: started.state(s, name) if started.state(s, name).error else None, "an error")
    assert state.error == sentence
    assert state.unknown_since_ms is not None
    wait_for(lambda: started.overview(name).get("error_message") == sentence, "the overview has it")
    started.run.wait_for_cycles(2)
    lines = [line for line in started.run.log.splitlines() if name in line and "unknown" in line]
    assert len(lines) == 1, lines
    assert lines[0].endswith(f"{name} is unknown: {sentence}")
    assert "Traceback" not in started.run.log


def topic_names(bootstrap: str) -> list[str]:
    return Admin({"bootstrap.servers": bootstrap}).topic_names(time.monotonic() + 30)


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_broker_without_an_offsets_topic_is_waited_for(started: Started, version: str) -> None:
    bootstrap, name = started.brokers[version].bootstrap, fresh(version)
    waiting = started.run.wait_for_cycles(1)
    assert started.state(waiting, name).absent_offsets_topics == (KAFKAS_OWN,)
    assert (started.state(waiting, name).error, started.groups(name, waiting)) == (None, {})
    wait_for(lambda: started.overview(name)["absent_offsets_topics"] == [KAFKAS_OWN], "the overview says so")
    assert started.run.log.count(f"{name}: its offsets topic {KAFKAS_OWN} does not exist") == 1
    assert KAFKAS_OWN not in topic_names(bootstrap), "Warren does not create it"
    commit(bootstrap, "first-ever", TOPIC, {0: FILLED - 30})
    started.run.wait_for(lambda s: started.lag(name, "first-ever", s) == 30, "the first group")
    there = started.run.wait_for_cycles(1)
    assert list(started.groups(name, there)) == ["first-ever"]
    assert started.state(there, name).absent_offsets_topics == ()
    assert f"{name}: its offsets topic {KAFKAS_OWN} exists now" in started.run.log


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_huge_compacted_offsets_topic_of_another_name_is_read(started: Started, version: str) -> None:
    bootstrap, run, name = started.brokers[version].bootstrap, started.run, custom(version)
    whole = run.wait_for(lambda s: s if len(started.groups(name, s)) == GROUPS + 1 else None, "its groups")
    assert {started.lag(name, f"busy-{group}", whole) for group in range(GROUPS)} == {FILLED - BUSY + 1}
    assert started.lag(name, "quiet", whole) == FILLED - QUIET
    now_ms = time.time_ns() // 1_000_000
    produce(bootstrap, OWN_OFFSETS, [(commit_key("busy-7", TOPIC, 0), commit_value(FILLED, now_ms, version=1))], 1)
    run.wait_for(lambda s: started.lag(name, "busy-7", s) == 0, "the newest commit")
    assert not run.store.newest().rejects.get(name)


@pytest.mark.parametrize("version", SUPPORTED)
def test_an_offsets_topic_that_is_created_again_starts_over(started: Started, version: str) -> None:
    """Brokers before 2.8 have no ids by which to tell the two topics apart."""
    bootstrap, run, name = started.brokers[version].bootstrap, started.run, custom(version)
    delete_topic(bootstrap, OWN_OFFSETS)
    wait_for(partial(create_compacted, bootstrap), "it is there again", 60)
    now_ms = time.time_ns() // 1_000_000
    for offset in (100, 200, 300):
        produce(bootstrap, OWN_OFFSETS, [(commit_key("busy-7", TOPIC, 0), commit_value(offset, now_ms, version=1))], 1)
    again = run.wait_for(lambda s: s if started.lag(name, "busy-7", s) == FILLED - 300 else None, "the new commits")
    assert list(started.groups(name, again)) == ["busy-7"], "groups that are not in the new log are not known any more"
    found = again.group(name, "busy-7")
    assert found is not None
    [row] = found[1].to_pylist()
    assert row["offsets"] == [100, 200, 300]
    assert Status(row["status"]).name != "REWIND", "offset 100 after 1000 is no rewind"
    assert list(started.groups(fresh(version), again)) == ["first-ever"], "the other offsets topic stays as it is"
    source = started.state(again, name).sources[OWN_OFFSETS]
    assert source.topic_id.startswith("~") == (version == "0.10.2"), "a lake can tell the two logs apart"
    starts = [line for line in run.log.splitlines() if f"{name}/{OWN_OFFSETS}" in line and "start over" in line]
    assert starts


def test_a_deleted_topic_stays_deleted(started: Started) -> None:
    """Brokers before 0.11 create a topic that a client asks for by name."""
    kafka = started.brokers["0.10.2"]
    create_topics(kafka.bootstrap, {"short-lived": 1}, replicas=1)
    fill_topic(kafka.bootstrap, "short-lived", 10)
    commit(kafka.bootstrap, "follower", "short-lived", {0: 10})
    name = fresh("0.10.2")
    started.run.wait_for(lambda s: started.lag(name, "follower", s) == 0, "a group of the topic")
    delete_topic(kafka.bootstrap, "short-lived")
    started.run.wait_for(lambda s: "follower" not in started.groups(name, s), "the group goes with its topic")
    started.run.wait_for_cycles(3)
    assert "short-lived" not in topic_names(kafka.bootstrap)

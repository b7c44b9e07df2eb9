"""Groups that commit to ZooKeeper, beside groups that commit to Kafka: same windows, same verdicts."""

import contextlib
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.kit.warrens import Recorder, Sections, Seen, WarrenRun, sections_for, see, wait_for
from tests.kit.znodes import OldConsumers, old_consumers
from tests.kit.zookeeper import ZooKeeperServer
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.domain.offsets_logs import FIRST_ZOOKEEPER_LOG, zookeeper_log_id
from warren.domain.windows import UNKNOWN

pytestmark = pytest.mark.timeout(900)

TOPIC = "old-orders"
PARTITIONS = 2
EVERY_S = 0.5
BEHIND = 500


class Groups:
    """Produces to a topic, and commits for groups of all kinds, to ZooKeeper and to Kafka, until it is stopped."""

    def __init__(self, kafka: Kafka, znodes: OldConsumers) -> None:
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap})
        self._mover = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "mover", "enable.auto.commit": False})
        self._znodes = znodes
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.head = 0
        self.is_moved = self.is_stopped = self.is_silent = False
        self.written: list[int] = []
        """What the healthy group has committed to partition 0."""
        self.error: Exception | None = None

    def __enter__(self) -> "Groups":
        self._step()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._mover.close()
        assert self.error is None

    def _run(self) -> None:
        try:
            while not self._stopping.wait(EVERY_S):
                self._step()
        except Exception as error:  # noqa: BLE001 - it fails the test at the end
            self.error = error

    def _step(self) -> None:
        for partition in range(PARTITIONS):
            for _ in range(BEHIND * 2 if not self.head else 10):
                self._producer.produce(TOPIC, b"x", partition=partition)
        self._producer.flush()
        self.head += 10 if self.head else BEHIND * 2
        if self.is_moved:
            offsets = [TopicPartition(TOPIC, partition, self.head) for partition in range(PARTITIONS)]
            self._mover.commit(offsets=offsets, asynchronous=False)
        if self.is_silent:
            return
        self.written.append(self.head)
        for partition in range(PARTITIONS):
            self._znodes.commit("healthy", TOPIC, partition, self.head)
            self._znodes.commit("stalled", TOPIC, partition, BEHIND)
            self._znodes.spout("spout", TOPIC, partition, self.head, has_topic_level=partition == 1)
            if not self.is_stopped:
                self._znodes.commit("stopped", TOPIC, partition, self.head - BEHIND)
            if not self.is_moved:
                self._znodes.commit("mover", TOPIC, partition, self.head)


IN_ZOOKEEPER = ("healthy", "stalled", "stopped", "spout")
"""The groups that commit to ZooKeeper to the end; the broker has groups of other tests too."""


def sections_of(kafka: Kafka, zookeeper: ZooKeeperServer, chroot: str) -> Sections:
    sections = sections_for({"local": kafka.bootstrap})
    own = {"cluster": "local", "servers": [zookeeper.address], "zookeeper-timeout": 4}
    sections["consumer.old"] = {"class-name": "kafka_zk", "zookeeper-path": chroot, **own}
    sections["consumer.storm"] = {
        "class-name": "storm_zk", "zookeeper-path": chroot, "group-denylist": "^consumers$", **own,
    }  # fmt: skip
    return sections


def rows(seen: Seen, group: str) -> list[dict[str, Any]]:
    return [row for (_, name, _, _), row in seen.partitions.items() if name == group]


def verdicts(seen: Seen) -> dict[str, set[str]]:
    names = {name for _, name in seen.groups}
    return {name: seen.verdicts("local", name) for name in names}


@pytest.fixture
def ensemble() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as server:
        yield server


def test_groups_in_zookeeper_are_judged_as_groups_in_kafka(
    kafka: Kafka, ensemble: ZooKeeperServer, tmp_path: Path
) -> None:
    create_topics(kafka.bootstrap, {TOPIC: PARTITIONS})
    with contextlib.ExitStack() as parts:
        znodes = parts.enter_context(old_consumers(ensemble.address, "/kafka10"))
        groups = parts.enter_context(Groups(kafka, znodes))
        run = parts.enter_context(WarrenRun(tmp_path / "home", sections_of(kafka, ensemble, "/kafka10")))
        record = parts.enter_context(Recorder(run.data))
        expected = {"healthy": {"OK"}, "stalled": {"STALL"}, "stopped": {"OK"}, "spout": {"OK"}, "mover": {"OK"}}

        def has(verdict: dict[str, set[str]]) -> bool:
            seen = see(snapshot) if (snapshot := run.snapshot()) else None
            return seen is not None and {name: verdicts(seen).get(name) for name in verdict} == verdict

        wait_for(lambda: has(expected), f"every group has its verdict: {expected}", 400.0)
        znodes.own("healthy", TOPIC, 0, "healthy_host-1-abc-0")

        # A group that moves to Kafka, and one that stops.
        groups.is_moved = groups.is_stopped = True
        wait_for(lambda: has({"stopped": {"STOP"}}), "a group that commits no more is stopped")
        snapshot = run.wait_for_cycles(2)
        now = see(snapshot)
        assert all(row["offsets_log"] < FIRST_ZOOKEEPER_LOG for row in rows(now, "mover"))
        assert {row["offsets_log"] for row in rows(now, "healthy")} == {zookeeper_log_id("old")}
        assert {row["owner"] for row in rows(now, "healthy")} == {"", "healthy_host-1-abc-0"}
        assert all(seen.verdicts("local", "mover") <= {"OK"} for seen in record.seen)

        # What is committed while Warren is gone is there once, when it is back.
        run.kill()
        meanwhile = len(groups.written) + 10
        wait_for(lambda: len(groups.written) > meanwhile, "some more commits")
        run.start()
        last = groups.written[-1]
        wait_for(
            lambda: (s := run.snapshot()) and any(row["committed_offset"] >= last for row in rows(see(s), "healthy")),
            "commits after the restart",
        )
        for seen in record.seen:
            for row in rows(seen, "healthy"):
                assert all(one < other for one, other in pairwise(row["orders"])), "every change is there once"
                assert set(row["offsets"]) <= set(groups.written)
        wait_for(lambda: has({**expected, "stopped": {"STOP"}}), "the verdicts are what they were")

        # An ensemble that is away is not silence.
        groups.is_silent = True
        ensemble.kill()
        killed_ms = see(run.wait_for_cycles(1)).manifest.now_ms
        run.wait_for(
            lambda s: all(see(s).groups["local", name]["unknown_since_ms"] != UNKNOWN for name in IN_ZOOKEEPER),
            "groups in ZooKeeper are unknown",
        )
        away = see(run.wait_for_cycles(1))
        assert away.groups["local", "mover"]["unknown_since_ms"] == UNKNOWN
        assert abs(away.groups["local", "healthy"]["unknown_since_ms"] - killed_ms) < 20_000
        assert "cannot be reached" in (away.manifest.clusters["local"].zookeeper["old"].error or "")
        ensemble.start()
        wait_for(lambda: znodes.client.connected, "consumers are connected again")
        groups.is_silent = False
        wait_for(lambda: has({"healthy": {"OK"}, "spout": {"OK"}}), "they are judged again")
        run.wait_for(
            lambda s: all(see(s).groups["local", name]["unknown_since_ms"] == UNKNOWN for name in IN_ZOOKEEPER),
            "nothing is unknown",
        )
        bad = {
            (seen.manifest.sequence, name): seen.why("local", name)
            for seen in record.seen
            for name in ("healthy", "spout", "mover")
            if not seen.verdicts("local", name) <= {"OK"}
        }
        assert not bad, bad

"""What tests need to know of a workload: when and how its groups are judged, and what its topics hold."""

import time
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from warren.demo.workload.committing_groups import Rewinding, Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Healthy, Stopped
from warren.demo.workload.thread import CLIENT_LOG
from warren.demo.workload.topics import PAYLOAD, client_config, count_partitions, new_producer


@dataclass(eq=False, repr=False, kw_only=True)
class Left(Stopped):
    """Stops by leaving its group, with a last commit."""

    _membership = Healthy._membership
    _commits_when_revoked = True


_STATUSES = {Slow: "WARN", Stalled: "ERR", Rewinding: "ERR", Stopped: "ERR", Left: "ERR"}


def expected_status(group: ConsumerGroup) -> str:
    """The status of a group once it has settled; before, it may be OK as well."""
    return _STATUSES.get(type(group), "OK")


def settles_after_s(group: ConsumerGroup, intervals: int = 10, trigger_s: float = 10.0) -> float:
    """How long after its start a group has the expected status, for windows of so many commits.

    `trigger_s` is the time between two head samples. The sampling error adds to it: a rise that is small compared
    with what is produced between two samples takes longer to be distinguished from noise.
    """
    if isinstance(group, Stopped):
        # After the healthy time, a silent window, and a head history that has moved past its last commit.
        return group.healthy_s + intervals * max(group.commit_every_s, trigger_s) + 2 * trigger_s
    return 0.0 if expected_status(group) == "OK" else (intervals + 1) * group.commit_every_s + 2 * trigger_s


def wait_for_commits(group: ConsumerGroup, count: int, timeout_s: float = 60.0) -> None:
    """Wait until a group has committed so many times since it was created."""
    deadline = time.monotonic() + timeout_s
    while group.commits < count:
        group.check()
        assert time.monotonic() < deadline, f"{group.name}: {group.commits} of {count} commits within {timeout_s:g} s"
        time.sleep(0.05)


def heads(bootstrap: str, topic: str, *, timeout_s: float = 10.0) -> dict[int, int]:
    """The head of each partition of a topic: the offset that its next message gets."""
    config = {**client_config(bootstrap, "heads"), "group.id": "heads"}
    consumer = Consumer(config, logger=CLIENT_LOG)
    try:
        return {
            partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout_s)[1]
            for partition in range(count_partitions(consumer, topic))
        }
    finally:
        consumer.close()


def fill_in_transaction(bootstrap: str, topic: str, per_partition: int, timeout_s: float = 60.0) -> None:
    """Write so many messages to each partition of a topic, in one transaction."""
    producer = new_producer(bootstrap, "fill", {"transactional.id": f"fill-{topic}"})
    producer.init_transactions(timeout_s)
    producer.begin_transaction()
    for partition in range(count_partitions(producer, topic)):
        producer.produce_batch(topic, [{"value": PAYLOAD}] * per_partition, partition=partition)
    producer.commit_transaction(timeout_s)

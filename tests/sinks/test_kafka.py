"""Records in a topic of a real Kafka: telegraf's JSON, and each once whatever happens between."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.kit.sink_workers import deliver_next, poll_changes, sample
from tests.kit.stores import deliver, requests_for
from tests.kit.verdicts import Verdicts
from tests.sinks.test_encode import AT_MS, ODD, points
from tests.sinks.test_verdict_changes import OK, STALL, WARN
from warren.config.kafka import Connection
from warren.config.sinks import KafkaSink
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.errors import BusyError
from warren.sinks.kafka import HEADER, KafkaWriter
from warren.sinks.spool import RequestSpool
from warren.sinks.worker import request_worker

PARTITIONS = 2


@contextmanager
def writing(kafka: Kafka, topic: str, name: str | None = None) -> Iterator[KafkaWriter]:
    """A writer to a topic of a test's own, as a process of a sink has it."""
    sink = KafkaSink(name or topic, topic=topic)
    yield KafkaWriter(sink, Connection((kafka.bootstrap,)))


def send(writer: KafkaWriter, group: str, position: int) -> None:
    """Deliver a request of one record."""
    [request] = requests_for(writer, points(group), {}, AT_MS)
    writer.deliver(request, position)


@contextmanager
def producing(kafka: Kafka, name: str) -> Iterator[Producer]:
    """A producer with transactions of a name."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    yield producer


def begin(producer: Producer, topic: str, header: str, records: int = 1) -> None:
    """Begin a transaction, and have its records in each partition of the topic."""
    producer.begin_transaction()
    for number in range(records * PARTITIONS):
        producer.produce(topic, b"{}", b"[]", number % PARTITIONS, headers=[(HEADER, header)])
    assert producer.flush(30) == 0


def read(kafka: Kafka, topic: str) -> list[tuple[Any, Any]]:
    """The keys and the values of all records that are committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": f"read-{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    found: list[tuple[Any, Any]] = []
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        at_end: set[int | None] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(30)
            assert message is not None
            error = message.error()
            if error is None:
                found.append((json.loads(message.key() or b""), json.loads(message.value() or b"")))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
    finally:
        consumer.close()
    return found


def groups(kafka: Kafka, topic: str) -> list[str]:
    """The groups of all records, in order of their names."""
    return sorted(value["tags"]["group"] for _, value in read(kafka, topic))


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    """A topic of a test's own."""
    name = f"sink-{request.node.name.removeprefix('test_')}"[:200]
    create_topics(kafka.bootstrap, {name: PARTITIONS})
    return name


def test_records_are_as_telegraf_makes_them_by_cluster_and_group(kafka: Kafka, topic: str) -> None:
    with writing(kafka, topic) as writer:
        deliver(writer, points(*ODD), {"host": 'a "host"'}, AT_MS)
    found = sorted(read(kafka, topic), key=lambda record: record[1]["fields"]["offset"])
    assert found == [
        (
            ["c", name],
            {
                "name": "burrow_partition",
                "tags": {"cluster": "c", "group": name, "partition": "0", "host": 'a "host"'},
                "fields": {"status": "OK", **({"owner": name} if name else {}), "lag": 7, "offset": position},
                "timestamp": AT_MS // 1000,
            },
        )
        for position, name in enumerate(ODD)
    ]


def test_a_topic_is_made_by_its_first_record(kafka: Kafka) -> None:
    with writing(kafka, "sink-made-by-itself") as writer:
        send(writer, "a", 1)
    assert groups(kafka, "sink-made-by-itself") == ["a"]


def test_what_comes_twice_is_there_once(kafka: Kafka, topic: str) -> None:
    with writing(kafka, topic) as writer:
        for group, position in (("a", 1), ("a", 1), ("b", 2), ("a", 1), ("b", 2)):
            send(writer, group, position)
    assert groups(kafka, topic) == ["a", "b"]


def test_a_new_writer_sends_nothing_again_and_goes_on(kafka: Kafka, topic: str) -> None:
    for group, position in (("a", 1), ("a", 1), ("b", 2), ("c", 3)):
        with writing(kafka, topic) as writer:
            send(writer, group, position)
    assert groups(kafka, topic) == ["a", "b", "c"]


def test_an_older_self_cannot_write_any_more(kafka: Kafka, topic: str) -> None:
    with writing(kafka, topic) as old, writing(kafka, topic) as new:
        send(old, "a", 1)
        send(new, "b", 2)
        with pytest.raises(BusyError):
            send(old, "c", 3)
        # As a new one it knows what was sent meanwhile.
        send(old, "b", 2)
    assert groups(kafka, topic) == ["a", "b"]


def test_what_was_not_committed_is_sent_anew(kafka: Kafka, topic: str) -> None:
    with producing(kafka, f"warren-sink-{topic}") as dead, writing(kafka, topic) as writer:
        begin(dead, topic, f"{topic}/1")
        send(writer, "a", 1)
        with pytest.raises(KafkaException):
            dead.commit_transaction(30)
    assert groups(kafka, topic) == ["a"]


def test_transactions_that_were_given_up_do_not_hide_the_last_position(kafka: Kafka, topic: str) -> None:
    with writing(kafka, topic) as writer:
        send(writer, "a", 1)
    with producing(kafka, f"warren-sink-{topic}") as dead:
        for position in range(2, 32):
            begin(dead, topic, f"{topic}/{position}", records=10)
            dead.abort_transaction(30)
    with writing(kafka, topic) as writer:
        send(writer, "a", 1)
        send(writer, "b", 2)
    assert groups(kafka, topic) == ["a", "b"]


def test_an_open_transaction_of_another_does_not_hide_the_last_position(kafka: Kafka, topic: str) -> None:
    with producing(kafka, f"another-{topic}") as another, writing(kafka, topic) as writer:
        send(writer, "a", 1)
        begin(another, topic, "another/1")
        send(writer, "b", 2)
        ending = threading.Timer(1.0, another.abort_transaction, (30,))
        ending.start()
        with writing(kafka, topic) as new:
            send(new, "b", 2)
        ending.join()
    assert groups(kafka, topic) == ["a", "b"]


@pytest.mark.parametrize("other", ["other", "a/b", "1"])
def test_sinks_share_a_topic(kafka: Kafka, other: str) -> None:
    topic = f"sink-shared-{other.replace('/', '-')}"
    create_topics(kafka.bootstrap, {topic: 1})
    for _ in range(2):
        with writing(kafka, topic, "mine") as mine, writing(kafka, topic, other) as others:
            send(others, "theirs", 9)
            send(mine, "mine", 1)
    assert groups(kafka, topic) == ["mine", "theirs"]


class Telling:
    """A sink that tells changes to a topic, and can be started anew."""

    def __init__(self, kafka: Kafka, root: Path, topic: str) -> None:
        self.kafka = kafka
        self.topic = topic
        self.verdicts = Verdicts(root)
        self.begin()

    def begin(self) -> None:
        """A new process: the old one is not asked, as after kill -9."""
        sink = KafkaSink("telling", topic=f"{self.topic}-metrics", changes_topic=self.topic)
        connection = Connection((self.kafka.bootstrap,))
        self.worker = request_worker(
            sink,
            KafkaWriter(sink, connection),
            self.verdicts.root,
            changes=KafkaWriter(sink, connection, are_changes=True),
        )

    def judge(self, **groups: Any) -> None:
        self.verdicts.publish({"one": groups})
        poll_changes(self.worker)

    def deliver(self) -> None:
        while deliver_next(self.worker):
            pass

    def told(self) -> dict[str, list[str]]:
        """Of each group all that is in the topic, in order."""
        found: dict[str, list[str]] = {}
        for key, value in read(self.kafka, self.topic):
            assert key == [value["cluster"], *([value["group"]] if "group" in value else [])]
            found.setdefault(key[-1], []).append(f"{value['from']}>{value['to']}")
        return found


def test_changes_are_told_once_though_a_crash_repeats_their_delivery(
    kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling = Telling(kafka, tmp_path, topic)
    telling.judge(a=OK, b=OK)
    telling.deliver()
    for a in (WARN, STALL):
        telling.judge(a=a, b=OK)
        with monkeypatch.context() as crash:
            # Killed between the commit of the transaction and the end of its request.
            crash.setattr(RequestSpool, "done", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                telling.deliver()
        telling.begin()
        telling.deliver()
    telling.judge(b=OK)
    telling.begin()
    telling.deliver()
    assert telling.told() == {
        "one": [">JUDGED"],
        "a": [">OK", "OK>WARN", "WARN>ERR", "ERR>NOTFOUND"],
        "b": [">OK"],
    }


def test_changes_and_metrics_have_a_topic_each(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    telling = Telling(kafka, tmp_path, topic)
    telling.judge(a=OK)
    for at_ms in (telling.verdicts.now_ms, telling.verdicts.now_ms + 1):
        sample(telling.worker, at_ms)
        telling.deliver()
    telling.begin()
    telling.judge(a=WARN)
    sample(telling.worker, telling.verdicts.now_ms)
    telling.deliver()
    assert telling.told() == {"one": [">JUDGED"], "a": [">OK", "OK>WARN"]}
    metrics = [value for _, value in read(kafka, f"{topic}-metrics") if value["name"] == "burrow_group"]
    assert sorted(value["fields"]["status"] for value in metrics) == ["OK", "OK", "WARN"]

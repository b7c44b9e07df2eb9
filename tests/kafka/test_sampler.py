"""Samples of a real Kafka, and the life cycle of the sampling processes."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kit.brokers import KafkaTrio
from warren.clock import steady_ms
from warren.config.kafka import ClientProfile, Connection
from warren.config.secrets import Secret
from warren.demo.broker import Kafka
from warren.domain.windows import UNKNOWN
from warren.errors import ClusterError
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import TOPIC_GRACE_MS, ClusterSample, PartitionEnds, SampleQuestions, SamplingTarget

_PATIENCE_S = 60.0
_UNREACHABLE = "127.0.0.1:1"


class Workbench:
    """Creates topics and messages on a cluster, under unique names."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def name(self, suffix: str) -> str:
        return f"sampler-{suffix}-{uuid.uuid4().hex[:8]}"

    def create_topic(self, name: str, partitions: int, replicas: int = 1) -> str:
        self.admin.create_topics([NewTopic(name, partitions, replicas)])[name].result()
        _until(lambda: len(self.leaders(name)) == partitions and UNKNOWN not in self.leaders(name))
        return self.topic_id(name)

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result()
        _until(lambda: name not in self.admin.list_topics(timeout=10).topics)

    def fill(self, name: str, counts: Sequence[int]) -> None:
        """Add that many messages to each of the partitions."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.produce(name, b"x", partition=partition)
        assert producer.flush(30) == 0

    def topic_id(self, name: str) -> str:
        ids: list[str] = []

        def is_described() -> bool:
            # Not every broker knows a new topic at once.
            with contextlib.suppress(KafkaException):
                ids.append(str(self.admin.describe_topics(TopicCollection([name]))[name].result().topic_id))
            return bool(ids)

        _until(is_described)
        return ids[0]

    def leaders(self, name: str) -> list[int]:
        topic = self.admin.list_topics(timeout=10).topics.get(name)
        return [topic.partitions[p].leader for p in sorted(topic.partitions)] if topic else []


@pytest.fixture
def bench(kafka: Kafka) -> Workbench:
    return Workbench(kafka.bootstrap)


@pytest.fixture
def samplers(kafka: Kafka) -> Iterator[ClusterSamplers]:
    """Samples the shared cluster; topics are refreshed only when a sample asks for it."""
    with ClusterSamplers([_target(kafka, topic_refresh_s=3600)], processes=1) as samplers:
        _until(lambda: _sample(samplers).error is None)
        yield samplers


def _target(kafka: Kafka | KafkaTrio, *offsets_topics: str, topic_refresh_s: float = 0.2) -> SamplingTarget:
    topics = offsets_topics or ("__consumer_offsets",)
    return SamplingTarget("local", Connection((kafka.bootstrap,)), topics, topic_refresh_s)


def _sample(samplers: ClusterSamplers, timeout_s: float = 20.0) -> ClusterSample:
    return samplers.sample(timeout_s)["local"]


def _until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not become true in time"
        time.sleep(0.05)


def _sample_until(samplers: ClusterSamplers, condition: Callable[[ClusterSample], bool]) -> ClusterSample:
    give_up_at = time.monotonic() + _PATIENCE_S
    while not condition(sample := _sample(samplers)):
        assert time.monotonic() < give_up_at, f"the last sample was {sample}"
        time.sleep(0.05)
    return sample


def _ids(sample: ClusterSample) -> dict[str, str]:
    return {topic.name: topic.id for topic in sample.topics}


def _offsets_of(sample: ClusterSample, name: str) -> tuple[list[int], list[int]]:
    """The heads and log starts of one topic."""
    at = 0
    for topic in sample.topics:
        if topic.name == name:
            here = slice(at, at + topic.partitions)
            return sample.heads[here].tolist(), sample.log_starts[here].tolist()
        at += topic.partitions
    return [], []


def _children() -> list[int | None]:
    return [p.pid for p in multiprocessing.active_children() if p.name.startswith("warren sampler")]


def _only_child() -> int:
    (child,) = _children()
    assert child is not None
    return child


def test_heads_and_log_starts_are_those_of_the_log(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("log")
    topic_id = bench.create_topic(name, 3)
    bench.fill(name, [5, 0, 2])
    bench.admin.delete_records([TopicPartition(name, 0, 2)])
    with ClusterSamplers([_target(kafka)], processes=1) as samplers:
        sample = _sample_until(samplers, lambda s: _offsets_of(s, name) == ([5, 0, 2], [2, 0, 0]))
    assert _ids(sample)[name] == topic_id
    assert [topic.name for topic in sample.topics] == sorted(topic.name for topic in sample.topics)
    assert len(sample.heads) == len(sample.log_starts) == sum(topic.partitions for topic in sample.topics)
    assert sample.ends_at_ms[0] <= sample.ends_at_ms[1] <= sample.heads_at_ms[0] <= sample.heads_at_ms[1]


def test_heads_of_verified_tails_end_with_the_data(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("tails")
    bench.create_topic(name, 5)
    bench.fill(name, [0, 3, 0, 0, 0])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)

    def write(counts: Sequence[int], end: Callable[[float], None] | None) -> None:
        producer.begin_transaction()
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.produce(name, b"x", partition=partition)
        producer.flush(30)
        if end:
            end(30)

    write([5, 0, 2, 1, 0], producer.commit_transaction)
    write([0, 0, 4, 0, 0], producer.abort_transaction)
    write([0, 0, 0, 2, 0], None)
    partitions = [(name, partition) for partition in range(5)]
    with ClusterSamplers([_target(kafka)], processes=1) as samplers:
        sample = _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [6, 3, 8, 4, 0])
        assert sample.verified_tails == ()
        samplers.ask({"local": SampleQuestions([*partitions, ("no-such-topic", 0)])})
        sample = _sample_until(samplers, lambda s: bool(s.verified_tails))
        # A marker, data to the end, aborted messages, an open transaction that may become data, no messages.
        assert _offsets_of(sample, name)[0] == (ends := [5, 3, 2, 4, 0])
        assert set(sample.verified_tails) == {(name, partition, end) for partition, end in enumerate(ends)}

        bench.fill(name, [1, 1, 0, 1, 101])
        sample = _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [7, 4, 2, 5, 101])
        assert {tail[1:] for tail in sample.verified_tails} == {(0, 5), (1, 3), (2, 2), (3, 4)}, "what was read is so"
        sample = _sample(samplers)
        assert {tail[1:] for tail in sample.verified_tails} == {(0, 5), (1, 3), (2, 2)}, "the open one may be aborted"
        bench.fill(name, [98, 0, 0, 0, 0])
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0][0] == 105)
        assert (name, 0, 5) in _sample(samplers).verified_tails
        bench.fill(name, [1, 0, 0, 0, 0])
        _sample_until(samplers, lambda s: {tail[1] for tail in s.verified_tails} == {1, 2})
    producer.abort_transaction(30)


def test_a_tail_of_a_moving_head_is_known_with_the_second_sample_after_its_request(
    kafka: Kafka, bench: Workbench
) -> None:
    name = bench.name("moving")
    bench.create_topic(name, 1)
    bench.fill(name, [5])
    with ClusterSamplers([_target(kafka)], processes=1) as samplers:
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [5])
        for head in range(6, 9):
            bench.fill(name, [1])
            samplers.ask({"local": SampleQuestions([(name, 0)])})
            assert _offsets_of(_sample(samplers), name)[0] == [head]
            time.sleep(2)
        bench.fill(name, [1])
        assert (name, 0, 8) in _sample(samplers).verified_tails


def test_a_tail_says_nothing_of_a_topic_that_was_created_again_with_fewer_partitions(
    kafka: Kafka, bench: Workbench
) -> None:
    name, others = bench.name("shrinks"), bench.name("shrinks-last")
    for topic in (name, others):
        bench.create_topic(topic, 2)
        bench.fill(topic, [3, 3])
    partitions = [(topic, partition) for topic in (name, others) for partition in (0, 1)]
    with ClusterSamplers([_target(kafka, topic_refresh_s=3600)], processes=1) as samplers:
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [3, 3])
        samplers.ask({"local": SampleQuestions(partitions)})
        _sample_until(samplers, lambda s: len(s.verified_tails) == 4)
        for topic in (name, others):
            bench.delete_topic(topic)
            bench.create_topic(topic, 1)
            bench.fill(topic, [3])
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == _offsets_of(s, others)[0] == [3])
        samplers.ask({"local": SampleQuestions(partitions)})
        sample = _sample(samplers)
        assert (sample.error, set(sample.verified_tails) - {(name, 0, 3), (others, 0, 3)}) == (None, set())


def test_heads_keep_their_order_over_several_requests(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("wide")
    bench.create_topic(name, 450)
    counts = [p % 7 for p in range(450)]
    bench.fill(name, counts)
    with ClusterSamplers([_target(kafka)], processes=1) as samplers:
        assert _offsets_of(_sample_until(samplers, lambda s: name in _ids(s)), name)[0] == counts
    bench.delete_topic(name)


def test_the_stable_end_stays_before_an_open_transaction(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("ends")
    topic_id = bench.create_topic(name, 2)
    bench.fill(name, [3, 0])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"x", partition=0)
    producer.flush(30)
    with ClusterSamplers([_target(kafka, name)], processes=1) as samplers:
        sample = _sample_until(samplers, lambda s: s.error is None)
        assert sample.ends == {name: {0: PartitionEnds(0, 3, 4), 1: PartitionEnds(0, 0, 0)}}
        assert sample.offsets_topic_ids == {name: topic_id}
        producer.abort_transaction(30)
        # The abort marker takes an offset of its own.
        _sample_until(samplers, lambda s: s.ends[name][0] == PartitionEnds(0, 5, 5))


def test_an_offsets_topic_that_does_not_exist_has_no_ends_until_it_does(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("later")
    with ClusterSamplers([_target(kafka, name, topic_refresh_s=3600)], processes=1) as samplers:
        sample = _sample_until(samplers, lambda s: s.error is None)
        assert (sample.ends, sample.offsets_topic_ids) == ({name: {}}, {})
        assert name not in bench.admin.list_topics(timeout=10).topics, "sampling must not create it"
        topic_id = bench.create_topic(name, 1)
        sample = _sample(samplers)
        assert (sample.ends, sample.offsets_topic_ids) == (
            {name: {0: PartitionEnds(0, 0, 0)}},
            {name: topic_id},
        )


def test_topics_that_appear_and_grow_are_followed(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("grows")
    with ClusterSamplers([_target(kafka)], processes=1) as samplers:
        assert name not in _ids(_sample_until(samplers, lambda s: s.error is None))
        bench.create_topic(name, 1)
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [0])
        bench.admin.create_partitions([NewPartitions(name, 3)])[name].result()
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [0, 0, 0])


def test_a_topic_that_vanishes_is_unknown_at_once_then_gone(kafka: Kafka, bench: Workbench) -> None:
    name, other = bench.name("deleted"), bench.name("stays")
    for topic in (name, other):
        bench.create_topic(topic, 2)
        bench.fill(topic, [1, 1])
    with ClusterSamplers([_target(kafka, topic_refresh_s=3600)], processes=1) as samplers:
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [1, 1])
        bench.delete_topic(name)
        sample = _sample(samplers)
        assert sample.error is None
        assert _offsets_of(sample, name)[0] in ([UNKNOWN, UNKNOWN], [])
        assert _offsets_of(sample, other)[0] == [1, 1]
        _sample_until(samplers, lambda s: name not in _ids(s))
    assert name not in bench.admin.list_topics(timeout=10).topics, "sampling must not create it again"


def test_topics_are_listed_again_soon_after_the_first_list_and_after_a_short_one(
    kafka: Kafka, bench: Workbench
) -> None:
    name = bench.name("absent")
    bench.create_topic(name, 1)
    with ClusterSamplers([_target(kafka, topic_refresh_s=3600)], processes=1) as samplers:
        first = _sample_until(samplers, lambda s: name in _ids(s))
        second = _sample_until(samplers, lambda s: s.topics_at_ms >= first.topics_at_ms + TOPIC_GRACE_MS)
        bench.delete_topic(name)
        short = _sample_until(samplers, lambda s: name not in _ids(s))
        assert short.topics_at_ms > second.topics_at_ms
        _sample_until(samplers, lambda s: s.topics_at_ms >= short.topics_at_ms + TOPIC_GRACE_MS)


def test_a_topic_that_is_created_again_has_another_id_with_its_heads(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("recreated")
    first = bench.create_topic(name, 2)
    bench.fill(name, [5, 1])
    with ClusterSamplers([_target(kafka, topic_refresh_s=3600)], processes=1) as samplers:
        _sample_until(samplers, lambda s: _offsets_of(s, name)[0] == [5, 1])
        bench.delete_topic(name)
        second = bench.create_topic(name, 2)
        bench.fill(name, [2, 2])
        sample = _sample(samplers)
        assert first != second
        assert (_ids(sample)[name], _offsets_of(sample, name)[0]) in [
            (first, [UNKNOWN, UNKNOWN]),
            (second, [2, 2]),
        ]
        _sample_until(samplers, lambda s: (_ids(s).get(name), _offsets_of(s, name)[0]) == (second, [2, 2]))


def test_owners_of_consumer_protocol_groups_are_sampled_once_per_refresh(kafka: Kafka, bench: Workbench) -> None:
    topic, group = bench.name("owned"), bench.name("kip848")
    bench.create_topic(topic, 2)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "client.id": "an-owner",
        }
    )
    consumer.subscribe([topic])
    _until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 2)
    with ClusterSamplers([_target(kafka, topic_refresh_s=3600)], processes=1) as samplers:
        sample = _sample_until(samplers, lambda s: s.owners is not None)
        assert sample.owners is not None
        ours = [row for row in sample.owners.to_pylist() if row["group"] == group]
        assert sorted(ours, key=lambda row: row["partition"]) == [
            {"group": group, "topic": topic, "partition": p, "owner": "/127.0.0.1", "client_id": "an-owner"}
            for p in (0, 1)
        ]
        assert group in (sample.consumer_groups or ())
        assert _sample(samplers).owners is None
        assert _sample(samplers).topics, "what the process left out is put in"
    consumer.close()


def test_a_consumer_protocol_group_that_is_not_listed_any_more_loses_its_owners_or_shows_the_new_ones(
    kafka: Kafka, bench: Workbench
) -> None:
    topic, groups = bench.name("left"), {kind: bench.name(kind) for kind in ("deleted", "classic")}
    bench.create_topic(topic, 1)

    def join(group: str, protocol: str) -> Consumer:
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "client.id": protocol}
        consumer = Consumer({**settings, "group.protocol": protocol})
        consumer.subscribe([topic])
        _until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 1)
        return consumer

    def owners(sample: ClusterSample) -> dict[str, list[str]] | None:
        if sample.owners is None:
            return None
        rows, named = sample.owners.to_pylist(), sample.consumer_groups or ()
        return {
            kind: [row["client_id"] for row in rows if row["group"] == group]
            for kind, group in groups.items()
            if group in named
        }

    consumers = [join(group, "consumer") for group in groups.values()]
    with ClusterSamplers([_target(kafka)], processes=1) as samplers:
        _sample_until(samplers, lambda s: owners(s) == {"deleted": ["consumer"], "classic": ["consumer"]})
        for consumer in consumers:
            consumer.close()
        bench.admin.delete_consumer_groups([groups["deleted"]])[groups["deleted"]].result()
        classic = join(groups["classic"], "classic")
        # Refreshes go on meanwhile, and none of their results is delivered.
        time.sleep(2)
        _sample_until(samplers, lambda s: owners(s) == {"deleted": [], "classic": ["classic"]})
        _sample_until(samplers, lambda s: owners(s) == {})
        classic.close()


def test_committed_offsets_of_all_groups_are_listed(kafka: Kafka, bench: Workbench, samplers: ClusterSamplers) -> None:
    topic = bench.name("committed")
    bench.create_topic(topic, 2)
    groups = [bench.name(f"group{i}") for i in range(3)]
    for i, group in enumerate(groups):
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
        offsets = [TopicPartition(topic, p, 10 * i + p) for p in (0, 1)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
    rows = samplers.committed("local", 30).to_pylist()
    found = {(row["group"], row["topic"], row["partition"], row["offset"]) for row in rows}
    assert {(g, topic, p, 10 * i + p) for i, g in enumerate(groups) for p in (0, 1)} <= found


def test_brokers_know_their_groups_and_say_of_others_that_they_have_nothing_committed(
    kafka: Kafka, bench: Workbench, samplers: ClusterSamplers
) -> None:
    topic, names = bench.name("known"), [bench.name(kind) for kind in ("kept", "deleted", "never")]
    bench.create_topic(topic, 1)
    for group in names[:2]:
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        consumer.close()
    assert set(names) & set(samplers.groups("local", 30)) == set(names[:2])
    bench.admin.delete_consumer_groups([names[1]])[names[1]].result()
    assert set(names) & set(samplers.groups("local", 30)) == {names[0]}
    assert sorted(samplers.groups_without_offsets("local", names, 30)) == sorted(names[1:])


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (ClientProfile(), "Connection refused"),
        (ClientProfile(librdkafka={"no.such.setting": Secret("1")}), "no.such.setting"),
    ],
)
def test_an_unreachable_cluster_has_an_error_and_does_not_affect_the_others(
    kafka: Kafka, profile: ClientProfile, words: str
) -> None:
    unreachable = SamplingTarget("unreachable", Connection((_UNREACHABLE,), profile))
    with ClusterSamplers([unreachable, _target(kafka)], processes=1) as samplers:
        _sample_until(samplers, lambda s: s.error is None)
        for _ in range(2):
            samples = samplers.sample(10)
            assert list(samples) == ["unreachable", "local"]
            assert words in (samples["unreachable"].error or "")
            assert samples["unreachable"].topics == ()
            assert samples["local"].error is None
        with pytest.raises(ClusterError, match=words):
            samplers.committed("unreachable", 2)


def test_a_late_response_is_never_taken_for_a_newer_one(bench: Workbench, samplers: ClusterSamplers) -> None:
    pid = _only_child()
    os.kill(pid, signal.SIGSTOP)
    assert _sample(samplers, 0.3).error == "no answer within 0.3 s"
    with pytest.raises(ClusterError, match="no answer within"):
        samplers.committed("local", 0.3)
    os.kill(pid, signal.SIGCONT)
    requested_at_ms = steady_ms()
    sample = _sample(samplers)
    assert sample.error is None
    assert sample.ends_at_ms[0] >= requested_at_ms
    assert _only_child() == pid


def test_the_processes_ignore_interrupts(samplers: ClusterSamplers) -> None:
    pid = _only_child()
    os.kill(pid, signal.SIGINT)
    assert _sample(samplers).error is None
    assert _only_child() == pid


def test_a_killed_process_is_restarted(samplers: ClusterSamplers) -> None:
    pid = _only_child()
    os.kill(pid, signal.SIGKILL)
    assert _sample_until(samplers, lambda s: s.error is None).topics
    assert _only_child() != pid


def test_a_request_is_sent_again_when_its_process_is_killed(samplers: ClusterSamplers) -> None:
    pid = _only_child()
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
    killer.start()
    assert _sample(samplers, _PATIENCE_S).topics
    killer.join()


def test_a_process_that_does_not_respond_is_replaced(
    samplers: ClusterSamplers, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = _only_child()
    os.kill(pid, signal.SIGSTOP)
    assert _sample(samplers, 0.3).error == "no answer within 0.3 s"
    monkeypatch.setattr("warren.kafka.sampler._MAX_SILENCE_S", 0.1)
    assert _sample(samplers, _PATIENCE_S).topics
    assert _only_child() != pid


def test_close_ends_even_a_process_that_does_not_respond(kafka: Kafka) -> None:
    with ClusterSamplers([_target(kafka)], processes=1):
        os.kill(_only_child(), signal.SIGSTOP)
    assert not [p for p in multiprocessing.active_children() if p.name.startswith("warren sampler")]


def test_processes_end_when_their_parent_is_killed() -> None:
    script = (
        "import time\n"
        "from warren.config.kafka import Connection\n"
        "from warren.kafka.samples import SamplingTarget\n"
        "from warren.kafka.sampler import ClusterSamplers\n"
        "if __name__ == '__main__':\n"
        f"    targets = [SamplingTarget(name, Connection(('{_UNREACHABLE}',))) for name in 'ab']\n"
        "    samplers = ClusterSamplers(targets, processes=2)\n"
        "    samplers.sample(1.0)\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    parent.kill()
    # The children hold the same pipe, so it ends only when the last of them has.
    assert parent.stdout.read() == ""
    parent.stdout.close()
    parent.wait()


def test_only_the_partitions_of_a_broker_that_is_down_are_unknown() -> None:
    with KafkaTrio() as kafka:
        bench = Workbench(kafka.bootstrap)
        alone, together = bench.name("alone"), bench.name("together")
        bench.create_topic(alone, 9, replicas=1)
        bench.create_topic(together, 3, replicas=3)
        heads = list(range(1, 10))
        bench.fill(alone, heads)
        bench.fill(together, [4, 4, 4])
        leaders = bench.leaders(alone)
        with ClusterSamplers([_target(kafka, together, topic_refresh_s=3600)], processes=1) as samplers:
            _sample_until(samplers, lambda s: _offsets_of(s, alone)[0] == heads)
            kafka.kill(2)
            left = [UNKNOWN if leader == 2 else head for head, leader in zip(heads, leaders, strict=True)]
            while (
                _offsets_of(sample := _sample(samplers, 5), together)[0] != [4, 4, 4]
                or _offsets_of(sample, alone)[0] != left
            ):
                known = _offsets_of(sample, alone)[0]
                assert all(head in (UNKNOWN, expected) for head, expected in zip(known, left, strict=False)), (
                    known,
                    left,
                )
            assert {p: e.end for p, e in sample.ends[together].items()} == {0: 4, 1: 4, 2: 4}
            kafka.start(2)
            _sample_until(samplers, lambda s: _offsets_of(s, alone)[0] == heads)


def test_clusters_change_while_the_others_keep_their_connections(kafka: Kafka, bench: Workbench) -> None:
    name = bench.name("changes")
    bench.create_topic(name, 1)
    local = _target(kafka, topic_refresh_s=3600)
    second = replace(local, cluster="second")
    with ClusterSamplers([local], processes=1) as samplers:
        version = _sample_until(samplers, lambda s: s.error is None and name in _ids(s)).versions.layout
        child = _only_child()
        samplers.change([local, second])
        samples = samplers.sample(20.0)
        assert {cluster: sample.error for cluster, sample in samples.items()} == {"local": None, "second": None}
        # The version of its topics is that of its sampler: it is the one from before.
        assert samples["local"].versions.layout == version
        assert _ids(samples["second"]).keys() == _ids(samples["local"]).keys()
        samplers.change([replace(local, connection=Connection((_UNREACHABLE,))), second])
        assert samplers.sample(1.0)["local"].error is not None
        os.kill(child, signal.SIGKILL)
        _until(lambda: samplers.sample(20.0)["second"].error is None)
        samplers.change([second])
        assert samplers.sample(20.0).keys() == {"second"}
        with pytest.raises(ClusterError, match="cluster local: it is not configured any more"):
            samplers.groups("local", 1.0)


def test_the_clusters_are_spread_over_the_processes(kafka: Kafka) -> None:
    targets = [replace(_target(kafka), cluster=name) for name in ("a", "b", "c")]
    with ClusterSamplers(targets[:1], processes=2) as samplers:
        samplers.change(targets)
        assert len(_children()) == 2
        assert all(sample.error is None for sample in samplers.sample(20.0).values())
        samplers.change(targets[1:2])
        assert len(_children()) == 1
        assert samplers.sample(20.0)["b"].error is None

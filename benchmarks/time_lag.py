"""What lag in time costs: requests to the brokers for times of records, and head history per partition.

    python -m benchmarks.time_lag [--partitions 2000] [--seconds 60]

A whole Warren with a trigger of 10 s watches a real broker behind a proxy that counts requests by their kind. Records
have timestamps over six hours. First nobody is behind; then groups stand still that are up to six hours behind, further
than the head history reaches back; then they read on with every cycle. The head history is a day of samples of made-up
heads, thinned as Warren thins it.
"""

import argparse
import socket
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from msgspec import structs

from benchmarks.conditions import show
from tests.kit.proxies import Proxy, proxied_listeners
from tests.kit.timed_groups import is_committed
from tests.kit.warrens import WarrenRun, sections_for, wait_for
from warren.demo.broker import Kafka, free_ports
from warren.demo.workload.topics import PAYLOAD, admin, create_topics, new_producer
from warren.domain.time_lag import TimeLagMethod
from warren.kafka.samples import ClusterSample, Topic
from warren.pipeline.head_files import HISTORY_MS, HeadFiles, thin_history
from warren.snapshot.manifest import HeadSample
from warren.snapshot.store import Store

TOPIC_WIDTH = 100
RECORDS = 100
SPAN_MS = 6 * 3_600_000
TRIGGER_S = 10.0
LIST_OFFSETS = 2


class CountingProxy(Proxy):
    """A proxy in front of a broker that counts the requests of each kind, by their API key."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[int] = Counter()

    def _receive(self, client: socket.socket, delayed: "SimpleQueue[tuple[float, bytes]]") -> None:
        super()._receive(_CountedRequests(client, self.requests), delayed)  # type: ignore[arg-type]


class _CountedRequests:
    """What a client sends, with a count of its requests: each begins with its size and its API key."""

    def __init__(self, client: socket.socket, requests: Counter[int]) -> None:
        self._client, self._requests = client, requests
        self._start, self._left = b"", 0

    def recv(self, size: int) -> bytes:
        data = rest = self._client.recv(size)
        while rest:
            if self._left:
                skipped = min(self._left, len(rest))
                rest, self._left = rest[skipped:], self._left - skipped
                continue
            needed = 6 - len(self._start)
            self._start, rest = self._start + rest[:needed], rest[needed:]
            if len(self._start) == 6:
                length, key = struct.unpack(">ih", self._start)
                self._requests[key] += 1
                self._start, self._left = b"", length - 2
        return data


def main() -> None:
    """One table of requests, one of the head history."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [head_history(Path(folder) / trigger, int(trigger)) for trigger in ("10", "60")]
    show("head_history", rows)
    ports, behind = free_ports(), free_ports(1)
    with CountingProxy() as proxy, tempfile.TemporaryDirectory() as folder:
        proxy.target = behind[0]
        listeners = proxied_listeners(*ports, COUNTED=(behind[0], proxy.port))
        with Kafka(fast_start=False, memory="1g", ports=ports, config=listeners) as kafka:
            topics = fill(kafka.bootstrap, options.partitions)
            sections = sections_for({"local": proxy.address}, trigger=TRIGGER_S, offset_refresh=10)
            sections["pipeline"]["buckets"] = 8
            sections["cluster.local"]["topic-refresh"] = 60
            with WarrenRun(Path(folder), sections) as run:
                show("time_lag_requests", requests(run, kafka.bootstrap, proxy, topics, options.seconds))


def fill(bootstrap: str, partitions: int) -> list[str]:
    """Topics whose records have timestamps over the last hours; their groups have read everything."""
    topics = [f"topic-{number:04d}" for number in range(partitions // TOPIC_WIDTH)]
    create_topics(bootstrap, dict.fromkeys(topics, TOPIC_WIDTH))
    producer = new_producer(bootstrap, "bench", {"linger.ms": 20, "queue.buffering.max.messages": 10_000_000})
    first_ms = time.time_ns() // 1_000_000 - SPAN_MS
    for record in range(RECORDS):
        time_ms = first_ms + record * SPAN_MS // RECORDS
        for topic in topics:
            for partition in range(TOPIC_WIDTH):
                producer.produce(topic, PAYLOAD, partition=partition, timestamp=time_ms)
        producer.poll(0)
    assert producer.flush(120) == 0
    commit(bootstrap, topics, RECORDS)
    return topics


def commit(bootstrap: str, topics: list[str], offset: int) -> None:
    """One group per topic commits an offset of all its partitions."""
    client = admin(bootstrap)
    for topic in topics:
        partitions = [TopicPartition(topic, partition, offset) for partition in range(TOPIC_WIDTH)]
        request = ConsumerGroupTopicPartitions(f"{topic}-reader", partitions)
        asked = partial(client.alter_consumer_group_offsets, [request], request_timeout=10)
        wait_for(partial(_is_accepted, asked, request.group_id), "the coordinator accepts the commit", 60)


def _is_accepted(asked: Callable[[], Mapping[str, Future[Any]]], group: str) -> bool:
    return is_committed(asked()[group])


def requests(
    run: WarrenRun, bootstrap: str, proxy: CountingProxy, topics: list[str], seconds: float
) -> list[dict[str, object]]:
    """The requests for offsets per minute: by nobody behind, by groups that stand still, and by groups that read on."""
    run.wait_for(lambda s: s.groups().num_rows == len(topics), "all groups are known")
    rows = [{"groups": "the first snapshot", **_counted(proxy, run, 60.0, Counter())}]
    rows.append({"groups": "caught up", **_per_minute(proxy, run, seconds)})
    commit(bootstrap, topics, 1)
    rows.append({"groups": "behind, stopped: first minute", **_per_minute(proxy, run, seconds)})
    rows.append({"groups": "behind, stopped: second minute", **_per_minute(proxy, run, seconds)})
    before, until = Counter(proxy.requests), time.monotonic() + seconds
    for offset in range(2, RECORDS, max(1, round(RECORDS * TRIGGER_S / seconds / 2))):
        commit(bootstrap, topics, offset)
        time.sleep(max(min(TRIGGER_S, until - time.monotonic()), 0.0))
        if time.monotonic() >= until:
            break
    rows.append({"groups": "behind, reading on", **_counted(proxy, run, seconds, before)})
    return rows


def _per_minute(proxy: CountingProxy, run: WarrenRun, seconds: float) -> dict[str, object]:
    before = Counter(proxy.requests)
    time.sleep(seconds)
    return _counted(proxy, run, seconds, before)


def _counted(proxy: CountingProxy, run: WarrenRun, seconds: float, before: Counter[int]) -> dict[str, object]:
    """How many requests there were since a count, and what is known of the partitions now."""
    sent = proxy.requests - before
    table = run.wait_for(lambda s: s, "a snapshot").partitions(["behind_method", "unread_error_ms"])
    methods, error_ms = table["behind_method"].to_numpy(), table["unread_error_ms"].to_numpy()
    return {
        "partitions": table.num_rows,
        "offset_requests_per_minute": round(sent[LIST_OFFSETS] * 60 / seconds),
        "all_requests_per_minute": round(sum(sent.values()) * 60 / seconds),
        "by_record_time": int((methods == TimeLagMethod.RECORD_TIME).sum()),
        "at_least": int((methods == TimeLagMethod.AT_LEAST).sum()),
        "may_be_off_by_s": round(int(error_ms.max()) / 1000),
    }


def head_history(folder: Path, trigger_s: int, partitions: int = 100_000) -> dict[str, object]:
    """A day of samples, thinned as they come: how many are kept, and how many bytes of disk per partition."""
    store = Store(folder)
    store.create()
    heads = np.random.default_rng(0).integers(0, 1 << 40, partitions)
    topics = tuple(Topic(f"topic-{number:05d}", "id", TOPIC_WIDTH) for number in range(partitions // TOPIC_WIDTH))
    sample = ClusterSample("local", heads_at_ms=(0, 0), topics=topics, heads=heads, log_starts=np.zeros_like(heads))
    written = HeadFiles(store, None).write(1, ["local"], {"local": sample})
    history: tuple[HeadSample, ...] = ()
    for now_ms in range(0, HISTORY_MS + 1, trigger_s * 1000):
        taken = structs.replace(written, taken_ms={"local": (now_ms, now_ms)})
        history = thin_history((*history, taken), now_ms)
    size = sum(kept.heads.size for kept in history) + written.layout.size
    return {
        "trigger_s": trigger_s,
        "samples": len(history),
        "bytes_per_sample_and_partition": round(written.heads.size / partitions, 1),
        "bytes_per_partition": round(size / partitions),
    }


if __name__ == "__main__":
    main()

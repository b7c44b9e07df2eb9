"""A producer with a constant rate."""

import math
import time
from dataclasses import dataclass, field

import confluent_kafka

from warren.demo.workload.thread import WorkloadThread
from warren.demo.workload.topics import PAYLOAD, count_partitions, new_producer

_TICK_S = 0.02
_FLUSH_S = 10.0
_FULL_QUEUE_WAIT_S = 0.1


def messages_due(rate: float, elapsed_s: float, burst_every_s: float = 0.0) -> int:
    """How many messages a rate amounts to after so long, evenly or in bursts."""
    if burst_every_s > 0:
        elapsed_s = math.floor(elapsed_s / burst_every_s) * burst_every_s
    return math.floor(rate * elapsed_s)


@dataclass(eq=False, repr=False)
class Producer(WorkloadThread):
    """Writes `rate` messages per second to a topic, evenly to all partitions.

    The rate is exact over time: a delay is made up for. With `burst_every_s` the messages of that many seconds are
    written at once. No message is written twice when a broker goes away and comes back, unless `is_idempotent` is
    False, as brokers before 0.11 need it.
    """

    bootstrap: str
    topic: str
    rate: float
    burst_every_s: float = field(default=0.0, kw_only=True)
    is_idempotent: bool = field(default=True, kw_only=True)
    produced: int = field(init=False, default=0)
    """How many messages it has written since it was created."""
    _started_at: float | None = field(init=False, default=None)

    @property
    def name(self) -> str:
        """The topic it writes to."""
        return f"producer of {self.topic}"

    def _session(self) -> None:
        settings = {"enable.idempotence": self.is_idempotent, "linger.ms": 2}
        producer = new_producer(self.bootstrap, f"demo-producer-{self.topic}", settings)
        try:
            partitions = count_partitions(producer, self.topic)
            if self._started_at is None:
                # The clock starts with the first delivered message: the first delivery takes about a second.
                self._write(producer, 1, partitions)
                producer.flush(_FLUSH_S)
                self._started_at = time.monotonic() - 1 / self.rate
            tick_s = max(_TICK_S, min(1 / self.rate, 0.2))
            while not self._stopping.wait(tick_s):
                due = messages_due(self.rate, time.monotonic() - self._started_at, self.burst_every_s)
                self._write(producer, due - self.produced, partitions)
                producer.poll(0)
        finally:
            producer.flush(_FLUSH_S)

    def _write(self, producer: confluent_kafka.Producer, count: int, partitions: int) -> None:
        for _ in range(count):
            try:
                producer.produce(self.topic, PAYLOAD, partition=self.produced % partitions)
            except BufferError:
                # The brokers are down and the queue is full: the rest is still due at the next tick.
                self._stopping.wait(_FULL_QUEUE_WAIT_S)
                return
            self.produced += 1
